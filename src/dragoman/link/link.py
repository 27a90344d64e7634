"""One live connection: a transport, a peer, a dialect and a bounded outbox; ordered in, ordered out.

Promises
- What is heard is handed up in the order it came; a response only after everything before it.
- Notifications and answers are always read, however full the outbox is. Reading stops only for a peer that is past
  its in-flight limit and does not read its refusals, and for a layer above that has not taken what it was told.
- Every call ends exactly once: with its answer, with the peer's error, or with `LinkClosed`.
- After a clean end of input, what was asked before it is still answered, within `limits.EOF_ANSWER_SECONDS`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Literal, Protocol, cast

import msgspec

from dragoman import limits
from dragoman.dialects import dialect_for
from dragoman.dialects.contract import Answer, AnswerError, Dialect, Id, Notify, Out, Replied, Told
from dragoman.dialects.greeting import Greeted
from dragoman.dialects.handshake import SPOKEN, hear_agent, hear_client, say_agent, say_client
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
from dragoman.outbox import Outbox, TextStream, Trace
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import CloseSession, ListSessions
from dragoman.wire.framing import Framer
from dragoman.wire.jsonrpc import Answered, CancelAsked, Ignored, Notification, Peer, Refused, SendBack
from dragoman.wire.jsonrpc import Request as WireRequest

__all__ = ["Handler", "Link", "Role", "TextStream", "Trace", "Watch"]

Role = Literal["agent", "client"]
# How a link ends: what is owed is answered, or what waits is flushed, or nobody is there any more.
Ending = Literal["answer", "flush", "drop"]
HearUpdate = Callable[[bytes], tuple[str, AnyEvent] | None]
OnLongEvent = Callable[[str, AnyEvent, int], None]
Frames = Iterable[bytes | PeerMistake]

# Beside its body an answer or an update has an envelope; this only decides who has to wait.
_ENVELOPE: Final = 128
# They end work instead of starting it, so every peer of ours lets them pass its limit; we do the same.
_PASSING: Final = (CloseSession, ListSessions)
# Somebody waits for an answer behind all this, so it is read; but not without end.
_FLOOD_BYTES: Final = 8 * limits.INBOX_BYTES
# Handlers whose answer nobody waits for any more may clean up for this long: with the answers' second before it, a
# process is gone two seconds after its input.
_STOP_SECONDS: Final = 0.5


class Handler(Protocol):
    """The layer above a link. Everything here is called in order, from the loop, and must not block."""

    def on_hello(self, hello: ClientHello) -> AgentHello | Awaitable[AgentHello]:
        """What we answer to `initialize`. While it is awaited, everything heard waits, in order."""

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]: ...

    def on_note(self, note: Note) -> None: ...

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        """Something happened in a session. A handler that counts bytes may also have `on_long_event`, with their
        number behind the event: it is called instead for everything that is not a short piece of text."""

    def on_noise(self, reason: str) -> None: ...

    def on_bug(self, error: Exception) -> None:
        """A handler of ours raised what the peer was told nothing about."""

    def on_closed(self, error: LinkClosed) -> Awaitable[object] | None:
        """Nothing more will be heard. What is given back is waited for, within a bound, before the last word leaves."""


class Watch(Protocol):
    """Who must know when a request of ours leaves and where its answer stands among everything else that is heard."""

    def sent(self, number: int) -> None:
        """It has its place in the outbox, under this number."""

    def heard(self) -> None:
        """It is answered, early or by the peer or by the end of the link; nothing said later was handed up yet."""


class _Waiter:
    """One call of ours; no request means it is `initialize`."""

    __slots__ = ("future", "on_reply", "request", "watch")

    def __init__(
        self,
        request: Request | None,
        future: "asyncio.Future[Reply]",
        watch: Watch | None = None,
        on_reply: Callable[[Reply], None] | None = None,
    ) -> None:
        self.request = request
        self.future = future
        self.watch = watch
        self.on_reply = on_reply

    def resolve(self, reply: Reply) -> None:
        if not self.future.done():
            if self.on_reply is not None:
                self.on_reply(reply)
            self.future.set_result(reply)
            self.tell()

    def reject(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            self.tell()

    def tell(self) -> None:
        """The one who watches hears of it once."""
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.heard()


class _Hello(Reply, frozen=True, gc=False):
    """The answer to `initialize`."""

    agent: AgentHello


class Link:
    """A connection in one role. Made inside a running loop; `start` begins to read."""

    def __init__(
        self,
        transport: Transport,
        handler: Handler,
        role: Role,
        *,
        spoken: tuple[int, ...] = SPOKEN,
        trace: Trace | None = None,
        frame_limit: int = limits.FRAME_BYTES,
        greeted: Greeted | None = None,
    ) -> None:
        self.role = role
        self._trace = None if trace is None else _guarded(trace, handler.on_bug)
        self.outbox = Outbox(transport, trace=self._trace)
        self.version = 0
        self._transport = transport
        self._handler = handler
        self._on_long_event: OnLongEvent = getattr(
            handler, "on_long_event", lambda id, event, _: handler.on_event(id, event)
        )
        self._spoken = spoken
        self._dialect: Dialect | None = None
        self._met: tuple[ClientHello, AgentHello] | None = None
        self._hear_update: HearUpdate | None = None
        self._framer = Framer(limit=frame_limit)
        self._peer: Peer[_Waiter] = Peer(answers_noise=role == "agent")
        self._working: dict[Id, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(limits.IN_FLIGHT)
        self._hello: ClientHello | None = None  # as a client: what we said
        self._greeting = False  # as an agent: our own answer to `initialize` is awaited
        self._refused: deque[tuple[int, int]] = deque()  # refusals in the outbox: where they end, and how many bytes
        self._awaited = 0
        self._untaken = 0
        self._reading = True
        self._unread: list[bytes | PeerMistake] = []  # framed, and not heard because reading stopped
        self._lost: LinkClosed | None = None
        self._loop = asyncio.get_running_loop()
        self._answered: asyncio.Future[None] | None = None  # at the end: nothing is owed any more
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._ending: asyncio.Task[None] | None = None
        if greeted is not None:  # `initialize` was answered before there was a link
            self._framer = greeted.framer
            self._meet(greeted.version, greeted.client, greeted.agent)

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read."""
        self._transport.start(self)

    async def hello(self, hello: ClientHello) -> AgentHello:
        """The client's first words; the dialect follows from the answer."""
        self._hello = hello
        future: asyncio.Future[Reply] = self._loop.create_future()
        number, payload = self._peer.call("initialize", say_client(hello, self._spoken), _Waiter(None, future))
        self.outbox.put(payload)
        return cast(_Hello, await self._answer(number, future)).agent

    async def finish(self) -> None:
        """Hear no more, answer what was asked, and close: what the end of input does, by our own will."""
        self._stop_reading()
        self._unread.clear()
        await self._end("answer", LinkClosed("the link was closed"))

    async def close(self) -> None:
        """Say what is left to say, end the connection, fail every call that still waits. Bounded and idempotent."""
        await self._end("flush", LinkClosed("the link was closed"))

    async def ended(self) -> None:
        """Wait until the connection is over and the requests it brought are done with."""
        await asyncio.shield(self._ended)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be said."""
        return self._lost is not None

    @property
    def dialect(self) -> Dialect:
        """How this link speaks; its tables are imported at the first use, after `initialize` was answered."""
        if self._dialect is None:
            if self._met is None:
                raise UsageError("nothing can be said before initialize was answered")
            self._dialect = dialect_for(self.version, self.role, *self._met)
            self._peer.unlimited = self._dialect.unlimited
            self._peer.null_ids = self._dialect.null_ids
        return self._dialect

    # -- what we say -------------------------------------------------------------------------------------------------

    async def ask(
        self, request: Request, watch: Watch | None = None, on_reply: Callable[[Reply], None] | None = None
    ) -> Reply:
        """Ask, and wait for the answer. Cancelling the wait cancels the request at the peer.

        `on_reply` is called with the answer at its place among the events: before anything the peer said after it.
        """
        counted = not isinstance(request, _PASSING)
        if counted:
            await self._slots.acquire()
        future: asyncio.Future[Reply] = self._loop.create_future()
        try:
            if self._ending is not None:
                raise LinkClosed("the connection has ended")
            call = self.dialect.ask(request)
            _check_size(len(call.params))
            waiter = _Waiter(request, future, watch, on_reply)
            number, payload = self._peer.call(call.method, call.params, waiter)
            if call.early is not None:
                # Whoever asked goes on; the request counts until the peer has answered it.
                future.add_done_callback(self._release if counted else _seen)
                counted = False
                waiter.tell()
            self._hand_up(call.told)
            await self._send(
                number, _watched(payload, number, watch), len(payload), waiter, early=call.early is not None
            )
            return call.early if call.early is not None else await self._answer(number, future)
        finally:
            if counted:
                self._slots.release()
            if future.done():
                _seen(future)

    async def _send(self, number: int, frame: Iterable[bytes], size: int, waiter: _Waiter, *, early: bool) -> None:
        """Put a request into the outbox. A lone one leaves at once; several are gathered, as everything else is."""
        held = not self._awaited and self.outbox.hold()
        turn = self.outbox.enqueue(size, frame)
        if held:
            self.outbox.release()
        if turn is None:
            return
        try:
            await turn
        except BaseException:
            if turn.cancelled() or not early:
                self._give_up(number, waiter, sent=not turn.cancelled() and not turn.exception())
            raise

    async def tell(self, session_id: str, event: AnyEvent) -> None:
        """Say an event; waits while the peer does not read."""
        turn = self.tell_in_turn(session_id, event)
        if turn is not None:
            await turn

    def tell_in_turn(self, session_id: str, event: AnyEvent) -> "asyncio.Future[None] | None":
        """Say an event behind everything that waits. None: it is in the outbox; else it will be when this is done."""
        return self._say(self.dialect.tell(session_id, event))

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextStream:
        """A message to be said in pieces of text."""
        return TextStream(self.outbox, *self.dialect.text_frame(session_id, kind, message_id))

    async def note(self, note: Note) -> None:
        """Say a notification; waits while the peer does not read."""
        turn = self._say(self.dialect.note(note))
        if turn is not None:
            await turn

    def note_now(self, note: Note) -> None:
        """Say a notification that must not wait: a cancel."""
        for payload in self._payloads(self.dialect.note(note)):
            self.outbox.put(payload)

    @property
    def busy(self) -> bool:
        """Whether a request of ours would have to wait, because too many have no answer yet."""
        return self._slots.locked()

    def taken(self, but: int = 0) -> None:
        """The layer above has taken everything it was told, but for so many bytes."""
        self._untaken = but
        if not self._reading:
            self._read_again()

    # -- what we hear: the transport calls these ---------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes from the peer."""
        frames = self._framer.feed(data)
        if self._trace is not None:
            for one in frames:
                if isinstance(one, bytes):
                    self._trace("in", one)
        # Who asks one thing at a time is answered a turn of the loop earlier; who asks much at once, in fewer writes.
        held = len(frames) == 1 and self.outbox.hold()
        try:
            if self.role == "client":
                self._hear(frames)
                self._untaken += len(data)
                if self._untaken > limits.INBOX_BYTES:
                    self._hold_back()
            else:
                if self._framer.style is not None:
                    self.outbox.style = self._framer.style  # answered in kind
                self._hear(frames)
        finally:
            if held:
                self.outbox.release()

    def writable(self) -> None:
        """The transport has room again."""
        self.outbox.writable()

    def connection_lost(self, error: Exception | None) -> None:
        """The peer is gone, or has said its last word."""
        if self._ending is None:
            cause = error if isinstance(error, LinkClosed) else LinkClosed("the connection ended")
            self._ending = self._loop.create_task(self._wind_down("answer" if error is None else "drop", cause))

    # -- reading, and when not ---------------------------------------------------------------------------------------

    def _hear(self, frames: Frames) -> None:
        on_event = self._handler.on_event
        hear_update = self._hear_update
        rest = iter(frames)
        if self._waits():
            self._unread.extend(rest)
        for one in rest:
            try:
                # The one message that comes by the hundred thousand takes a short way.
                if hear_update is not None and one.__class__ is bytes:
                    told = hear_update(one)
                    if told is not None:
                        on_event(*told)
                        continue
                self._take(one)
            except Exception as error:
                self._handler.on_bug(error)
            hear_update = self._hear_update
            if self._waits():
                self._unread.extend(rest)

    def _waits(self) -> bool:
        """Whether what is framed has to wait: reading stopped in the middle of it, or our own hello is awaited."""
        if not self._reading:
            return True
        if self._greeting and len(self._unread) > limits.IN_FLIGHT:
            self._stop_reading()
        return self._greeting

    def _hold_back(self) -> None:
        """The layer above does not take what it is told: the peer has to wait, unless we wait for the peer."""
        if not self._awaited:
            self._stop_reading()
        elif self._untaken > _FLOOD_BYTES:
            self.connection_lost(LinkClosed("the peer sent more than anybody read while its answer was waited for"))

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self.outbox.on_room = self._read_again
            self._transport.pause_reading()

    def _read_again(self) -> None:
        if self._reading or self._ending is not None or self._choked():
            return
        if self._untaken > limits.INBOX_BYTES and not self._awaited:
            return
        self._reading = True
        self.outbox.on_room = None
        unread, self._unread = self._unread, []
        self._hear(unread)
        if self._reading:
            self._transport.resume_reading()

    def _choked(self) -> bool:
        """Whether the peer is past what it may ask, and does not read what it is told about that."""
        while self._refused and self._refused[0][0] <= self.outbox.written:
            self._refused.popleft()
        waiting = sum(size for _, size in self._refused)
        return waiting > limits.REFUSAL_BYTES or (self.outbox.crowded and self._peer.owed > 2 * limits.IN_FLIGHT)

    # -- one message -------------------------------------------------------------------------------------------------

    def _take(self, one: bytes | PeerMistake) -> None:
        match self._peer.receive(one):
            case Answered(waiter, result):
                self._take_answer(waiter, result)
            case WireRequest(id, method, params):
                self._take_request(id, method, params)
            case Notification(method, params):
                self._take_note(method, params)
            case Refused(waiter, code, message, data):
                self._take_refusal(waiter, WireError(code, message, _plain(data)))
            case CancelAsked(id):
                self._take_cancel(id)
            case SendBack(payload):
                self._send_back(payload)
            case Ignored(reason):
                self._handler.on_noise(reason)

    def _take_request(self, id: Id, method: str, params: msgspec.Raw) -> None:
        try:
            if self._met is None or (self.role == "agent" and method == "initialize"):
                self._take_hello(id, method, params)
                return
            request = self.dialect.hear_request(id, method, params)
        except PeerMistake as mistake:
            self._refuse(id, wire_error(mistake))
            return
        except Exception as error:
            self._refuse(id, self._explain(error))
            return
        if isinstance(request, Note):
            self._say([Answer(id, b"{}")])
            self._handler.on_note(request)
            return
        self._hand_up(self.dialect.asked(request))
        try:
            reply = self._handler.on_request(request, id)
        except Exception as error:
            self._conclude(id, request, error)
            return
        if isinstance(reply, Reply):
            self._conclude(id, request, reply)
        else:
            self._working[id] = self._loop.create_task(self._work(id, request, reply))

    async def _work(self, id: Id, request: Request, reply: Awaitable[Reply]) -> None:
        """Wait for a handler and say its answer. Cancelled: the peer is told so, whoever cancelled it."""
        try:
            end: Reply | Exception = await reply
        except asyncio.CancelledError:
            end = request_failed(CANCELLED, "Request cancelled")
        except Exception as error:
            end = error
        self._working.pop(id, None)
        self._conclude(id, request, end)

    def _conclude(self, id: Id, request: Request, end: Reply | Exception) -> None:
        """Answer a request. It counts as in flight until the answer has its place in the outbox."""
        if self.closed:
            return
        try:
            if isinstance(end, Exception):
                raise end
            self._say(self.dialect.reply(id, request, end))
        except Exception as error:
            self._say(self.dialect.fail(id, request, self._explain(error)))
        self._hand_up(self.dialect.answered(request))
        if self.outbox.crowded and self._choked():
            self._stop_reading()

    def _take_hello(self, id: Id, method: str, params: msgspec.Raw) -> None:
        if method != "initialize" or self.role == "client":
            raise PeerMistake(INVALID_REQUEST, "Not initialized")
        if self._met is not None:
            raise PeerMistake(INVALID_REQUEST, "Already initialized")
        version, client = hear_client(params, self._spoken)
        agent = self._handler.on_hello(client)
        if isinstance(agent, AgentHello):
            self._greet(id, version, client, agent)
        else:
            self._greeting = True
            self._working[id] = self._loop.create_task(self._greet_later(id, version, client, agent))

    def _greet(self, id: Id, version: int, client: ClientHello, agent: AgentHello) -> None:
        self._say([Answer(id, say_agent(version, agent, client))])
        self._meet(version, client, agent)
        # The answer leaves before the tables of its version are imported.
        self.outbox.flush()

    async def _greet_later(self, id: Id, version: int, client: ClientHello, agent: Awaitable[AgentHello]) -> None:
        """Wait for our own words, then take what was heard meanwhile."""
        try:
            self._greet(id, version, client, await agent)
        except asyncio.CancelledError:
            self._refuse(id, WireError(CANCELLED, "Request cancelled"))
        except Exception as error:
            self._refuse(id, self._explain(error))
        self._working.pop(id, None)
        self._greeting = False
        if self._reading:
            unread, self._unread = self._unread, []
            self._hear(unread)
        else:
            self._read_again()

    def _take_note(self, method: str, params: msgspec.Raw) -> None:
        if self._met is None:
            self._handler.on_noise(f"notification before initialize: {method[:80]}")
            return
        try:
            heard = self.dialect.hear_note(method, params)
        except PeerMistake as mistake:
            self._handler.on_noise(f"notification {method[:80]}: {mistake.message}")
            return
        for one in heard:
            if isinstance(one, Told):
                self._on_long_event(*one, len(params))
            else:
                self._handler.on_note(one)

    def _take_answer(self, waiter: _Waiter, result: msgspec.Raw) -> None:
        try:
            if waiter.request is None:
                version, agent = hear_agent(result, self._spoken)
                assert self._hello is not None
                self._meet(version, self._hello, agent)
                waiter.resolve(_Hello(agent))
            else:
                self._settle(waiter, self.dialect.hear_reply(waiter.request, result))
        except PeerError as error:
            self._spoil(waiter, error)
        except Exception as error:
            self._handler.on_bug(error)
            self._spoil(waiter, request_failed(*wire_error(error)))

    def _take_refusal(self, waiter: _Waiter, error: WireError) -> None:
        if waiter.request is None and error.code == UNSUPPORTED_VERSION:
            waiter.reject(VersionMismatch(f"the agent does not speak {_versions(self._spoken)}: {error.message}"))
        else:
            self._spoil(waiter, request_failed(*error))

    def _spoil(self, waiter: _Waiter, error: PeerError) -> None:
        """A refusal ends a call, and so does an answer that makes no sense."""
        if not self._settle_failure(waiter, wire_error(error)):
            waiter.reject(error)

    def _settle(self, waiter: _Waiter, replied: Replied) -> None:
        # What an answer tells besides comes before whoever waits for the answer goes on.
        self._hand_up(replied.told)
        if replied.reply is not None:
            waiter.resolve(replied.reply)
        elif not waiter.future.done():
            waiter.future.cancel()

    def _settle_failure(self, waiter: _Waiter, error: WireError) -> bool:
        """Whether on this wire the failure of the request is an answer after all: the end of a turn."""
        replied = None if waiter.request is None else self.dialect.hear_failure(waiter.request, error)
        if replied is not None:
            self._settle(waiter, replied)
        return replied is not None

    def _take_cancel(self, id: Id) -> None:
        note = self._dialect.hear_cancel(id) if self._dialect is not None else None
        if note is not None:
            self._handler.on_note(note)
        elif id in self._working:
            # Not before the task has begun: a coroutine that never ran cannot say that it was cancelled.
            self._loop.call_soon(self._working[id].cancel)

    # -- small steps -------------------------------------------------------------------------------------------------

    def _meet(self, version: int, client: ClientHello, agent: AgentHello) -> None:
        self.version = version
        self._met = (client, agent)
        if self.role == "client":
            self._hear_update = self.dialect.hear_update

    def _hand_up(self, told: Sequence[Told]) -> None:
        for session_id, event in told:
            self._handler.on_event(session_id, event)

    async def _answer(self, number: int, future: "asyncio.Future[Reply]") -> Reply:
        self._awaited += 1
        if not self._reading:
            self._read_again()
        try:
            return await future
        except asyncio.CancelledError:
            if not self.closed:
                self.outbox.put(self._peer.cancel_call(number))
            self._peer.abandon(number)
            raise
        finally:
            self._awaited -= 1

    def _give_up(self, number: int, waiter: _Waiter, *, sent: bool) -> None:
        """Whoever asked has gone while the request stood in line."""
        self._peer.abandon(number)
        if sent and not self.closed:
            self.outbox.put(self._peer.cancel_call(number))
        if not self._settle_failure(waiter, WireError(CANCELLED, "Request cancelled")):
            waiter.future.cancel()

    def _say(self, outs: Sequence[Out]) -> "asyncio.Future[None] | None":
        """Say these together, behind everything that waits. Not None: wait for it, or do not."""
        cost = 0
        for out in outs:
            if isinstance(out, Notify):
                _check_size(len(out.params))
                cost += len(out.params) + _ENVELOPE
            elif isinstance(out, Answer):
                cost += len(out.result) + _ENVELOPE
            else:
                cost += 2 * _ENVELOPE
        return self.outbox.enqueue(cost, self._payloads(outs)) if outs else None

    def _payloads(self, outs: Iterable[Out]) -> Iterable[bytes]:
        """The frames, each made when it is put: until then a request counts as unanswered."""
        for out in outs:
            if isinstance(out, Notify):
                yield _one_line(self._peer.notify(out.method, out.params))
                continue
            payload = self._answer_payload(out)
            if payload is not None:
                yield _one_line(payload)
            if self._answered is not None and not self._peer.owed and not self._answered.done():
                self._answered.set_result(None)

    def _answer_payload(self, out: Answer | AnswerError) -> bytes | None:
        if isinstance(out, AnswerError):
            return self._peer.fail(out.id, *out.error)
        if len(out.result) > limits.FRAME_BYTES:
            self._handler.on_bug(UsageError(f"an answer of {len(out.result)} bytes is larger than any peer takes"))
            return self._peer.fail(out.id, INTERNAL_ERROR, "The answer is too large")
        return self._peer.answer(out.id, out.result)

    def _refuse(self, id: Id, error: WireError) -> None:
        payload = self._peer.fail(id, *error)
        if payload is not None:
            self._send_back(payload)

    def _explain(self, error: Exception) -> WireError:
        if not isinstance(error, PeerError):
            self._handler.on_bug(error)
        return wire_error(error)

    def _send_back(self, payload: bytes) -> None:
        """Say at once what is wrong; a peer that does not read even that is not read either."""
        outbox = self.outbox
        size = -outbox.size
        outbox.put(payload)
        size += outbox.size
        end = outbox.written + outbox.size
        if self._refused and end - self._refused[-1][0] < limits.WRITE_BYTES:
            size += self._refused.pop()[1]
        self._refused.append((end, size))
        if outbox.size > limits.REFUSAL_BYTES:
            outbox.flush()
            if self._choked():
                self._stop_reading()

    def _release(self, future: "asyncio.Future[Reply]") -> None:
        self._slots.release()
        _seen(future)

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _end(self, ending: Ending, cause: LinkClosed) -> None:
        if self._ending is None:
            self._ending = self._loop.create_task(self._wind_down(ending, cause))
        await asyncio.shield(self._ending)

    async def _wind_down(self, ending: Ending, cause: LinkClosed) -> None:
        """The one way a link ends. Where the other direction may still be open, what is owed leaves first."""
        try:
            self._fail_calls(self._peer.give_up_calls(), cause)
            last_words = self._tell_closed(cause)
            if ending == "answer":
                deadline = self._loop.time() + limits.EOF_ANSWER_SECONDS
                await self._answer_all(last_words, deadline)
                await self.outbox.drained(max(deadline - self._loop.time(), 0))
            elif ending == "flush":
                await self.outbox.drained(limits.CLOSE_FLUSH_SECONDS)
        finally:
            self._lost = cause
            self._fail_calls(self._peer.close(), cause)
            self.outbox.close(cause)
            await self._transport.close()
            await self._stop_work()
            if not self._ended.done():
                self._ended.set_result(None)

    def _tell_closed(self, cause: LinkClosed) -> Awaitable[object] | None:
        try:
            return self._handler.on_closed(cause)
        except Exception as error:
            self._handler.on_bug(error)
            return None

    async def _answer_all(self, last_words: Awaitable[object] | None, deadline: float) -> None:
        self._answered = self._loop.create_future()
        if not self._peer.owed:
            self._answered.set_result(None)
        waited: list[asyncio.Future[Any]] = [self._answered]
        if last_words is not None:
            waited.append(asyncio.ensure_future(last_words))
        await asyncio.wait(waited, timeout=max(deadline - self._loop.time(), 0))

    async def _stop_work(self) -> None:
        tasks = list(self._working.values())
        if tasks:
            await asyncio.sleep(0)  # each has begun: a coroutine that never ran would complain
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)

    def _fail_calls(self, waiters: Iterable[_Waiter], cause: LinkClosed) -> None:
        for waiter in waiters:
            waiter.reject(cause)


def _seen(future: "asyncio.Future[Reply]") -> None:
    """A call nobody waits for any more may still fail."""
    if not future.cancelled():
        future.exception()


def _watched(payload: bytes, number: int, watch: Watch | None) -> Iterable[bytes]:
    """A payload that says when it is put."""
    if watch is not None:
        watch.sent(number)
    yield _one_line(payload)


def _check_size(size: int) -> None:
    if size > limits.FRAME_BYTES:
        raise UsageError(f"a message of {size} bytes is larger than any peer takes ({limits.FRAME_BYTES}): split it")


def _versions(spoken: tuple[int, ...]) -> str:
    return "version " + " or ".join(str(version) for version in spoken)


def _one_line(payload: bytes) -> bytes:
    """Parts of other people's JSON may have newlines between their tokens, where they mean as much as a space."""
    if b"\n" in payload or b"\r" in payload:
        return payload.replace(b"\n", b" ").replace(b"\r", b" ")
    return payload


def _guarded(trace: Trace, on_bug: Callable[[Exception], None]) -> Trace:
    """A trace that raises is reported once and then left alone: it must not harm the connection."""
    failed = False

    def guarded(direction: Literal["in", "out"], frame: bytes) -> None:
        nonlocal failed
        if not failed:
            try:
                trace(direction, frame)
            except Exception as error:
                failed = True
                on_bug(error)

    return guarded


def _plain(data: msgspec.Raw | None) -> object:
    try:
        return None if data is None else msgspec.json.decode(data)
    except (ValueError, RecursionError, OverflowError):
        return None
