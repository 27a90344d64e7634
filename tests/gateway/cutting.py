"""A TCP proxy that cuts every connection through it when it is told to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Cutter:
    """Its port leads to another one."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.cuts = 0
        self.opened = 0
        self.sent_bytes = 0  # by clients, to the target
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """Everything under way is lost, both ways; the next connection works."""
        self.cuts += 1
        for writer in self._writers:
            writer.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, there_writer}
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink, is_client=source is reader))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_client: bool) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                self.sent_bytes += len(data) if is_client else 0
                sink.write(data)
                await sink.drain()
        sink.close()
        self._writers.discard(sink)

    async def close(self) -> None:
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def cutter(target: int, port: int) -> AsyncIterator[Cutter]:
    """A proxy on a port."""
    proxy = Cutter(target)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", port)
    proxy.port = port
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
        await server.wait_closed()
