"""Our end of a relay: a `Transport` over the streams of a Unix socket."""

import asyncio
import contextlib
from typing import Final

from dragoman import limits
from dragoman.errors import LinkClosed
from dragoman.transports.contract import Receiver

_LOOK_SECONDS: Final = 0.02


class RelayTransport:
    """A `Transport` to a client, by the relay that it has started. At the end of its input it ends, or `stays`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, stays: bool = False) -> None:
        self._stays: Final = stays
        self._reader: Final = reader
        self._writer: Final = writer
        self._receiver: Receiver | None = None
        self._reading: asyncio.Task[None] | None = None
        self._resumed: Final = asyncio.Event()
        self._resumed.set()
        self._is_lost = False
        self._is_full = False
        self._draining: asyncio.Task[None] | None = None

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        assert self._receiver is not None
        error: LinkClosed | None = None
        try:
            while data := await self._reader.read(limits.READ_BYTES):
                await self._resumed.wait()
                self._receiver.data_received(data)
        except OSError:
            error = LinkClosed("The relay is gone.")
        self._lose(error)
        if not self._stays:
            self._writer.close()

    async def lives(self) -> bool:
        """Return whether the relay is there: one that is gone takes no blank line."""
        if self._writer.is_closing():
            return False
        self._writer.write(b"\n")
        await asyncio.sleep(_LOOK_SECONDS)
        return not self._writer.is_closing()

    def write(self, data: bytes | memoryview) -> int:
        if self._is_full:
            return 0
        if self._writer.is_closing():
            return len(data)
        self._writer.write(bytes(data))
        if self._writer.transport.get_write_buffer_size() > limits.OUTBOX_BYTES:
            self._is_full = True
            self._draining = asyncio.get_running_loop().create_task(self._drain())
        return len(data)

    async def _drain(self) -> None:
        with contextlib.suppress(OSError):
            await self._writer.drain()
        self._is_full = False
        if self._receiver is not None:
            self._receiver.writable()

    def pause_reading(self) -> None:
        self._resumed.clear()

    def resume_reading(self) -> None:
        self._resumed.set()

    def close_writing(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.write_eof()

    async def close(self) -> None:
        tasks = [task for task in (self._reading, self._draining) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        self._lose(None)

    def _lose(self, error: LinkClosed | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            if self._receiver is not None:
                self._receiver.connection_lost(error)
