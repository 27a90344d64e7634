"""Rows of ours in the user's pager: `$PAGER` of the user's environment, or else less.

The rows are harmless already; the pager adds nothing that could act on its own: it gets no secrets, `less` runs as
`LESSSECURE` without preprocessors (`LESSOPEN`), and it is found on a PATH without folders of the workspace. Rows are
made as the pager reads them, so a person who leaves after the first screen pays for no more.
"""

import asyncio
import os
import shlex
import shutil
import termios
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from dragoman.host.environment import child_environment
from dragoman.host.programs import path_outside

_LESS: Final = "less"
# Rows that are handed over at once.
_ROWS: Final = 200
# A pager that is told to end may take so long.
_END_SECONDS: Final = 1.0
# Programs that less would run on what it shows, and what it would write down of it.
_LEFT_OUT: Final = ("LESSOPEN", "LESSCLOSE", "LESSEDIT")


class Pager(NamedTuple):
    """A pager of this machine: its command, and whether it shows our colours."""

    command: list[str]
    environment: dict[str, str]
    coloured: bool


def find_pager(environment: Mapping[str, str], roots: Iterable[str]) -> Pager | None:
    """Return the pager to use; None where there is none, or where the terminal cannot move its cursor.

    `roots` are folders of the workspace: no program in there is a pager.
    """
    if environment.get("TERM", "dumb") == "dumb":
        return None
    path = path_outside(environment.get("PATH", os.defpath), list(roots))
    for wanted in (environment.get("PAGER", ""), _LESS):
        command = _words(wanted)
        program = shutil.which(command[0], path=path) if command else None
        if program is None or not os.path.isabs(program):
            continue
        is_less = os.path.basename(program) == _LESS
        pager_environment = {
            name: value for name, value in child_environment(environment).items() if name not in _LEFT_OUT
        }
        pager_environment |= {"LESSSECURE": "1", "LESSHISTFILE": "-"}
        # -R: our colours. -+F and -+X: a text that fits on the screen stays until the user has read it.
        options = ["-R", "-+F", "-+X"] if is_less else []
        return Pager([program, *options, *command[1:]], pager_environment, is_less)
    return None


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


async def show_in(pager: Pager, rows: Iterable[str], terminal: int) -> bool:
    """Show the rows at a terminal until the user leaves the pager; False if it could not show them.

    A cancelled wait ends the pager. The terminal is left as it was.
    """
    modes = termios.tcgetattr(terminal)
    try:
        process = await asyncio.create_subprocess_exec(
            *pager.command, stdin=asyncio.subprocess.PIPE, stdout=terminal, stderr=terminal, env=pager.environment
        )
    except OSError:
        return False
    try:
        assert process.stdin is not None
        with suppress(BrokenPipeError, ConnectionResetError):  # the user has seen enough
            await _feed(process.stdin, rows)
        return await process.wait() == 0
    finally:
        await _end(process)
        termios.tcsetattr(terminal, termios.TCSANOW, modes)


async def _feed(pipe: asyncio.StreamWriter, rows: Iterable[str]) -> None:
    buffered: list[str] = []
    for row in rows:
        buffered.append(row)
        if len(buffered) >= _ROWS:
            pipe.write("".join(f"{one}\n" for one in buffered).encode("utf-8", "backslashreplace"))
            buffered.clear()
            await pipe.drain()
    pipe.write("".join(f"{one}\n" for one in buffered).encode("utf-8", "backslashreplace"))
    await pipe.drain()
    pipe.close()
    await pipe.wait_closed()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a pager that still runs, gently if it listens: then it gives the screen back."""
    for end in (process.terminate, process.kill):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            end()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_SECONDS)
