"""The agent's side of the gateway: one agent, shared by all clients subscribed to its sessions.

Its process comes and goes. One that has nothing to do is stopped after a while, where the agent can open its sessions
again; one that dies ends its turns with an error. Either way the next request starts another and opens the session it
is about, with the options it had, and no client has to know. How often in a row a dead one is started is bounded.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from dragoman import limits
from dragoman.bridge.read_gate import ReadGate
from dragoman.dialects.handshake.initialize import SPOKEN
from dragoman.errors import INTERNAL_ERROR, DragomanError, LinkClosed, RequestFailed
from dragoman.gateway.agent_events import AgentEvents
from dragoman.gateway.agent_restart import CHANGED, GONE, backoff, changed_options, missing, start_failure
from dragoman.gateway.agent_source import AgentSource
from dragoman.gateway.ceilings import OPERATOR
from dragoman.gateway.in_flight import InFlightRequest
from dragoman.gateway.logbook import connection_name
from dragoman.gateway.shared_session import SharedSession
from dragoman.link import Link
from dragoman.vocabulary.asking import R, Request
from dragoman.vocabulary.events import OptionsChanged
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.identity import with_identity
from dragoman.vocabulary.requests import CloseSession, PromptRequest

if TYPE_CHECKING:
    from dragoman.gateway.client_side import ClientSide
    from dragoman.gateway.hub import Hub


# A session that was refused is closed in the agent, in the background; its reply is awaited for so long.
_FORSAKE_SECONDS: Final = 10.0


class AgentSide:
    """An agent, whether its process runs now or not."""

    def __init__(self, hub: "Hub", origin: "ClientSide", agents: AgentSource) -> None:
        version = origin.connection.version
        self._spoken = (version,) if version in agents.versions else agents.versions or SPOKEN
        self.hub: Final = hub
        self.origin: Final = origin
        self.sessions: Final[dict[str, SharedSession]] = {}  # by the agent's ids
        self.asked: Final[dict[int, InFlightRequest]] = {}
        self.agent = AgentHello(None)
        self.life = 0  # which process it is
        self.asleep = False  # it has none, and gets one when it is needed
        self.taken = False  # its process is reserved for one session, where every session has its own
        self._agents = agents
        self._hello: ClientHello | None = None
        self._hearing = AgentEvents(self)
        self._closing: asyncio.Task[None] | None = None
        self._over = False
        self._resting: asyncio.Task[None] | None = None
        self._waking = asyncio.Lock()
        self._failures = 0
        self._loop = asyncio.get_running_loop()
        self._used = self._loop.time()
        self._began = self._used
        self._start()

    def _start(self) -> None:
        self._gate = ReadGate(self._agents.open())
        self.link = Link(self._gate, self._hearing, "client", spoken=self._spoken, dialect=self._agents.dialect)
        self.life += 1
        self._began = self._used = self._loop.time()

    async def greet(self, hello: ClientHello) -> AgentHello:
        """Say hello to its process; what it says of itself."""
        self.link.start()
        async with asyncio.timeout(min(self._agents.start_seconds or limits.START_SECONDS, limits.START_SECONDS)):
            self.agent = await self.link.initialize(hello)
        self._hello = hello
        self.hub.log.info("agent_started", connection=self._name, again=self.life > 1)
        return self.agent

    # -- sleeping and waking -----------------------------------------------------------------------------------------

    @property
    def keeps(self) -> bool:
        """Whether another process of this agent can open its sessions again."""
        return self.agent.capabilities.resume or self.agent.capabilities.load

    def is_awake(self, shared: SharedSession | None) -> bool:
        """Whether its process runs and has the session open."""
        return not self.asleep and self._resting is None and (shared is None or shared.life == self.life)

    async def wake(self, shared: SharedSession | None) -> None:
        """Start it again if it sleeps, and have it open the session again."""
        if self._resting is not None:
            await asyncio.shield(self._resting)
        async with self._waking:
            if self._over:
                raise RequestFailed(INTERNAL_ERROR, GONE)
            if self.asleep:
                await self._start_again()
            if shared is not None and self.sessions.get(shared.agent_id) is not shared:
                raise missing(shared.id)  # it was closed while we waited
            if shared is not None and shared.life != self.life:
                await self._reopen(shared)

    async def _start_again(self) -> None:
        assert self._hello is not None
        if self.is_spent:
            raise RequestFailed(INTERNAL_ERROR, f"The agent has failed {self._failures} times; connect anew")
        await asyncio.sleep(backoff(self._failures))
        await self.hub.free_slot(self._agents.most)
        failures = self._failures
        try:
            self._start()
            self.asleep = False
            await self.greet(self._hello)
        except BaseException as error:
            self.asleep = True
            self._failed(failures + 1)
            await self.link.close()
            raise start_failure(error) from error
        if self._over:  # it was closed meanwhile
            await self.link.close()
            raise RequestFailed(INTERNAL_ERROR, GONE)

    def _failed(self, times: int) -> None:
        """It has failed so often in a row. Too often, and its sessions are free for another process to open."""
        self._failures = times
        if self.is_spent:
            self._end_sessions()

    async def _reopen(self, shared: SharedSession) -> None:
        """Open a session in a new process, as it was in the old one."""
        if shared.opening is None or not self.keeps or self.hub.owners.is_unclear(shared.id):
            self._end_session(shared)
            raise RequestFailed(INTERNAL_ERROR, GONE)
        before = shared.opened
        try:
            opened = await self.link.ask(shared.opening)  # by the right of the token that opened it
        except LinkClosed:
            raise RequestFailed(INTERNAL_ERROR, GONE) from None
        except RequestFailed:
            self._end_session(shared)  # it can say that it opens sessions again, and have none
            raise
        shared.is_open(shared.opening, opened, fresh=False)
        for request in changed_options(shared.agent_id, before, opened):
            try:
                shared.options_set(await self._ask(request))
            except RequestFailed:
                # The option may decide what the agent does without asking. Send the clients the options it has now and
                # fail the request that woke it, so that no prompt runs before they have seen them.
                shared.hear(OptionsChanged(shared.opened.config_options or []))
                raise RequestFailed(INTERNAL_ERROR, CHANGED) from None

    async def _ask(self, request: Request[R]) -> R:
        """Ask in our own name."""
        return await self.link.ask(with_identity(request, OPERATOR) if self.hub.ceilings.trusted else request)

    def look(self, now: float) -> None:
        """Let it sleep, if it has had nothing to do for long enough and can be woken without a loss."""
        if self._hearing.stirred() or self._is_busy:
            self._used = now
        if self._agents.idle_seconds and now - self._used >= self._agents.idle_seconds:
            self.rest()

    @property
    def can_rest(self) -> bool:
        """Whether nothing is lost if it sleeps now."""
        if self.asleep or self._hello is None or self._resting or self._closing or self._waking.locked():
            return False
        if self._is_busy:
            return False
        unclear = any(self.hub.owners.is_unclear(shared.id) for shared in self.sessions.values())
        return not self.sessions or (self.keeps and not unclear)

    @property
    def _is_busy(self) -> bool:
        """Return whether a request is in flight, a turn or a replay runs, or a question of the agent is open."""
        return bool(self.asked) or any(one.running or one.waits or one.retelling for one in self.sessions.values())

    @property
    def is_spent(self) -> bool:
        """Whether it has failed too often to be started again."""
        return self._failures > self._agents.restarts

    @property
    def closing(self) -> bool:
        """Whether it ends, or has ended."""
        return self._over or self._closing is not None

    @property
    def idle_since(self) -> float:
        """Return the loop time of its last known work; `look` updates it while the agent is busy."""
        return self._used

    def rest(self) -> "asyncio.Task[None] | None":
        """Stop its process, if that loses nothing."""
        if not self.can_rest:
            return None
        self._resting = self._loop.create_task(self._rest())
        return self._resting

    async def _rest(self) -> None:
        self.asleep = True
        try:
            await self.link.close()
        finally:
            self._resting = None
        self.hub.counts["agents_rested"] += 1
        self.hub.log.info("agent_stopped", connection=self._name, why="idle")

    def take(self) -> bool:
        """Reserve its process for one session; return False if it is reserved already or has sessions."""
        if self.taken or self.sessions:
            return False
        self.taken = True
        return True

    def untake(self) -> None:
        """The session was opened, or was not."""
        self.taken = bool(self.sessions)
        self.settle()

    # -- rooms -------------------------------------------------------------------------------------------------------

    def shared(self, session_id: str, agent_id: str) -> SharedSession:
        """Create and register the `SharedSession` of one more session of this agent; it must not be open already."""
        assert session_id not in self.hub.sessions and agent_id not in self.sessions
        shared = self.sessions[agent_id] = self.hub.sessions[session_id] = SharedSession(session_id, self, agent_id)
        return shared

    def adopt(self, session_id: str, agent_id: str, client_side: "ClientSide") -> SharedSession:
        """A session whose id has become known; what was heard of it before is heard now."""
        shared = self.shared(session_id, agent_id)
        shared.enter(client_side)
        for held in self._hearing.pending_events.take(agent_id):
            shared.hear(held.event, held.size)
        return shared

    def give_way(self, agent_id: str) -> None:
        """Its process has given this id to a new session, so one that an older process called so is over."""
        shared = self.sessions.get(agent_id)
        if shared is not None and shared.life != self.life:
            self._end_session(shared)

    async def close_unopened(self, shared: SharedSession) -> None:
        """Close a session in the agent that only read-only clients have opened, so without its MCP servers: a client
        that may prompt opens it again with them. Waits for the reply and ignores an error. Does nothing while the
        agent's process does not have it open, while a turn runs, or if the agent cannot close sessions."""
        if self.is_awake(shared) and self.agent.capabilities.close and not shared.running:
            with suppress(DragomanError):
                await self._ask(CloseSession(shared.agent_id))

    async def forsake(self, agent_id: str) -> None:
        """Close a session in the agent that was refused here, if the agent can close sessions. Waits for the reply for
        at most `_FORSAKE_SECONDS`; a failure is only counted."""
        if self.agent.capabilities.close and agent_id not in self.sessions:
            try:
                async with asyncio.timeout(_FORSAKE_SECONDS):
                    await self._ask(CloseSession(agent_id))
            except (DragomanError, TimeoutError):
                self.hub.counts["noise"] += 1

    def drop(self, shared: SharedSession) -> None:
        """The session is closed."""
        if self.sessions.get(shared.agent_id) is shared:
            del self.sessions[shared.agent_id]
        if self.hub.sessions.get(shared.id) is shared:
            del self.hub.sessions[shared.id]
        for client_side in list(shared.subscribers):
            shared.leave(client_side)
            client_side.connection.forget(shared.id)
        if not self.sessions:
            self.taken = False
            self.settle()

    def ended(self, session_id: str) -> None:
        """A turn is over."""
        for number, asked in list(self.asked.items()):
            if isinstance(asked.request, PromptRequest) and asked.request.session_id == session_id:
                del self.asked[number]
        self._used = self._loop.time()
        self.settle()

    def went_well(self) -> None:
        """A turn has ended as it should: what failed before counts no more."""
        self._failures = 0

    def settle(self, *, now: bool = False) -> None:
        """Close it in a task if it is no longer needed: the client it was started for is gone (or it was for one
        session, which is closed), no session has a subscriber and no turn runs. `now`: a running turn does not keep it
        open."""
        if (
            self._over
            or self._closing is not None
            or (not self.origin.ended and (self.sessions or self.taken or self._is_spare))
        ):
            return
        if any(shared.subscribers or (shared.running and not now) for shared in self.sessions.values()):
            return
        self._closing = self._loop.create_task(self.close())

    @property
    def _is_spare(self) -> bool:
        """Whether it stands behind the connection itself, and not behind one of its sessions."""
        return self.origin.agent_side in (None, self)

    async def close(self) -> None:
        """End the connection; the agent frees the sessions, and they can be opened again."""
        self._over = True
        await self.link.close()
        self._end_sessions()
        self.hub.agent_sides.discard(self)

    def _end_sessions(self) -> None:
        for shared in list(self.sessions.values()):
            self._end_session(shared)

    def _end_session(self, shared: SharedSession) -> None:
        """Its streams stay open for the last words."""
        shared.end(GONE)
        self.drop(shared)

    def pace(self) -> None:
        """Read the agent, or do not, as its listeners can take it."""
        self._gate.hold(any(shared.behind for shared in self.sessions.values()))

    # -- the end of a process ----------------------------------------------------------------------------------------

    def link_closed(self) -> None:
        """Nothing more is heard of its process."""
        if self._over:
            self._end_sessions()
        elif not self.asleep:
            self._died()

    def _died(self) -> None:
        """Its process has ended by itself. Its turns end with an error; its sessions stay, where they can."""
        self.asleep = True
        self.asked.clear()
        self._hearing.pending_events.clear()
        self._failures += 1
        self.hub.counts["agents_died"] += 1
        seconds = round(self._loop.time() - self._began, 3)
        self.hub.log.error("agent_died", connection=self._name, seconds=seconds, failures=self._failures)
        for shared in list(self.sessions.values()):
            if self.keeps and not self.is_spent:
                shared.interrupt(GONE)
            else:
                self._end_session(shared)

    @property
    def _name(self) -> str:
        return connection_name(self.origin.connection.id)
