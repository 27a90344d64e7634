"""How a link hears: bytes become frames, each handed on before the next; and when it does not read.

Notifications and answers are always read, however full the outbox is. Reading stops only for a peer that is past its
in-flight limit and does not read its refusals, and for a layer above that has not taken what it was told. What is
framed by then is kept, in order, and heard when reading goes on; so is what comes while our own hello is awaited.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from dragoman import limits
from dragoman.errors import LinkClosed, PeerMistake
from dragoman.link.contract import Handler
from dragoman.link.outgoing import OutgoingRequests
from dragoman.link.writer import LinkWriter
from dragoman.outbox import Trace
from dragoman.transports.contract import Transport
from dragoman.vocabulary.events import AnyEvent
from dragoman.wire.framing import Framer

if TYPE_CHECKING:
    from dragoman.link.link import Link

HearUpdate = Callable[[bytes], tuple[str, AnyEvent] | None]

# How much the handler may leave unconsumed while a caller waits for a reply behind it; past that the link is closed.
_FLOOD_BYTES: Final = 8 * limits.INBOX_BYTES


class LinkReader:
    """The hearing half of a link; the transport speaks to it."""

    def __init__(
        self,
        link: "Link",
        handler: Handler,
        transport: Transport,
        framer: Framer,
        *,
        voice: LinkWriter,
        asking: OutgoingRequests,
        trace: Trace | None,
    ) -> None:
        # The short way for the one message that comes by the hundred thousand; None where there is none.
        self.decode_text_update: HearUpdate | None = None
        self._link = link
        self._take = link.take
        self._handler = handler
        self._recount: Callable[[], int] | None = getattr(handler, "unread_bytes", None)
        self._transport = transport
        self._framer = framer
        self._outbox = link.outbox
        self._voice = voice
        self._asking = asking
        self._trace = trace
        self._is_client = link.role == "client"
        self._untaken = 0
        self._unframed = 0  # bytes of a frame that has not ended
        self._reading = True
        self._greeting = False  # our own answer to `initialize` is awaited
        self._unread: list[bytes | PeerMistake] = []  # framed, and not heard yet

    # -- the transport calls these -----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes from the peer."""
        frames = self._framer.feed(data)
        if self._trace is not None:
            for one in frames:
                if isinstance(one, bytes):
                    self._trace("in", one)
        if self._is_client:
            self._hear(frames)
            # Bytes of an incomplete frame do not count: the handler cannot consume them yet.
            self._unframed += len(data)
            if frames:
                self._untaken, self._unframed = self._untaken + self._unframed, 0
                if self._untaken > limits.INBOX_BYTES:
                    self._hold_back()
            if self._framer.broken:
                self._break_off()
            return
        if self._framer.style is not None:
            self._outbox.style = self._framer.style  # answered in kind
        # Who asks one thing at a time is answered a turn of the loop earlier; who asks much at once, in fewer writes.
        held = len(frames) == 1 and self._outbox.hold()
        try:
            self._hear(frames)
        finally:
            if held:
                self._outbox.release()
        if self._framer.broken:
            self._break_off()

    def writable(self) -> None:
        """The transport has room again."""
        self._outbox.writable()

    def connection_lost(self, error: Exception | None) -> None:
        """The peer is gone, or has said its last word."""
        self._link.lose(error)

    # -- when to read, and when not ----------------------------------------------------------------------------------

    def consume(self, unread: int = 0) -> None:
        """The layer above has taken everything it was told, but for so many bytes."""
        self._untaken = unread
        if not self._reading:
            self.read_again()

    def read_again(self) -> None:
        """Go on reading, if that was stopped and there is no reason left."""
        if self._reading or self._link.ending or self._voice.choked:
            return
        if self._untaken > limits.INBOX_BYTES and not self._asking.awaited:
            return
        self._reading = True
        self._outbox.on_room = None
        self._hear_unread()
        if self._framer.broken:
            self._break_off()
        elif self._reading:
            self._transport.resume_reading()

    def stop_reading(self) -> None:
        """Read no more until there is a reason to look again: room in the outbox, or something taken."""
        if self._reading:
            self._reading = False
            self._outbox.on_room = self.read_again
            self._transport.pause_reading()

    def mind_refusals(self) -> None:
        """A peer that does not read even what is wrong with its messages is not read either."""
        if self._outbox.size > limits.REFUSAL_BYTES and self._voice.choked:
            self.stop_reading()

    @property
    def has_unread(self) -> bool:
        """Whether something is framed that will be heard as soon as our own hello was said."""
        return self._greeting and bool(self._unread)

    def shut(self) -> None:
        """Hear nothing more, not even what is framed."""
        self.stop_reading()
        self._unread.clear()

    def await_greeting(self) -> None:
        """Keep what is heard from now on, until our own hello was said."""
        self._greeting = True

    def greeted(self) -> None:
        """Hear what was kept, and go on."""
        self._greeting = False
        if self._reading:
            self._hear_unread()
        else:
            self.read_again()

    # -- small steps -------------------------------------------------------------------------------------------------

    def _hear(self, frames: Iterable[bytes | PeerMistake]) -> None:
        on_event = self._handler.on_event
        decode_text_update = self.decode_text_update
        rest = iter(frames)
        if self._waits():
            self._unread.extend(rest)
        for one in rest:
            try:
                if decode_text_update is not None and one.__class__ is bytes:
                    told = decode_text_update(one)
                    if told is not None:
                        on_event(*told)
                        continue
                self._take(one)
            except Exception as error:
                self._handler.on_bug(error)
            decode_text_update = self.decode_text_update
            if (self._greeting or not self._reading) and self._waits():
                self._unread.extend(rest)

    def _hear_unread(self) -> None:
        unread, self._unread = self._unread, []
        self._hear(unread)

    def _break_off(self) -> None:
        """End the link, because no more frames will come. What is framed is heard first, however long that waits."""
        if self._unread:
            self.stop_reading()
        else:
            self._link.break_off(self._framer.broken)

    def _waits(self) -> bool:
        """Whether what is framed has to wait: reading stopped in the middle of it, or our own hello is awaited."""
        if not self._reading:
            return True
        if self._greeting and len(self._unread) > limits.IN_FLIGHT:
            self.stop_reading()
        return self._greeting

    def _hold_back(self) -> None:
        """Stop reading if the handler leaves too many bytes unconsumed, unless a caller waits for the peer's reply.

        Then reading goes on up to `_FLOOD_BYTES`, and past that the link is closed. Replies and events outside of turns
        are read at once without a call of `consume`, so the handler's own count (`unread_bytes`) is asked first.
        """
        if self._recount is not None:
            self._untaken = min(self._untaken, self._recount())
            if self._untaken <= limits.INBOX_BYTES:
                return
        if not self._asking.awaited:
            self.stop_reading()
        elif self._untaken > _FLOOD_BYTES:
            self._link.lose(LinkClosed("the peer sent more than was consumed while its reply was awaited"))
