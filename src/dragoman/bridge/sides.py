"""The two sides of a bridge: each handles one link, and forwards what it receives to the other side.

`BridgeClientSide` is an agent to the editor, `BridgeAgentSide` a client to the agent. What they share is in
`BridgeSide`; what differs is that the client's side passes `initialize` on and remembers what was begun, and the
agent's side ends the turns that a dead agent has left open and re-scopes its questions.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple

from dragoman import limits
from dragoman.bridge.forwarding import GONE, UNREADABLE, ForwardedRequest, ForwardingQueue, OpenWork
from dragoman.bridge.questions import scope_at_client, with_scope
from dragoman.bridge.read_gate import ForwardingGate
from dragoman.bridge.services import BridgeServices, Opening
from dragoman.dialects.codec.relayed_text import RelayedText
from dragoman.dialects.codec.relayed_updates import RelayedUpdate
from dragoman.dialects.contract import Id
from dragoman.dialects.handshake.initialize import SPOKEN
from dragoman.errors import (
    INTERNAL_ERROR,
    UNSUPPORTED_VERSION,
    LinkClosed,
    PeerError,
    RequestFailed,
    UsageError,
    VersionMismatch,
)
from dragoman.link import Link, Role, Trace
from dragoman.link.text_relay import OutgoingText
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Done, Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent, Failure, Idle, RequiresAction, Running
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import (
    CancelTurn,
    CloseSession,
    DeleteSession,
    ForkSession,
    NewSession,
    PromptAccepted,
    PromptRequest,
    ResumeSession,
    SessionOpened,
)
from dragoman.vocabulary.services import Elicit, ElicitationAnswer, RequestScope, default_answer

_log = logging.getLogger(__name__)

Noise = Callable[[str], None]
_OPENING: Final = (NewSession, ResumeSession, ForkSession)


class SpokenWire(NamedTuple):
    """How one side is spoken to: a vendor's dialect by its name, or one of these versions of the protocol."""

    versions: tuple[int, ...] = SPOKEN
    dialect: str = ""


class BridgeSide:
    """One side; `other` is the side across, set by `Bridge` before either link starts."""

    other: "BridgeSide"

    def __init__(
        self,
        transport: Transport,
        role: Role,
        trace: Trace | None,
        on_noise: Noise | None,
        services: BridgeServices,
        wire: SpokenWire,
    ) -> None:
        gate = ForwardingGate(transport)
        self.queue: Final = ForwardingQueue(gate.on_forwarded, self.on_noise, self.on_bug)
        self.link: Final = Link(gate, self, role, trace=trace, spoken=wire.versions, dialect=wire.dialect)
        self._services = services
        gate.attach(self.queue, self.link)
        self.lost: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._reply_tasks: set[asyncio.Task[Any]] = set()
        self._on_noise = on_noise

    def __repr__(self) -> str:
        state = "lost" if self.lost.done() else "open"
        return f"<{type(self).__name__} {state} unanswered={len(self._reply_tasks)} {self.queue!r}>"

    def track_reply(self, task: "asyncio.Task[Any] | None") -> None:
        """Count `task`, a task of our link, as one that will reply to something received here."""
        if task is not None:
            self._reply_tasks.add(task)
            task.add_done_callback(self._reply_tasks.discard)

    async def wait_until_replied(self) -> None:
        """Wait until every request received here has its reply, for at most `EOF_ANSWER_SECONDS`."""
        if self._reply_tasks:
            await asyncio.wait(list(self._reply_tasks), timeout=limits.EOF_ANSWER_SECONDS)

    def cancel_requests(self) -> None:
        """Stop working on every request received here; cancelling its task cancels it at the other side."""
        for task in list(self._reply_tasks):
            task.cancel()

    # -- a forwarded request that was received here calls these ------------------------------------------------------

    async def ask_other_side(self, forwarded: ForwardedRequest) -> Reply:
        """Ask the request at the other side and return its reply."""
        raise NotImplementedError

    def default_reply(self, request: Request) -> Reply | RequestFailed:
        """Return what is replied when the other side is gone. A permission is dismissed there, never allowed."""
        return default_answer(request) or RequestFailed(INTERNAL_ERROR, GONE)

    def on_sent(self, forwarded: ForwardedRequest) -> None:
        """Note that it has its number at the other side. Default: nothing."""

    def on_answer(self, forwarded: ForwardedRequest) -> None:
        """Note that its reply was received. Default: nothing."""

    def on_outcome(self, forwarded: ForwardedRequest, outcome: Reply | RequestFailed) -> None:
        """Note how it ended; its reply may still wait in the queue. Default: nothing."""

    def on_end(self, forwarded: ForwardedRequest) -> None:
        """Note that it is over, answered or cancelled. Default: nothing."""

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> AgentHello | Awaitable[AgentHello]:
        raise UsageError("a client is not greeted")

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        if self.other.lost.done():
            reply = self.default_reply(request)
            if isinstance(reply, RequestFailed):
                raise reply
            return reply
        forwarded = ForwardedRequest(self, self.other, request, id)
        self.queue.put(forwarded.send)
        return forwarded

    def on_notification(self, note: Note) -> None:
        self.queue.put(partial(self.other.link.send_notification, note))

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.queue.put(partial(self.other.link.send_event, session_id, event))

    def on_noise(self, reason: str) -> None:
        if self._on_noise is not None:
            self._on_noise(reason)

    def on_bug(self, error: Exception) -> None:
        """Report a mistake of ours to the loop's exception handler; the bridge goes on."""
        asyncio.get_running_loop().call_exception_handler({"message": "a dragoman bridge failed", "exception": error})

    def on_closed(self, error: LinkClosed) -> None:
        if not self.lost.done():
            _log.debug("%s: its link is closed", type(self).__name__)
            self.lost.set_result(None)
            self.queue.end()


class BridgeClientSide(BridgeSide):
    """The side on which we are the agent."""

    def __init__(
        self,
        transport: Transport,
        trace: Trace | None,
        on_noise: Noise | None,
        open_work: OpenWork,
        start_timeout: float,
        services: BridgeServices,
        wire: SpokenWire,
    ) -> None:
        super().__init__(transport, "agent", trace, on_noise, services, wire)
        self._open_work = open_work
        self._start_timeout = start_timeout
        self._agent = AgentHello(None)

    def on_initialize(self, hello: ClientHello) -> Awaitable[AgentHello]:
        return self._initialize(hello)

    async def _initialize(self, hello: ClientHello) -> AgentHello:
        """Initialize the agent with the editor's own hello, and return the agent's as ours."""
        self.track_reply(asyncio.current_task())
        try:
            async with asyncio.timeout(self._start_timeout):
                agent = await self.other.link.initialize(hello)
        except RequestFailed:
            raise
        except VersionMismatch as mismatch:
            raise RequestFailed(UNSUPPORTED_VERSION, "The agent speaks another protocol version") from mismatch
        except PeerError as mistake:
            raise RequestFailed(INTERNAL_ERROR, UNREADABLE) from mistake
        except LinkClosed as closed:
            raise RequestFailed(INTERNAL_ERROR, GONE) from closed
        except TimeoutError as late:
            raise RequestFailed(INTERNAL_ERROR, "The agent did not answer initialize in time") from late
        self._agent = agent
        # Both queues begin in the next turn of the loop, so behind the reply that we return here.
        self.queue.open()
        self.other.queue.open()
        return self._services.hello(agent)

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        # Before any prompt: each names a session, which a request before it has opened.
        self.link.dialect.queues_prompts = self._services.queues_prompts
        return super().on_request(request, id)

    async def ask_other_side(self, forwarded: ForwardedRequest) -> Reply:
        """Have the services reply, which may ask the agent."""
        ask = partial(self._ask_agent, forwarded)
        return await self._services.serve_client(forwarded.request, ask, forwarded.step_aside)

    async def _ask_agent(self, forwarded: ForwardedRequest, request: Request) -> Reply:
        """Ask the agent. To close a session that its version cannot close is to cancel its turn."""
        if isinstance(request, CloseSession) and not self._agent.capabilities.close:
            await self.other.link.send_notification(CancelTurn(request.session_id))
            return Done()
        on_reply = partial(self._on_opened, forwarded.request) if isinstance(forwarded.request, _OPENING) else None
        return await self.other.link.ask(request, forwarded, on_reply)

    def _on_opened(self, request: Opening, reply: Reply) -> None:
        if isinstance(reply, SessionOpened):
            self._services.on_opened(request, reply)

    def on_notification(self, note: Note) -> None:
        self.queue.put(partial(self._forward_note, note))

    async def _forward_note(self, note: Note) -> None:
        # In its place: a cancel is about the prompts before it, which the services know when they were served.
        await self.other.link.send_notification(self._services.from_client(note))

    def on_sent(self, forwarded: ForwardedRequest) -> None:
        self._open_work.add(forwarded)

    def on_answer(self, forwarded: ForwardedRequest) -> None:
        # Before its outcome is decoded: the agent may speak of the turn in the same read.
        request = forwarded.request
        if isinstance(request, PromptRequest):
            self._open_work.expect_turn(request.session_id, forwarded)

    def on_outcome(self, forwarded: ForwardedRequest, outcome: Reply | RequestFailed) -> None:
        request = forwarded.request
        if isinstance(request, PromptRequest) and not isinstance(outcome, PromptAccepted):
            self._open_work.no_turn(request.session_id, forwarded)
        elif isinstance(request, (CloseSession, DeleteSession)) and isinstance(outcome, Reply):
            self._open_work.end_turns(request.session_id)

    def on_end(self, forwarded: ForwardedRequest) -> None:
        self._open_work.remove(forwarded)


class BridgeAgentSide(BridgeSide):
    """The side on which we are the client."""

    def __init__(
        self,
        transport: Transport,
        trace: Trace | None,
        on_noise: Noise | None,
        open_work: OpenWork,
        services: BridgeServices,
        wire: SpokenWire,
    ) -> None:
        super().__init__(transport, "client", trace, on_noise, services, wire)
        self.failure: LinkClosed | None = None  # how it ended, where that was before the editor's end
        self._open_work = open_work
        self._outgoing_text: Final = OutgoingText()

    def on_notification(self, note: Note) -> None:
        super().on_notification(self._services.note_from_agent(note))

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        for named, one in self._services.from_agent(session_id, event):
            self._forward_event(named, one)

    def _forward_event(self, session_id: str, event: AnyEvent) -> None:
        match event:
            case Running() | RequiresAction():
                self._open_work.begin_turn(session_id)
            case Idle():
                # Some agents call a fresh session idle: that ends a turn only with a reason, or after `Running`.
                if isinstance(event.stop_reason, str) or self._open_work.is_running(session_id):
                    self._open_work.end_turns(session_id)
            case _:
                pass
        super().on_event(session_id, event)

    def on_text(self, piece: RelayedText) -> None:
        """Forward a piece of a message as it came, in a frame of the editor's dialect."""
        if self._services.watches_text:
            self.on_event(piece.message.session_id, piece.event())
            return
        self.queue.put(partial(self._send_text, piece))

    def on_update(self, update: RelayedUpdate) -> None:
        """Forward an update as it came where the editor is spoken to as the agent speaks, else as an event."""
        link = self.other.link
        if self._services.watches_updates or not link.can_send or link.dialect.speech is not update.speech:
            event = update.event()
            if event is not None:
                self.on_event(update.session_id, event)
            return
        self.queue.put(partial(self._send_update, update))

    async def _send_update(self, update: RelayedUpdate) -> None:
        editor = self.other.link
        editor.dialect.note_relayed(update.session_id, update)
        frame = update.frame(update.session_id)
        admitted = editor.outbox.enqueue(len(frame), (frame,))
        if admitted is not None:
            await admitted

    def on_read_end(self) -> None:
        """Do nothing: a piece is a step of the queue, as any event is."""

    async def _send_text(self, piece: RelayedText) -> None:
        editor = self.other.link
        frame = self._outgoing_text.frame(editor.dialect, piece.message.session_id, piece)
        admitted = editor.outbox.enqueue(len(frame), (frame,)) if frame else None
        if admitted is not None:
            await admitted

    def on_closed(self, error: LinkClosed) -> None:
        if not self.other.lost.done():
            self.failure = error
        if not self.lost.done():
            # Behind the replies that are queued, so that a prompt which is refused now has no turn to end.
            self.queue.put(self._end_turns)
        super().on_closed(error)
        self._services.on_lost()
        self.cancel_requests()  # no reply can reach the agent any more: cancel its requests at the editor

    async def _end_turns(self) -> None:
        for session_id in sorted(self._open_work.sessions()):
            await self.other.link.send_event(session_id, Idle("error", Failure(INTERNAL_ERROR, GONE)))

    async def ask_other_side(self, forwarded: ForwardedRequest) -> Reply:
        """Have the services reply, which may ask the editor."""
        ask = partial(self._ask_editor, forwarded)
        return await self._services.serve_agent(forwarded.request, ask, forwarded.step_aside)

    async def _ask_editor(self, forwarded: ForwardedRequest, request: Request) -> Reply:
        """Ask the editor; a question about a request of the editor's own is asked under the editor's id for it."""
        if not isinstance(request, Elicit) or not isinstance(request.scope, RequestScope):
            return await self.other.link.ask(request, forwarded)
        number = request.scope.request_id
        subject = self._open_work.find(number) if isinstance(number, int) else None
        if subject is None:
            return ElicitationAnswer("cancel")  # the request is over, so the editor can show the question nowhere
        editor = self.other.link
        scope = scope_at_client(subject.request, subject.id, editor, is_answered=subject.is_answered)
        return await editor.ask(with_scope(request, scope), forwarded)
