"""One live connection: a transport, a peer, a dialect and a bounded outbox; ordered in, ordered out.

Promises
- What is heard is handed up in the order it came; a response only after everything before it.
- Notifications and answers are always read, however full the outbox is. Reading stops only for a peer that is past
  its in-flight limit and does not read its refusals, and for a layer above that has not taken what it was told.
- Every call ends exactly once: with its answer, with the peer's error, or with `LinkClosed`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, Protocol, cast

import msgspec

from dragoman import limits
from dragoman.dialects import dialect_for
from dragoman.dialects.contract import Answer, Dialect, Id, Notify, Out, Replied, Told
from dragoman.dialects.handshake import SPOKEN, hear_agent, hear_client, say_agent, say_client
from dragoman.errors import (
    CANCELLED,
    INVALID_REQUEST,
    LinkClosed,
    PeerError,
    PeerMistake,
    UsageError,
    WireError,
    request_failed,
    wire_error,
)
from dragoman.outbox import Outbox
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire.framing import Framer
from dragoman.wire.jsonrpc import Answered, CancelAsked, Ignored, Notification, Peer, Refused, SendBack
from dragoman.wire.jsonrpc import Request as WireRequest

Role = Literal["agent", "client"]
Trace = Callable[[Literal["in", "out"], bytes], None]
_encode = msgspec.json.Encoder().encode
HearUpdate = Callable[[bytes], tuple[str, AnyEvent] | None]


class Handler(Protocol):
    """The layer above a link. Everything here is called in order, from the loop, and must not block."""

    def on_hello(self, hello: ClientHello) -> AgentHello | Awaitable[AgentHello]:
        """What we answer to `initialize`. While it is awaited, everything heard waits, in order."""

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]: ...

    def on_note(self, note: Note) -> None: ...

    def on_event(self, session_id: str, event: AnyEvent) -> None: ...

    def on_noise(self, reason: str) -> None: ...

    def on_bug(self, error: Exception) -> None:
        """A handler of ours raised what the peer was told nothing about."""

    def on_closed(self, error: LinkClosed) -> None: ...


class Watch(Protocol):
    """Who must know when a request of ours leaves and where its answer stands among everything else that is heard."""

    def sent(self, number: int) -> None:
        """It has its place in the outbox, under this number."""

    def heard(self) -> None:
        """It is answered, early or by the peer or by the end of the link; nothing said later was handed up yet."""


class _Waiter:
    """One call of ours; no request means it is `initialize`."""

    __slots__ = ("future", "request", "watch")

    def __init__(self, request: Request | None, future: "asyncio.Future[Reply]", watch: Watch | None = None) -> None:
        self.request = request
        self.future = future
        self.watch = watch

    def resolve(self, reply: Reply) -> None:
        if not self.future.done():
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
    """The raw answer to `initialize`."""

    result: msgspec.Raw


class TextStream:
    """One message being said in pieces: only the text is encoded anew, the rest of the frame is ready."""

    __slots__ = ("_head", "_outbox", "_tail")

    def __init__(self, outbox: Outbox, head: bytes, tail: bytes) -> None:
        self._outbox = outbox
        self._head = head
        self._tail = tail

    def put(self, text: str) -> bool:
        """Say a piece. True: much is waiting, `breathe` before the next one."""
        try:
            piece = _encode(text)
        except UnicodeEncodeError:
            # Half of a surrogate pair, as a model cut in the middle gives it, is no text on any wire.
            piece = _encode(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
        self._outbox.put(self._head + piece + self._tail)
        return self._outbox.size >= limits.WRITE_BYTES

    async def breathe(self) -> None:
        """Let the wire catch up and the loop turn."""
        await self._outbox.breathe()


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
    ) -> None:
        self.role = role
        self.outbox = Outbox(transport, trace=trace)
        self.version = 0
        self._transport = transport
        self._handler = handler
        self._spoken = spoken
        self._trace = trace
        self._dialect: Dialect | None = None
        self._met: tuple[ClientHello, AgentHello] | None = None
        self._hear_update: HearUpdate | None = None
        self._framer = Framer(limit=frame_limit)
        self._peer: Peer[_Waiter] = Peer(answers_noise=role == "agent")
        self._working: dict[Id, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(limits.IN_FLIGHT)
        self._held: list[bytes | PeerMistake] | None = None  # heard while the answer to `initialize` is awaited
        self._awaited = 0
        self._untaken = 0
        self._reading = True
        self._lost: LinkClosed | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._winding_down: asyncio.Task[None] | None = None

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read."""
        self._transport.start(self)

    async def hello(self, hello: ClientHello) -> AgentHello:
        """The client's first words; the dialect follows from the answer."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        number, payload = self._peer.call("initialize", say_client(hello, self._spoken), _Waiter(None, future))
        self.outbox.put(payload)
        answer = cast(_Hello, await self._answer(number, future))
        self.version, agent = hear_agent(answer.result, self._spoken)
        self._meet(hello, agent)
        return agent

    async def close(self) -> None:
        """Say what is left to say, end the connection, fail every call that still waits. Bounded and idempotent."""
        await self.outbox.drained(limits.CLOSE_FLUSH_SECONDS)
        self._lose(LinkClosed("the link was closed"))
        await self._transport.close()
        await self._stop_work()

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

    async def ask(self, request: Request, watch: Watch | None = None) -> Reply:
        """Ask, and wait for the answer. Cancelling the wait cancels the request at the peer."""
        await self._slots.acquire()
        future: asyncio.Future[Reply] = self._loop.create_future()
        future.add_done_callback(self._release)
        try:
            call = self.dialect.ask(request)
            waiter = _Waiter(request, future, watch)
            number, payload = self._peer.call(call.method, call.params, waiter)
        except BaseException:
            future.cancel()
            raise
        if call.early is not None:
            waiter.tell()
        self._hand_up(call.told)
        try:
            await self.outbox.put_when_room(payload)
        except asyncio.CancelledError:
            self._peer.abandon(number)
            future.cancel()
            raise
        if watch is not None:
            watch.sent(number)
        if call.early is not None:
            return call.early
        return await self._answer(number, future)

    async def tell(self, session_id: str, event: AnyEvent) -> None:
        """Say an event; waits while the peer does not read."""
        for payload in self._payloads(self.dialect.tell(session_id, event)):
            await self.outbox.put_when_room(payload)

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextStream:
        """A message to be said in pieces of text."""
        return TextStream(self.outbox, *self.dialect.text_frame(session_id, kind, message_id))

    async def note(self, note: Note) -> None:
        """Say a notification; waits while the peer does not read."""
        for payload in self._payloads(self.dialect.note(note)):
            await self.outbox.put_when_room(payload)

    def note_now(self, note: Note) -> None:
        """Say a notification that must not wait: a cancel."""
        for payload in self._payloads(self.dialect.note(note)):
            self.outbox.put(payload)

    @property
    def busy(self) -> bool:
        """Whether a request of ours would have to wait, because too many have no answer yet."""
        return self._slots.locked()

    def taken(self) -> None:
        """The layer above has taken everything it was told."""
        self._untaken = 0
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
        on_event = self._handler.on_event
        for one in frames:
            # The one message that comes by the hundred thousand takes a short way.
            if self._hear_update is not None and one.__class__ is bytes:
                told = self._hear_update(one)
                if told is not None:
                    on_event(*told)
                    continue
            self._take(one)
        if self.role == "client":
            self._untaken += len(data)
            if self._untaken > limits.INBOX_BYTES and not self._awaited:
                self._stop_reading()

    def writable(self) -> None:
        """The transport has room again."""
        self.outbox.writable()
        if not self._reading:
            self._read_again()

    def connection_lost(self, error: Exception | None) -> None:
        """The peer is gone, or has said its last word."""
        if self._winding_down is None:
            self._winding_down = self._loop.create_task(self._wind_down(error))

    # -- one message -------------------------------------------------------------------------------------------------

    def _take(self, one: bytes | PeerMistake) -> None:
        if self._held is not None:
            self._held.append(one)
            if len(self._held) > limits.IN_FLIGHT:
                self._stop_reading()
            return
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
            if self.role == "agent" and (self._met is None or method == "initialize"):
                self._take_hello(id, method, params)
                return
            request = self.dialect.hear_request(id, method, params)
        except PeerMistake as mistake:
            self._refuse(id, wire_error(mistake))
            return
        except Exception as error:
            self._handler.on_bug(error)
            self._refuse(id, wire_error(error))
            return
        if isinstance(request, Note):
            self._handler.on_note(request)
            self._finish(id, b"{}")
            return
        self._hand_up(self.dialect.asked(request))
        try:
            reply = self._handler.on_request(request, id)
        except Exception as error:
            self._fail(id, request, error)
            return
        if isinstance(reply, Reply):
            self._put(self.dialect.reply(id, request, reply))
            self._hand_up(self.dialect.answered(request))
        else:
            task = self._loop.create_task(self._work(id, request, reply))
            self._working[id] = task

    async def _work(self, id: Id, request: Request, reply: Awaitable[Reply]) -> None:
        """Wait for a handler and say its answer. Cancelled: the peer is told so, whoever cancelled it."""
        try:
            outs = self.dialect.reply(id, request, await reply)
        except asyncio.CancelledError:
            outs = self.dialect.fail(id, request, WireError(CANCELLED, "Request cancelled"))
        except Exception as error:
            outs = self.dialect.fail(id, request, self._explain(error))
        finally:
            self._working.pop(id, None)
        self._hand_up(self.dialect.answered(request))
        for payload in self._payloads(outs):
            if self.outbox.has_room_for(payload):
                self.outbox.put(payload)
            else:
                await self.outbox.put_when_room(payload)

    def _take_hello(self, id: Id, method: str, params: msgspec.Raw) -> None:
        if method != "initialize":
            raise PeerMistake(INVALID_REQUEST, "Not initialized")
        if self._met is not None:
            raise PeerMistake(INVALID_REQUEST, "Already initialized")
        version, client = hear_client(params, self._spoken)
        agent = self._handler.on_hello(client)
        if isinstance(agent, AgentHello):
            self._greet(id, version, client, agent)
        else:
            self._held = []
            self._working[id] = self._loop.create_task(self._greet_later(id, version, client, agent))

    def _greet(self, id: Id, version: int, client: ClientHello, agent: AgentHello) -> None:
        self._finish(id, say_agent(version, agent, client))
        self.version = version
        self._meet(client, agent)
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
        finally:
            self._working.pop(id, None)
        held, self._held = self._held or [], None
        for one in held:
            self._take(one)
        if not self._reading:
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
        except Exception as error:
            self._handler.on_bug(error)
            return
        for one in heard:
            if isinstance(one, Told):
                self._handler.on_event(*one)
            else:
                self._handler.on_note(one)

    def _take_answer(self, waiter: _Waiter, result: msgspec.Raw) -> None:
        if waiter.request is None:
            waiter.resolve(_Hello(result))
            return
        try:
            self._settle(waiter, self.dialect.hear_reply(waiter.request, result))
        except PeerError as error:
            waiter.reject(error)
        except Exception as error:
            self._handler.on_bug(error)
            waiter.reject(request_failed(*wire_error(error)))

    def _take_refusal(self, waiter: _Waiter, error: WireError) -> None:
        replied = None
        if waiter.request is not None:
            replied = self.dialect.hear_failure(waiter.request, error)
        if replied is None:
            waiter.reject(request_failed(*error))
        else:
            self._settle(waiter, replied)

    def _settle(self, waiter: _Waiter, replied: Replied) -> None:
        # What an answer tells besides comes before whoever waits for the answer goes on.
        self._hand_up(replied.told)
        if replied.reply is not None:
            waiter.resolve(replied.reply)
        elif not waiter.future.done():
            waiter.future.cancel()

    def _take_cancel(self, id: Id) -> None:
        note = self._dialect.hear_cancel(id) if self._dialect is not None else None
        if note is not None:
            self._handler.on_note(note)
        elif id in self._working:
            # Not before the task has begun: a coroutine that never ran cannot say that it was cancelled.
            self._loop.call_soon(self._working[id].cancel)

    # -- small steps -------------------------------------------------------------------------------------------------

    def _meet(self, client: ClientHello, agent: AgentHello) -> None:
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

    def _payloads(self, outs: Iterable[Out]) -> Iterable[bytes]:
        for out in outs:
            match out:
                case Notify(method, params):
                    yield self._peer.notify(method, params)
                case Answer(id, result):
                    payload = self._peer.answer(id, result)
                    if payload is not None:
                        yield payload
                case _:
                    payload = self._peer.fail(out.id, *out.error)
                    if payload is not None:
                        yield payload

    def _put(self, outs: Iterable[Out]) -> None:
        for payload in self._payloads(outs):
            self.outbox.put(payload)

    def _finish(self, id: Id, result: bytes) -> None:
        self._put([Answer(id, result)])

    def _refuse(self, id: Id, error: WireError) -> None:
        payload = self._peer.fail(id, *error)
        if payload is not None:
            self._send_back(payload)

    def _fail(self, id: Id, request: Request, error: Exception) -> None:
        self._put(self.dialect.fail(id, request, self._explain(error)))
        self._hand_up(self.dialect.answered(request))

    def _explain(self, error: Exception) -> WireError:
        if not isinstance(error, PeerError):
            self._handler.on_bug(error)
        return wire_error(error)

    def _send_back(self, payload: bytes) -> None:
        """Say at once what is wrong; a peer that does not read even that is not read either."""
        self.outbox.put(payload)
        if self.outbox.size > limits.OUTBOX_BYTES + limits.REFUSAL_BYTES:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def _read_again(self) -> None:
        if self.outbox.size > limits.OUTBOX_BYTES or (self._untaken > limits.INBOX_BYTES and not self._awaited):
            return
        self._reading = True
        self._transport.resume_reading()

    def _release(self, future: "asyncio.Future[Reply]") -> None:
        self._slots.release()
        if not future.cancelled():
            future.exception()  # seen: a call nobody waits for any more may still fail

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _wind_down(self, error: Exception | None) -> None:
        cause = error if isinstance(error, LinkClosed) else LinkClosed("the connection ended")
        self._fail_calls(cause)
        self._handler.on_closed(cause)
        # After a clean EOF the peer may still read: what was asked before it is answered, within a bound.
        if error is None:
            if self._working:
                await asyncio.wait(list(self._working.values()), timeout=limits.EOF_ANSWER_SECONDS)
            await self.outbox.drained(limits.CLOSE_FLUSH_SECONDS)
        self._lose(cause)
        await self._stop_work()

    async def _stop_work(self) -> None:
        tasks = list(self._working.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=limits.CLOSE_FLUSH_SECONDS)
        if not self._ended.done():
            self._ended.set_result(None)

    def _lose(self, cause: LinkClosed) -> None:
        if self._lost is None:
            self._lost = cause
            self._fail_calls(cause)
            self.outbox.close(cause)

    def _fail_calls(self, cause: LinkClosed) -> None:
        for waiter in self._peer.close():
            waiter.reject(cause)


def _plain(data: msgspec.Raw | None) -> object:
    try:
        return None if data is None else msgspec.json.decode(data)
    except (ValueError, RecursionError, OverflowError):
        return None
