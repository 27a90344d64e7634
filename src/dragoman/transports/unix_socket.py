"""A connected Unix socket as the connection to a peer: one descriptor for both directions, no file system path."""

import socket
from contextlib import suppress

from dragoman.errors import LinkClosed
from dragoman.host.pipes import PolledReadEnd, WriteEnd
from dragoman.transports.contract import Receiver


class UnixSocketTransport:
    """A `Transport` over a connected stream socket, which it owns and closes."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._receiver: Receiver | None = None
        self._reader: PolledReadEnd
        self._writer: WriteEnd
        self._paused = False
        self._lost = False
        self._closed = False
        self._silent = False  # the receiver is not called any more, for either direction
        self._failure: OSError | None = None

    def __repr__(self) -> str:
        state = "closed" if self._closed else "lost" if self._lost else "paused" if self._paused else "open"
        return f"<UnixSocketTransport {state}>"

    def start(self, receiver: Receiver) -> None:
        """Begin to read; `receiver` is called from the loop that runs now."""
        self._receiver = receiver
        fd = self._socket.fileno()
        self._reader = PolledReadEnd(fd, receiver.data_received, self._on_input_end)
        self._writer = WriteEnd(fd, self._on_room, self._on_output_error)
        self._reader.resume()

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
        self._reader.resume()

    def close_writing(self) -> None:
        """Shut our direction down: the peer reads the end of file and may still write."""
        self._writer.close()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    async def close(self) -> None:
        """Close the socket at once; there is nothing to wait for."""
        if self._closed:
            return
        self._lose(None)
        self._closed = self._silent = True
        if self._receiver is not None:
            self._writer.close()
        self._socket.close()

    def _on_room(self) -> None:
        if self._receiver is not None and not self._silent:
            self._receiver.writable()

    def _on_input_end(self, error: OSError | None) -> None:
        self._lose(error or self._failure)

    def _on_output_error(self, error: OSError) -> None:
        """Handle a failed write: the peer is gone. What has arrived is received before the loss; not while paused."""
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
