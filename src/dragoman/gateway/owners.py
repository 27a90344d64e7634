"""Whose session it is. A session belongs to the principal that made it, over restarts too.

One line a session, appended; a line that was cut off by a crash is skipped. Without a file it is kept in memory.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

# What is read back at a start: a million sessions have less.
_FILE_BYTES: Final = 256 * 1024 * 1024


class Owners:
    """Session ids and principals."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._owners: dict[str, str] = {}
        if file is not None:
            self._read(file)

    def of(self, session_id: str) -> str | None:
        """The principal; None: nobody made it through this gateway."""
        return self._owners.get(session_id)

    def add(self, session_id: str, principal: str) -> None:
        """This session was made by this principal. On disk when this returns, so that nobody else ever gets it."""
        if self._owners.setdefault(session_id, principal) != principal or self._file is None:
            return
        # A line of its own, even where the last one was cut off.
        line = b"\n" + msgspec.json.encode([session_id, principal])
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self._file, "ab", opener=_private) as file:
            file.write(line)

    def _read(self, file: Path) -> None:
        try:
            with file.open("rb") as opened:
                lines = opened.read(_FILE_BYTES).split(b"\n")
        except FileNotFoundError:
            return
        for line in lines:
            with suppress(ValueError, TypeError):
                session_id, principal = msgspec.json.decode(line, type=tuple[str, str])
                self._owners.setdefault(session_id, principal)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
