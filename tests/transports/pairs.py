"""Every transport, connected to a peer that the test holds in its hands. A new transport is a new line in `PAIRS`.

A peer is not one of our transports where that can be helped: it is the bare other end (descriptors), so that a
mistake is not made twice and cancelled out.
"""

import asyncio
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import NamedTuple, Protocol

from dragoman.host.process import Child
from dragoman.transports.child import ChildTransport
from dragoman.transports.contract import Transport
from dragoman.transports.memory import Faults, MemoryTransport, memory_pair
from dragoman.transports.stdio import StdioTransport
from dragoman.transports.unix_socket import UnixSocketTransport
from tests.support.waiting import until

DEADLINE_SECONDS = 30.0


class Recorder:
    """A `Receiver` that writes everything down."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.pieces: list[int] = []
        self.rooms = 0
        self.losses: list[Exception | None] = []
        self.after_loss: list[str] = []
        self.on_data: Callable[[], None] = lambda: None

    def data_received(self, data: bytes) -> None:
        assert data
        self.data += data
        self.pieces.append(len(data))
        if self.losses:
            self.after_loss.append("data_received")
        self.on_data()

    def writable(self) -> None:
        self.rooms += 1
        if self.losses and self.losses[0] is not None:
            self.after_loss.append("writable")

    def connection_lost(self, error: Exception | None) -> None:
        self.losses.append(error)

    async def until_writable(self, times: int) -> None:
        await until(lambda: self.rooms >= times, "writable() after a short write")

    async def until_pieces(self, count: int) -> None:
        await until(lambda: len(self.pieces) >= count, f"{count} pieces")


class Peer(Protocol):
    """The other program, as raw as can be."""

    async def read(self, count: int) -> bytes: ...
    async def read_to_end(self) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    async def close_writing(self) -> None: ...
    async def vanish(self) -> None: ...


class Pair(NamedTuple):
    """A started transport, who listens to it, and who is at the other end."""

    transport: Transport
    receiver: Recorder
    peer: Peer

    async def send(self, data: bytes) -> None:
        """Writes all of it, as a link does: the rest when there is room."""
        rest = memoryview(data)
        while rest:
            rooms = self.receiver.rooms + 1
            rest = rest[self.transport.write(rest) :]
            if rest:
                await self.receiver.until_writable(rooms)

    def clog(self) -> int:
        """Writes until nothing more is taken; says how much was."""
        total = 0
        chunk = bytes(1000)
        while (taken := self.transport.write(chunk)) == len(chunk):
            total += taken
            assert total < 100_000_000, "a transport must not buffer without bound"
        return total + taken


class FdPeer:
    """The other ends of two pipes, or of a socket."""

    def __init__(self, read_fd: int, write_fd: int, farewell: Callable[[], None] = lambda: None) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._farewell = farewell
        self._open = {read_fd, write_fd}
        for fd in self._open:
            os.set_blocking(fd, False)

    async def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = await self._read_piece(count - len(data))
            assert piece, f"the end after {len(data)} of {count} bytes"
            data += piece
        return data

    async def read_to_end(self) -> bytes:
        data = b""
        while piece := await self._read_piece(65536):
            data += piece
        return data

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while rest:
            try:
                rest = rest[os.write(self._write_fd, rest) :]
            except BlockingIOError:
                assert time.monotonic() < deadline, f"nobody reads; {len(rest)} bytes are left"
                await asyncio.sleep(0.001)

    async def close_writing(self) -> None:
        self._close(self._write_fd)
        self._farewell()

    async def vanish(self) -> None:
        self._close(self._write_fd)
        self._close(self._read_fd)
        self._farewell()

    async def _read_piece(self, count: int) -> bytes:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                return os.read(self._read_fd, count)
            except BlockingIOError:
                assert time.monotonic() < deadline, "nothing arrives"
                await asyncio.sleep(0.001)

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            os.close(fd)


class SocketPeer(FdPeer):
    """The other end of one socket for both directions."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        super().__init__(end.fileno(), end.fileno())

    async def close_writing(self) -> None:
        self._end.shutdown(socket.SHUT_WR)

    async def vanish(self) -> None:
        self._end.close()


class MemoryPeer:
    """The other end of a memory pair. A read takes no more than it asked for."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport
        self._receiver = Recorder()
        self._taken = 0
        transport.start(self._receiver)
        transport.pause_reading()

    async def read(self, count: int) -> bytes:
        self._transport.resume_reading()
        await until(lambda: len(self._receiver.data) - self._taken >= count, f"{count} bytes at the peer")
        self._transport.pause_reading()
        self._taken += count
        return bytes(self._receiver.data[self._taken - count : self._taken])

    async def read_to_end(self) -> bytes:
        self._transport.resume_reading()
        await until(lambda: self._receiver.losses, "the end at the peer")
        return bytes(self._receiver.data[self._taken :])

    async def write(self, data: bytes) -> None:
        await Pair(self._transport, self._receiver, self).send(data)

    async def close_writing(self) -> None:
        self._transport.close_writing()

    async def vanish(self) -> None:
        await self._transport.close()


OpenPair = Callable[[], AbstractAsyncContextManager[Pair]]


def _memory(capacity: int, faults: Faults) -> OpenPair:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Pair]:
        left, right = memory_pair(capacity, to_right=faults, to_left=faults)
        peer = MemoryPeer(right)
        async with _started(left, peer) as pair:
            yield pair

    return opened


@asynccontextmanager
async def _stdio_pipes() -> AsyncIterator[Pair]:
    stdin, peer_writes = os.pipe()
    peer_reads, stdout = os.pipe()
    async with _started(StdioTransport(stdin, stdout), FdPeer(peer_reads, peer_writes)) as pair:
        yield pair


@asynccontextmanager
async def _stdio_socket() -> AsyncIterator[Pair]:
    """Two sockets, as a client in JavaScript makes them."""
    (stdin, peer_writes), (peer_reads, stdout) = socket.socketpair(), socket.socketpair()
    transport = StdioTransport(stdin.detach(), stdout.detach())
    async with _started(transport, FdPeer(peer_reads.detach(), peer_writes.detach())) as pair:
        yield pair


@asynccontextmanager
async def _unix_socket() -> AsyncIterator[Pair]:
    ours, theirs = socket.socketpair()
    async with _started(UnixSocketTransport(ours), SocketPeer(theirs)) as pair:
        yield pair


# It gives its stdin and stdout to the test over a socket, keeps none, and lives until the test lets go of it.
_PUPPET = """
import os, socket, sys
control = socket.socket(socket.AF_UNIX)
control.connect(sys.argv[1])
socket.send_fds(control, [b"x"], [0, 1])
null = os.open(os.devnull, os.O_RDWR)
os.dup2(null, 0)
os.dup2(null, 1)
control.recv(1)
"""


@asynccontextmanager
async def _child() -> AsyncIterator[Pair]:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "control")
        listener.bind(path)
        listener.listen()
        child = Child.start([sys.executable, "-I", "-S", "-c", _PUPPET, path], cwd=folder, env={})
        control, _ = await asyncio.to_thread(listener.accept)
        _, (child_stdin, child_stdout), _, _ = socket.recv_fds(control, 1, 2)
        peer = FdPeer(child_stdin, child_stdout, farewell=control.close)
        async with _started(ChildTransport(child), peer) as pair:
            yield pair


@asynccontextmanager
async def _started(transport: Transport, peer: Peer) -> AsyncIterator[Pair]:
    receiver = Recorder()
    transport.start(receiver)
    try:
        yield Pair(transport, receiver, peer)
    finally:
        with suppress(OSError):
            await peer.vanish()
        await transport.close()


KIB_64 = 64 * 1024

PAIRS: dict[str, OpenPair] = {
    "memory": _memory(KIB_64, Faults()),
    "memory-torn": _memory(KIB_64, Faults(pieces=7)),
    "memory-slow": _memory(KIB_64, Faults(per_turn=4000)),
    "memory-tiny": _memory(100, Faults()),
    "stdio-pipes": _stdio_pipes,
    "stdio-sockets": _stdio_socket,
    "unix-socket": _unix_socket,
    "child": _child,
}
# A peer can end its output and go on reading, and that is no failure. A child that ends its output unasked has failed.
HALF_CLOSING_PEERS = [name for name in PAIRS if name != "child"]
