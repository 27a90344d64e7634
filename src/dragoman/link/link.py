"""One live connection: a transport, a peer, a dialect and a bounded outbox; ordered in, ordered out.

Promises
- What is heard is handed up in the order it came; a response only after everything before it.
- Notifications and answers are always read, however full the outbox is. Reading stops only for a peer that is past
  its in-flight limit and does not read its refusals, and for a layer above that has not taken what it was told.
- Every call ends exactly once: with its answer, with the peer's error, or with `LinkClosed`.
- After a clean end of input, what was asked before it is still answered, within `limits.EOF_ANSWER_SECONDS`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from dragoman import limits
from dragoman.dialects import dialect_for
from dragoman.dialects.contract import Answer, AnsweredByNote, Dialect, Id, Told
from dragoman.dialects.greeting import Greeted
from dragoman.dialects.handshake import SPOKEN, HeardClient, hear_client, say_agent
from dragoman.dialects.named import named
from dragoman.errors import (
    CANCELLED,
    INVALID_REQUEST,
    TOO_MANY_IN_FLIGHT,
    LinkClosed,
    PeerError,
    PeerMistake,
    UsageError,
    WireError,
    request_failed,
    wire_error,
)
from dragoman.link.asking import Asking
from dragoman.link.calls import Waiter
from dragoman.link.contract import Handler, Role
from dragoman.link.streams import text_stream
from dragoman.link.voice import Voice
from dragoman.outbox import Outbox, TextStream, Trace
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire.framing import Framer
from dragoman.wire.jsonrpc import Answered, CancelAsked, Notification, Peer, Refused, SendBack
from dragoman.wire.jsonrpc import Request as WireRequest

# How a link ends: what is owed is answered, or what waits is flushed, or nobody is there any more.
Ending = Literal["answer", "flush", "drop"]
HearUpdate = Callable[[bytes], tuple[str, AnyEvent] | None]
OnLongEvent = Callable[[str, AnyEvent, int], None]
Frames = Iterable[bytes | PeerMistake]

# Somebody waits for an answer behind all this, so it is read; but not without end.
_FLOOD_BYTES: Final = 8 * limits.INBOX_BYTES
# Handlers whose answer nobody waits for any more may clean up for this long: with the answers' second before it, a
# process is gone two seconds after its input.
_STOP_SECONDS: Final = 0.5


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
        dialect: str = "",
    ) -> None:
        self.role = role
        # Empty: the version decides. Else the dialect of this name, chosen by us or seen in `initialize`.
        self.name = dialect
        self._trace = None if trace is None else _guarded(trace, handler.on_bug)
        self.outbox = Outbox(transport, trace=self._trace)
        self.version = 0
        self.on_bug: Final = handler.on_bug
        self._transport = transport
        self._handler = handler
        self._on_long_event: OnLongEvent = getattr(
            handler, "on_long_event", lambda id, event, _: handler.on_event(id, event)
        )
        self._recount: Callable[[], int] | None = getattr(handler, "untaken", None)
        self._spoken = spoken
        self._dialect: Dialect | None = None
        self._met: tuple[ClientHello, AgentHello] | None = None
        self._hear_update: HearUpdate | None = None
        self._framer = Framer(limit=frame_limit)
        self._peer: Peer[Waiter] = Peer(answers_noise=role == "agent")
        self._working: dict[Id, asyncio.Task[None]] = {}
        self._voice = Voice(self._peer, self.outbox, handler.on_bug)
        self._say = self._voice.say
        self._greeting = False  # as an agent: our own answer to `initialize` is awaited
        self._noted = 0
        self._untaken = 0
        self._unframed = 0  # bytes of a frame that has not ended
        self._reading = True
        self._unread: list[bytes | PeerMistake] = []  # framed, and not heard because reading stopped
        self._lost: LinkClosed | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._ending: asyncio.Task[None] | None = None
        self._asking = Asking(self, self._peer, spoken)
        self.hello: Final = self._asking.hello
        self.ask: Final = self._asking.ask
        self.withdraw: Final = self._asking.withdraw
        if greeted is not None:  # `initialize` was answered before there was a link
            self._framer = greeted.framer
            self.outbox.style = greeted.framer.style or self.outbox.style
            self.meet(greeted.version, greeted.client, greeted.agent)

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read."""
        self._transport.start(self)

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
    def ending(self) -> bool:
        """Whether nothing more can be asked."""
        return self._ending is not None

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
            self._dialect = dialect_for(self.version, self.role, *self._met, self.name)
            self._peer.unlimited = self._dialect.unlimited
            self._peer.null_ids = self._dialect.null_ids
        return self._dialect

    def _learn(self) -> None:
        if self._lost is None:
            assert self.dialect is not None

    # -- what we say -------------------------------------------------------------------------------------------------

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
        return text_stream(self.outbox, self.dialect.text_frame(session_id, kind, message_id))

    async def note(self, note: Note) -> None:
        """Say a notification; waits while the peer does not read."""
        turn = self._say(self.dialect.note(note))
        if turn is not None:
            await turn

    def note_now(self, note: Note) -> None:
        """Say a notification that must not wait: a cancel."""
        self._voice.say_now(self.dialect.note(note))

    @property
    def busy(self) -> bool:
        """Whether a request of ours would have to wait, because too many have no answer yet."""
        return self._asking.busy

    def taken(self, but: int = 0) -> None:
        """The layer above has taken everything it was told, but for so many bytes."""
        self._untaken = but
        if not self._reading:
            self.read_again()

    # -- what we hear: the transport calls these ---------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes from the peer."""
        frames = self._framer.feed(data)
        if self._trace is not None:
            for one in frames:
                if isinstance(one, bytes):
                    self._trace("in", one)
        if self.role == "client":
            self._hear(frames)
            # What is not a whole frame yet is nothing that anybody could take.
            self._unframed += len(data)
            if frames:
                self._untaken, self._unframed = self._untaken + self._unframed, 0
                if self._untaken > limits.INBOX_BYTES:
                    self._hold_back()
            return
        if self._framer.style is not None:
            self.outbox.style = self._framer.style  # answered in kind
        # Who asks one thing at a time is answered a turn of the loop earlier; who asks much at once, in fewer writes.
        held = len(frames) == 1 and self.outbox.hold()
        try:
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
            if (self._greeting or not self._reading) and self._waits():
                self._unread.extend(rest)

    def _waits(self) -> bool:
        """Whether what is framed has to wait: reading stopped in the middle of it, or our own hello is awaited."""
        if not self._reading:
            return True
        if self._greeting and len(self._unread) > limits.IN_FLIGHT:
            self._stop_reading()
        return self._greeting

    def _hold_back(self) -> None:
        """The layer above does not take what it is told: the peer has to wait, unless we wait for the peer.

        Answers and what is told outside of turns are taken as they come. Nobody says so each time: it is counted here.
        """
        if self._recount is not None:
            self._untaken = min(self._untaken, self._recount())
            if self._untaken <= limits.INBOX_BYTES:
                return
        if not self._asking.awaited:
            self._stop_reading()
        elif self._untaken > _FLOOD_BYTES:
            self.connection_lost(LinkClosed("the peer sent more than anybody read while its answer was waited for"))

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self.outbox.on_room = self.read_again
            self._transport.pause_reading()

    def read_again(self) -> None:
        """Go on reading, if that was stopped and there is no reason left."""
        if self._reading or self._ending is not None or self._voice.choked:
            return
        if self._untaken > limits.INBOX_BYTES and not self._asking.awaited:
            return
        self._reading = True
        self.outbox.on_room = None
        unread, self._unread = self._unread, []
        self._hear(unread)
        if self._reading:
            self._transport.resume_reading()

    # -- one message -------------------------------------------------------------------------------------------------

    def _take(self, one: bytes | PeerMistake) -> None:
        heard = self._peer.receive(one)
        if isinstance(heard, WireRequest):
            self._take_request(heard.id, heard.method, heard.params)
        elif isinstance(heard, Answered):
            self._asking.answered(heard.waiter, heard.result)
        elif isinstance(heard, Notification):
            self._take_note(heard.method, heard.params)
        elif isinstance(heard, Refused):
            self._asking.refused(heard.waiter, WireError(heard.code, heard.message, _plain(heard.data)))
        elif isinstance(heard, CancelAsked):
            self._take_cancel(heard.id)
        elif isinstance(heard, SendBack):
            self._send_back(heard.payload)
        elif heard.reason:
            self._handler.on_noise(heard.reason)

    def _take_request(self, id: Id, method: str, params: msgspec.Raw) -> None:
        try:
            early = self._met is None or (method == "initialize" and self.role == "agent")
            if early and (method == "initialize" or not self._assume_hello()):
                self._take_hello(id, method, params)
                return
            dialect = self.dialect
            request = dialect.hear_request(id, method, params)
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
        self._handle(id, request)

    def _handle(self, id: Id, request: Request) -> None:
        told = self.dialect.asked(request)
        if told:
            self.hand_up(told)
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
        if self._lost is not None:
            return
        dialect = self.dialect
        try:
            if isinstance(end, Exception):
                raise end
            self._say(dialect.reply(id, request, end))
        except Exception as error:
            self._say(dialect.fail(id, request, self._explain(error)))
        told = dialect.answered(request)
        if told:
            self.hand_up(told)
        if self.outbox.crowded and self._voice.choked:
            self._stop_reading()

    def _take_hello(self, id: Id, method: str, params: msgspec.Raw) -> None:
        if self.role == "client" and method == "initialize":
            self._asking.echoed()
        if method != "initialize" or self.role == "client":
            code = named(self.name).not_initialized if self.name else INVALID_REQUEST
            raise PeerMistake(code, "Not initialized")
        if self._met is not None:
            raise PeerMistake(INVALID_REQUEST, "Already initialized")
        heard = named(self.name).hear_client(params) if self.name else hear_client(params, self._spoken)
        agent = self._handler.on_hello(heard.hello)
        if isinstance(agent, AgentHello):
            self._greet(id, heard, agent)
        else:
            self._greeting = True
            self._working[id] = self._loop.create_task(self._greet_later(id, heard, agent))

    def _greet(self, id: Id, heard: HeardClient, agent: AgentHello) -> None:
        version, client, self.name = heard
        said = named(self.name).say_agent(agent, client) if self.name else say_agent(version, agent, client)
        self._say([Answer(id, said)])
        self.meet(version, client, agent)
        # The answer leaves before the tables of its version are imported.
        self.outbox.flush()

    async def _greet_later(self, id: Id, heard: HeardClient, agent: Awaitable[AgentHello]) -> None:
        """Wait for our own words, then take what was heard meanwhile."""
        try:
            self._greet(id, heard, await agent)
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
            self.read_again()

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
            elif isinstance(one, Note):
                self._handler.on_note(one)
            elif isinstance(one, AnsweredByNote):
                self._asking.answered_by_note(*one)
            else:
                self._take_noted_request(one)

    def _take_noted_request(self, request: Request) -> None:
        """A question that came as a notification. It has no id, and so no limit but this one."""
        self._noted += 1
        id = f"\0noted {self._noted}"  # no id that a peer may choose
        if len(self._working) < limits.IN_FLIGHT:
            self._handle(id, request)
        else:
            self._say(self.dialect.fail(id, request, WireError(TOO_MANY_IN_FLIGHT, "Too many requests")))

    def _assume_hello(self) -> bool:
        """In a dialect whose clients say no hello, the first request is as good as one."""
        if self.role == "client" or not self.name or not named(self.name).needs_no_hello:
            return False
        agent = self._handler.on_hello(ClientHello())
        if isinstance(agent, AgentHello):
            self.meet(1, ClientHello(), agent)
        return self._met is not None

    def _take_cancel(self, id: Id) -> None:
        note = self._dialect.hear_cancel(id) if self._dialect is not None else None
        if note is not None:
            self._handler.on_note(note)
        elif id in self._working:
            # Not before the task has begun: a coroutine that never ran cannot say that it was cancelled.
            self._loop.call_soon(self._working[id].cancel)

    # -- small steps -------------------------------------------------------------------------------------------------

    def meet(self, version: int, client: ClientHello, agent: AgentHello) -> None:
        """`initialize` is answered: this is who we are, and how we speak."""
        self.version = version
        self._met = (client, agent)
        # Behind the answer, and not when the next request has come: nobody waits for the tables then.
        self._loop.call_soon(self._learn)
        if self.role == "client":
            self._hear_update = self.dialect.hear_update

    def hand_up(self, told: Sequence[Told]) -> None:
        """Tell the layer above what was not said in so many words."""
        for session_id, event in told:
            self._handler.on_event(session_id, event)

    def _refuse(self, id: Id, error: WireError) -> None:
        self._voice.refuse(id, error)
        self._mind_choking()

    def _send_back(self, payload: bytes) -> None:
        self._voice.send_back(payload)
        self._mind_choking()

    def _mind_choking(self) -> None:
        """A peer that does not read even what is wrong with its messages is not read either."""
        if self.outbox.size > limits.REFUSAL_BYTES and self._voice.choked:
            self._stop_reading()

    def _explain(self, error: Exception) -> WireError:
        if not isinstance(error, PeerError):
            self._handler.on_bug(error)
        return wire_error(error)

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _end(self, ending: Ending, cause: LinkClosed) -> None:
        if self._ending is None:
            self._ending = self._loop.create_task(self._wind_down(ending, cause))
        await asyncio.shield(self._ending)

    async def _wind_down(self, ending: Ending, cause: LinkClosed) -> None:
        """The one way a link ends. Where the other direction may still be open, what is owed leaves first."""
        try:
            self._asking.give_up(self._peer.give_up_calls(), cause)
            last_words = self._tell_closed(cause)
            if ending == "answer":
                deadline = self._loop.time() + limits.EOF_ANSWER_SECONDS
                await self._answer_all(last_words, deadline)
                await self.outbox.drained(max(deadline - self._loop.time(), 0))
            elif ending == "flush":
                await self.outbox.drained(limits.CLOSE_FLUSH_SECONDS)
        finally:
            self._lost = cause
            self._asking.give_up(self._peer.close(), cause)
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
        answered = self._voice.answered = self._loop.create_future()
        if not self._peer.owed:
            answered.set_result(None)
        waited: list[asyncio.Future[Any]] = [answered]
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
