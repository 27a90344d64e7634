"""Terminals for an agent: real processes in groups of their own, with output that is bounded and ends that are certain.

A command is run as it was judged and shown (`command_lines`). Of its output the end is kept. A terminal belongs to the
session that made it; to any other it does not exist.
"""

import asyncio
import codecs
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec.structs import replace

from dragoman.client.command_lines import check_terminal, terminal_argv, terminal_environment
from dragoman.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_FOUND,
    TOO_MANY_IN_FLIGHT,
    RequestFailed,
    StartFailed,
    echo,
)
from dragoman.host.environment import child_environment
from dragoman.host.paths import PathRefused, Roots
from dragoman.host.pipes import PolledReadEnd
from dragoman.host.process import Child
from dragoman.host.programs import line_shell
from dragoman.limits import MIB
from dragoman.vocabulary.services import (
    CreateTerminal,
    GetTerminalOutput,
    KillTerminal,
    ReleaseTerminal,
    TerminalExited,
    TerminalText,
    WaitForTerminalExit,
)
from dragoman.vocabulary.tools import ExitStatus

# What an agent that names no limit gets, and the most that any gets: a model reads a hundredth of it.
OUTPUT_BYTES: Final = 1 * MIB
LARGEST_OUTPUT_BYTES: Final = 8 * MIB
# Not released yet. A real agent has a handful; each costs a process and four descriptors.
PER_SESSION: Final = 32
IN_ALL: Final = 128

Permit = Callable[[CreateTerminal], Awaitable[None]]


class RealTerminals:
    """The terminals of one workspace."""

    def __init__(self, roots: Roots, environment: Mapping[str, str], *, permit: Permit) -> None:
        self._roots = roots
        self._environment = environment
        self._permit = permit
        self._running: dict[tuple[str, str], _Terminal] = {}
        self._closed = False

    async def create(self, request: CreateTerminal) -> str:
        """Start a command in a folder inside the roots; its terminal id."""
        check_terminal(request)
        cwd = self._folder(request.cwd)
        await self._permit(replace(request, cwd=cwd))
        if self._folder(request.cwd) != cwd:  # the path was replaced, e.g. by a link, while `permit` ran
            raise RequestFailed(INVALID_REQUEST, "The working folder has changed meanwhile")
        self._check_room(request.session_id)
        environment = terminal_environment(request, child_environment(self._environment))
        argv = terminal_argv(request, line_shell())
        try:
            terminal = _Terminal(argv, cwd, environment, _limit(request.output_byte_limit))
        except StartFailed as error:
            raise RequestFailed(INVALID_PARAMS, str(error)) from None
        terminal_id = f"term_{os.urandom(8).hex()}"
        self._running[request.session_id, terminal_id] = terminal
        return terminal_id

    async def output(self, request: GetTerminalOutput) -> TerminalText:
        """Return what a command has printed so far, at most the last bytes of it."""
        return self._find(request.session_id, request.terminal_id).text()

    async def wait_for_exit(self, request: WaitForTerminalExit) -> TerminalExited:
        """Wait for the end of a command, and return how it ended. What it started itself may run until the release."""
        status = await self._find(request.session_id, request.terminal_id).exit_status()
        return TerminalExited(status.exit_code, status.signal)

    async def kill(self, request: KillTerminal) -> None:
        """Kill the command and everything it started; what it printed stays readable."""
        await self._find(request.session_id, request.terminal_id).end()

    async def release(self, request: ReleaseTerminal) -> None:
        """Kill it, and forget it."""
        terminal = self._find(request.session_id, request.terminal_id)
        del self._running[request.session_id, request.terminal_id]
        await terminal.end()

    async def close(self) -> None:
        """End them all."""
        self._closed = True
        terminals = list(self._running.values())
        self._running.clear()
        await asyncio.gather(*(terminal.end() for terminal in terminals))

    def _find(self, session_id: str, terminal_id: str) -> "_Terminal":
        terminal = self._running.get((session_id, terminal_id))
        if terminal is None:
            raise RequestFailed(NOT_FOUND, "Resource not found: no such terminal", {"terminalId": echo(terminal_id)})
        return terminal

    def _folder(self, cwd: object) -> str:
        if not isinstance(cwd, str) or not cwd:
            return self._roots.cwd
        if not os.path.isabs(cwd):
            raise RequestFailed(INVALID_PARAMS, "The working folder must be absolute")
        try:
            return self._roots.place(cwd).path
        except PathRefused as error:
            raise RequestFailed(INVALID_PARAMS, str(error)) from None

    def _check_room(self, session_id: str) -> None:
        if self._closed:
            raise RequestFailed(INVALID_REQUEST, "The workspace is closed")
        here = sum(1 for owner, _ in self._running if owner == session_id)
        if here >= PER_SESSION or len(self._running) >= IN_ALL:
            raise RequestFailed(TOO_MANY_IN_FLIGHT, f"{here} terminals are open; release some of them first")


class _Terminal:
    """One command."""

    def __init__(self, argv: list[str], cwd: str, environment: Mapping[str, str], limit: int) -> None:
        self._limit = limit
        self._tail = bytearray()
        self._cut = False
        self._child = Child.start(argv, cwd=cwd, env=environment, on_stderr=self._append)
        self._child.close_stdin()  # no input ever comes: a command that asks for a password fails instead of waiting
        self._output = PolledReadEnd(self._child.stdout, self._append, lambda error: None)
        self._output.resume()
        self._child.on_exit(self._output.finish)
        self._ending: asyncio.Task[None] | None = None

    def text(self) -> TerminalText:
        """Return the end of the output, from a whole character on."""
        tail = bytes(self._tail[-self._limit :]) if self._limit else b""
        cut = self._cut or len(tail) < len(self._tail)
        if cut:
            tail = tail[_continuation(tail) :]
        exited = self._child.has_exited
        # While it runs, half a character at the end is one that is still being written.
        text = codecs.getincrementaldecoder("utf-8")(errors="replace").decode(tail, final=exited)
        return TerminalText(text, cut, self._status() if exited else None)

    async def exit_status(self) -> ExitStatus:
        await self._child.wait()
        return self._status()

    async def end(self) -> None:
        """Kill the whole process tree and wait for its end; it goes on if the caller is cancelled meanwhile."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        await asyncio.to_thread(self._child.kill_now)
        await self._child.stop()
        self._output.close()

    def _status(self) -> ExitStatus:
        code = self._child.exit_code
        if code is None or code >= 0:
            return ExitStatus(code, None)
        try:
            return ExitStatus(None, signal.Signals(-code).name)
        except ValueError:
            return ExitStatus(None, str(-code))

    def _append(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > 2 * self._limit:  # seldom, so that a flood is not moved each time
            del self._tail[: len(self._tail) - self._limit]
            self._cut = True


def _limit(wanted: object) -> int:
    return OUTPUT_BYTES if not isinstance(wanted, int) else max(0, min(wanted, LARGEST_OUTPUT_BYTES))


def _continuation(data: bytes) -> int:
    """Return how many bytes at the beginning belong to a character that was cut."""
    count = 0
    while count < min(3, len(data)) and data[count] & 0xC0 == 0x80:
        count += 1
    return count
