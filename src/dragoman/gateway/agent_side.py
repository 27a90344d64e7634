"""The agent's side of the gateway: one agent, shared by all clients subscribed to its sessions.

Its process comes and goes; the `AgentSide` stays. One that has nothing to do is stopped after a while, where the agent
can open its sessions again; one that dies ends its turns with an error. Either way the next request starts another and
opens the session it is about, with the options it had, and no client has to know. How often in a row a dead one is
started is bounded.

    RUNNING ──stop_process()──► STOPPING ──► STOPPED          idle, or its slot is needed
       │ ▲                                     │ ▲
       │ └──────── ensure_ready() ─────────────┘ │            the next request
       ├──────────── its process dies ───────────┘
       └── close() ──► CLOSING ──► CLOSED                     from every state; nothing leads out of CLOSED

Sessions are registered twice: here by the agent's ids (`sessions`), and in `SharedSessions` by those that clients know.
A session whose `process_number` is not that of this agent is open in no process; it is opened again when it is needed.
"""

import asyncio
import enum
import logging
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
from dragoman.gateway.in_flight import InFlightRequests
from dragoman.gateway.lenders import Lenders
from dragoman.gateway.logbook import connection_name
from dragoman.gateway.principal_limits import LimitEndedAgent
from dragoman.gateway.shared_session import SharedSession
from dragoman.link import Link
from dragoman.vocabulary.asking import R, Request
from dragoman.vocabulary.events import OptionsChanged
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.identity import with_identity
from dragoman.vocabulary.requests import CloseSession

if TYPE_CHECKING:
    from dragoman.gateway.agent_pool import AgentPool
    from dragoman.gateway.client_side import ClientSide

_log = logging.getLogger(__name__)

# A session that was refused is closed in the agent, in the background; its reply is awaited for so long.
_CLOSE_REFUSED_SECONDS: Final = 10.0


class ProcessState(enum.Enum):
    """What the process of an agent does; the picture above has the ways between."""

    RUNNING = "running"  # from its start on, so also while it is initialized
    STOPPING = "stopping"
    STOPPED = "stopped"
    CLOSING = "closing"  # for good, and its process still ends
    CLOSED = "closed"


class AgentSide:
    """An agent, whether its process runs now or not. `origin` is the client it was started for; None: for no one of
    them. `source` is where its processes come from, if not from that of the pool."""

    def __init__(self, pool: "AgentPool", origin: "ClientSide | None", source: AgentSource | None = None) -> None:
        self.pool: Final = pool
        self.origin: Final = origin
        self.sessions: Final[dict[str, SharedSession]] = {}  # by the agent's ids
        self.in_flight: Final = InFlightRequests()
        self.lenders: Final = Lenders()
        self.agent = AgentHello(None)
        self.process_number = 0
        self.state = ProcessState.STOPPED
        self._source = source or pool.source
        self._monitor = pool.monitor
        # In the version of the client where the agent can speak it: then nothing is lost between the two.
        self._versions = self._source.versions_for(0 if origin is None else origin.connection.version) or SPOKEN
        self._hello: ClientHello | None = None
        self._events = self.make_events()
        self._is_reserved = False  # its process is for one session, which may not be open yet
        self._closing: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._failures = 0  # in a row; a turn that ends well sets it back
        self._loop = asyncio.get_running_loop()
        self._used_at = self._started_at = self._loop.time()
        self._start_process()

    def __repr__(self) -> str:
        return (
            f"<AgentSide {self.state.value} process={self.process_number} sessions={len(self.sessions)} "
            f"in_flight={len(self.in_flight)} failures={self._failures}>"
        )

    @property
    def principal(self) -> str:
        """Return the principal whose agent it is: that of the client it was started for; empty: for no one of them."""
        return "" if self.origin is None else self.origin.agent_principal

    @property
    def is_of_other_node(self) -> bool:
        """Return whether it is another node's gateway, which knows sessions by the ids that clients know."""
        return False

    @property
    def away_node(self) -> str:
        """Return the name of the node that alone could go on with its sessions, and is away; empty: prompts are
        taken."""
        return ""

    def make_events(self) -> AgentEvents:
        """Return the handler of its links."""
        return AgentEvents(self)

    def on_unwatched(self, shared: SharedSession) -> None:
        """Note that a session has no subscriber any more: it stays, for one that comes back."""

    # -- its process -------------------------------------------------------------------------------------------------

    def _start_process(self) -> None:
        self._gate = ReadGate(self._source.open(self.principal))
        self.link = Link(self._gate, self._events, "client", spoken=self._versions, dialect=self._source.dialect)
        self.state = ProcessState.RUNNING
        self.process_number += 1
        self._started_at = self._used_at = self._loop.time()
        _log.debug("process %d of an agent is started", self.process_number)

    async def initialize(self, hello: ClientHello) -> AgentHello:
        """Send `initialize` to its process, and return what the agent answers. Waits, for at most `START_SECONDS`."""
        self.link.start()
        # A process that hangs at its start must not hang its client: `initialize` over HTTP waits for this reply.
        async with asyncio.timeout(min(self._source.start_seconds or limits.START_SECONDS, limits.START_SECONDS)):
            self.agent = await self.link.initialize(hello)
        # Only now: without it a process is neither stopped as idle nor started again.
        self._hello = hello
        self._monitor.log.info("agent_started", connection=self._name, again=self.process_number > 1)
        return self.agent

    @property
    def has_process(self) -> bool:
        """Return whether a process runs, one that is about to end for good included: it still takes a slot."""
        return self.state in (ProcessState.RUNNING, ProcessState.CLOSING)

    @property
    def is_closed(self) -> bool:
        """Return whether it is closed for good, or about to be."""
        # The task may be made and not begun: then the state is what it was.
        return self.state in (ProcessState.CLOSING, ProcessState.CLOSED) or self._closing is not None

    @property
    def can_reopen(self) -> bool:
        """Return whether another process of this agent can open its sessions again."""
        return self.agent.capabilities.resume or self.agent.capabilities.load

    @property
    def is_spent(self) -> bool:
        """Return whether it has failed too often to be started again."""
        return self._failures > self._source.restarts

    def is_ready(self, shared: SharedSession | None) -> bool:
        """Return whether its process runs and has the session open."""
        if self.state is not ProcessState.RUNNING:
            return False
        return shared is None or shared.process_number == self.process_number

    async def ensure_ready(self, shared: SharedSession | None) -> None:
        """Start a process if none runs, and have it open the session again. Waits for both; raise `RequestFailed` where
        that is not possible."""
        if self._stopping is not None:
            # Shielded: the stop is that of the agent, and goes on if this request is cancelled.
            await asyncio.shield(self._stopping)
        # One at a time: two requests that come at once must not start two processes, or open a session twice.
        async with self._starting:
            self._refuse_if_closed()
            if self.state is ProcessState.STOPPED:
                await self._restart()
            if shared is not None and self.sessions.get(shared.agent_id) is not shared:
                raise missing(shared.id)  # it was closed while we waited
            if shared is not None and shared.process_number != self.process_number:
                await self._reopen(shared)

    async def _restart(self) -> None:
        assert self._hello is not None
        if self.is_spent:
            raise RequestFailed(INTERNAL_ERROR, f"The agent has failed {self._failures} times; connect anew")
        # With `_starting` held: requests that come meanwhile wait behind this one, and start no process of their own.
        await asyncio.sleep(backoff(self._failures))
        await self.pool.free_slot(self.principal)
        self._refuse_if_closed()
        failures = self._failures
        try:
            self._start_process()
            await self.initialize(self._hello)
        except BaseException as error:
            if self.state is ProcessState.RUNNING:
                self.state = ProcessState.STOPPED
            # Not `+= 1`: where its process died meanwhile, `_on_death` has counted that already.
            self._on_failures(failures + 1)
            await self.link.close()
            raise start_failure(error) from error
        if self._is_over:
            await self.link.close()
            raise RequestFailed(INTERNAL_ERROR, GONE)

    async def _reopen(self, shared: SharedSession) -> None:
        """Open a session in a new process, as it was in the old one."""
        if shared.resume_request is None or not self.can_reopen or self.pool.access.directory.is_ambiguous(shared.id):
            self._end_session(shared)
            raise RequestFailed(INTERNAL_ERROR, GONE)
        before = shared.open_reply
        try:
            opened = await self.link.ask(shared.resume_request)  # by the right of the token that opened it
        except LinkClosed:
            raise RequestFailed(INTERNAL_ERROR, GONE) from None
        except RequestFailed:
            self._end_session(shared)  # it can say that it opens sessions again, and have none
            raise
        shared.on_opened(shared.resume_request, opened, is_new=False)
        for request in changed_options(shared.agent_id, before, opened):
            try:
                shared.on_options_reply(await self._ask_as_operator(request))
            except RequestFailed:
                # The option may decide what the agent does without asking. Send the clients the options it has now and
                # fail the request that woke it, so that no prompt runs before they have seen them.
                _log.warning("a restarted agent has refused an option that its session had before")
                shared.receive(OptionsChanged(shared.open_reply.config_options or []))
                raise RequestFailed(INTERNAL_ERROR, CHANGED) from None

    async def _ask_as_operator(self, request: Request[R]) -> R:
        """Ask in the gateway's own name: it repeats what a client was allowed before."""
        is_trusted = self.pool.access.ceilings.trusted
        return await self.link.ask(with_identity(request, OPERATOR) if is_trusted else request)

    # -- stopping an idle process ------------------------------------------------------------------------------------

    def stop_if_idle(self, now: float) -> None:
        """Stop its process if it has had nothing to do for long enough, and another can take its place without a loss.
        Called at intervals; `now` is the loop time."""
        # Events count beside turns: an agent may work on without one.
        if self._events.was_active() or self._is_busy:
            # Looked at only here, so at most a sweep too late; a turn's end sets it exactly.
            self._used_at = now
        if self._source.idle_seconds and now - self._used_at >= self._source.idle_seconds:
            self.stop_process()

    def stop_process(self) -> "asyncio.Task[None] | None":
        """Stop its process, if that loses nothing; return the task that does it, else None."""
        if not self._can_stop:
            return None
        self.state = ProcessState.STOPPING
        self._stopping = self._loop.create_task(self._stop_process())
        return self._stopping

    async def _stop_process(self) -> None:
        try:
            await self.link.close()
        finally:
            self._stopping = None
            if self.state is ProcessState.STOPPING:  # `close` may have come meanwhile
                self.state = ProcessState.STOPPED
        self._monitor.counts["agents_rested"] += 1
        self._monitor.log.info("agent_stopped", connection=self._name, why="idle")

    @property
    def _can_stop(self) -> bool:
        """Return whether nothing is lost if its process stops now."""
        # A request that holds `_starting` is about to use the process, and is not in flight yet.
        if self.state is not ProcessState.RUNNING or self._hello is None or self._closing or self._starting.locked():
            return False
        if self._is_busy:
            return False
        is_ambiguous = self.pool.access.directory.is_ambiguous
        # An ambiguous session can be opened by no other process than the one that made it.
        return not self.sessions or (
            self.can_reopen and not any(is_ambiguous(one.id) for one in self.sessions.values())
        )

    @property
    def _is_busy(self) -> bool:
        """Return whether a request is in flight, a turn or a replay runs, or a question of the agent is open."""
        return len(self.in_flight) > 0 or any(one.is_busy for one in self.sessions.values())

    @property
    def idle_since(self) -> float:
        """Return the loop time of its last known work; `stop_if_idle` updates it while the agent is busy."""
        return self._used_at

    # -- a process for one session -----------------------------------------------------------------------------------

    def reserve(self) -> bool:
        """Reserve its process for one session; return False if it is reserved already or has sessions."""
        if self._is_reserved or self.sessions:
            return False
        self._is_reserved = True
        return True

    def release(self) -> None:
        """End a reservation: the session was opened, or could not be."""
        self._is_reserved = bool(self.sessions)
        self.close_if_unused()

    # -- sessions ----------------------------------------------------------------------------------------------------

    def add_session(self, session_id: str, agent_id: str, principal: str) -> SharedSession:
        """Create and register the `SharedSession` of one more session of this agent, which counts for `principal`; it
        must not be open already."""
        assert session_id not in self.pool.sessions and agent_id not in self.sessions
        recordings, cwd = self.pool.recordings, self.pool.access.directory.cwd(session_id)
        shared = self.sessions[agent_id] = SharedSession(
            session_id,
            self,
            agent_id,
            principal,
            access=self.pool.access,
            monitor=self._monitor,
            recorder=self.pool.recorder,
            questions=self.pool.sessions.questions,
            usage=self.pool.sessions.usage,
            recording=None if recordings is None else recordings.of(session_id, cwd),
        )
        self.pool.sessions.add(shared)
        return shared

    def add_new_session(
        self, session_id: str, agent_id: str, client_side: "ClientSide", principal: str
    ) -> SharedSession:
        """Register a session that the agent has just made for a client, and receive the events that came before its id
        was known. In the same step of the loop as the agent's reply: an event behind it finds the session here."""
        shared = self.add_session(session_id, agent_id, principal)
        shared.subscribe(client_side)
        for held in self._events.pending_events.take(agent_id):
            shared.receive(held.event, held.size)
        return shared

    def release_agent_id(self, agent_id: str) -> None:
        """End the session that an older process called so: the present one has given the id to a new session."""
        shared = self.sessions.get(agent_id)
        if shared is not None and shared.process_number != self.process_number:
            self._end_session(shared)

    async def close_unopened(self, shared: SharedSession) -> None:
        """Close a session in the agent that only read-only clients have opened, so without its MCP servers: a client
        that may prompt opens it again with them. Waits for the reply and ignores an error. Does nothing while the
        agent's process does not have it open, while a turn runs, or if the agent cannot close sessions."""
        if self.is_ready(shared) and self.agent.capabilities.close and not shared.is_running:
            with suppress(DragomanError):
                await self._ask_as_operator(CloseSession(shared.agent_id))

    async def close_refused(self, agent_id: str) -> None:
        """Close a session in the agent that was refused here, if the agent can close sessions. Waits for the reply for
        at most `_CLOSE_REFUSED_SECONDS`; a failure is only counted."""
        if self.agent.capabilities.close and agent_id not in self.sessions:
            try:
                async with asyncio.timeout(_CLOSE_REFUSED_SECONDS):
                    await self._ask_as_operator(CloseSession(agent_id))
            except (DragomanError, TimeoutError):
                self._monitor.counts["noise"] += 1

    def remove_session(self, shared: SharedSession) -> None:
        """Remove a session that is closed, with its subscribers and their streams."""
        # By identity: the same id may stand for a newer session already.
        if self.sessions.get(shared.agent_id) is shared:
            del self.sessions[shared.agent_id]
        shared.end_recording()
        self.pool.sessions.remove(shared)
        for subscriber in list(shared.subscribers):
            shared.unsubscribe(subscriber)
            subscriber.connection.streams.remove(shared.id)
        if not self.sessions:
            self._is_reserved = False
            self.close_if_unused()

    def on_turn_end(self, session_id: str) -> None:
        """Note that a turn is over: nothing can be asked about its prompt any more."""
        self.in_flight.end_turn(session_id)
        self._used_at = self._loop.time()
        self.close_if_unused()

    def reset_failures(self) -> None:
        """Count failures anew: a turn has ended as it should."""
        self._failures = 0

    def update_reading(self) -> None:
        """Pause or resume reading the agent, as its sessions' subscribers keep up."""
        # One stream has the messages of all sessions: one whose clients are behind holds the others of its process too.
        self._gate.hold(any(shared.is_behind for shared in self.sessions.values()))

    # -- the end -----------------------------------------------------------------------------------------------------

    def close_if_unused(self, *, despite_turns: bool = False) -> None:
        """Close it in a task if it is no longer needed: the client it was started for is gone (or it was for one
        session, which is closed), no session has a subscriber and no turn runs. `despite_turns`: a running turn does
        not keep it open."""
        if self.is_closed:
            return
        if (
            self.origin is not None
            and not self.origin.is_closed
            and (self.sessions or self._is_reserved or self._is_for_connection)
        ):
            return
        if any(shared.subscribers or (shared.is_running and not despite_turns) for shared in self.sessions.values()):
            return
        self._closing = self._loop.create_task(self.close())
        self.pool.sessions.add_closing([shared.id for shared in self.sessions.values()], self._closing)

    async def close(self) -> None:
        """Close it for good: the agent frees its sessions, and they can be opened again. Waits for its process."""
        if not self._is_over:
            self.state = ProcessState.CLOSING if self.state is ProcessState.RUNNING else ProcessState.CLOSED
        await self.link.close()
        self.state = ProcessState.CLOSED
        self._end_sessions()
        self.pool.remove(self)

    def on_link_closed(self, error: LinkClosed) -> None:
        """Note that nothing more comes from its process; `error` says why."""
        if self._is_over:
            self._end_sessions()
        elif self.state is ProcessState.RUNNING:
            self._on_death(str(error) if isinstance(error, LimitEndedAgent) else GONE)

    def _on_death(self, why: str) -> None:
        """End the turns of a process that has ended by itself with the error `why`. Its sessions stay, where another
        process can open them."""
        self.state = ProcessState.STOPPED
        # Their replies will never come: the link fails each of them with `LinkClosed`.
        self.in_flight.clear()
        self._events.pending_events.clear()
        # Before the sessions are looked at: `is_spent` decides below whether they stay.
        self._failures += 1
        self._monitor.counts["agents_died"] += 1
        seconds = round(self._loop.time() - self._started_at, 3)
        self._monitor.log.error("agent_died", connection=self._name, seconds=seconds, failures=self._failures)
        for shared in list(self.sessions.values()):
            if self.can_reopen and not self.is_spent:
                shared.interrupt(why)
            else:
                self._end_session(shared)

    def _on_failures(self, count: int) -> None:
        """Note how often it has failed in a row. Too often, and its sessions are free for another process to open."""
        self._failures = count
        if self.is_spent:
            _log.warning("an agent has failed %d times in a row and is not started again", count)
            self._end_sessions()

    def _refuse_if_closed(self) -> None:
        if self._is_over:
            raise RequestFailed(INTERNAL_ERROR, GONE)

    @property
    def _is_over(self) -> bool:
        """Return whether `close` was called. With `is_closed` it may also be about to be called."""
        return self.state in (ProcessState.CLOSING, ProcessState.CLOSED)

    @property
    def _is_for_connection(self) -> bool:
        """Return whether it stands behind the connection itself, and not behind one of its sessions."""
        return self.origin is None or self.origin.agent_side in (None, self)

    def _end_sessions(self) -> None:
        for shared in list(self.sessions.values()):
            self._end_session(shared)

    def _end_session(self, shared: SharedSession) -> None:
        # First the last events, then the streams: a client reads why its session has ended.
        shared.end(GONE)
        self.remove_session(shared)

    @property
    def _name(self) -> str:
        return connection_name("" if self.origin is None else self.origin.connection.id)
