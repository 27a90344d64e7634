"""The connections of a gateway: opened within limits, found again by their principal, closed when their time is over.

A connection without a reader is kept for `kept_seconds`, so that its client can come back to it and miss nothing; turns
that it has started go on after that until they end.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from dragoman import limits
from dragoman.gateway.agent_pool import AgentPool
from dragoman.gateway.budget import ByteBudgets
from dragoman.gateway.client_side import ClientSide
from dragoman.gateway.connection import Full, GatewayConnection, Kind
from dragoman.gateway.connection_positions import EmbeddedPositions
from dragoman.gateway.logbook import connection_name, principal_name
from dragoman.gateway.monitor import BackgroundTasks
from dragoman.gateway.replay_buffer import GOING_AWAY, HELD_ALL_BYTES, HELD_EACH_BYTES, ReplayBuffer
from dragoman.gateway.shared_state import SharedPositions
from dragoman.gateway.token_types import TokenIdentity

_log = logging.getLogger(__name__)

IsValid = Callable[[TokenIdentity], Awaitable[bool]]
KEPT_SECONDS: Final = limits.RECONNECT_SECONDS
# Each takes about 100 KiB while it is idle, on a WebSocket twice as much.
CONNECTIONS: Final = 16_384
CONNECTIONS_EACH: Final = 12_288
# Of one share link: each may have an agent's process, and a link is given to people who are not known.
CONNECTIONS_SHARE: Final = 48
# When the server stops, readers may get the messages that are still buffered, until no reader gets any in so many
# checks in a row, and for at most so long.
_CHECK_SECONDS: Final = 0.01
_LAST_CHECKS: Final = 100
_DRAIN_SECONDS: Final = 10.0
# Connections that are looked at in one step of the loop.
_STEP: Final = 128


class Connections(dict[str, ClientSide]):
    """The connections to one agent, by their ids; `open` and `close` change it. `accepts` is False once the server
    stops. `beside`: those to another agent of the same server."""

    def __init__(
        self,
        pool: AgentPool,
        background: BackgroundTasks,
        kept_seconds: float = KEPT_SECONDS,
        *,
        beside: "Connections | None" = None,
    ) -> None:
        super().__init__()
        self.accepts = True
        self.kept_seconds = kept_seconds
        # Of all connections of the server, by principal: its limits hold for them together.
        self._counts: Counter[str] = Counter() if beside is None else beside._counts
        self.budgets: Final[ByteBudgets] = (
            ByteBudgets(HELD_EACH_BYTES, HELD_ALL_BYTES) if beside is None else beside.budgets
        )
        # Where other servers see how far they are; replaced before the server listens.
        self.positions: SharedPositions = EmbeddedPositions()
        self._pool = pool
        self._monitor = pool.monitor
        self._background = background

    def __repr__(self) -> str:
        readers = sum(client_side.is_connected for client_side in self.values())
        return f"<Connections open={len(self)} connected={readers}>"

    def open(self, kind: Kind, token_identity: TokenIdentity) -> ClientSide:
        """Make a connection. Raise `Full` when there are too many, of this principal or in all."""
        principal, count = token_identity.principal, self._counts.total()
        each = CONNECTIONS_EACH if token_identity.share is None else CONNECTIONS_SHARE
        if not self.accepts or count >= CONNECTIONS or self._counts[principal] >= each:
            _log.warning("a connection was refused: %d are open", count)
            raise Full
        budget = self.budgets.of(token_identity.principal)
        connection = GatewayConnection(kind, token_identity, self._monitor.metrics.chunk.observe, budget)
        client_side = ClientSide(connection, self._pool, self._background, self.close_soon)
        self[connection.id] = client_side
        self.positions.add(connection.id, connection.position)
        self._counts[principal] += 1
        self._monitor.counts["connections"] += 1
        name, shown = connection_name(connection.id), principal_name(principal)
        self._monitor.log.info("connection_opened", connection=name, principal=shown, kind=kind)
        return client_side

    def find(self, connection_id: str, token_identity: TokenIdentity) -> ClientSide | None:
        """Return a connection of this principal, which may do no more than the token that asks for it; any other is as
        unknown as one that never was."""
        client_side = self.get(connection_id)
        if client_side is None or client_side.is_closed or client_side.principal != token_identity.principal:
            return None
        # A token that may only read must not take over the connection of one that may prompt, of the same principal.
        return client_side if token_identity.covers(client_side.connection.token_identity) else None

    async def close(self, client_side: ClientSide, *, with_work: bool) -> None:
        """Close a connection; `with_work`: cancel the turns that only it watches. Waits for its link."""
        connection = client_side.connection
        # Out of the directory before anything waits, so that no request finds a connection that is being closed.
        if self.pop(connection.id, None) is not None:
            self.positions.remove(connection.id)
            self._count_closed(client_side.principal)
            seconds = round(asyncio.get_running_loop().time() - connection.opened_at, 3)
            name, principal = connection_name(connection.id), principal_name(client_side.principal)
            self._monitor.log.info("connection_closed", connection=name, principal=principal, seconds=seconds)
        await client_side.close(with_work=with_work)

    def _count_closed(self, principal: str) -> None:
        self._counts[principal] -= 1
        if not self._counts[principal]:
            del self._counts[principal]  # principals come and go

    def close_soon(self, client_side: ClientSide) -> None:
        """Close a connection in the background, without its work; do nothing if it is closed."""
        if not client_side.is_closed:
            self._background.start(self.close(client_side, with_work=False))

    async def close_expired(self, now: float, is_valid: IsValid, is_logged_in: IsValid) -> None:
        """Close the connections that have had no reader for `kept_seconds` at the loop time `now`, or whose token or
        login is no longer valid. A token that was revoked also stops the work of its connection: a login that is over
        does not, its user may just have closed the browser. What an issuer has granted ends by itself, after minutes:
        the readers of its connection are ended, and the client comes back to it with its next token."""
        for number, client_side in enumerate(list(self.values())):
            if number % _STEP == _STEP - 1:
                await asyncio.sleep(0)  # of thousands that are looked at, no stream waits for all
            with self._monitor.reporting():
                connection = client_side.connection
                if not await is_valid(connection.token_identity):
                    await self.close(client_side, with_work=True)
                elif not connection.readers and now - connection.alone_since > self.kept_seconds:
                    await self.close(client_side, with_work=False)
                elif not await is_logged_in(connection.token_identity):
                    if connection.token_identity.is_granted:
                        for buffer in connection.streams.all():
                            buffer.close(GOING_AWAY)
                    else:
                        await self.close(client_side, with_work=False)

    async def drain(self) -> None:
        """Wait until every reader has all of its buffer, or no reader got anything in `_LAST_CHECKS` checks in a row;
        for at most `_DRAIN_SECONDS`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                await self._drain()

    async def close_all(self) -> None:
        """End every stream with a code that says so, and close every connection with its work."""
        # With a code that tells clients to come back, to another server maybe, and not that they did wrong.
        for buffer in self.buffers():
            buffer.close(GOING_AWAY)
        await asyncio.gather(*(self.close(client_side, with_work=True) for client_side in list(self.values())))

    def buffers(self) -> list[ReplayBuffer]:
        """Return the buffers of all streams."""
        return [buffer for client_side in self.values() for buffer in client_side.connection.streams.all()]

    async def _drain(self) -> None:
        before, checks = -1, 0
        while checks < _LAST_CHECKS:
            readers = [buffer.reader for buffer in self.buffers() if buffer.reader is not None and buffer.unread]
            if not readers:
                return
            steps = sum(reader.steps for reader in readers)
            checks = 0 if steps != before else checks + 1
            before = steps
            await asyncio.sleep(_CHECK_SECONDS)
