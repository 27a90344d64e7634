"""Which files of some folders are opened, and for what: inotify, by the C library.

Promise: every file that was opened and closed between `with` and `read` is in the answer, whichever process did it.
"""

import ctypes
import os
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self

_CLOSED_AFTER_WRITING = 0x08
_CLOSED_AFTER_READING = 0x10
_IS_FOLDER = 0x40000000
_TOO_MANY = 0x4000
_HEAD = struct.Struct("iIII")
_BYTES = 1 << 20


class OpenedFiles:
    """A watch of folders, without those below them."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self._names: dict[int, str] = {}
        self._fd = -1

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder in self._folders:
            watch = libc.inotify_add_watch(self._fd, os.fsencode(folder), _CLOSED_AFTER_READING | _CLOSED_AFTER_WRITING)
            if watch < 0:
                raise OSError(ctypes.get_errno(), f"{folder} cannot be watched")
            self._names[watch] = folder.rstrip("/")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def read(self) -> tuple[set[str], set[str]]:
        """Return the paths that were opened for reading alone, and those that were opened for writing."""
        read, written = set[str](), set[str]()
        while data := self._next():
            at = 0
            while at < len(data):
                watch, mask, _, size = _HEAD.unpack_from(data, at)
                name = os.fsdecode(data[at + _HEAD.size : at + _HEAD.size + size].rstrip(b"\0"))
                at += _HEAD.size + size
                assert not mask & _TOO_MANY, "more was opened than the kernel remembers"
                if not mask & _IS_FOLDER:
                    (written if mask & _CLOSED_AFTER_WRITING else read).add(f"{self._names[watch]}/{name}")
        return read, written

    def _next(self) -> bytes:
        try:
            return os.read(self._fd, _BYTES)
        except BlockingIOError:
            return b""
