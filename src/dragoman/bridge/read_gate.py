"""A transport that is not read while too much of what it brought has not been passed on.

A link does the same for a client that does not take its events, but reads on while a request of its own waits for the
answer. On a bridge the answer would only wait behind the rest.
"""

from typing import Final

from dragoman import limits
from dragoman.bridge.forwarding_queue import ForwardingQueue
from dragoman.link import Link
from dragoman.transports.contract import Receiver, Transport

# What one side has said and the other has not been told yet; together with its outbox this is what a bridge holds.
UNSAID_BYTES: Final = limits.OUTBOX_BYTES


class ReadGate:
    """Between a transport and its link: a receiver to the one, a transport to the other."""

    link: Link
    way: ForwardingQueue

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._receiver: Receiver
        self._unsaid = 0
        self._shut = False
        self._link_pauses = False

    def passed_on(self) -> None:
        """Everything heard was said to the other side."""
        self._unsaid = 0
        self.link.consume()
        if self._shut:
            self._shut = False
            if not self._link_pauses:
                self._transport.resume_reading()

    # -- the transport calls these -----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.way.idle:
            self.link.consume()  # a frame that is not complete has nothing to be passed on
        self._receiver.data_received(data)
        if self.way.idle:
            return
        self._unsaid += len(data)
        if self._unsaid > UNSAID_BYTES and not self._shut:
            self._shut = True
            self._transport.pause_reading()

    def writable(self) -> None:
        self._receiver.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._receiver.connection_lost(error)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport.start(self)

    def write(self, data: bytes | memoryview) -> int:
        return self._transport.write(data)

    def pause_reading(self) -> None:
        self._link_pauses = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._link_pauses = False
        if not self._shut:
            self._transport.resume_reading()

    def close_writing(self) -> None:
        self._transport.close_writing()

    async def close(self) -> None:
        await self._transport.close()
