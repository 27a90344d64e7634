"""A child process as the peer: its stdin and stdout are the connection, its stderr is recorded for error messages.

Promise: `close` leaves no process behind, whatever the child does. If the link is lost, the error says how the child
ended and what it last wrote to stderr; so a stdout that ends waits shortly for the exit that nearly always follows.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self

from dragoman import limits
from dragoman.errors import ChildExited, LinkClosed
from dragoman.host.environment import child_environment
from dragoman.host.pipes import PolledReadEnd, WriteEnd
from dragoman.host.process import Child
from dragoman.transports.contract import Receiver

_log: Final = logging.getLogger(__name__)


class ChildTransport:
    """A `Transport` over the pipes of a `Child`, which it owns: no other code stops it or reads its output."""

    def __init__(self, child: Child) -> None:
        self.child: Final = child
        self._receiver: Receiver | None = None
        self._reader: PolledReadEnd
        self._writer: WriteEnd
        self._exit_timer: asyncio.TimerHandle | None = None
        self._has_output_ended = False  # end of file on its stdout
        self._is_winding_up = False  # it has exited, or should have: only its last output is still delivered
        self._has_closed_writing = False  # we have closed its stdin, so its exit is no failure
        self._is_lost = False  # `connection_lost` was called

    @classmethod
    def spawn(
        cls,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> Self:
        """Start `command`, words without a shell, in the folder `cwd` or in ours; return the transport to it.

        `env` is added to our environment, from which secrets are removed. `on_stderr` gets what the program writes to
        stderr. Raise `StartFailed` if it cannot be started.
        """
        environment = child_environment(os.environ, env)
        return cls(Child.start(list(command), cwd=cwd or os.getcwd(), env=environment, on_stderr=on_stderr))

    def __repr__(self) -> str:
        state = "lost" if self._is_lost else "winding up" if self._is_winding_up else "open"
        return f"<ChildTransport {self.child.name} {state} exit_code={self.child.exit_code}>"

    def start(self, receiver: Receiver) -> None:
        """Begin to read; `receiver` is called from the loop that runs now."""
        self._receiver = receiver
        self._reader = PolledReadEnd(self.child.stdout, self._on_data, self._on_output_end)
        self._writer = WriteEnd(self.child.stdin, self._on_room, self._on_input_error)
        self._reader.resume()
        self.child.on_exit(self._on_exit)

    def write(self, data: bytes | memoryview) -> int:
        """Accept as many bytes as there is room for, and return how many; see `transports.contract.Transport`."""
        return self._writer.write(data)

    def pause_reading(self) -> None:
        """Stop calling the receiver with data until `resume_reading`."""
        if not self._is_lost:
            self._reader.pause()

    def resume_reading(self) -> None:
        """Read on."""
        self._reader.resume()

    def close_writing(self) -> None:
        """Close the child's stdin: it may still write, and should end by itself."""
        self._has_closed_writing = True
        self._writer.close()
        self.child.close_stdin()

    async def close(self) -> None:
        """Stop the child with everything it started, and wait for that.

        Its output is read and dropped meanwhile: a full pipe would keep it from ending.
        """
        if self._receiver is not None:
            self._lose(None)
            self._reader.resume()
        await self.child.stop()

    def _on_data(self, data: bytes) -> None:
        if self._receiver is not None and not self._is_lost:
            self._receiver.data_received(data)

    def _on_room(self) -> None:
        if self._receiver is not None and not self._is_lost:
            self._receiver.writable()

    def _on_output_end(self, error: OSError | None) -> None:
        self._has_output_ended = True
        if self._is_winding_up:
            self._lose(self._reason())
        else:
            self._expect_exit()

    def _on_input_error(self, error: OSError) -> None:
        """Expect the exit of a child that has closed its stdin. What it wrote before is still received."""
        self._expect_exit()

    def _expect_exit(self) -> None:
        if self._exit_timer is None and not self._is_lost:
            loop = asyncio.get_running_loop()
            self._exit_timer = loop.call_later(limits.CHILD_EXIT_SECONDS, self._wind_up)

    def _on_exit(self) -> None:
        _log.debug("process %s exited with code %s", self.child.name, self.child.exit_code)
        self._wind_up()

    def _wind_up(self) -> None:
        """Deliver what the child still wrote, then lose the connection: it has exited, or will not by itself."""
        self._is_winding_up = True
        if self._has_output_ended:
            self._lose(self._reason())
        else:
            self._reader.finish()

    def _lose(self, error: LinkClosed | None) -> None:
        if self._is_lost or self._receiver is None:
            return
        self._is_lost = True
        self._writer.close()
        if self._exit_timer is not None:
            self._exit_timer.cancel()
        self._receiver.connection_lost(error)

    def _reason(self) -> ChildExited | None:
        """Return how the child ended; None if it did as it should, and exited when its stdin was closed."""
        code = self.child.exit_code
        if self._has_closed_writing and code == 0:
            return None
        message = f"{self.child.name} {_ending(self.child.has_exited, code)}."
        tail = self.child.stderr_tail()
        last_lines = tail.splitlines()[-limits.STDERR_MESSAGE_LINES :]
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
