"""The lease of a node: the right of one process to write the logs of the sessions it owns.

A session belongs to a node in one incarnation. The node renews one row, whatever the number of its sessions:

    HELD      renewed less than two thirds of the lease ago
    LATE      not renewed for longer; what works for the sessions has to pause
    LOST      not renewed for a whole lease, or another process has counted the incarnation on; final

Who wants a session of a node whose row has expired counts the node's incarnation on, and takes the session then. Every
append looks at the row, and locks it for as long as it writes, in one statement: the count waits for appends that have
begun, and no append of the old incarnation succeeds after it. So what protects a log is this number and no clock; the
database's clock only says when a node may be taken for dead, and ours when to stop by ourselves.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Final

from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.database import Database, OwnConnection, failures

_log: Final = logging.getLogger(__name__)

LEASE_SECONDS: Final = 15.0
# Shares of a lease: when it is renewed, and when it is late.
_RENEW_AFTER: Final = 1 / 3
_LATE_AFTER: Final = 2 / 3
# A renewal that failed is tried again after this share.
_AGAIN_AFTER: Final = 1 / 30
# What the names of processes begin with that were given none.
NAMELESS: Final = "process-"
# Rows of processes that are gone for so long, and own nothing, are deleted; their names do not come again. That of a
# named node stays: were it counted from 1 again, a process of it that was stopped for days would be taken for the new.
_FORGET: Final = "1 day"
# A new name, or one whose last process is gone: its lease has ended, or was given back. Or that process was this one:
# it has lost its lease by its own clock, and no other has taken the name since.
_TAKE: Final = """
    INSERT INTO dragoman.node (id, incarnation, url, expires)
    VALUES ($1, 1, $2, clock_timestamp() + $3 * interval '1 second')
    ON CONFLICT (id) DO UPDATE
    SET incarnation = node.incarnation + 1, url = excluded.url, expires = excluded.expires, draining = false
    WHERE node.expires < clock_timestamp() OR node.incarnation = $4 RETURNING incarnation
"""
# Also when the lease has ended meanwhile: as long as the incarnation was not counted on, no other process has taken
# anything from us.
_RENEW: Final = """
    UPDATE dragoman.node SET expires = clock_timestamp() + $3 * interval '1 second'
    WHERE id = $1 AND incarnation = $2 RETURNING true
"""
# Expired, and not deleted: the next process of this name goes on from this incarnation.
_GIVE_BACK: Final = "UPDATE dragoman.node SET expires = '-infinity' WHERE id = $1 AND incarnation = $2"
_FORGET_GONE: Final = f"""
    DELETE FROM dragoman.node WHERE id IN (
        SELECT id FROM dragoman.node WHERE id LIKE '{NAMELESS}%' AND expires < clock_timestamp() - interval '{_FORGET}'
        AND NOT EXISTS (SELECT 1 FROM dragoman.session WHERE owner = node.id) FOR UPDATE SKIP LOCKED
    )
"""


class LeaseState(Enum):
    """What a node may do; the module says when it is in which."""

    HELD = "held"
    LATE = "late"
    LOST = "lost"


class NodeRuns(StoreFailed):
    """A process with this node's name is alive."""


class NodeLease:
    """Acquires the row of a node and renews it until `release`.

    `on_change` is called with each new state, `on_renewal` with the times of `time.monotonic()` at which the lease will
    be late, and lost, unless it is renewed again.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        *,
        url: str = "",
        seconds: float = LEASE_SECONDS,
        previous: int = 0,
        on_change: Callable[[LeaseState], None] = lambda state: None,
        on_renewal: Callable[[float, float], None] = lambda late_at, lost_at: None,
    ) -> None:
        """`previous` is the incarnation that this very process has had, and lost; 0: none."""
        self.name: Final = name
        self._previous: Final = previous
        self.incarnation = 0
        # Whether it ended because it was given back.
        self.is_released = False
        self.seconds: Final = seconds
        self._url: Final = url
        self._database = database
        # Its own: a renewal waits for nothing that a session does.
        self._connection: Final = OwnConnection(database)
        self._on_change = on_change
        self._on_renewal = on_renewal
        self._state = LeaseState.LOST
        self._task: asyncio.Task[None] | None = None
        # When the lease becomes late, and when it is lost; a renewal puts them off.
        self._timers: list[asyncio.TimerHandle] = []

    def __repr__(self) -> str:
        return f"<NodeLease {self.name} {self.incarnation} {self._state.value}>"

    @property
    def url(self) -> str:
        """Where other nodes reach this one; empty: they do not."""
        return self._url

    @property
    def state(self) -> LeaseState:
        """What the node may do, as far as it was noticed; `on_change` was called with it."""
        return self._state

    async def acquire(self) -> None:
        """Become this node; raise `NodeRuns` while another process is it. Waits for the database."""
        asked_at = asyncio.get_running_loop().time()
        async with self._database.transaction() as connection:
            incarnation = await connection.fetchval(_TAKE, self.name, self._url, self.seconds, self._previous)
            if incarnation is None:
                raise NodeRuns(f"node {self.name} is running: another process renews its lease")
            await connection.execute(_FORGET_GONE)
        self.incarnation = int(incarnation)
        self._note_renewal(asked_at)
        self._task = asyncio.create_task(self._renew_for_ever())

    def lose(self) -> None:
        """Note that another process has counted the incarnation on: an append was refused for it."""
        if self._task is not None:
            self._task.cancel()
        self._change(LeaseState.LOST)

    async def release(self) -> None:
        """Give the lease back: others may take the sessions at once."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._state is not LeaseState.LOST:
            self.is_released = True
            self._change(LeaseState.LOST)
            with suppress(StoreFailed, TimeoutError):  # it expires by itself
                async with asyncio.timeout(self.seconds), self._database.transaction() as connection:
                    await connection.execute(_GIVE_BACK, self.name, self.incarnation)

    async def _renew_for_ever(self) -> None:
        # Ends with the lease, which the timers end also while a renewal waits for its answer.
        pause = _RENEW_AFTER
        try:
            while self._state is not LeaseState.LOST:
                await asyncio.sleep(self.seconds * pause)
                pause = _RENEW_AFTER if await self._renew() else _AGAIN_AFTER
        finally:
            self._connection.drop()

    async def _renew(self) -> bool:
        """Renew once; return whether that worked. If the lease was taken from us, it is lost."""
        # Counted from before the question: the database writes the end of the lease after that.
        asked_at = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self.seconds * _RENEW_AFTER):
                with failures():
                    connection = await self._connection.get()
                    is_ours = await connection.fetchval(_RENEW, self.name, self.incarnation, self.seconds)
        except (StoreFailed, TimeoutError) as error:
            self._connection.drop()
            _log.warning("the lease of node %s was not renewed: %s", self.name, str(error) or "no answer")
            return False
        if self._state is LeaseState.LOST:
            return False  # the answer came too late, and what was ended for it is not begun again
        if not is_ours:
            self._change(LeaseState.LOST)
            return False
        self._note_renewal(asked_at)
        return True

    def _note_renewal(self, at: float) -> None:
        loop = asyncio.get_running_loop()
        since = time.monotonic() - (loop.time() - at)
        self._on_renewal(since + self.seconds * _LATE_AFTER, since + self.seconds)
        self._change(LeaseState.HELD)
        self._timers = [
            loop.call_at(at + self.seconds * _LATE_AFTER, self._change, LeaseState.LATE),
            loop.call_at(at + self.seconds, self._change, LeaseState.LOST),
        ]

    def _change(self, state: LeaseState) -> None:
        # A lease that is late has a timer that waits for it to be lost; the others of an older renewal are void.
        if state is not LeaseState.LATE:
            for timer in self._timers:
                timer.cancel()
        if state is not self._state:
            _log.info("the lease of node %s is %s", self.name, state.value)
            self._state = state
            self._on_change(state)
