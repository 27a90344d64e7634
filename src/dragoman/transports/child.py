"""A child process as the peer: its stdin and stdout are the connection, its stderr is kept for people.

Promise: `close` leaves no process behind, whatever the child does. If the link is lost, the error says how the child
ended and what it last wrote to stderr; so a stdout that ends waits shortly for the exit that nearly always follows.
"""

import asyncio
import signal
from typing import Final

from dragoman import limits
from dragoman.errors import LinkClosed
from dragoman.host.pipes import PolledReadEnd, WriteEnd
from dragoman.host.process import Child
from dragoman.transports.contract import Receiver

# What of stderr fits into an error message; all that was kept is in `ChildExited.stderr_tail`.
_MESSAGE_LINES: Final = 10


class ChildExited(LinkClosed):
    """The child is gone. `exit_code` is None if it still runs but does not talk any more, negative for a signal."""

    def __init__(self, message: str, exit_code: int | None, stderr_tail: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


class ChildTransport:
    """A `Transport` over the pipes of a `Child`, which it owns: no other code stops it or reads its output."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._receiver: Receiver | None = None
        self._reader: PolledReadEnd
        self._writer: WriteEnd
        self._exit_timer: asyncio.TimerHandle | None = None
        self._output_ended = False
        self._winding_up = False
        self._said_all = False
        self._lost = False

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._reader = PolledReadEnd(self._child.stdout, self._data, self._end_of_output)
        self._writer = WriteEnd(self._child.stdin, self._room, self._end_of_input)
        self._reader.resume()
        self._child.on_exit(self._wind_up)

    def write(self, data: bytes | memoryview) -> int:
        return self._writer.write(data)

    def pause_reading(self) -> None:
        if not self._lost:
            self._reader.pause()

    def resume_reading(self) -> None:
        self._reader.resume()

    def close_writing(self) -> None:
        self._said_all = True
        self._writer.close()
        self._child.close_stdin()

    async def close(self) -> None:
        """While the child is being stopped its output is read and thrown away, so that it can finish by itself."""
        if self._receiver is not None:
            self._lose(None)
            self._reader.resume()
        await self._child.stop()

    def _data(self, data: bytes) -> None:
        if self._receiver is not None and not self._lost:
            self._receiver.data_received(data)

    def _room(self) -> None:
        if self._receiver is not None and not self._lost:
            self._receiver.writable()

    def _end_of_output(self, error: OSError | None) -> None:
        self._output_ended = True
        if self._winding_up:
            self._lose(self._reason())
        else:
            self._expect_exit()

    def _end_of_input(self, error: OSError) -> None:
        """It reads no more. What it has said still counts, and its exit is to be expected."""
        self._expect_exit()

    def _expect_exit(self) -> None:
        if self._exit_timer is None and not self._lost:
            loop = asyncio.get_running_loop()
            self._exit_timer = loop.call_later(limits.CHILD_EXIT_SECONDS, self._wind_up)

    def _wind_up(self) -> None:
        """It has exited, or it will not: what it wrote is handed over, then the link is lost."""
        self._winding_up = True
        if self._output_ended:
            self._lose(self._reason())
        else:
            self._reader.finish()

    def _lose(self, error: LinkClosed | None) -> None:
        if self._lost or self._receiver is None:
            return
        self._lost = True
        self._writer.close()
        if self._exit_timer is not None:
            self._exit_timer.cancel()
        self._receiver.connection_lost(error)

    def _reason(self) -> ChildExited | None:
        """None if it did what we asked for: it went when its input had ended."""
        code = self._child.exit_code
        if self._said_all and code == 0:
            return None
        message = f"{self._child.name} {_ending(self._child.has_exited, code)}."
        tail = self._child.stderr_tail()
        last_lines = tail.splitlines()[-_MESSAGE_LINES:]
        if last_lines:
            message = "\n".join([f"{message} It last wrote to stderr:", *last_lines])
        return ChildExited(message, code, tail)


def _ending(has_exited: bool, code: int | None) -> str:
    if not has_exited:
        return "closed the connection, but still runs"
    if code is None:
        return "exited"
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
