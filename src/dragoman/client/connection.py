"""The connection behind a `Client`: it starts the agent, receives from the link, and delivers to the conversations.

`Client` is what a caller sees; everything that the link, the conversations and the clock need stands here.

Promises
- An event reaches its conversation in the order in which the link received it. One for a session whose id is not known
  yet waits in `PendingEvents`, because the answer that names the session may come behind it.
- What a caller has not read counts: `unread_bytes` is the sum over all turns, and the link stops reading above its
  bound. A turn that is read frees its own part only.
- However the connection ends, every turn and every open question ends with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from dragoman import limits
from dragoman.client.conversation import Conversation, ConversationState
from dragoman.client.handlers import ClientHandlers
from dragoman.client.lent_servers import LentMcpServers
from dragoman.client.services import Services
from dragoman.client.targets import Target, open_target
from dragoman.client.timeouts import Clock, Timeouts
from dragoman.client.turn import TurnEvents
from dragoman.dialects.contract import Id
from dragoman.errors import LinkClosed, TimedOut, UsageError
from dragoman.link import Link, Trace
from dragoman.link.pending_events import PendingEvents
from dragoman.vocabulary.asking import ExtensionNote, Note, R, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello, Implementation
from dragoman.vocabulary.requests import CancelTurn, ForkSession, NewSession, SessionOpened

if TYPE_CHECKING:
    from dragoman.host.process import Child

_log: Final = logging.getLogger(__name__)
# Events of a session that is not open here wait so long for the answer that names it.
EARLY_SECONDS: Final = 10.0

EventCallback = Callable[[Conversation, AnyEvent], None]
State = Literal["configured", "starting", "ready", "busy", "waiting for you", "failed", "stopped"]


class _Phase(Enum):
    """How far a connection is. It only moves down this list; `CLOSING` means that we have closed it ourselves."""

    CONFIGURED = auto()
    STARTING = auto()
    READY = auto()
    CLOSING = auto()


_STATES: Final[dict[_Phase, State]] = {
    _Phase.CONFIGURED: "configured",
    _Phase.STARTING: "starting",
    _Phase.READY: "ready",
    _Phase.CLOSING: "stopped",
}


class ConnectionSettings(NamedTuple):
    """What `connect` was given, beside the callbacks in `ClientHandlers`."""

    target: Target
    cwd: str | None
    env: Mapping[str, str] | None
    info: Implementation
    versions: tuple[int, ...]
    dialect: str
    timeouts: Timeouts
    trace: Trace | None
    on_event: EventCallback | None
    on_noise: Callable[[str], None] | None
    on_stderr: Callable[[bytes], None] | None


class AgentConnection:
    """One connection to one agent. Implements `link.contract.Handler` for the client's side."""

    def __init__(self, settings: ConnectionSettings, handlers: ClientHandlers) -> None:
        self.agent: AgentHello = AgentHello(None)
        self.loop: asyncio.AbstractEventLoop
        # Why the agent cannot be used any more, if that was not our own doing.
        self.failure: Exception | None = None
        self._settings: Final = settings
        self._handlers: Final = handlers
        self._phase = _Phase.CONFIGURED
        self._link: Link | None = None
        self._child: Child | None = None
        self._conversations: dict[str, ConversationState] = {}
        self._unread: set[TurnEvents] = set()
        self._pending_events = PendingEvents(
            max_bytes=limits.EARLY_UPDATE_BYTES,
            seconds=EARLY_SECONDS,
            on_drop=lambda: self.on_noise("an update for a session that was never opened"),
        )
        self.lent: Final = LentMcpServers(self._send_note, self.on_bug)
        self._services = Services(
            handlers, self._conversations, self._pending_events, self.on_noise, self.on_bug, self.lent
        )
        self.clock: Final = Clock(settings.timeouts, self, lambda: self._services.busy)

    def __repr__(self) -> str:
        turns = sum(conversation.newest is not None for conversation in self._conversations.values())
        sessions = len(self._conversations)
        return f"<AgentConnection {self.state} sessions={sessions} turns={turns} unread={self.unread_bytes()}>"

    async def _send_note(self, note: ExtensionNote) -> None:
        await self.link.send_notification(note)

    # -- life --------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start or reach the agent and wait for its answer to `initialize`. Close again if that fails.

        Raise `UsageError` if it was opened before, `StartFailed`, `LinkClosed`, `VersionMismatch` or `TimedOut`.
        """
        if self._link is not None:
            raise UsageError("a client connects once: call connect() again for another connection")
        settings = self._settings
        self.loop = asyncio.get_running_loop()
        try:
            transport, self._child = open_target(settings.target, settings.cwd, settings.env, settings.on_stderr)
            self._link = Link(
                transport, self, "client", spoken=settings.versions, trace=settings.trace, dialect=settings.dialect
            )
            self._phase = _Phase.STARTING
            if self._child is not None:
                _log.debug("started process %s, pid %d", self._child.name, self._child.pid)
            self._link.start()
            async with asyncio.timeout(settings.timeouts.startup):
                self.agent = await self._link.initialize(ClientHello(self._handlers.capabilities(), settings.info))
        except TimeoutError:
            self.failure = self._start_timeout()
            _log.warning("the agent did not answer initialize within %g s", settings.timeouts.startup)
            await self.close()
            raise self.failure from None
        except BaseException as error:
            if isinstance(error, Exception):
                self.failure = self.failure or error
            await self.close()
            raise
        self._phase = _Phase.READY
        _log.debug("connected to an agent, protocol version %d", self._link.version)

    def _start_timeout(self) -> TimedOut:
        lines = self.stderr_tail().splitlines()[-limits.STDERR_MESSAGE_LINES :]
        message = f"the agent did not answer initialize within {self._settings.timeouts.startup:g} s and was stopped"
        return TimedOut("\n".join([f"{message}. It last wrote to stderr:", *lines]) if lines else message)

    async def close(self) -> None:
        """End the connection and stop the agent, its whole process tree included. Idempotent; waits for both."""
        self._phase = _Phase.CLOSING
        if self._link is not None:
            await self._link.close()

    async def fail(self, error: Exception) -> None:
        """Close because the agent cannot be used any more; `error` becomes `failure` if there is none yet."""
        self.failure = self.failure or error
        await self.close()

    @property
    def state(self) -> State:
        """Return how the connection is, in the words of `Client.state`."""
        if self.failure is not None:
            return "failed"
        if self._phase is not _Phase.READY:
            return _STATES[self._phase]
        if self._services.questions.open:
            return "waiting for you"
        busy = any(conversation.newest is not None for conversation in self._conversations.values())
        return "busy" if busy else "ready"

    def stderr_tail(self) -> str:
        """Return the end of what the agent's process wrote to stderr, also after the process has ended."""
        return "" if self._child is None else self._child.stderr_tail()

    @property
    def link(self) -> Link:
        """Return the link. Raise `UsageError` before `open`."""
        if self._link is None:
            raise UsageError("the client is not connected yet: use `async with connect(...) as client`")
        return self._link

    # -- the client and its conversations call these -----------------------------------------------------------------

    def ask(self, request: Request[R], on_reply: Callable[[R], None] | None = None) -> Coroutine[Any, Any, R]:
        """Send a request and wait for its reply, at most `Timeouts.request` seconds.

        `on_reply` is called with the reply before anything that the agent sent behind it is delivered.
        """
        return self.clock.answer(request.__class__.__name__, self.link.ask(request, None, on_reply))

    async def open_session(self, request: NewSession | ForkSession, cwd: str) -> Conversation:
        """Ask for a session whose id comes with the reply, and wait for it."""
        opened: list[ConversationState] = []

        def on_reply(reply: SessionOpened) -> None:
            # Here and not behind the await below: events that follow the reply must find the conversation.
            opened.append(self.add(reply.session_id, cwd, reply))

        self._services.opening += 1
        try:
            await self.ask(request, on_reply)
        finally:
            self._services.opening -= 1
        return opened[0].conversation

    def conversation(self, session_id: str) -> ConversationState | None:
        """Return what is known of an open session; None if it is not open here."""
        return self._conversations.get(session_id)

    def add(self, session_id: str, cwd: str, opened: SessionOpened) -> ConversationState:
        """Add a session whose id is known now, and deliver the events that came for it before."""
        conversation = self._conversations[session_id] = ConversationState(self, session_id, cwd, opened)
        for event, _, _ in self._pending_events.take(session_id):
            conversation.receive(event)
        return conversation

    def remove(self, session_id: str) -> None:
        """Remove a session that was closed. A turn that the agent left open fails with `LinkClosed`."""
        conversation = self._conversations.pop(session_id, None)
        if conversation is not None:
            conversation.fail(LinkClosed("the session was closed"))

    def send_cancel(self, session_id: str) -> None:
        """Send `session/cancel`, and answer the open questions of the session as dismissed. Does not wait."""
        self.link.send_notification_now(CancelTurn(session_id))
        self._services.questions.dismiss(session_id)

    def cancel_prompt_request(self, turn: TurnEvents) -> None:
        """Send `$/cancel_request` for a prompt whose turn did not end after `session/cancel`."""
        if turn.request_number is not None:
            self.link.cancel_request(turn.request_number)

    def count_unread(self, turn: TurnEvents) -> None:
        """Count the queued events of a new turn as unread, until `on_consumed` finds it ended and empty."""
        self._unread.add(turn)

    def on_consumed(self, turn: TurnEvents) -> None:
        """Let the link read on, as far as the other turns allow: the caller has read all queued events of this one."""
        if turn.has_ended:
            self._unread.discard(turn)
        self.link.consume(self.unread_bytes())

    def deliver_outside_turn(self, conversation: Conversation, event: AnyEvent) -> None:
        """Give an event to the `on_event` callback of `connect`. An exception of the callback goes to `on_bug`."""
        self.link.consume(self.unread_bytes())
        if self._settings.on_event is not None:
            try:
                self._settings.on_event(conversation, event)
            except Exception as error:
                self.on_bug(error)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> AgentHello:
        raise UsageError("a client does not answer initialize")

    def on_request(self, request: Request, id: Id) -> Awaitable[Reply]:
        return self._services.answer(request)

    def on_notification(self, note: Note) -> None:
        self._handlers.on_notification(note)

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        conversation = self._conversations.get(session_id)
        if conversation is not None:
            conversation.receive(event)
        else:
            self._pending_events.hold(session_id, event, limits.KIB)

    def on_sized_event(self, session_id: str, event: AnyEvent, size: int) -> None:
        """Deliver an event as `on_event` does, and count its `size` in bytes as unread: it may be of any size."""
        conversation = self._conversations.get(session_id)
        if conversation is None:
            self._pending_events.hold(session_id, event, max(size, limits.KIB))
            return
        if conversation.receiver is not None:
            conversation.receiver.queued_bytes += size
        conversation.receive(event)

    def unread_bytes(self) -> int:
        """Return about how many bytes of received events wait for the caller, over all turns."""
        return sum(turn.backlog for turn in self._unread)

    def on_noise(self, reason: str) -> None:
        if self._settings.on_noise is not None:
            try:
                self._settings.on_noise(reason)
            except Exception as error:
                self.on_bug(error)

    def on_bug(self, error: Exception) -> None:
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a dragoman client callback raised", "exception": error}
        )

    def on_closed(self, error: LinkClosed) -> None:
        if self._phase is not _Phase.CLOSING:
            self.failure = self.failure or error
            _log.warning("the connection to the agent ended: %s", type(error).__name__)
        self.clock.stop()
        self._pending_events.clear()
        self._services.questions.dismiss_all()
        for conversation in list(self._conversations.values()):
            conversation.fail(error)
