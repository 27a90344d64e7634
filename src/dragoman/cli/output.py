"""Where a command's result goes: stdout, or a file that is there whole or not at all.

Promise: what was written to stdout before a failure stays; the bar is away before a terminal gets the first word.
"""

import io
import os
import shutil
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any, Final, Self, TextIO

from dragoman.cli.progress import Progress
from dragoman.cli.text_width import harmless_json
from dragoman.host.private_file import replaced_file
from dragoman.store.contract import StoreFailed

# Written at once: a line at a time would cost more than making the line.
_BUFFER: Final = 64 * 1024


class Output:
    """`with Output(path, progress) as output: output.write(...)`; without a path it is stdout."""

    def __init__(self, path: str | None, progress: Progress) -> None:
        self._progress = progress
        self._path = None if path is None else os.path.realpath(path)
        self._file: TextIO = sys.stdout
        self._stack = ExitStack()
        self._is_terminal = path is None and sys.stdout is not None and sys.stdout.isatty()

    @property
    def columns(self) -> int | None:
        """How wide a line may be; None: as wide as it likes."""
        return shutil.get_terminal_size().columns if self._is_terminal else None

    @property
    def coloured(self) -> bool:
        """Whether colours are wanted."""
        return self._is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> Self:
        if self._path is None:
            if isinstance(self._file, io.TextIOWrapper):
                self._file.reconfigure(errors="backslashreplace")  # a terminal may know ASCII alone
            self._stack.callback(self._flush_stdout)
        elif _is_other(self._path):
            self._file = self._stack.enter_context(open(self._path, "w", encoding="utf-8", buffering=_BUFFER))
        else:
            new = self._stack.enter_context(replaced_file(self._path))  # only ours to read, like the session itself
            self._file = io.TextIOWrapper(new, encoding="utf-8")
            self._stack.callback(self._file.flush)  # before it takes its place: what fails here leaves the old one
        return self

    def __exit__(self, *failure: Any) -> None:
        self._stack.__exit__(*failure)

    def _flush_stdout(self) -> None:
        try:
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError:
            # Or Python complains again, at exit, about what it could not write.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())
            raise

    def write(self, text: str) -> None:
        """Add text. It is shown as it is, so it must be harmless."""
        if self._is_terminal:
            self._progress.hide()
        self._file.write(text)

    def line(self, json: bytes) -> None:
        """Add a line of JSON."""
        self.write(harmless_json(json) + "\n")

    async def array(self, items: AsyncIterator[bytes]) -> None:
        """Add one JSON array, an item a line. It is closed also when the items end in a failure."""
        before = "[\n"
        try:
            async for item in items:
                self.write(before + harmless_json(item))
                before = ",\n"
        except StoreFailed:
            self._close_array(before)
            raise
        self._close_array(before)

    def _close_array(self, before: str) -> None:
        self.write("[]\n" if before == "[\n" else "\n]\n")


def _is_other(path: str) -> bool:
    """Return whether something else than an ordinary file stands there, such as a device.

    Then nothing takes its place.
    """
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False
