"""One live connection: a transport, a JSON-RPC peer, a dialect and a bounded outbox; ordered in, ordered out.

`state.py` says which states a link has and what each may receive and send; this file does it. Bytes arrive in
`data_received`, become frames, and each frame is received whole before the next: decoded by the dialect and given to
the handler, or matched to a call of ours. What leaves is encoded by the dialect and put into the outbox. No task
stands between the transport and the handler, so the order on the wire is the order at the handler.

Promises
- Messages reach the handler in the order they came; a reply reaches its caller after everything before it.
- Every call of ours ends exactly once: with its reply, with the peer's error, or with `LinkClosed`.
- Every request of the peer is answered exactly once, unless the link is closed first. It counts as in flight until its
  reply has a place in the outbox.
- After a clean end of input, requests that came before it are still answered, within `limits.EOF_ANSWER_SECONDS`.
- Memory is bounded in both directions. Notifications and responses are always read, however full the outbox is, since
  they may be what frees it. Reading stops only for a peer that is past its in-flight limit and does not read its error
  replies, and for a handler that has not consumed its events.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from dragoman import limits
from dragoman.dialects import dialect_for, handshake_for
from dragoman.dialects.contract import (
    DecodedReply,
    Dialect,
    ErrorMessage,
    Id,
    Out,
    ResultMessage,
    SessionEvent,
)
from dragoman.dialects.handshake.first_bytes import InitializeAnswer
from dragoman.dialects.handshake.initialize import SPOKEN, DecodedClientHello, check_hello_id
from dragoman.errors import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    LinkClosed,
    PeerError,
    PeerMistake,
    UsageError,
    VersionMismatch,
    WireError,
    request_failed,
    wire_error,
)
from dragoman.link.contract import CountingHandler, Handler, RelayingHandler, Watch
from dragoman.link.deadline import ANSWERS, FLUSH, REQUESTS, Deadline, cancel_all
from dragoman.link.outbox import Outbox, TextStream, Trace, cost, guarded_trace, text_stream
from dragoman.link.pending_calls import InFlightLimit, PendingCall, retrieve_exception
from dragoman.link.state import NEXT, PERMITTED, LinkState, Permitted, Reception, Role
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Note, R, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import CloseSession, ListSessions
from dragoman.wire.framing import Framer, one_line
from dragoman.wire.jsonrpc import (
    Answered,
    CallFailed,
    CancelAsked,
    JsonRpcPeer,
    Notification,
    SendBack,
)
from dragoman.wire.jsonrpc import RequestEnvelope as WireRequest

if TYPE_CHECKING:
    from dragoman.dialects.vendors.wire_adapter import WireAdapter
    from dragoman.link.adapted_outbox import AdaptedOutbox

_log: Final = logging.getLogger(__name__)

# Looked up once: every message is held against these, and a member of an `Enum` is slow to reach.
_GREET, _HANDLE, _KEEP = Reception.GREET, Reception.HANDLE, Reception.KEEP
_CLOSED: Final = LinkState.CLOSED

# How a link ends: `answer` waits for the replies it owes, `flush` only writes what is queued, `drop` (the peer is gone)
# does neither.
Ending: TypeAlias = Literal["answer", "flush", "drop"]
T = TypeVar("T")
Frame: TypeAlias = bytes | PeerMistake
DecodeTextUpdate: TypeAlias = Callable[[bytes], tuple[str, AnyEvent] | None]

# Requests of one read that are answered before the replies are written; fewer would cost more writes than they save.
_REPLIES_PER_WRITE: Final = 16
# How much the handler may leave unconsumed while a caller waits for a reply behind it; past that the link is closed.
_FLOOD_BYTES: Final = 8 * limits.INBOX_BYTES
# They end work instead of starting it, so every peer of ours lets them pass its limit; we do the same.
_UNCOUNTED: Final = frozenset({CloseSession, ListSessions})


class Link:
    """A connection in one role. Made inside a running loop; `start` begins to read.

    `dialect` names a vendor's dialect; without one, `initialize` settles on a version of the protocol among `spoken`.
    `greeted` is an `initialize` that was answered before there was a link. `trace` is called with every frame.
    """

    # A server has thousands of links: so many attributes in a dict of its own would cost each of them 1.3 KiB more.
    __slots__ = (
        *("begin_deadline", "deadline", "dialect_name", "fault", "hellos", "is_reading", "outbox", "role", "state"),
        *("version", "_adapted", "_all_answered", "_awaited", "_closed", "_counting", "_decode_text_update"),
        *("_dialect", "_end_task", "_framer", "_handler", "_handshake", "_is_lone", "_loop", "_our_hello", "_peer"),
        *(
            "_permitted",
            "_relay_text",
            "_relaying",
            "_running",
            "_slots",
            "_spoken",
            "_trace",
            "_transport",
            "_unconsumed",
        ),
        *("_unframed", "_unread", "__weakref__"),
    )

    def __init__(
        self,
        transport: Transport,
        handler: Handler,
        role: Role,
        *,
        spoken: tuple[int, ...] = SPOKEN,
        trace: Trace | None = None,
        frame_limit: int = limits.FRAME_BYTES,
        greeted: InitializeAnswer | None = None,
        dialect: str = "",
    ) -> None:
        self.role = role
        self.state = LinkState.NEW
        # Empty: the version decides. Else the dialect of this name, chosen by us or seen in `initialize`.
        self.dialect_name = dialect
        self.version = 0
        # Both hellos, from the answer to `initialize` on.
        self.hellos: tuple[ClientHello, AgentHello] | None = None
        # Whether bytes are read at the moment. Not part of the state: see `state.py`.
        self.is_reading = True
        # The time budget of the end; `serve_process` begins it earlier than the link can.
        self.begin_deadline: Callable[[], Deadline] = Deadline
        self.deadline: Deadline | None = None
        # Why we have ended the link by ourselves, where the peer's bytes left nothing else to do.
        self.fault: LinkClosed | None = None
        self._trace = None if trace is None else guarded_trace(trace, handler.on_bug)
        self._transport = transport
        self._handler = handler
        self._counting = handler if isinstance(handler, CountingHandler) else None
        self._loop = asyncio.get_running_loop()
        self._permitted: Permitted = PERMITTED[role][LinkState.NEW]

        self._peer: JsonRpcPeer[PendingCall] = JsonRpcPeer(answers_noise=role == "agent")
        self._spoken = spoken
        self._handshake = handshake_for(dialect, spoken)
        # Only the wire of a vendor's dialect has an adapter.
        make_adapter = self._handshake.agent_adapter if role == "agent" else self._handshake.client_adapter
        self._adapted = None if make_adapter is None else _adapted_outbox(transport, make_adapter(), self._trace)
        self.outbox: Final = self._adapted or Outbox(transport, trace=self._trace)
        self._dialect: Dialect | None = None
        # The dialect's short way for the one message that comes by the hundred thousand; None where there is none.
        self._decode_text_update: DecodeTextUpdate | None = None
        # The way of text to a handler that passes it on; None where there is none.
        self._relay_text: Callable[[bytes], bool] | None = None
        self._relaying: RelayingHandler | None = None

        # In: bytes that the handler has not consumed, bytes of a frame that has not ended, frames that wait.
        self._framer = Framer(limit=frame_limit) if greeted is None else greeted.framer
        self._unconsumed = 0
        self._unframed = 0
        self._unread: list[Frame] = []
        # Whether the frame that is received came alone: a peer that asks one thing at a time waits for the reply.
        self._is_lone = False
        # Requests of the peer whose handler has not finished.
        self._running: dict[Id, asyncio.Task[None]] = {}

        # Out: our calls.
        self._slots = InFlightLimit(limits.IN_FLIGHT)
        self._awaited = 0  # calls whose caller waits for the reply
        self._our_hello: tuple[ClientHello, PendingCall] | None = None

        self._end_task: asyncio.Task[None] | None = None
        self._all_answered: asyncio.Future[None] | None = None  # set at the end: done when no reply is owed
        self._closed: asyncio.Future[None] = self._loop.create_future()

        if greeted is not None:
            self.outbox.style = self._framer.style or self.outbox.style
            self._open(greeted.version, greeted.client, greeted.agent)

    def __repr__(self) -> str:
        dialect = self.dialect_name or (f"v{self.version}" if self.version else "no dialect yet")
        reading = "" if self.is_reading else ", not reading"
        calls = f"{self._peer.waiting} calls out, {self._peer.owed} requests in"
        return f"<Link {self.state.value}, {self.role}, {dialect}, {calls}, {self.outbox.size} bytes queued{reading}>"

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read."""
        self._transport.start(self)

    async def finish(self) -> None:
        """Read no more, answer what was asked, and close: what the end of input does, by our own will."""
        self._discard_input()
        await self._end("answer", LinkClosed("the link was closed"))

    async def close(self) -> None:
        """Write what is queued, end the connection, fail every call that still waits. Bounded and idempotent."""
        await self._end("flush", LinkClosed("the link was closed"))

    async def wait_until_closed(self) -> None:
        """Wait until the connection is over and the handlers of its requests have ended."""
        await asyncio.shield(self._closed)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self.state is LinkState.CLOSED

    @property
    def can_send(self) -> bool:
        """Whether events and notifications can be sent: `initialize` was answered, and the link is not closed."""
        return self._dialect is not None and self._permitted.sends_others

    @property
    def dialect(self) -> Dialect:
        """How this link speaks. Raises `UsageError` before `initialize` was answered."""
        if self._dialect is None:
            raise UsageError("nothing can be said before initialize was answered")
        return self._dialect

    @property
    def replies_to_prompt_at_turn_end(self) -> bool:
        """Whether a prompt on this link is answered when its turn ends, so that its id names it until then.

        Otherwise it is answered when it is accepted. False before `initialize` was answered: no prompt is in flight.
        """
        return self._dialect is not None and self._dialect.replies_to_prompt_at_turn_end

    # -- sending: events and notifications ---------------------------------------------------------------------------

    async def send_event(self, session_id: str, event: AnyEvent) -> None:
        """Send an event; wait while the outbox is full. Raise `LinkClosed` after the end."""
        admitted = self._send(self.dialect.encode_event(session_id, event))
        if admitted is not None:
            await admitted

    def enqueue_event(self, session_id: str, event: AnyEvent) -> "asyncio.Future[None] | None":
        """Send an event behind everything that waits, without waiting.

        None: it is in the outbox. Otherwise it will be when the future is done.
        """
        return self._send(self.dialect.encode_event(session_id, event))

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextStream:
        """Return a stream for the text of one message. Its frames pass no adapter: no vendor changes them."""
        return text_stream(self.outbox, self.dialect.text_frame(session_id, kind, message_id))

    async def send_notification(self, note: Note) -> None:
        """Send a notification; wait while the outbox is full."""
        admitted = self._send(self.dialect.encode_notification(note))
        if admitted is not None:
            await admitted

    def send_notification_now(self, note: Note) -> None:
        """Send a notification that must not wait: a cancel."""
        for payload in self._payloads(self.dialect.encode_notification(note)):
            self.outbox.put(payload)

    # -- sending: requests -------------------------------------------------------------------------------------------

    async def initialize(self, hello: ClientHello) -> AgentHello:
        """Send `initialize` and wait for the agent's hello; the dialect follows from it. Only in state NEW.

        Raise `VersionMismatch` if the agent speaks no version of ours, `PeerError` if it refuses or makes no sense.
        """
        if self.state is not LinkState.NEW:
            raise self._cannot_ask() if self._end_task is not None else UsageError("initialize is sent once")
        future: asyncio.Future[AgentHello] = self._loop.create_future()
        call = PendingCall(None, future)
        params = self._handshake.encode_client(hello)
        number, payload = self._peer.call("initialize", params, call)
        self._our_hello = (hello, call)
        self._enter(LinkState.GREETING)
        self.outbox.put(payload)
        return await self._wait_for_reply(number, future)

    async def ask(
        self, request: Request[R], watch: Watch | None = None, on_reply: Callable[[R], None] | None = None
    ) -> R:
        """Send a request and wait for its reply. Cancelling the wait cancels the request at the peer.

        `on_reply` is called with the reply at its place among the events: before anything the peer sent after it.
        Raise `PeerError` with the peer's error, `LinkClosed` if the link ends first.
        """
        # The slot comes first: a request that waits for one has no number yet, so cancelling it sends nothing, and the
        # link may end meanwhile. So everything that depends on the state is looked at behind it.
        counted = request.__class__ not in _UNCOUNTED
        if counted and not self._slots.acquire():
            await self._slots.wait()
        future: asyncio.Future[R] = asyncio.Future(loop=self._loop)
        try:
            dialect = self._dialect
            if dialect is None or not self._permitted.sends_requests:
                raise self._cannot_ask()
            try:
                message = dialect.encode_request(request)
            except UnicodeEncodeError:
                # A path of another encoding, or half of a surrogate pair: replaced, it would name something else.
                raise UsageError("a text in it is no Unicode, so no wire can carry it") from None
            # From here on the call is the peer's to answer: whatever happens, `_receive_result`, `_receive_error`,
            # `_abandon` or the end of the link settles its future, exactly once.
            call = PendingCall(request, future, watch, on_reply)
            number, payload = self._peer.call(message.method, message.params, call)
            early: Any = message.immediate_reply  # a dialect gives the reply that belongs to the request
            if early is not None:
                # The caller goes on with `early`; the request counts as in flight until the peer has answered it.
                future.add_done_callback(self._release_slot if counted else retrieve_exception)
                counted = False
                call.notify_watch()
            self._handle_events(message.events)
            admitted = self._put_request(number, one_line(payload), watch)
            if admitted is not None:
                await self._wait_in_queue(admitted, number, call, early=early is not None)
            if early is not None:
                return early  # type: ignore[no-any-return]
            return await self._wait_for_reply(number, future)
        except BaseException:
            # The caller is leaving with another exception; one that the future has as well would be reported as lost.
            if future.done():
                retrieve_exception(future)
            raise
        finally:
            if counted:
                self._slots.release()

    @property
    def busy(self) -> bool:
        """Whether a request of ours would have to wait, because too many have no reply yet."""
        return not self._slots.free

    def cancel_request(self, number: int) -> None:
        """Ask the peer to stop working on a request of ours; it still owes the reply."""
        self.outbox.put(self._peer.cancel_call(number))

    def _cannot_ask(self) -> Exception:
        if self._end_task is not None:
            return LinkClosed("the connection has ended")
        return UsageError("nothing can be said before initialize was answered")

    def _put_request(self, number: int, payload: bytes, watch: Watch | None) -> "asyncio.Future[None] | None":
        """Put a request into the outbox. A lone one leaves at once; several are gathered, as everything else is."""
        outbox = self.outbox
        if not outbox.has_room(len(payload)):
            return outbox.enqueue(len(payload), self._watched(payload, number, watch))
        if watch is not None:
            watch.on_sent(number)
        (outbox.put if self._awaited else outbox.put_and_flush)(payload)
        return None

    def _watched(self, payload: bytes, number: int, watch: Watch | None) -> Iterable[bytes]:
        """Yield the frame of a request, after calling `watch`: the outbox asks for it when it has room."""
        if watch is not None:
            watch.on_sent(number)
        yield payload

    async def _wait_in_queue(
        self, admitted: "asyncio.Future[None]", number: int, call: PendingCall, *, early: bool
    ) -> None:
        try:
            await admitted
        except BaseException:
            # The caller is cancelled, or the link has closed. With an early reply and the request already put, the call
            # goes on without its caller.
            if admitted.cancelled() or not early:
                self._abandon(number, call, sent=not admitted.cancelled() and not admitted.exception())
            raise

    def _abandon(self, number: int, call: PendingCall, *, sent: bool) -> None:
        """End a call whose caller stopped waiting for room in the outbox; if `sent`, cancel it at the peer."""
        self._peer.stop_waiting(number)
        if sent:
            self.cancel_request(number)
        if not self._settle_failure(call, WireError(CANCELLED, "Request cancelled")):
            call.future.cancel()

    async def _wait_for_reply(self, number: int, future: "asyncio.Future[T]") -> T:
        self._awaited += 1
        try:
            if not self.is_reading:
                self._resume_reading()  # the reply may stand behind what we have stopped to read
            return await future
        except asyncio.CancelledError:
            self.cancel_request(number)
            self._peer.stop_waiting(number)
            raise
        finally:
            self._awaited -= 1

    def _release_slot(self, future: "asyncio.Future[Any]") -> None:
        self._slots.release()
        retrieve_exception(future)

    # -- receiving: bytes to frames ----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Receive bytes from the transport."""
        # The order of these steps matters: the trace shows the wire as it is, so it comes before the adapter; and
        # frames are received before their bytes are counted, because the handler may consume them at once.
        frames: Sequence[Frame] = self._framer.feed(data)
        if self._trace is not None:
            for frame in frames:
                if isinstance(frame, bytes):
                    self._trace("in", frame)
        if self._adapted is not None:
            frames = self._adapted.adapt_received(frames)
        if self.role == "client":
            self._receive_frames(frames)
            # Bytes of an incomplete frame do not count: the handler cannot consume them yet.
            self._unframed += len(data)
            if frames:
                self._unconsumed, self._unframed = self._unconsumed + self._unframed, 0
                if self._unconsumed > limits.INBOX_BYTES:
                    self._bound_unconsumed()
        else:
            if self._permitted.request is not _HANDLE and self._framer.style is not None:
                self.outbox.style = self._framer.style  # answered in kind; the first bytes have decided
            if len(frames) <= _REPLIES_PER_WRITE:
                self._is_lone = len(frames) == 1
                self._receive_frames(frames)
                self._is_lone = False
            else:
                self._receive_batches(frames)
        if self._framer.broken:
            self._end_at_fault()

    def writable(self) -> None:
        """Go on writing: the transport has room again."""
        self.outbox.writable()

    def connection_lost(self, error: Exception | None) -> None:
        """End the link: the peer is gone, or (None) has closed its output and may still read ours."""
        if self._end_task is None:
            cause = error if isinstance(error, LinkClosed) else LinkClosed("the connection ended")
            self._begin_end("answer" if error is None else "drop", cause)

    def _receive_batches(self, frames: Sequence[Frame]) -> None:
        """Receive many frames. Replies leave in few writes, but not in one: the peer works on the first meanwhile."""
        for at in range(0, len(frames), _REPLIES_PER_WRITE):
            if at:
                self.outbox.flush()
            self._receive_frames(frames[at : at + _REPLIES_PER_WRITE])

    def _receive_frames(self, frames: Sequence[Frame]) -> None:
        on_event = self._handler.on_event
        decode_text_update = self._decode_text_update
        # One iterator for both loops: when a message stops the reading, those behind it are moved to `_unread`, and the
        # loop finds none left. An exception of a handler ends neither the loop nor the link.
        rest = iter(frames)
        if (not self.is_reading or self._permitted.request is _KEEP) and self._must_keep():
            self._unread.extend(rest)
        for frame in rest:
            try:
                if self._relay_text is not None and isinstance(frame, bytes) and self._relay_text(frame):
                    continue
                if decode_text_update is not None and isinstance(frame, bytes):
                    update = decode_text_update(frame)
                    if update is not None:
                        on_event(*update)
                        continue
                self._receive(frame)
            except Exception as error:
                self._handler.on_bug(error)
            # Any message may have changed the state or stopped the reading; a text update changes neither.
            decode_text_update = self._decode_text_update
            if len(frames) > 1 and (not self.is_reading or self._permitted.request is _KEEP) and self._must_keep():
                self._unread.extend(rest)
        if self._relaying is not None:
            try:
                self._relaying.on_read_end()
            except Exception as error:
                self._handler.on_bug(error)

    def _must_keep(self) -> bool:
        """Whether frames have to wait: reading was stopped among them, or our own hello is awaited."""
        if not self.is_reading:
            return True
        if self._permitted.request is not _KEEP:
            return False
        if len(self._unread) > limits.IN_FLIGHT:
            self._stop_reading()
        return True

    def _receive_unread(self) -> None:
        unread, self._unread = self._unread, []
        self._receive_frames(unread)

    # -- receiving: messages -----------------------------------------------------------------------------------------

    def _receive(self, frame: Frame) -> None:
        """Receive one frame, or what the framer found wrong in its place."""
        message = self._peer.receive(frame)
        if type(message) is WireRequest:  # not `isinstance`: see `JsonRpcPeer.receive`
            self._receive_request(message)
        elif isinstance(message, Answered):
            self._receive_result(message.waiter, message.result)
        elif isinstance(message, Notification):
            self._receive_notification(message)
        elif isinstance(message, CallFailed):
            self._receive_error(message.waiter, WireError(message.code, message.message, _plain(message.data)))
        elif isinstance(message, CancelAsked):
            self._receive_cancel(message.id)
        elif isinstance(message, SendBack):
            self._put_error_reply(message.payload)
            if message.reason:
                self._handler.on_noise(message.reason)
        elif message.reason:
            self._handler.on_noise(message.reason)

    def _receive_request(self, message: WireRequest) -> None:
        id, method = message.id, message.method
        permitted = self._permitted
        try:
            reception = permitted.initialize if method == "initialize" else permitted.request
            if reception is _GREET:
                self._greet(id, message.params)
                return
            if reception is not _HANDLE or self._dialect is None:
                if method == "initialize" and self.role == "client":
                    self._fail_echoed_hello()
                raise self._rejection(method)
            request = self._dialect.decode_request(id, method, message.params)
        except Exception as error:
            self._reject(id, error)
            return
        # A notification that the peer sends as a request: clients exist that do this with `session/cancel`, and wait
        # for the answer.
        if isinstance(request, Note):
            self._send([ResultMessage(id, b"{}")])
            self._handler.on_notification(request)
            return
        implied = self._dialect.events_at_request(request)
        if implied:
            self._handle_events(implied)
        # Called in this very step and not in a task, so that requests are handled in the order in which they came. A
        # handler that has its reply at hand gives it back, and no task is made at all.
        try:
            reply = self._handler.on_request(request, id)
        except Exception as error:
            self._reply(id, request, error, at_once=self._is_lone)
            return
        if isinstance(reply, Reply):
            self._reply(id, request, reply, at_once=self._is_lone)
        else:
            self._running[id] = self._loop.create_task(self._run(id, request, reply))

    def _receive_notification(self, message: Notification) -> None:
        method = message.method
        if self._permitted.notification is not _HANDLE or self._dialect is None:
            self._handler.on_noise(f"notification before initialize: {method[:80]}")
            return
        try:
            if self._relaying is not None and method == "session/update":
                update = self._dialect.relayed_update(message.params)
                if update is not None:
                    self._relaying.on_update(update)
                    return
            decoded = self._dialect.decode_notification(method, message.params)
        except PeerMistake as mistake:
            self._handler.on_noise(f"notification {method[:80]}: {mistake.message}")
            return
        for one in decoded:
            if isinstance(one, Note):
                self._handler.on_notification(one)
            elif self._counting is not None:
                self._counting.on_sized_event(*one, len(message.params))
            else:
                self._handler.on_event(*one)

    def _receive_cancel(self, id: Id) -> None:
        note = self._dialect.decode_cancel(id) if self._dialect is not None else None
        if note is not None:
            self._handler.on_notification(note)
        elif id in self._running:
            # Not before the task has begun: a coroutine that never ran cannot reply that it was cancelled.
            self._loop.call_soon(self._running[id].cancel)

    def _receive_result(self, call: PendingCall, result: msgspec.Raw) -> None:
        try:
            if call.request is None:
                self._receive_hello(call, result)
            else:
                assert self._dialect is not None  # no request leaves before
                self._settle(call, self._dialect.decode_reply(call.request, result))
        except PeerError as error:
            self._fail(call, error)
        except Exception as error:
            self._fail(call, request_failed(*self._wire_error(error)))

    def _receive_error(self, call: PendingCall, error: WireError) -> None:
        if call.request is None and error.code == UNSUPPORTED_VERSION:
            versions = " or ".join(str(version) for version in self._spoken)
            self._fail(call, VersionMismatch(f"the agent does not speak version {versions}: {error.message}"))
        else:
            self._fail(call, request_failed(*error))

    def _settle(self, call: PendingCall, replied: DecodedReply) -> None:
        # Events that came with the reply are handled before the caller goes on.
        self._handle_events(replied.events)
        call.settle(replied)

    def _settle_failure(self, call: PendingCall, error: WireError) -> bool:
        """Settle a call whose failure is a reply after all on this wire: the end of a turn. False: it has failed."""
        replied = None if call.request is None else self.dialect.decode_failure(call.request, error)
        if replied is not None:
            self._settle(call, replied)
        return replied is not None

    def _fail(self, call: PendingCall, error: PeerError | VersionMismatch) -> None:
        """End a call with an error: the peer's, or that its reply makes no sense."""
        if call.request is None:
            if self.state is LinkState.GREETING:
                self._enter(LinkState.NEW)
            call.fail(error)
        elif not self._settle_failure(call, wire_error(error)):
            call.fail(error)

    def _handle_events(self, implied: Iterable[SessionEvent]) -> None:
        """Hand events up that this wire does not send by themselves."""
        for session_id, event in implied:
            self._handler.on_event(session_id, event)

    # -- `initialize` ------------------------------------------------------------------------------------------------

    def _greet(self, id: Id, params: msgspec.Raw) -> None:
        """Answer `initialize`, in state NEW and as the agent; raise for one that is refused."""
        decoded = self._handshake.decode_client(params)
        check_hello_id(id, decoded)
        self._enter(LinkState.GREETING)
        # A handler that raises refuses `initialize`: the client gets the error, and may try again.
        try:
            agent = self._handler.on_initialize(decoded.hello)
            if isinstance(agent, AgentHello):
                self._answer_hello(id, decoded, agent)
                return
        except Exception:
            self._enter(LinkState.NEW)
            raise
        self._running[id] = self._loop.create_task(self._greet_later(id, decoded, agent))

    async def _greet_later(self, id: Id, decoded: DecodedClientHello, agent: Awaitable[AgentHello]) -> None:
        """Wait for our own hello, then receive the frames that were kept meanwhile."""
        try:
            ours = await agent
            if not self.closed:  # no reply can leave any more, and that is no mistake of the handler
                self._answer_hello(id, decoded, ours)
        except asyncio.CancelledError:
            self._refuse_hello(id, request_failed(CANCELLED, "Request cancelled"))
        except Exception as error:
            self._refuse_hello(id, error)
        self._running.pop(id, None)
        if self.is_reading:
            self._receive_unread()
        else:
            self._resume_reading()

    def _answer_hello(self, id: Id, decoded: DecodedClientHello, agent: AgentHello) -> None:
        version, client, self.dialect_name = decoded
        # From here on the settled version is the only one that is spoken.
        self._handshake = handshake_for(self.dialect_name, (version,))
        self._send([ResultMessage(id, self._handshake.encode_agent(agent, client))])
        self.outbox.flush()  # before `_open` imports the tables of the version, which takes milliseconds
        self._open(version, client, agent)

    def _refuse_hello(self, id: Id, error: Exception) -> None:
        if self.state is LinkState.GREETING:
            self._enter(LinkState.NEW if self._end_task is None else LinkState.ENDING)
        self._reject(id, error)

    def _receive_hello(self, call: PendingCall, result: msgspec.Raw) -> None:
        """Receive the agent's answer to our `initialize`."""
        version, agent, self.dialect_name = self._handshake.decode_agent(result)
        assert self._our_hello is not None
        self._open(version, self._our_hello[0], agent)
        call.resolve(agent)

    def _open(self, version: int, client: ClientHello, agent: AgentHello) -> None:
        """Set up the dialect; `initialize` is answered. Imports the dialect's tables, so send that answer before.

        From here on, and before the next frame is looked at, the dialect's rules hold: whether an id may be null, and
        which methods pass the limit of requests in flight.
        """
        self.version = version
        self.hellos = (client, agent)
        dialect = dialect_for(version, self.role, client, agent, self.dialect_name, salt=_new_salt())
        self._dialect = dialect
        self._peer.unlimited = dialect.unlimited
        self._peer.null_ids = dialect.null_ids
        if self.role == "client":
            if isinstance(self._handler, RelayingHandler):
                from dragoman.link.text_relay import text_relay  # most links relay nothing

                self._relay_text, self._relaying = text_relay(dialect, self._handler), self._handler
            else:
                self._decode_text_update = dialect.decode_text_update
            # In a later turn of the loop: the application sends its first request before, and the agent works on it.
            self._loop.call_soon(dialect.prepare)
        # The input may have ended while our hello was awaited.
        self._enter(LinkState.OPEN if self._end_task is None else LinkState.ENDING)

    def _rejection(self, method: str) -> PeerMistake:
        """Return why a request is not handled in this state."""
        if method == "initialize" and self.role == "agent":
            return PeerMistake(INVALID_REQUEST, "Already initialized")
        return PeerMistake(self._handshake.not_initialized, "Not initialized")

    def _fail_echoed_hello(self) -> None:
        """Fail our `initialize` that has come back: the program is no agent, and would never answer it."""
        if self._our_hello is not None:
            echo = PeerMistake(INVALID_REQUEST, "the program does not speak ACP: it sends our own words back")
            self._our_hello[1].fail(echo)

    # -- replying ----------------------------------------------------------------------------------------------------

    async def _run(self, id: Id, request: Request, reply: Awaitable[Reply]) -> None:
        """Wait for a handler and send its reply; if it was cancelled, by the peer or by us, the error `CANCELLED`."""
        try:
            outcome: Reply | Exception = await reply
        except asyncio.CancelledError:
            outcome = request_failed(CANCELLED, "Request cancelled")
        except Exception as error:
            outcome = error
        # Before the reply: with it the peer may use the id again, and cancel a request that is another one.
        self._running.pop(id, None)
        self._reply(id, request, outcome, at_once=self._peer.owed == 1)

    def _reply(self, id: Id, request: Request, outcome: Reply | Exception, *, at_once: bool) -> None:
        """Answer a request. It counts as in flight until the reply has its place in the outbox."""
        dialect = self._dialect
        if self.state is _CLOSED or dialect is None:
            return
        try:
            if isinstance(outcome, Exception):
                raise outcome
            admitted = self._send(dialect.encode_reply(id, request, outcome), at_once=at_once)
        except Exception as error:
            # The handler's error, or a reply that cannot be encoded: a request is never left without an answer.
            admitted = self._send(dialect.encode_failure(id, request, self._wire_error(error)), at_once=at_once)
        implied = dialect.events_at_reply(request)
        if implied:
            self._handle_events(implied)
        if admitted is not None and self._is_peer_choked:
            self._stop_reading()

    def _reject(self, id: Id, error: Exception) -> None:
        """Answer a request with an error at once: it was never handled."""
        payload = self._peer.fail(id, *self._wire_error(error))
        if payload is not None:
            self._put_error_reply(payload)

    def _wire_error(self, error: Exception) -> WireError:
        if not isinstance(error, PeerError):
            self._handler.on_bug(error)
        return wire_error(error)

    def _put_error_reply(self, payload: bytes) -> None:
        """Put an error reply whether there is room or not. A peer that does not even read these is not read either."""
        self.outbox.put_error_reply(payload)
        if self.outbox.size > limits.REFUSAL_BYTES and self._is_peer_choked:
            self._stop_reading()

    @property
    def _is_peer_choked(self) -> bool:
        """Whether the peer is past what it may ask, and does not read what it is answered about that."""
        outbox = self.outbox
        too_many = outbox.has_waiting_producers and self._peer.owed > 2 * limits.IN_FLIGHT
        return too_many or outbox.error_reply_bytes > limits.REFUSAL_BYTES

    # -- from messages to the outbox ---------------------------------------------------------------------------------

    def _send(self, outs: Sequence[Out], *, at_once: bool = False) -> "asyncio.Future[None] | None":
        """Send messages together, behind everything that waits. None: they are in the outbox, or written `at_once`."""
        outbox = self.outbox
        if len(outs) == 1 and outbox.has_room(cost(outs[0])):
            payload = self._payload(outs[0])
            if payload is not None:
                (outbox.put_and_flush if at_once else outbox.put)(payload)
            return None
        admitted = outbox.enqueue(sum(map(cost, outs)), self._payloads(outs)) if outs else None
        if at_once:
            outbox.flush()
        return admitted

    def _payloads(self, outs: Iterable[Out]) -> Iterable[bytes]:
        """Yield the frames, each made when it is put: until then a request counts as unanswered."""
        for out in outs:
            payload = self._payload(out)
            if payload is not None:
                yield payload

    def _payload(self, out: Out) -> bytes | None:
        """Return the frame of a message; None for a reply after the end."""
        # The most frequent class first: `isinstance` is slow for a class that a value is not of.
        if isinstance(out, ResultMessage):
            try:
                payload = self._peer.answer(out.id, out.result)
            except UsageError as error:
                self._handler.on_bug(error)
                payload = self._peer.fail(out.id, INTERNAL_ERROR, "The answer is too large")
        elif isinstance(out, ErrorMessage):
            payload = self._peer.fail(out.id, *out.error)
        else:
            return one_line(self._peer.notify(out.method, out.params))
        if self._all_answered is not None and not self._peer.owed and not self._all_answered.done():
            self._all_answered.set_result(None)
        return None if payload is None else one_line(payload)

    # -- back-pressure: when to read, and when not -------------------------------------------------------------------

    def consume(self, unread: int = 0) -> None:
        """Tell the link that the handler has consumed everything it was given, except `unread` bytes."""
        self._unconsumed = unread
        if not self.is_reading:
            self._resume_reading()

    def _stop_reading(self) -> None:
        """Read no more until there is a reason to look again: room in the outbox, or events consumed."""
        if self.is_reading:
            self.is_reading = False
            self.outbox.on_room = self._resume_reading
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        """Go on reading, if that was stopped and there is no reason left."""
        if self.is_reading or self._end_task is not None or self._is_peer_choked:
            return
        if self._unconsumed > limits.INBOX_BYTES and not self._awaited:
            return
        self.is_reading = True
        self.outbox.on_room = None
        # What was framed when reading stopped comes first. It may stop the reading again: then the rest stays unread.
        self._receive_unread()
        if self._framer.broken:
            self._end_at_fault()
        elif self.is_reading:
            self._transport.resume_reading()

    def _discard_input(self) -> None:
        """Receive nothing more, not even frames that are complete."""
        self._stop_reading()
        self._unread.clear()

    def _bound_unconsumed(self) -> None:
        """Stop reading if the handler leaves too many bytes unconsumed, unless a caller waits for the peer's reply.

        Then reading goes on up to `_FLOOD_BYTES`, and past that the link is closed: the handler may be that very
        caller, and would wait for a reply that is never read. Replies and events outside of turns are consumed at once,
        without a call of `consume`, so the handler's own count is asked for first.
        """
        if self._counting is not None:
            self._unconsumed = min(self._unconsumed, self._counting.unread_bytes())
            if self._unconsumed <= limits.INBOX_BYTES:
                return
        if not self._awaited:
            self._stop_reading()
        elif self._unconsumed > _FLOOD_BYTES:
            _log.warning("%r: closing it: the peer sent more than was consumed while its reply was awaited", self)
            self.connection_lost(LinkClosed("the peer sent more than was consumed while its reply was awaited"))

    # -- the end -----------------------------------------------------------------------------------------------------

    def _enter(self, state: LinkState) -> None:
        """Change the state. `NEXT` says from where to where; another change is a mistake of this file."""
        if state not in NEXT[self.state]:
            raise RuntimeError(f"a link cannot go from {self.state.value} to {state.value}")
        self.state = state
        self._permitted = PERMITTED[self.role][state]
        _log.debug("%r", self)

    def _end_at_fault(self) -> None:
        """End the link because no more frames can be told apart. What was asked before is answered, within a bound.

        Complete frames are received first, however long that waits.
        """
        if self._unread:
            self._stop_reading()
        elif self._end_task is None:
            reason = self._framer.broken
            self._handler.on_noise(f"{reason}; the connection ends")
            _log.warning("%r: closing it: %s", self, reason)
            self.fault = LinkClosed(f"the connection was ended: {reason}")
            self._discard_input()
            self._begin_end("answer", self.fault)

    async def _end(self, ending: Ending, cause: LinkClosed) -> None:
        if self._end_task is None:
            self._begin_end(ending, cause)
        assert self._end_task is not None
        await asyncio.shield(self._end_task)

    def _begin_end(self, ending: Ending, cause: LinkClosed) -> None:
        """Begin to end, once. An agent whose hello is awaited stays in GREETING until it is answered or time is up."""
        self._end_task = self._loop.create_task(self._wind_down(ending, cause))
        if self._permitted.request is not _KEEP:
            self._enter(LinkState.ENDING)

    async def _wind_down(self, ending: Ending, cause: LinkClosed) -> None:
        """End the link. Where the other direction may still be open, replies that are owed leave first."""
        self.deadline = self.begin_deadline()
        try:
            # Our calls fail before `on_closed`: handlers that wait for a reply are already ending when they are told.
            for call in self._peer.end_calls():
                call.fail(cause)
            last_words = self._call_on_closed(cause)
            if ending == "answer":
                until = self._loop.time() + min(limits.EOF_ANSWER_SECONDS, self.deadline.left(ANSWERS))
                await self._wait_for_replies(last_words, until)
                await self.outbox.wait_until_drained(max(until - self._loop.time(), 0))
            elif ending == "flush":
                await self.outbox.wait_until_drained(min(limits.CLOSE_FLUSH_SECONDS, self.deadline.left(FLUSH)))
        finally:
            if self.state is LinkState.GREETING:  # time was up before our hello was there
                self._enter(LinkState.ENDING)
            # Also when this task is cancelled: no caller may wait for a link that never closes.
            self._enter(LinkState.CLOSED)
            for call in self._peer.close():
                call.fail(cause)
            self.outbox.close(cause)
            # The transport before the handlers: the peer sees the end now, however long they take to clean up.
            await self._transport.close()
            await cancel_all(set(self._running.values()), self.deadline.left(REQUESTS))
            if not self._closed.done():
                self._closed.set_result(None)

    def _call_on_closed(self, cause: LinkClosed) -> Awaitable[object] | None:
        try:
            return self._handler.on_closed(cause)
        except Exception as error:
            self._handler.on_bug(error)
            return None

    async def _wait_for_replies(self, last_words: Awaitable[object] | None, until: float) -> None:
        """Wait until every request has its reply and `last_words` are done, but not longer than `until`."""
        waited: list[asyncio.Future[Any]] = [] if last_words is None else [asyncio.ensure_future(last_words)]
        while (self._peer.owed or waited or self._has_kept_frames) and self._loop.time() < until:
            answered = self._all_answered = self._loop.create_future()
            if not self._peer.owed and not self._has_kept_frames:
                answered.set_result(None)
            _, late = await asyncio.wait([answered, *waited], timeout=until - self._loop.time())
            waited = [one for one in waited if one in late]

    @property
    def _has_kept_frames(self) -> bool:
        """Whether frames wait for our own hello: requests among them are received, and answered, behind it."""
        return self._permitted.request is _KEEP and bool(self._unread)


def _adapted_outbox(transport: Transport, adapter: "WireAdapter", trace: Trace | None) -> "AdaptedOutbox":
    from dragoman.link.adapted_outbox import AdaptedOutbox

    return AdaptedOutbox(transport, adapter, trace=trace)


def _new_salt() -> str:
    """Return what keeps the ids that a dialect makes up apart from those of every other link."""
    return f"{os.urandom(4).hex()}-"


def _plain(data: msgspec.Raw | None) -> object:
    try:
        return None if data is None else msgspec.json.decode(data)
    except (ValueError, RecursionError, OverflowError):
        return None
