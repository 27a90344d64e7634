"""Delay, which the kernel here cannot make: a proxy on the way to a server that holds what is sent for a while.

What it has taken it delivers, also when its client has gone meanwhile. So an append that a node has long given up may
reach the database after another node has taken the session: the case that fencing is for.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_READ: Final = 65536


class DelayProxy:
    """Passes connections on to the address that `target` returns; `delay` seconds late, or when `release` is called."""

    def __init__(self, target: Callable[[], tuple[str, int]]) -> None:
        self.delay = 0.0
        self._target: Final = target
        self._server: asyncio.Server | None = None
        self._may_pass: Final = asyncio.Event()
        self._may_pass.set()
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def __repr__(self) -> str:
        return f"<DelayProxy delay={self.delay} {'passing' if self._may_pass.is_set() else 'holding'}>"

    async def start(self, host: str) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._serve, host, 0)
        return int(self._server.sockets[0].getsockname()[1])

    def hold(self) -> None:
        """Keep what clients send until `release`."""
        self._may_pass.clear()

    def release(self) -> None:
        """Deliver what was held."""
        self._may_pass.set()

    async def close(self) -> None:
        """Listen no more, and drop every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(OSError, asyncio.CancelledError):
            to_reader, to_writer = await asyncio.open_connection(*self._target())
            try:
                await asyncio.gather(self._pass_late(reader, to_writer), self._pass_back(to_reader, writer))
            finally:
                to_writer.close()
        writer.close()

    async def _pass_late(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(_READ):
                await asyncio.sleep(self.delay)
                await self._may_pass.wait()
                writer.write(data)
                await writer.drain()
        # A client that is gone: what it has sent was delivered, and the server hears of its end behind that.
        await self._may_pass.wait()
        with suppress(OSError):
            writer.write_eof()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(_READ):
                writer.write(data)
                await writer.drain()
        writer.close()
