"""A command line of the user, behind a `!`: run by their shell, shown, and told to the agent with the next prompt.

It is the user's own command, so nothing is asked and nothing is confined. It has no input and no terminal; Ctrl-C ends
it with everything it has started.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from dragoman.cli.terminal.command_output import CommandOutput
from dragoman.cli.terminal.interrupts import Interrupts
from dragoman.cli.terminal.renderer import Renderer
from dragoman.cli.terminal.sanitize import sanitize
from dragoman.cli.terminal.type_ahead import TypeAhead
from dragoman.errors import StartFailed
from dragoman.host.pipes import PolledReadEnd
from dragoman.host.process import Child
from dragoman.vocabulary.content import Content, Text

# Of the output, so much of its beginning and of its end goes along with the next prompt.
END_BYTES: Final = 8 * 1024
# Commands that the next prompt tells of.
KEPT: Final = 10
# The shell writes errors to where output goes: in the order in which both were written.
_BOTH: Final = 'exec "$0" -c "$1" 2>&1'


class UserCommand(NamedTuple):
    """A command that has ended: its exit code, and its output without the middle of a long one."""

    command: str
    exit_code: int | None
    output: str

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        return "stopped" if self.exit_code is None else f"exit code {self.exit_code}"

    @property
    def as_prompt(self) -> str:
        """What the agent is told of it."""
        return f"The user ran a command ({self.ending}).\n\n$ {self.command}\n{self.output}"


class UserCommands:
    """Runs commands at the terminal of a chat, and keeps what they wrote for the next prompt."""

    def __init__(self, renderer: Renderer, type_ahead: TypeAhead) -> None:
        self._renderer = renderer
        self._type_ahead = type_ahead
        self._ran: deque[UserCommand] = deque(maxlen=KEPT)

    def take(self) -> list[Content]:
        """Return what is to be told of the commands that ran since the last prompt, and forget it."""
        blocks: list[Content] = [Text(ran.as_prompt) for ran in self._ran]
        self._ran.clear()
        return blocks

    async def run(self, command: str, folder: str) -> None:
        """Run a command line in `folder`. Waits for its end, which Ctrl-C brings."""
        if not command:
            self._renderer.say("Behind ! stands a command for your shell: !git status")
            return
        with Interrupts([signal.SIGINT]) as interrupts, self._type_ahead.reading():
            running = asyncio.ensure_future(run_user_command(command, folder, self._renderer.output))
            stopping = asyncio.ensure_future(interrupts.wait())
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not running.done():
                running.cancel()
            try:
                ran = await running
            except StartFailed as error:
                self._renderer.say(sanitize(str(error)), "red")
                return
        self._ran.append(ran)
        self._renderer.say(f"({ran.ending}; the agent is told of it with your next prompt)")


class _Ends:
    """The beginning and the end of what was written."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = END_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > END_BYTES:
            self._dropped += len(self._tail) - END_BYTES
            del self._tail[:-END_BYTES]

    def text(self) -> str:
        gap = f"\n[{self._dropped:,} bytes are left out here]\n".encode() if self._dropped else b""
        return (self._head + gap + self._tail).decode("utf-8", "replace")


async def run_user_command(command: str, folder: str, show: Callable[[list[str]], None]) -> UserCommand:
    """Run a command line in `folder`, and `show` its output line by line. Waits for its end; a cancelled wait ends it.

    Raises `StartFailed` where there is no shell.
    """
    screen, ends, over = CommandOutput(), _Ends(), asyncio.Event()

    def on_data(data: bytes) -> None:
        ends.add(data)
        show(screen.feed_bytes(data))

    shell = os.environ.get("SHELL") or "/bin/sh"
    child = Child.start(["/bin/sh", "-c", _BOTH, shell, command], cwd=folder, env=os.environ)
    output = PolledReadEnd(child.stdout, on_data, lambda error: over.set())
    output.resume()
    child.on_exit(output.finish)  # what it has left in the background may hold the pipe open for ever
    try:
        child.close_stdin()
        await over.wait()
        exit_code = await child.wait()
    except asyncio.CancelledError:
        return UserCommand(command, None, ends.text())
    finally:
        output.close()
        child.kill_now()
        await child.stop()
        show(screen.end(""))
    return UserCommand(command, exit_code, ends.text())
