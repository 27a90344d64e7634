"""The two ends of a stream of bytes that the kernel holds: read and written without blocking the event loop.

An end watches a file descriptor, it does not own it: the owner of the descriptor closes the end first and the
descriptor after it. No function here calls back before it returns, so an owner is never re-entered from its own call;
`finish` is the one exception, and says so.

Why not asyncio's own pipe transports: they read 256 KiB at a time (11 µs a read instead of 0.8), they refuse regular
files, and a sender that waits in drain() is not woken once the pipe is lost.
"""

import asyncio
import fcntl
import os
import select
import struct
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from dragoman import limits

OnData = Callable[[bytes], None]
OnEnd = Callable[[OSError | None], None]


class ReadEnd(Protocol):
    """Hands over what arrives, in order, and says once that it was all."""

    def pause(self) -> None:
        """Hand nothing over until `resume`."""

    def resume(self) -> None:
        """Goes on; a new end starts paused."""

    def finish(self) -> None:
        """Hand over what has arrived by now, then end, even if another process still holds the other side open.

        Done before it returns, unless something waits behind a pause: then it goes on at `resume`.
        """

    def close(self) -> None:
        """Hands over nothing any more; idempotent."""


class PolledReadEnd:
    """A `ReadEnd` for what epoll can watch: pipes, sockets, terminals. The descriptor must be non-blocking."""

    def __init__(self, fd: int, on_data: OnData, on_end: OnEnd) -> None:
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._paused = True
        self._ended = False
        self._left: int | None = None  # after `finish`: bytes that had arrived by then and were not read yet

    def pause(self) -> None:
        if not self._paused and not self._ended:
            self._loop.remove_reader(self._fd)
        self._paused = True

    def resume(self) -> None:
        if self._paused and not self._ended:
            self._loop.add_reader(self._fd, self._read)
        self._paused = False

    def finish(self) -> None:
        if self._ended:
            return
        self._left = _arrived(self._fd)
        while self._left and not self._paused and not self._ended:
            self._read()
        if not self._left:
            self._end(None)

    def close(self) -> None:
        if not self._ended:
            self.pause()
            self._ended = True

    def _read(self) -> None:
        left = self._left
        try:
            data = os.read(self._fd, limits.READ_BYTES if left is None else min(limits.READ_BYTES, left))
        except BlockingIOError:
            if left is not None:  # another reader of the same pipe was faster: nothing is left
                self._end(None)
            return
        except OSError as error:
            self._end(error)
            return
        if not data:
            self._end(None)
            return
        if left is None:
            self._on_data(data)
            return
        self._left = left - len(data)
        self._on_data(data)
        if self._left == 0:
            self._end(None)

    def _end(self, error: OSError | None) -> None:
        if not self._ended:
            self.close()
            self._on_end(error)


class ThreadedReadEnd:
    """A `ReadEnd` for what epoll refuses: regular files, /dev/null. One thread, one chunk of 64 KiB at a time."""

    def __init__(self, fd: int, on_data: OnData, on_end: OnEnd) -> None:
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._paused = True
        self._ended = False
        self._wanted = threading.Event()  # the loop is ready for the next chunk
        self._chunk: bytes | OSError | None = None  # read, and not handed over because of a pause
        # The thread reads a duplicate, which it closes itself: a descriptor closed under a read may be reused.
        # It polls before it reads, and closing the write side of `stop` wakes it: no thread outlives its end.
        stop, self._stop = os.pipe()
        thread = threading.Thread(target=self._run, args=(os.dup(fd), stop), name="dragoman-read", daemon=True)
        thread.start()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if not self._paused or self._ended:
            return
        self._paused = False
        if self._chunk is None:
            self._wanted.set()
        else:
            self._loop.call_soon(self._hand_over)

    def finish(self) -> None:
        """End at once: what a file holds has not arrived, it is only there."""
        if not self._ended:
            self.close()
            self._on_end(None)

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            os.close(self._stop)
            self._wanted.set()

    def _run(self, fd: int, stop: int) -> None:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(stop, select.POLLIN)
        try:
            while True:
                self._wanted.wait()
                self._wanted.clear()
                if any(ready == stop for ready, _ in poll.poll()):
                    return
                chunk = _read_chunk(fd)
                with suppress(RuntimeError):  # the loop is closed: no callback can run any more
                    self._loop.call_soon_threadsafe(self._take, chunk)
        finally:
            os.close(fd)
            os.close(stop)

    def _take(self, chunk: bytes | OSError) -> None:
        self._chunk = chunk
        self._hand_over()

    def _hand_over(self) -> None:
        if self._paused or self._ended or self._chunk is None:
            return
        chunk, self._chunk = self._chunk, None
        if isinstance(chunk, bytes) and chunk:
            self._on_data(chunk)
            if not self._paused:
                self._wanted.set()
            return
        self.close()
        self._on_end(chunk if isinstance(chunk, OSError) else None)


class WriteEnd:
    """Writes what fits now; after a short write `on_room` comes once there is room.

    A dead peer raises nothing: what is written from then on is swallowed, and `on_broken` comes once.
    A descriptor that epoll cannot watch (`polled=False`: a file) takes everything; a full disk is its broken pipe.
    """

    def __init__(
        self, fd: int, on_room: Callable[[], None], on_broken: Callable[[OSError], None], *, polled: bool = True
    ) -> None:
        self._fd = fd
        self._on_room = on_room
        self._on_broken = on_broken
        self._polled = polled
        self._loop = asyncio.get_running_loop()
        self._waiting = False
        self._open = True

    def write(self, data: bytes | memoryview) -> int:
        """Return how many of the bytes were taken, from 0 to all."""
        if not self._open or not data:
            return len(data)
        if self._waiting:
            return 0
        try:
            taken = os.write(self._fd, data)
        except BlockingIOError:
            taken = 0
        except OSError as error:
            self.close()
            self._loop.call_soon(self._on_broken, error)
            return len(data)
        if taken < len(data):
            self._wait_for_room()
        return taken

    def close(self) -> None:
        """Discard everything that is written from now on; `on_room` still comes if a short write waits for it."""
        if not self._open:
            return
        self._open = False
        if self._waiting:
            if self._polled:
                self._loop.remove_writer(self._fd)
                self._loop.call_soon(self._on_room)
            self._waiting = False

    def _wait_for_room(self) -> None:
        self._waiting = True
        if self._polled:
            self._loop.add_writer(self._fd, self._room)
        else:
            self._loop.call_soon(self._room)

    def _room(self) -> None:
        if self._polled and self._open:
            self._loop.remove_writer(self._fd)
        self._waiting = False
        self._on_room()


def _read_chunk(fd: int) -> bytes | OSError:
    try:
        return os.read(fd, limits.READ_BYTES)
    except OSError as error:
        return error


def _arrived(fd: int) -> int:
    """Return how many bytes a read would get without waiting."""
    try:
        answer = fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0")
    except OSError:
        return 0
    (count,) = struct.unpack("i", answer)
    return int(count)
