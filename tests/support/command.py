"""A command as the program runs it, but in our own process: no second Python has to start for what `main` does.

Its streams are files and no terminal. Where the process itself is the point (signals, pipes, terminals, imports), a
test starts one.
"""

import tempfile
import time
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.cli.main import main
from tests.support.fork_server.client import fork_server


class Called(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    error: str


def call(
    *arguments: str, said: str | bytes = b"", cwd: Path | None = None, forks: bool = False, **env: str | None
) -> Called:
    """Run it, with this on stdin, in this folder, and with these variables beside our own; None takes one away.

    `forks`: our own agent, which it starts, is forked.
    """
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as error,
    ):
        given.write(said if isinstance(said, bytes) else said.encode())
        given.seek(0)
        streams = [TextIOWrapper(file, encoding="utf-8") for file in (given, out, error)]
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(f"sys.{name}", stream)
        for name, value in env.items():
            if value is None:
                patch.delenv(name, raising=False)
            else:
                patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(cwd)
        if forks:
            patch.setattr("sys.executable", fork_server().python)
        try:
            time.tzset()
            code = _ended(arguments)
        finally:
            patch.undo()
            time.tzset()
        written = []
        for stream in streams[1:]:
            stream.flush()
            stream.seek(0)
            written.append(stream.read())
        return Called(code, *written)


def _ended(arguments: tuple[str, ...]) -> int:
    """The exit code. What is wrong on the command line ends the program where it is found."""
    try:
        return main(arguments)
    except SystemExit as left:
        return int(left.code or 0)
