"""Our agent behind an address: each WebSocket that a client opens is a connection to it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Final

from dragoman import limits
from dragoman.errors import UsageError, how_to_install
from dragoman.transports.contract import Receiver, Transport

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

Accept = Callable[[Transport, Callable[[], Awaitable[bool]]], None]


class SocketEnd:
    """Our end of a WebSocket: a `Transport`; each text frame is a message."""

    def __init__(self, socket: "ServerConnection") -> None:
        self.over: Final = asyncio.Event()
        self._socket: Final = socket
        self._receiver: Receiver | None = None
        self._part = b""
        self._unsent: Final[asyncio.Queue[str]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_lost = False

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._read()), loop.create_task(self._send())]

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        assert self._receiver is not None
        with contextlib.suppress(ConnectionClosed):
            async for message in self._socket:
                data = message.encode() if isinstance(message, str) else message
                self._receiver.data_received(data + b"\n")
        self._lose()

    async def _send(self) -> None:
        from websockets.exceptions import ConnectionClosed

        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._socket.send(await self._unsent.get())

    async def lives(self) -> bool:
        """Return whether the client has the socket open."""
        return not self._is_lost

    def write(self, data: bytes | memoryview) -> int:
        *lines, self._part = (self._part + bytes(data)).split(b"\n")
        for line in lines:
            if line.strip():
                self._unsent.put_nowait(line.decode(errors="replace"))
        return len(data)

    def pause_reading(self) -> None:
        """Read on: the library bounds what waits."""

    def resume_reading(self) -> None:
        """Read on."""

    def close_writing(self) -> None:
        """Leave the socket open: it has no half close."""

    async def close(self) -> None:
        await self._socket.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._lose()

    def _lose(self) -> None:
        self.over.set()
        if not self._is_lost:
            self._is_lost = True
            if self._receiver is not None:
                self._receiver.connection_lost(None)


@contextlib.asynccontextmanager
async def listen_for_sockets(accept: Accept) -> AsyncGenerator[str]:
    """Listen on loopback; the value is the address. Raise `UsageError` without the library."""
    try:
        from websockets.asyncio.server import serve
    except ImportError:
        raise UsageError(f"WebSockets need an extra: {how_to_install('serve')}") from None

    async def connected(socket: "ServerConnection") -> None:
        end = SocketEnd(socket)
        accept(end, end.lives)
        await end.over.wait()

    async with serve(connected, "127.0.0.1", 0, max_size=limits.FRAME_BYTES) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/acp"
