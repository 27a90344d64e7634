"""Commands of one session that go on while the model works, and between turns, until they end or the session does.

A command in the background is approved, confined and guarded as any other; only its end is not waited for. Its states:

| state | its process | what `bash_output` returns |
|---|---|---|
| running | lives, or has just exited | what came since the last time |
| ended | dead with all it started, and what it left in the workspace was looked through | the rest, and how it ended |

It works in a task of no turn, so the end of a turn, or its cancel, does not end it. The user sees its output in the
terminal of the call that started it. Its end is told twice: to the user at once (`Notice`), to the model before its
next request (`take_reports`), unless the model has read it by then.
"""

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Final, Literal

from msgspec import UNSET

from dragoman.agent.session import Session, session_core
from dragoman.agent.tool import DisplayTerminal
from dragoman.coder.execution import Start, close_start
from dragoman.coder.tools.contract import BadInput, ToolContext
from dragoman.coder.tools.overuse import OveruseWatch
from dragoman.coder.tools.result_text import title_text
from dragoman.coder.tools.shell_output import SHOW_SECONDS, ShellOutput
from dragoman.errors import DragomanError
from dragoman.host.guardian import Guardian
from dragoman.host.process import Child
from dragoman.host.text import visible_line
from dragoman.vocabulary.events import Notice

# At once, for one session. Each holds processes, descriptors and up to some MiB of output.
MOST_RUNNING: Final = 8
# Ended ones that are remembered for `bash_output`; the oldest are forgotten first.
MOST_ENDED: Final = 16
# Of what a command has printed that runs: its last lines in the list, and characters of each.
_LISTED_LINES: Final = 3
_LISTED_LENGTH: Final = 200

_log = logging.getLogger(__name__)


class BackgroundCommand:
    """One command. `task` is done when it has ended, and never fails."""

    def __init__(
        self, id: str, command: str, child: Child, start: Start, guardian: Guardian, screen: DisplayTerminal
    ) -> None:
        self.id: Final = id
        self.command: Final = command
        self.screen: Final = screen
        self.notes: list[str] = []  # what is told of it beside its output, when it has ended
        self.is_told = False  # whether the model knows that it has ended, or was told not to wait for that
        self._child = child
        self._start = start
        self._guardian = guardian
        self._changed = asyncio.Event()
        self._output = ShellOutput(child, self._changed.set)
        self._overuse = OveruseWatch(child, start)
        self._cause = ""
        self._began_at = asyncio.get_running_loop().time()
        child.on_exit(self._changed.set)
        child.close_stdin()
        # With a context of its own: what belongs to a turn is silenced when that turn ends.
        self.task: Final = asyncio.get_running_loop().create_task(self._run(), context=Context())

    def __repr__(self) -> str:
        return f"<BackgroundCommand {self.id} {self.status()}>"

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, and nothing of it is left."""
        return self.task.done()

    def status(self) -> str:
        """Return whether it runs, or how it has ended, in a few words."""
        if not self.has_ended:
            return f"running for {round(asyncio.get_running_loop().time() - self._began_at)} s"
        code = self._child.exit_code or 0
        return self._cause or (f"ended by {_signal_name(code)}" if code < 0 else f"ended with exit code {code}")

    @property
    def line(self) -> str:
        """Id, status and command in a line."""
        return f"{self.id}: {self.status()}: {title_text(self.command)}"

    @property
    def has_failed(self) -> bool:
        """Whether it has exited otherwise than with code 0."""
        return bool(self._child.exit_code)

    @property
    def was_stopped(self) -> bool:
        """Whether it was ended on purpose, or by its limit."""
        return bool(self._cause)

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines that it has printed, whatever the model has read of them."""
        return self._output.last_lines(count)

    def take_output(self) -> str:
        """Return what was printed since the last time."""
        return self._output.take(final=self.has_ended)

    def has_printed(self, text: str) -> bool:
        """Return whether a text is in what was printed since the last `take_output`."""
        return self._output.has(text)

    async def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Wait until it has ended, or `until` is true, or the time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not (self.has_ended or until()) and (left := deadline - loop.time()) > 0:
            await asyncio.wait([self.task], timeout=min(SHOW_SECONDS, left))

    def limit(self, seconds: float) -> None:
        """End it after so long."""
        handle = asyncio.get_running_loop().call_later(seconds, self.kill, f"stopped after {seconds} s")
        self.task.add_done_callback(lambda _: handle.cancel())

    def kill(self, cause: str) -> None:
        """Kill it with all that it started, at once; `cause` becomes its status. The task ends a little later."""
        if not self._child.has_exited:
            self._cause = self._cause or cause
            self._child.kill_now()

    async def stop(self, cause: str) -> None:
        """Ask it to end (SIGTERM), then kill it, and wait for its end; bounded, also where the caller is cancelled."""
        if not self._child.has_exited:
            self._cause = self._cause or cause
        await self._child.stop()
        await asyncio.wait([self.task])

    async def _run(self) -> None:
        try:
            await self._show_all()
        except DragomanError:
            _log.debug("background command %s: its session cannot be told anything any more", self.id)
        finally:
            await self._end()

    async def _show_all(self) -> None:
        async with self.screen as screen:
            await screen.allow_stopping(lambda: self.kill("stopped by the user"))
            while not self._child.has_exited:
                await self._changed.wait()
                self._changed.clear()
                await self._show()
                await asyncio.sleep(SHOW_SECONDS)
            self._output.finish()
            await self._show()
            code = self._child.exit_code or 0
            await screen.exit(None if code < 0 else code, _signal_name(code) if code < 0 else None)

    async def _show(self) -> None:
        if fresh := self._output.fresh():
            await self.screen.write(fresh)

    async def _end(self) -> None:
        """End whatever of it lives, and look through what it left."""
        self._overuse.close()
        self._output.stop()
        self._child.kill_now()
        await self._child.stop()
        self._guardian.leave(self._child.pid)
        failed = bool(self._child.exit_code)
        excess = self._overuse.excess(self._output.text(), failed=failed)
        # The command itself writes its errors to stdout; what is left on stderr is of the programs that start it.
        stderr_text = self._child.stderr_tail().strip() if failed else ""
        self.notes += [f"said while it was started: {stderr_text}"] if stderr_text else []
        self.notes += [excess] if excess else []
        self.notes += await close_start(self._start)


class BackgroundCommands:
    """The background commands of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._commands: dict[str, BackgroundCommand] = {}
        self._count = 0
        self._is_closed = False
        self._telling: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<BackgroundCommands {len(self._running())} running, {len(self._commands)} known>"

    def check_room(self) -> None:
        """Raise `BadInput` where no further command may be started."""
        running = self._running()
        if len(running) >= MOST_RUNNING:
            names = ", ".join(f"{one.id} ({title_text(one.command)})" for one in running)
            raise BadInput(f"{MOST_RUNNING} commands run in the background already: {names}. End one with bash_stop.")

    def begin(
        self, command: str, child: Child, start: Start, screen: DisplayTerminal, context: ToolContext
    ) -> BackgroundCommand:
        """Return the command of a child that has just been started; from now on its end is seen to here."""
        self._count += 1
        begun = BackgroundCommand(f"bg{self._count}", command, child, start, context.guardian, screen)
        self._commands[begun.id] = begun
        begun.task.add_done_callback(lambda _: self._ended(begun))
        return begun

    def find(self, id: str) -> BackgroundCommand:
        """Return a command by its id. Raises `BadInput` with those that there are."""
        found = self._commands.get(id)
        if found is None:
            known = ", ".join(self._commands) or "none"
            raise BadInput(f"There is no background command {id!r}; there are: {known}. All end with their session.")
        return found

    def listing(self) -> str:
        """Return the commands that are known in Markdown: id, status, command, and of one that runs its last lines."""
        parts: list[str] = []
        for one in self._commands.values():
            parts.append(f"- {one.line}")
            if not one.has_ended and (lines := one.last_lines(_LISTED_LINES)):
                # A block of code in the list.
                parts += ["", *(f"      {visible_line(line[:_LISTED_LENGTH])}" for line in lines), ""]
        return "\n".join(parts).rstrip("\n")

    def take_reports(self) -> list[str]:
        """Return a sentence for each command that has ended and of which the model does not know that."""
        ended = [one for one in self._commands.values() if one.has_ended and not one.is_told]
        for one in ended:
            one.is_told = True
        return [self._report(one) for one in ended]

    async def close(self) -> None:
        """Kill all commands, and wait until nothing of them is left; the client is told no more."""
        self._is_closed = True
        tasks = [one.task for one in self._commands.values()]
        for one in self._running():
            one.kill("ended with the session")
        if tasks or self._telling:
            await asyncio.wait([*tasks, *self._telling])

    def running_lines(self) -> list[str]:
        """Return a line for each command that runs."""
        return [one.line for one in self._running()]

    def _running(self) -> list[BackgroundCommand]:
        return [one for one in self._commands.values() if not one.has_ended]

    def _report(self, command: BackgroundCommand) -> str:
        notes = "".join(f" [{note}]" for note in command.notes)
        return (
            f"The background command {command.id} ({title_text(command.command)}) is no longer running: "
            f"{command.status()}.{notes} bash_output returns the rest of its output."
        )

    def _ended(self, command: BackgroundCommand) -> None:
        if not command.task.cancelled() and (error := command.task.exception()) is not None:
            _log.error("background command %s was not ended cleanly", command.id, exc_info=error)
        ended = [one for one in self._commands.values() if one.has_ended]
        for one in ended[:-MOST_ENDED]:
            del self._commands[one.id]
        if not (self._is_closed or command.is_told):
            telling = asyncio.get_running_loop().create_task(self._tell(command), context=Context())
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    async def _tell(self, command: BackgroundCommand) -> None:
        severity: Literal["info", "warning"] = "warning" if command.has_failed and not command.was_stopped else "info"
        with suppress(DragomanError):
            await session_core(self._session).record(
                Notice(severity, f"Background command {command.line}", "\n".join(command.notes) or UNSET)
            )


def _signal_name(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:  # one of the real-time signals
        return f"signal {-code}"
