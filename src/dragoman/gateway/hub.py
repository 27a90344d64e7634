"""Everything that is open: connections, agents, rooms; who owns what, and what ends when.

A connection that nobody reads is kept for `KEPT_SECONDS`, so that its client can come back to it; what it started
goes on after that until it is done.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from dragoman import limits
from dragoman.errors import INTERNAL_ERROR, RequestFailed
from dragoman.gateway.back import Agents, Back
from dragoman.gateway.connection import Connection, Full, Kind
from dragoman.gateway.front import Front
from dragoman.gateway.guard import Pass
from dragoman.gateway.logbook import Logbook, connection_name, principal_name
from dragoman.gateway.metrics import Measured
from dragoman.gateway.owners import Owners
from dragoman.gateway.rooms import Room
from dragoman.gateway.waking import start_failure
from dragoman.gateway.window import GOING_AWAY, Window
from dragoman.vocabulary.hello import ClientHello

# A laptop that was closed for a coffee finds its connection again.
KEPT_SECONDS: Final = 600.0
_SWEEP_SECONDS: Final = 5.0
# Each costs some tens of kibibytes while it is idle.
CONNECTIONS: Final = 4096
CONNECTIONS_EACH: Final = 2048
# When the server stops, a turn that was cancelled may say so for so long, and the last words may be read.
_CANCEL_SECONDS: Final = limits.CANCEL_GRACE_SECONDS + 0.5
_LOOK_SECONDS: Final = 0.01
_LAST_LOOKS: Final = 100
_PATHS: Final = frozenset({"/", "/acp", "/acp/rpc", "/acp/sse", "/health", "/ready", "/metrics"})

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
        log: Logbook | None = None,
    ) -> None:
        self.connections: Final[dict[str, Front]] = {}
        self.rooms: Final[dict[str, Room]] = {}
        self.backs: Final[set[Back]] = set()
        self.owners: Final = owners or Owners()
        self.counts: Final[Counter[str]] = Counter()
        self.measured: Final = Measured()
        self.log: Final = log or Logbook()
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
        connection = Connection(kind, entrance, self.measured.chunk.observe)
        front = self.connections[connection.id] = Front(self, connection)
        self.counts["connections"] += 1
        name = connection_name(connection.id)
        self.log.info("connection_opened", connection=name, principal=principal_name(entrance.principal), kind=kind)
        return front

    def find(self, connection_id: str, entrance: Pass) -> Front | None:
        """A connection of this principal; another's is as unknown as one that never was."""
        front = self.connections.get(connection_id)
        return front if front is not None and not front.ended and front.principal == entrance.principal else None

    async def end(self, front: Front, *, with_work: bool) -> None:
        """End a connection."""
        connection = front.connection
        if self.connections.pop(connection.id, None) is not None:
            seconds = round(asyncio.get_running_loop().time() - connection.opened_at, 3)
            name, principal = connection_name(connection.id), principal_name(front.principal)
            self.log.info("connection_closed", connection=name, principal=principal, seconds=seconds)
        await front.end(with_work=with_work)

    def end_soon(self, front: Front) -> None:
        """The same, from where nobody can wait."""
        if not front.ended:
            task = asyncio.get_running_loop().create_task(self.end(front, with_work=False))
            self._endings.add(task)
            task.add_done_callback(self._endings.discard)

    async def sweep(self, is_valid: Callable[[str], bool]) -> None:
        """For as long as the server runs: end what nobody came back to, and whatever has lost its token; let agents
        sleep that have nothing to do."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self._kept_seconds, self._agents.idle_seconds or _SWEEP_SECONDS))
            for back in list(self.backs):
                back.look(loop.time())
            for front in list(self.connections.values()):
                connection = front.connection
                if not is_valid(connection.entrance.token):
                    await self.end(front, with_work=True)
                elif not connection.readers and loop.time() - connection.alone_since > self._kept_seconds:
                    await self.end(front, with_work=False)

    async def close(self, grace: float) -> None:
        """Let turns end within a bound, and what was said arrive; then end everything. What is stored can be resumed.
        No turn begins meanwhile."""
        self.closing = True
        running = sum(room.running for room in self.rooms.values())
        self.log.info("stopping", turns=running, grace=grace)
        await self._all_quiet(grace)
        interrupted = [room for room in self.rooms.values() if room.running]
        for room in interrupted:
            room.cancel()
        await self._all_quiet(_CANCEL_SECONDS)
        self.log.info("stopped", interrupted=len(interrupted))
        await asyncio.gather(*(back.close() for back in list(self.backs)), return_exceptions=True)
        for _ in range(_LAST_LOOKS):
            if not any(window.reader is not None and window.unread for window in self._windows()):
                break
            await asyncio.sleep(_LOOK_SECONDS)
        for window in self._windows():
            window.close(GOING_AWAY)
        await asyncio.gather(*(self.end(front, with_work=True) for front in list(self.connections.values())))
        await asyncio.gather(*self._endings, return_exceptions=True)

    async def _all_quiet(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for room in list(self.rooms.values()):
                    await room.quiet.wait()

    def _windows(self) -> list[Window]:
        connections = [front.connection for front in self.connections.values()]
        return [window for one in connections for window in (one.main, *one.sessions.values())]

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

    @property
    def each_session(self) -> bool:
        """Whether every session has a process of its own."""
        return self._agents.each_session

    async def new_back(self, origin: Front, hello: ClientHello) -> Back:
        """An agent for a connection, or for one of its sessions. `RequestFailed` says why there is none."""
        back = None
        try:
            await self.make_room(self._agents.most)
            back = Back(self, origin, self._agents)
            self.backs.add(back)
            await back.greet(hello)
        except BaseException as error:
            if back is not None:
                await back.close()
            raise start_failure(error) from error
        return back

    async def make_room(self, most: int) -> None:
        """One more process may run: else the one that has had nothing to do for longest sleeps, or it is a no."""
        if not most or sum(not back.asleep for back in self.backs) < most:
            return
        for back in sorted(self.backs, key=lambda back: back.idle_since):
            resting = back.rest()
            if resting is not None:
                await asyncio.shield(resting)
                return
        raise RequestFailed(INTERNAL_ERROR, "Too many agents are at work here; try again later", {"retry": True})

    # -- what is told to whoever runs this ---------------------------------------------------------------------------

    def refused(self, status: int, method: str, path: str, address: str) -> None:
        """A request was refused. What is no path of ours is not written down."""
        self.measured.refused[status] += 1
        known = path if path in _PATHS else "other"
        self.log.refusal(status=status, method=method, path=known, address=address)

    def report(self, error: Exception) -> None:
        """A mistake of ours: told to whoever runs this, and to nobody else."""
        self.counts["bugs"] += 1
        if self._report is not None:
            self._report(error)
