"""The one writer of a node: what waits in its logs is committed together, in one statement.

The statement does three things, and all of them or none: it looks whether the node is still the one it was, and locks
that (see `node_lease`); it moves the end of each session's log on, if the session is ours and its log ends where we
left it; and it adds the entries of the sessions for which that was true. One statement and no `BEGIN … COPY … COMMIT`:
a process that is paused between two statements holds locks that keep others from taking over, and in groups of a
hundred one statement is faster too (`./dev bench`). The end of the log makes a repetition harmless: a statement whose
outcome got lost with the connection is asked about (`_outcome`), under the lock that it would still hold.

A group is waiting (in the logs), being written, or done (`PostgresLog.on_written` was called). While the database is
away a group is tried again until the lease is lost, so that what a session wants to say waits and is not lost.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.limits import MIB
from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.database import Database, OwnConnection, is_refusal, reason_of
from dragoman.store.postgres.figures import StoreFigures
from dragoman.store.postgres.node_lease import LeaseState, NodeLease

if TYPE_CHECKING:
    from dragoman.store.postgres.log import PostgresLog

_log: Final = logging.getLogger(__name__)

# About how much is sent in one statement; a single entry may be larger.
_GROUP_BYTES: Final = 4 * MIB
# Pauses between tries while the database is away.
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_OVER: Final = "the session is not open here any more"
# The fence of a session says who owns it. Its owner is not compared as well: where the database does not know yet how
# many sessions a node owns it would look at all of these, for each part of a group.
_APPEND: Final = """
    WITH current AS (SELECT 1 FROM dragoman.node WHERE id = $1 AND incarnation = $2 FOR SHARE),
    moved AS (
        UPDATE dragoman.session SET last_sequence = part.last, appended = greatest($3, activity + 1)
        FROM unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[]) AS part (id, fence, previous, last)
        WHERE session.id = part.id AND session.fence = part.fence AND last_sequence = part.previous
        AND EXISTS (SELECT 1 FROM current) RETURNING session.id, session.fence
    ),
    added AS (
        INSERT INTO dragoman.entry (session, sequence, kind, body, fence)
        SELECT session, sequence, kind, body, moved.fence
        FROM unnest($8::text[], $9::bigint[], $10::text[], $11::bytea[]) AS row (session, sequence, kind, body)
        JOIN moved ON moved.id = session
    )
    SELECT id FROM moved
"""
# The lock waits for a statement of ours that the server may still be running.
_ENDS: Final = """
    SELECT session.id, last_sequence FROM dragoman.session
    JOIN unnest($1::text[], $2::bigint[]) AS part (id, fence) ON session.id = part.id AND session.fence = part.fence
    FOR UPDATE OF session
"""


class LogPart(NamedTuple):
    """What one log has for a group: rows behind its entry number `previous`."""

    log: "PostgresLog"
    previous: int
    rows: Sequence[tuple[str, bytes]]

    @property
    def last(self) -> int:
        """The number of the log's last entry after this."""
        return self.previous + len(self.rows)


class GroupCommit:
    """Commits for one lease. `now` returns microseconds since 1970."""

    def __init__(self, database: Database, lease: NodeLease, now: Callable[[], int], figures: StoreFigures) -> None:
        self._lease = lease
        self._figures = figures
        self._now = now
        # Logs with something to write, in the order in which they asked; a log is in it once.
        self._ready: dict[PostgresLog, None] = {}
        self._wakes = asyncio.Event()
        # Its own: a commit never waits for a connection that a reader has.
        self._connection: Final = OwnConnection(database)
        # The try that is made now; it is ended when the lease is lost.
        self._try: asyncio.Timeout | None = None
        self._is_ending = False
        self._task = asyncio.create_task(self._write_groups())

    def __repr__(self) -> str:
        return f"<GroupCommit of {self._lease!r} logs={len(self._ready)}>"

    @property
    def has_ended(self) -> bool:
        """Whether nothing is written any more."""
        return self._task.done() or self._lease.state is LeaseState.LOST

    def put(self, log: "PostgresLog") -> None:
        """Commit what waits in a log, soon; it fails after the end."""
        if self._task.done():
            # Not called at once: a caller must not get its callback before `append` has returned.
            asyncio.get_running_loop().call_soon(log.fail, _over())
            return
        self._ready[log] = None
        self._wakes.set()

    def stop_trying(self) -> None:
        """End a try that waits for the database: the lease is lost, and nothing that it brings counts."""
        attempt, self._try = self._try, None
        if attempt is not None:
            attempt.reschedule(asyncio.get_running_loop().time())

    async def close(self) -> None:
        """Commit what waits, and end."""
        self._is_ending = True
        self._wakes.set()
        await self._task

    async def _write_groups(self) -> None:
        try:
            while self._ready or not self._is_ending:
                if not self._ready:
                    self._wakes.clear()
                    await self._wakes.wait()
                await self._write_group()
        finally:
            self._connection.drop()

    async def _write_group(self) -> None:
        """Write as much of what waits as one statement takes."""
        # The logs take turns: one that floods writes a group's worth, and the others come before it writes again.
        parts: list[LogPart] = []
        size = 0
        while self._ready and size < _GROUP_BYTES:
            log = next(iter(self._ready))
            del self._ready[log]
            part = log.take_part(_GROUP_BYTES - size)
            if part is not None:
                parts.append(part)
                size += sum(len(body) for _, body in part.rows)
        # A part without rows is a flush: what it waits for was written before, as groups are written one by one.
        outcomes = await self._commit([part for part in parts if part.rows])
        for part in parts:
            outcome = outcomes.get(part.log.meta.id)
            part.log.on_written(part, outcome)
            if isinstance(outcome, _NotOurs):
                part.log.lose()
            if part.log.has_waiting:
                self.put(part.log)

    async def _commit(self, parts: Sequence[LogPart]) -> dict[str, StoreFailed]:
        """Commit, as often as it takes; return what failed, by session."""
        if not parts:
            return {}
        pause = _FIRST_PAUSE
        is_unsure = False
        while self._lease.state is not LeaseState.LOST:
            try:
                async with asyncio.timeout(None) as self._try:
                    if is_unsure:
                        parts = await self._outcome(parts)
                        is_unsure = False
                    return await self._append(parts) if parts else {}
            except Exception as error:
                # What was sent may have been done, or may still be: a new connection is asked about it.
                self._connection.drop()
                # A refusal has an outcome: nothing was written. It is no reason to try the same again.
                if is_refusal(error):
                    return await self._apart(parts, error)
                is_unsure = True
                self._figures.tried_again += 1
                _log.warning("the database is away: %s", reason_of(error) or type(error).__name__)
            finally:
                self._try = None
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        return dict.fromkeys((part.log.meta.id for part in parts), _over())

    async def _apart(self, parts: Sequence[LogPart], error: Exception) -> dict[str, StoreFailed]:
        """Commit each part of a refused group by itself: what is wrong with one is not the others'."""
        if len(parts) == 1:
            return {parts[0].log.meta.id: _failed(error)}
        outcomes: dict[str, StoreFailed] = {}
        for part in parts:
            outcomes |= await self._commit([part])
        return outcomes

    async def _append(self, parts: Sequence[LogPart]) -> dict[str, StoreFailed]:
        connection = await self._connection.get()
        rows = [
            (part.log.meta.id, number, kind, body)
            for part in parts
            for number, (kind, body) in enumerate(part.rows, part.previous + 1)
        ]
        sessions, sequences, kinds, bodies = zip(*rows, strict=True)
        moved = await connection.fetch(
            _APPEND,
            *(self._lease.name, self._lease.incarnation, self._now()),
            *([part.log.meta.id for part in parts], [part.log.fence for part in parts]),
            *([part.previous for part in parts], [part.last for part in parts]),
            *(sessions, sequences, kinds, bodies),
        )
        written = {row["id"] for row in moved}
        # A session that is not ours any more, or whose log has another end, was left out; the others are written.
        lost = [part.log.meta.id for part in parts if part.log.meta.id not in written]
        self._figures.groups += 1
        self._figures.entries += sum(len(part.rows) for part in parts if part.log.meta.id in written)
        self._figures.fenced += len(lost)
        if lost and not written and not await self._is_ours():
            self._lease.lose()
        return {session_id: _NotOurs(_OVER) for session_id in lost}

    async def _outcome(self, parts: Sequence[LogPart]) -> Sequence[LogPart]:
        """Return the parts that were not written: asked under the lock of a statement that may still be running."""
        connection = await self._connection.get()
        found = await connection.fetch(_ENDS, [part.log.meta.id for part in parts], [part.log.fence for part in parts])
        # A part whose session is gone is tried again, and is refused then.
        ends = {row["id"]: row["last_sequence"] for row in found}
        return [part for part in parts if ends.get(part.log.meta.id) != part.last]

    async def _is_ours(self) -> bool:
        query = "SELECT true FROM dragoman.node WHERE id = $1 AND incarnation = $2"
        connection = await self._connection.get()
        return bool(await connection.fetchval(query, self._lease.name, self._lease.incarnation))


class _NotOurs(StoreFailed):
    """The fence has refused an append."""


def _over() -> StoreFailed:
    return StoreFailed(_OVER)


def _failed(error: Exception) -> StoreFailed:
    failure = StoreFailed(reason_of(error) or "the session store failed")
    failure.__cause__ = error
    return failure
