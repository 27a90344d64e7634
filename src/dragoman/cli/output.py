"""Where a command's result goes: stdout, or a file that is there whole or not at all.

Promise: what was written to stdout before a failure stays; the bar is away before a terminal gets the first word.
"""

import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import AsyncIterator
from typing import Final, Self, TextIO

from dragoman.cli.progress import Progress
from dragoman.cli.text_width import harmless_json
from dragoman.store.contract import StoreFailed

# Written at once: a line at a time would cost more than making the line.
_BUFFER: Final = 64 * 1024


class Output:
    """`with Output(path, progress) as output: output.write(...)`; without a path it is stdout."""

    def __init__(self, path: str | None, progress: Progress) -> None:
        self._progress = progress
        self._path = None if path is None else os.path.realpath(path)
        self._new = ""
        self._file: TextIO = sys.stdout
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
        elif _is_other(self._path):
            self._file = open(self._path, "w", encoding="utf-8", buffering=_BUFFER)
        else:
            # Only ours to read, like the session itself; beside the file, so that it can take its place.
            folder, name = os.path.split(self._path)
            descriptor, self._new = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
            self._file = open(descriptor, "w", encoding="utf-8", buffering=_BUFFER)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._path is None:
                self._flush_stdout()
                return
            self._file.close()
            if self._new and kind is None:
                os.replace(self._new, self._path)
                self._new = ""
        finally:
            if self._new:
                os.unlink(self._new)

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
