"""Reads small files that are found by their name, in a workspace or in a home.

Opening a FIFO waits for a writer, and reading a terminal waits for keys: a project must not be able to hold us up by
putting one where we expect a file. So the file is opened without waiting, looked at, and read only if it is regular.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import Final

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[BufferedReader]:
    """Open a regular file, links followed. `OSError` for anything else; never waits."""
    with open(os.open(path, _FLAGS), "rb") as file:
        check_regular(file.fileno(), path)
        yield file


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the first `limit` bytes of a regular file, links followed. `OSError` for anything else; never waits."""
    with open_regular(path) as file:
        return file.read(limit)


def read_whole(
    path: str | os.PathLike[str],
    most: int,
    *,
    follow: bool = True,
    check: Callable[[os.stat_result], None] | None = None,
) -> bytes:
    """Return all of a regular file. `OSError` for anything else, for one longer than `most` bytes, and for a link if
    links are not to be followed; never waits. `check` looks at the open file before it is read, and may raise."""
    fd = os.open(path, _FLAGS | (0 if follow else os.O_NOFOLLOW))
    with open(fd, "rb") as file:
        check_regular(fd, path)
        # The open file, not its name, which may lead elsewhere a moment later.
        if check is not None:
            check(os.fstat(fd))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, "it is too long", os.fspath(path))
    return content


def check_regular(fd: int, path: str | os.PathLike[str]) -> None:
    """Raise `OSError` if an open file is no regular file; `path` is named in it."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "this is no regular file", os.fspath(path))
