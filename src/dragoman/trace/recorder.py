"""Stand between an editor and an agent, and write down what passes.

    editor ── Tap ──► agent        bytes as they came, in both directions; frames are found in a copy of them
           ◄── Tap ──

The bytes are not decoded, so every version, dialect and mistake passes as it is. What one side does not take yet holds
up the reading of the other, as a pipe would. A direction ends when its source ends: what came before is written first.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from dragoman import limits
from dragoman.errors import FrameTooLarge, LargeFrameHead, PeerMistake
from dragoman.trace.records import TO_AGENT, TO_CLIENT, Direction
from dragoman.trace.writer import TracedConnection, TraceWriter
from dragoman.transports.contract import Receiver, Transport
from dragoman.transports.write_buffer import WriteBuffer
from dragoman.wire.framing import Framer

# An agent whose input has ended may work on for this long; without the tap it could as long as it likes.
AGENT_END_SECONDS: Final = 10.0


class FrameFinder:
    """Finds the frames in a copy of the bytes of one direction, and writes them to a trace."""

    def __init__(self, connection: TracedConnection, direction: Direction) -> None:
        self._connection = connection
        self._direction = direction
        self._framer = Framer(limit=limits.FRAME_BYTES)

    def __repr__(self) -> str:
        return f"<FrameFinder {self._direction} pending={self._framer.pending}>"

    def feed(self, data: bytes) -> None:
        """Write the frames that these bytes complete."""
        for found in self._framer.feed(data):
            if not isinstance(found, PeerMistake):
                self._connection.frame(self._direction, found)
            elif not isinstance(found, LargeFrameHead):
                head = found.head.decode(errors="replace") if isinstance(found, FrameTooLarge) else ""
                self._connection.note("process", event=found.message, direction=self._direction, head=head)

    def end(self) -> None:
        """Note what is left of a frame that never was complete."""
        if self._framer.pending:
            self._connection.note(
                "process", event="ended inside of a frame", direction=self._direction, bytes=self._framer.pending
            )


class TracedTransport:
    """A `Transport` whose bytes are copied to a trace: for a program that owns the link, such as a relay or a gateway.

    `received` is the direction of what is read here.
    """

    def __init__(self, transport: Transport, connection: TracedConnection, received: Direction) -> None:
        sent: Direction = TO_CLIENT if received == TO_AGENT else TO_AGENT
        self._transport = transport
        self._received = FrameFinder(connection, received)
        self._sent = FrameFinder(connection, sent)
        self._receiver: Receiver

    def __repr__(self) -> str:
        return f"<TracedTransport {self._transport!r}>"

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport.start(self)

    def write(self, data: bytes | memoryview) -> int:
        accepted = self._transport.write(data)
        if accepted:
            self._sent.feed(bytes(data[:accepted]))
        return accepted

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def close_writing(self) -> None:
        self._transport.close_writing()

    async def close(self) -> None:
        await self._transport.close()

    # -- the transport calls these -----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._received.feed(data)
        self._receiver.data_received(data)

    def writable(self) -> None:
        self._receiver.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._received.end()
        self._sent.end()
        self._receiver.connection_lost(error)


def traced_opener(writer: TraceWriter, opened: Callable[[str], Transport]) -> Callable[[str], Transport]:
    """Return a function that opens a transport to the agent of a principal, as `opened` does, each a connection of the
    trace."""

    def open_transport(principal: str) -> Transport:
        transport = opened(principal)
        return TracedTransport(transport, writer.connect(), TO_CLIENT)

    return open_transport


class Tap:
    """Passes bytes between an editor and an agent until one of them is gone, and writes the frames to a trace."""

    def __init__(self, editor: Transport, agent: Transport, connection: TracedConnection) -> None:
        self._editor = _TapEnd(editor, FrameFinder(connection, TO_AGENT).feed)
        self._agent = _TapEnd(agent, FrameFinder(connection, TO_CLIENT).feed)
        self._editor.other, self._agent.other = self._agent, self._editor

    def __repr__(self) -> str:
        return f"<Tap editor={self._editor!r} agent={self._agent!r}>"

    async def run(self) -> None:
        """Pass bytes on until the agent is gone, or the editor is and the agent does not end; then close both."""
        try:
            self._agent.start()
            self._editor.start()
            await asyncio.wait([self._editor.lost, self._agent.lost], return_when=asyncio.FIRST_COMPLETED)
            if not self._agent.lost.done():
                await self._agent.drain()
                self._agent.transport.close_writing()
                await asyncio.wait([self._agent.lost], timeout=AGENT_END_SECONDS)
            await self._editor.drain()
        finally:
            await self._agent.transport.close()
            await self._editor.transport.close()


class _TapEnd:
    """One end: what it reads goes to `other` and to the trace; what it cannot write yet pauses `other`."""

    other: "_TapEnd"

    def __init__(self, transport: Transport, copy: Callable[[bytes], None]) -> None:
        self.transport: Final = transport
        self.lost: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._copy = copy
        self._unwritten = WriteBuffer(transport)
        self._drained = asyncio.Event()

    def __repr__(self) -> str:
        return f"<{'lost' if self.lost.done() else 'open'} unwritten={self._unwritten.size}>"

    def start(self) -> None:
        self.transport.start(self)

    def data_received(self, data: bytes) -> None:
        # First to the trace: what the other side answers must stand behind it.
        self._copy(data)
        self.other.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)

    def write(self, data: bytes) -> None:
        self._unwritten.write(data)
        self._after_writing()

    def writable(self) -> None:
        self._unwritten.writable()
        self._after_writing()

    def _after_writing(self) -> None:
        if not self._unwritten.size:
            self._drained.set()
            self.other.transport.resume_reading()
        else:
            self._drained.clear()
            if self._unwritten.size > limits.WRITE_BYTES:
                self.other.transport.pause_reading()

    async def drain(self) -> None:
        """Wait until everything is written, as long as the other program reads."""
        while self._unwritten.size:
            before = self._unwritten.size
            self._drained.clear()
            try:
                async with asyncio.timeout(limits.CLOSE_FLUSH_SECONDS):
                    await self._drained.wait()
            except TimeoutError:
                if self._unwritten.size == before:
                    return
