"""One live connection: a transport, a peer, a dialect and a bounded outbox; ordered in, ordered out.

A link has four parts: a `LinkReader`, a `LinkWriter`, `OutgoingRequests` for our requests and `IncomingRequests` for
the peer's. Here they are joined, each message that arrives goes to the part it is for, and the connection begins and
ends.

Promises
- What is heard is handed up in the order it came; a response only after everything before it.
- Every call ends exactly once: with its answer, with the peer's error, or with `LinkClosed`.
- After a clean end of input, what was asked before it is still answered, within `limits.EOF_ANSWER_SECONDS`.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal

import msgspec

from dragoman import limits
from dragoman.dialects import dialect_for
from dragoman.dialects.contract import AnswerByNotification, Dialect, Id, SessionEvent
from dragoman.dialects.handshake.first_bytes import Greeting
from dragoman.dialects.handshake.initialize import SPOKEN
from dragoman.errors import LinkClosed, PeerMistake, UsageError, WireError
from dragoman.link.contract import Handler, Role
from dragoman.link.deadline import ANSWERS, FLUSH, Deadline
from dragoman.link.incoming import IncomingRequests
from dragoman.link.outgoing import OutgoingRequests
from dragoman.link.pending_calls import PendingCall
from dragoman.link.reader import LinkReader
from dragoman.link.streams import text_stream
from dragoman.link.writer import LinkWriter
from dragoman.outbox import Outbox, TextStream, Trace
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Note
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire.framing import Framer
from dragoman.wire.jsonrpc import Answered, CallFailed, CancelAsked, JsonRpcPeer, Notification, SendBack
from dragoman.wire.jsonrpc import RequestEnvelope as WireRequest

# How a link ends: `answer` waits for the replies it owes, `flush` only writes what is queued, `drop` (the peer is gone)
# does neither.
Ending = Literal["answer", "flush", "drop"]
OnLongEvent = Callable[[str, AnyEvent, int], None]


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
        greeted: Greeting | None = None,
        dialect: str = "",
    ) -> None:
        self.role = role
        # Empty: the version decides. Else the dialect of this name, chosen by us or seen in `initialize`.
        self.dialect_name = dialect
        self.version = 0
        # Both hellos, from the answer to `initialize` on.
        self.hellos: tuple[ClientHello, AgentHello] | None = None
        # The time budget of the end; `serve_process` begins it earlier than the link can.
        self.begin_deadline: Callable[[], Deadline] = Deadline
        self.deadline: Deadline | None = None
        # Why we have ended the link by ourselves, where the peer's bytes left nothing else to do.
        self.fault: LinkClosed | None = None
        self.on_bug: Final = handler.on_bug
        trace = None if trace is None else _guarded(trace, handler.on_bug)
        framer = Framer(limit=frame_limit) if greeted is None else greeted.framer
        self.outbox = Outbox(transport, trace=trace)
        self._transport = transport
        self._handler = handler
        self._on_long_event: OnLongEvent = getattr(
            handler, "on_sized_event", lambda id, event, _: handler.on_event(id, event)
        )
        self._dialect: Dialect | None = None
        self._peer: JsonRpcPeer[PendingCall] = JsonRpcPeer(answers_noise=role == "agent")
        self._lost: LinkClosed | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._ending: asyncio.Task[None] | None = None

        self._voice = voice = LinkWriter(self._peer, self.outbox, handler.on_bug)
        self._say = voice.say
        self._asking = asking = OutgoingRequests(self, self._peer, spoken)
        self.initialize: Final = asking.initialize
        self.ask: Final = asking.ask
        self.cancel_request: Final = asking.cancel_request
        self._ear = ear = LinkReader(self, handler, transport, framer, voice=voice, asking=asking, trace=trace)
        self.consume: Final = ear.consume
        self.read_again: Final = ear.read_again
        self._answering = IncomingRequests(self, handler, spoken, voice=voice, ear=ear, asking=asking)

        if greeted is not None:  # `initialize` was answered before there was a link
            self.outbox.style = framer.style or self.outbox.style
            self.meet(greeted.version, greeted.client, greeted.agent)

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read."""
        self._transport.start(self._ear)

    async def finish(self) -> None:
        """Hear no more, answer what was asked, and close: what the end of input does, by our own will."""
        self._ear.shut()
        await self._end("answer", LinkClosed("the link was closed"))

    async def close(self) -> None:
        """Say what is left to say, end the connection, fail every call that still waits. Bounded and idempotent."""
        await self._end("flush", LinkClosed("the link was closed"))

    async def wait_until_closed(self) -> None:
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

    # -- what we say -------------------------------------------------------------------------------------------------

    async def send_event(self, session_id: str, event: AnyEvent) -> None:
        """Say an event; waits while the peer does not read."""
        turn = self.enqueue_event(session_id, event)
        if turn is not None:
            await turn

    def enqueue_event(self, session_id: str, event: AnyEvent) -> "asyncio.Future[None] | None":
        """Say an event behind everything that waits. None: it is in the outbox; else it will be when this is done."""
        return self._say(self.dialect.encode_event(session_id, event))

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextStream:
        """A message to be said in pieces of text."""
        return text_stream(self.outbox, self.dialect.text_frame(session_id, kind, message_id))

    async def send_notification(self, note: Note) -> None:
        """Say a notification; waits while the peer does not read."""
        turn = self._say(self.dialect.encode_notification(note))
        if turn is not None:
            await turn

    def send_notification_now(self, note: Note) -> None:
        """Say a notification that must not wait: a cancel."""
        self._voice.say_now(self.dialect.encode_notification(note))

    @property
    def busy(self) -> bool:
        """Whether a request of ours would have to wait, because too many have no answer yet."""
        return self._asking.busy

    # -- what we hear ------------------------------------------------------------------------------------------------

    def take(self, one: bytes | PeerMistake) -> None:
        """One message, or what is wrong with it: to whom it concerns."""
        heard = self._peer.receive(one)
        if isinstance(heard, WireRequest):
            self._answering.take(heard.id, heard.method, heard.params)
        elif isinstance(heard, Answered):
            self._asking.answered(heard.waiter, heard.result)
        elif isinstance(heard, Notification):
            self._take_note(heard.method, heard.params)
        elif isinstance(heard, CallFailed):
            self._asking.refused(heard.waiter, WireError(heard.code, heard.message, _plain(heard.data)))
        elif isinstance(heard, CancelAsked):
            self._take_cancel(heard.id)
        elif isinstance(heard, SendBack):
            self._voice.send_back(heard.payload)
            self._ear.mind_refusals()
            if heard.reason:
                self._handler.on_noise(heard.reason)
        elif heard.reason:
            self._handler.on_noise(heard.reason)

    def _take_note(self, method: str, params: msgspec.Raw) -> None:
        if self.hellos is None:
            self._handler.on_noise(f"notification before initialize: {method[:80]}")
            return
        try:
            heard = self.dialect.decode_notification(method, params)
        except PeerMistake as mistake:
            self._handler.on_noise(f"notification {method[:80]}: {mistake.message}")
            return
        for one in heard:
            if isinstance(one, SessionEvent):
                self._on_long_event(*one, len(params))
            elif isinstance(one, Note):
                self._handler.on_notification(one)
            elif isinstance(one, AnswerByNotification):
                self._asking.answered_by_note(*one)
            else:
                self._answering.take_noted(one)

    def _take_cancel(self, id: Id) -> None:
        note = self._dialect.decode_cancel(id) if self._dialect is not None else None
        if note is not None:
            self._handler.on_notification(note)
        else:
            self._answering.cancel(id)

    # -- its parts call these ----------------------------------------------------------------------------------------

    def meet(self, version: int, client: ClientHello, agent: AgentHello) -> None:
        """Set up the dialect; `initialize` is answered. Imports the dialect's tables, so send that answer before.

        From here on, and before the next frame is looked at, the dialect's rules hold: whether an id may be null, and
        which methods pass the limit of requests in flight.
        """
        self.version = version
        self.hellos = (client, agent)
        dialect = self._dialect = dialect_for(version, self.role, client, agent, self.dialect_name, salt=_new_salt())
        self._peer.unlimited = dialect.unlimited
        self._peer.null_ids = dialect.null_ids
        if self.role == "client":
            self._ear.decode_text_update = dialect.decode_text_update

    def hand_up(self, told: Sequence[SessionEvent]) -> None:
        """Tell the layer above what was not said in so many words."""
        for session_id, event in told:
            self._handler.on_event(session_id, event)

    def lose(self, error: Exception | None) -> None:
        """The peer is gone, or has said its last word (None)."""
        if self._ending is None:
            cause = error if isinstance(error, LinkClosed) else LinkClosed("the connection ended")
            self._ending = self._loop.create_task(self._wind_down("answer" if error is None else "drop", cause))

    def break_off(self, reason: str) -> None:
        """End the link because nothing more can be understood. What was asked before is answered, within a bound."""
        if self._ending is None:
            self._handler.on_noise(f"{reason}; the connection ends")
            self.fault = LinkClosed(f"the connection was ended: {reason}")
            self._ear.shut()
            self._ending = self._loop.create_task(self._wind_down("answer", self.fault))

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _end(self, ending: Ending, cause: LinkClosed) -> None:
        if self._ending is None:
            self._ending = self._loop.create_task(self._wind_down(ending, cause))
        await asyncio.shield(self._ending)

    async def _wind_down(self, ending: Ending, cause: LinkClosed) -> None:
        """The one way a link ends. Where the other direction may still be open, what is owed leaves first."""
        self.deadline = self.begin_deadline()
        try:
            self._asking.give_up(self._peer.give_up_calls(), cause)
            last_words = self._tell_closed(cause)
            if ending == "answer":
                until = self._loop.time() + min(limits.EOF_ANSWER_SECONDS, self.deadline.left(ANSWERS))
                await self._answer_all(last_words, until)
                await self.outbox.drained(max(until - self._loop.time(), 0))
            elif ending == "flush":
                await self.outbox.drained(min(limits.CLOSE_FLUSH_SECONDS, self.deadline.left(FLUSH)))
        finally:
            self._lost = cause
            self._asking.give_up(self._peer.close(), cause)
            self.outbox.close(cause)
            await self._transport.close()
            await self._answering.stop(self.deadline)
            if not self._ended.done():
                self._ended.set_result(None)

    def _tell_closed(self, cause: LinkClosed) -> Awaitable[object] | None:
        try:
            return self._handler.on_closed(cause)
        except Exception as error:
            self._handler.on_bug(error)
            return None

    async def _answer_all(self, last_words: Awaitable[object] | None, deadline: float) -> None:
        waited: list[asyncio.Future[Any]] = [] if last_words is None else [asyncio.ensure_future(last_words)]
        # Requests that waited for the answer to `initialize` are only heard behind it.
        while (self._peer.owed or waited or self._ear.has_unread) and self._loop.time() < deadline:
            answered = self._voice.answered = self._loop.create_future()
            if not self._peer.owed and not self._ear.has_unread:
                answered.set_result(None)
            _, late = await asyncio.wait([answered, *waited], timeout=deadline - self._loop.time())
            waited = [one for one in waited if one in late]


def _new_salt() -> str:
    """Return what keeps the ids that a dialect makes up apart from those of every other link."""
    return f"{os.urandom(4).hex()}-"


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
