"""A transport that two owners may pause: the link that reads it, and what the bytes are read for.

A link pauses its transport while its own buffers are full, but reads on while a request of its own waits for the
answer. Between two links that is too late: the answer would only wait behind everything else. So the second owner, a
bridge or a gateway, holds the transport itself. It is read only while neither of the two objects.
"""

from typing import TYPE_CHECKING, Final

from dragoman import limits
from dragoman.transports.contract import Receiver, Transport

if TYPE_CHECKING:
    from dragoman.bridge.forwarding import ForwardingQueue
    from dragoman.link import Link

# Received by one side and not yet handed to the other side's link. With that link's outbox this is all a bridge holds.
UNFORWARDED_BYTES: Final = limits.OUTBOX_BYTES


class ReadGate:
    """Stands between a transport and its link; a `Transport` for the link."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._is_held = False
        self._link_pauses = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} held={self._is_held} link_pauses={self._link_pauses}>"

    def hold(self, is_held: bool) -> None:
        """Stop reading, or allow it again. Nothing happens where that is the state already."""
        if is_held != self._is_held:
            self._is_held = is_held
            self._update()

    def start(self, receiver: Receiver) -> None:
        self._transport.start(receiver)

    def write(self, data: bytes | memoryview) -> int:
        return self._transport.write(data)

    def pause_reading(self) -> None:
        self._link_pauses = True
        self._update()

    def resume_reading(self) -> None:
        self._link_pauses = False
        self._update()

    def close_writing(self) -> None:
        self._transport.close_writing()

    async def close(self) -> None:
        await self._transport.close()

    def _update(self) -> None:
        # Pausing twice, or resuming twice, means nothing to a transport (`transports.contract`).
        if self._is_held or self._link_pauses:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


class ForwardingGate(ReadGate):
    """A gate that counts what was received since the queue to the other side was empty, and holds past a bound.

    It is a receiver as well, so that it sees the bytes before the link does. `attach` completes it: link, queue and
    gate need each other.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._receiver: Receiver
        self._queue: ForwardingQueue
        self._link: Link
        self._unforwarded = 0

    def attach(self, queue: "ForwardingQueue", link: "Link") -> None:
        """Connect the queue that empties what is received here, and the link that reads it."""
        self._queue = queue
        self._link = link

    def on_forwarded(self) -> None:
        """Read again: everything that was received has been handed to the other side."""
        self._unforwarded = 0
        self._link.consume()
        self.hold(False)

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport.start(self)

    # -- the transport calls these -----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._queue.is_idle:
            # What the link counted so far is a frame that is not complete, or noise: no step will ever consume it.
            self._link.consume()
        self._receiver.data_received(data)
        if self._queue.is_idle:
            return
        self._unforwarded += len(data)
        if self._unforwarded > UNFORWARDED_BYTES:
            self.hold(True)

    def writable(self) -> None:
        self._receiver.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._receiver.connection_lost(error)
