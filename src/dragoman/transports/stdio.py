"""The stdin and stdout of this process as the connection to a peer.

Promise: stdout carries what is written here and nothing else, and the terminal that we were started in is left as it
was, even after `kill -9`.

O_NONBLOCK belongs to the open file description, and that is shared: with the shell that started us (a terminal), with
our own stderr (`2>&1`), with every child. So pipes and terminals are opened a second time through /proc, which gives
a description of our own. Where that is refused (sockets, named FIFOs, no /proc) the flag is set, and set back at the
end; but never on a terminal, which is then read by a thread and written blocking.

Clients written in JavaScript give us sockets (libuv makes its stdio pipes with socketpair), others give us pipes,
people give us terminals and files.
"""

import asyncio
import fcntl
import os
import socket
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from dragoman.errors import LinkClosed
from dragoman.host.pipes import PolledReadEnd, ReadEnd, ThreadedReadEnd, WriteEnd
from dragoman.transports.opening import take_stdio

if TYPE_CHECKING:  # protocols take a millisecond to make, and an agent starts in thirty
    from dragoman.transports.contract import Receiver


class StdioTransport:
    """A `Transport` over the file descriptors `stdin` and `stdout`, which it owns and closes.

    `unread` was read from stdin before there was a transport, and is received first.
    """

    def __init__(self, stdin: int, stdout: int, *, unread: bytes = b"") -> None:
        self._unread = unread
        self._stdin = _Descriptor(stdin)
        self._stdout = _Descriptor(stdout)
        self._receiver: Receiver | None = None
        self._reader: ReadEnd
        self._writer: WriteEnd
        self._paused = False
        self._lost = False
        self._closed = False
        self._silent = False  # the receiver is not called any more, for either direction
        self._failure: OSError | None = None

    @classmethod
    def of_this_process(cls) -> Self:
        """Return a transport over descriptors 0 and 1, which `take_stdio` reserves."""
        return cls(*take_stdio())

    def __repr__(self) -> str:
        state = "closed" if self._closed else "lost" if self._lost else "paused" if self._paused else "open"
        return f"<StdioTransport {state} unread={len(self._unread)}>"

    def start(self, receiver: "Receiver") -> None:
        """Begin to read; `receiver` is called from the loop that runs now."""
        self._receiver = receiver
        read_end = PolledReadEnd if self._stdin.polled else ThreadedReadEnd
        self._reader = read_end(self._stdin.fd, receiver.data_received, self._input_ended)
        self._writer = WriteEnd(self._stdout.fd, self._room, self._output_broke, polled=self._stdout.polled)
        self.resume_reading()

    def write(self, data: bytes | memoryview) -> int:
        """Accept as many bytes as there is room for, and return how many; see `transports.contract.Transport`."""
        return self._writer.write(data)

    def pause_reading(self) -> None:
        """Stop calling the receiver with data until `resume_reading`."""
        self._paused = True
        self._reader.pause()

    def resume_reading(self) -> None:
        """Read on."""
        self._paused = False
        if self._unread:
            asyncio.get_running_loop().call_soon(self._receive_unread)
        else:
            self._reader.resume()

    def close_writing(self) -> None:
        """Close stdout: the peer reads the end of file and may still write."""
        self._writer.close()
        self._stdout.shut_down()
        self._stdout.close()

    async def close(self) -> None:
        """Close both descriptors at once; there is nothing to wait for."""
        if self._closed:
            return
        self._lose(None)
        self._closed = self._silent = True
        if self._receiver is not None:
            self._writer.close()
        self._stdin.close()
        self._stdout.close()

    def _receive_unread(self) -> None:
        if self._paused or self._lost or not self._unread or self._receiver is None:
            return
        unread, self._unread = self._unread, b""
        self._reader.resume()
        self._receiver.data_received(unread)

    def _room(self) -> None:
        if self._receiver is not None and not self._silent:
            self._receiver.writable()

    def _input_ended(self, error: OSError | None) -> None:
        self._lose(error or self._failure)

    def _output_broke(self, error: OSError) -> None:
        """Handle a failed write: the peer has stopped reading.

        Bytes that have arrived are delivered before the loss is reported; while reading is paused they are dropped.
        """
        self._failure = error
        if self._paused:
            self._lose(error)
        else:
            self._reader.finish()

    def _lose(self, error: OSError | None) -> None:
        if self._lost or self._receiver is None:
            return
        self._lost = True
        self._reader.close()
        if error is None:
            self._receiver.connection_lost(None)
            return
        self._silent = True
        self._writer.close()
        lost = LinkClosed(f"The peer is gone: {error.strerror}.")
        lost.__cause__ = error
        self._receiver.connection_lost(lost)


class _Descriptor:
    """A file descriptor made ready: `polled` if the loop can watch it, and then non-blocking. Closed once."""

    def __init__(self, fd: int) -> None:
        kind = os.fstat(fd).st_mode
        terminal = os.isatty(fd)
        own = _open_again(fd, terminal)
        self.fd = fd if own is None else own
        self.polled = own is not None or stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
        self._socket = stat.S_ISSOCK(kind)
        self._restore = own is None and self.polled and os.get_blocking(fd)
        self._closed = False
        if self._restore:
            os.set_blocking(fd, False)

    def shut_down(self) -> None:
        """Send the end of file also where stdin is the same socket: closing one of two descriptors would not."""
        if self._socket and not self._closed:
            with suppress(OSError), socket.socket(fileno=os.dup(self.fd)) as both_ways:
                both_ways.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._restore:
            os.set_blocking(self.fd, True)
        os.close(self.fd)


def _open_again(fd: int, terminal: bool) -> int | None:
    """Reopen the pipe or terminal behind `fd` with a file description of our own, closing `fd`; None if that fails.

    Not for a named FIFO: opened again after its writers left, it never reports the end (fifo_open in fs/pipe.c).
    """
    path = f"/proc/self/fd/{fd}"
    try:
        if not terminal and not os.readlink(path).startswith("pipe:"):
            return None
        access = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
        own = os.open(path, access | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    os.close(fd)
    return own
