"""Everything that is open: connections, agents, rooms; who owns what, and what ends when.

A connection that nobody reads is kept for `KEPT_SECONDS`, so that its client can come back to it; what it started
goes on after that until it is done.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from dragoman.gateway.back import Agents, Back
from dragoman.gateway.connection import Connection, Full, Kind
from dragoman.gateway.front import Front
from dragoman.gateway.guard import Pass
from dragoman.gateway.owners import Owners
from dragoman.gateway.rooms import Room

# A laptop that was closed for a coffee finds its connection again.
KEPT_SECONDS: Final = 600.0
_SWEEP_SECONDS: Final = 5.0
# Each costs some tens of kibibytes while it is idle.
CONNECTIONS: Final = 4096
CONNECTIONS_EACH: Final = 2048

Knows = Callable[[str], Awaitable[bool]]


class Hub:
    """One for a server. `knows` tells whether a session is stored that nobody made through us."""

    def __init__(
        self,
        agents: Agents,
        *,
        owners: Owners | None = None,
        knows: Knows | None = None,
        report: Callable[[Exception], None] | None = None,
        kept_seconds: float = KEPT_SECONDS,
    ) -> None:
        self.connections: Final[dict[str, Front]] = {}
        self.rooms: Final[dict[str, Room]] = {}
        self.backs: Final[set[Back]] = set()
        self.owners: Final = owners or Owners()
        self.counts: Final[Counter[str]] = Counter()
        self.closing = False
        self._agents = agents
        self._knows = knows
        self._report = report
        self._kept_seconds = kept_seconds
        self._endings: set[asyncio.Task[None]] = set()

    # -- connections -------------------------------------------------------------------------------------------------

    def connect(self, kind: Kind, entrance: Pass) -> Front:
        """A new connection. `Full` when there are too many."""
        own = sum(front.principal == entrance.principal for front in self.connections.values())
        if self.closing or len(self.connections) >= CONNECTIONS or own >= CONNECTIONS_EACH:
            raise Full
        connection = Connection(kind, entrance)
        front = self.connections[connection.id] = Front(self, connection)
        self.counts["connections"] += 1
        return front

    def find(self, connection_id: str, entrance: Pass) -> Front | None:
        """A connection of this principal; another's is as unknown as one that never was."""
        front = self.connections.get(connection_id)
        return front if front is not None and not front.ended and front.principal == entrance.principal else None

    async def end(self, front: Front, *, with_work: bool) -> None:
        """End a connection."""
        self.connections.pop(front.connection.id, None)
        await front.end(with_work=with_work)

    def end_soon(self, front: Front) -> None:
        """The same, from where nobody can wait."""
        if not front.ended:
            task = asyncio.get_running_loop().create_task(self.end(front, with_work=False))
            self._endings.add(task)
            task.add_done_callback(self._endings.discard)

    async def sweep(self, is_valid: Callable[[str], bool]) -> None:
        """For as long as the server runs: end what nobody came back to, and whatever has lost its token."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self._kept_seconds))
            for front in list(self.connections.values()):
                connection = front.connection
                if not is_valid(connection.entrance.token):
                    await self.end(front, with_work=True)
                elif not connection.readers and loop.time() - connection.alone_since > self._kept_seconds:
                    await self.end(front, with_work=False)

    async def close(self, grace: float) -> None:
        """Let turns end within a bound, then end everything. What is stored can be resumed."""
        self.closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                for room in list(self.rooms.values()):
                    await room.quiet.wait()
        for front in list(self.connections.values()):
            for window in (front.connection.main, *front.connection.sessions.values()):
                window.close(1001)
        await asyncio.gather(*(self.end(front, with_work=True) for front in list(self.connections.values())))
        await asyncio.gather(*(back.close() for back in list(self.backs)), *self._endings, return_exceptions=True)

    # -- sessions ----------------------------------------------------------------------------------------------------

    def is_mine(self, session_id: str, entrance: Pass) -> bool:
        """Whether a session belongs to this principal. What nobody made through us is the administrators'."""
        owner = self.owners.of(session_id)
        return entrance.may("admin") if owner is None else owner == entrance.principal

    async def exists(self, session_id: str, entrance: Pass) -> bool:
        """Whether there is such a session for this principal."""
        if not self.is_mine(session_id, entrance):
            return False
        if session_id in self.rooms or self.owners.of(session_id) is not None:
            return True
        return self._knows is not None and await self._knows(session_id)

    # -- agents ------------------------------------------------------------------------------------------------------

    def new_back(self, origin: Front) -> Back:
        """An agent for a connection."""
        back = Back(self, origin, self._agents)
        self.backs.add(back)
        return back

    def report(self, error: Exception) -> None:
        """A mistake of ours: told to whoever runs this, and to nobody else."""
        self.counts["bugs"] += 1
        if self._report is not None:
            self._report(error)
