"""What a protected thing was like, in memory, so that it can be put back: for things that cannot be made read-only.

A file, a link, or a folder with a few of them. It counts as unchanged if the file system's own facts about it, among
them the change time, are what they were. Nothing is followed, neither to look nor to put back.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from dragoman.host.openat import beside, make_writable
from dragoman.host.paths import Place

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Folders in folders of one thing.
_MOST_DEPTH: Final = 64
# Two changes of a file within this time may have the same time stamp.
_CLOCK_NANOSECONDS: Final = 50_000_000


class TooLarge(Exception):
    """More than may be kept in memory."""


class BackupLimit:
    """How much may still be kept."""

    def __init__(self, files: int, size: int) -> None:
        self.files = files
        self.size = size

    def take(self, size: int) -> None:
        """Take room for one file; `TooLarge` if there is none."""
        self.files -= 1
        self.size -= size
        if self.files < 0 or self.size < 0:
            raise TooLarge


FileStamp = tuple[int, ...]


class PathBackup(NamedTuple):
    """The former state of a path. `data` are a file's bytes or a link's target; `inner` is what a folder has."""

    stamp: FileStamp
    mode: int
    # Whether it had changed so shortly before that another change may have the same time.
    is_fresh: bool = False
    data: bytes = b""
    inner: "tuple[tuple[str, PathBackup], ...]" = ()


def back_up(root: str, path: str, room: BackupLimit) -> PathBackup | None:
    """Read what is at a relative path below a root; None: nothing. `TooLarge`, or `OSError` if it is no file."""
    try:
        with beside(Place(root, tuple(path.split("/")))) as (folder, name):
            return _back_up(folder, name, room)
    except (FileNotFoundError, NotADirectoryError):
        return None


def stamp_of(root: str, path: str) -> FileStamp | None:
    """Return what the file system says about a thing: enough to see that it is another one, or was changed."""
    try:
        return _stamp(os.lstat(os.path.join(root, path)))
    except OSError:
        return None


def is_unchanged(root: str, path: str, was: PathBackup) -> bool:
    """Return whether a thing is what it was, with all that is in it."""
    try:
        with beside(Place(root, tuple(path.split("/")))) as (folder, name):
            return _is_same(folder, name, was)
    except OSError:
        return False


def restore(root: str, path: str, was: PathBackup) -> bool:
    """Put a thing where nothing stands now; False if its folder is not there any more."""
    try:
        with beside(Place(root, tuple(path.split("/")))) as (folder, name):
            make_writable(folder)
            _put(folder, name, was)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _stamp(status: os.stat_result) -> FileStamp:
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_size, *times)


def _back_up(folder: int, name: str, room: BackupLimit, depth: int = 0) -> PathBackup:
    if depth > _MOST_DEPTH:
        raise TooLarge
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    stamp, mode = _stamp(status), status.st_mode
    is_fresh = time.time_ns() - status.st_ctime_ns < _CLOCK_NANOSECONDS
    if stat.S_ISLNK(mode):
        room.take(0)
        return PathBackup(stamp, mode, is_fresh, os.fsencode(os.readlink(name, dir_fd=folder)))
    if stat.S_ISREG(mode):
        room.take(status.st_size)
        return PathBackup(stamp, mode, is_fresh, _bytes(folder, name, status.st_size))
    if not stat.S_ISDIR(mode):
        raise OSError(0, "it is no file", name)
    room.take(0)
    with _opened(folder, name) as inside:
        names = sorted(os.listdir(inside))
        inner_backup = tuple((inner, _back_up(inside, inner, room, depth + 1)) for inner in names)
        return PathBackup(stamp, mode, is_fresh, inner=inner_backup)


def _bytes(folder: int, name: str, size: int) -> bytes:
    fd = os.open(name, _FILE, dir_fd=folder)
    with open(fd, "rb") as file:
        return file.read(size + 1)


def _is_same(folder: int, name: str, was: PathBackup) -> bool:
    if _stamp(os.stat(name, dir_fd=folder, follow_symlinks=False)) != was.stamp:
        return False
    if stat.S_ISREG(was.mode) and was.is_fresh:
        return _bytes(folder, name, len(was.data)) == was.data
    if not stat.S_ISDIR(was.mode):
        return True
    with _opened(folder, name) as inside:
        if sorted(os.listdir(inside)) != [inner for inner, _ in was.inner]:
            return False
        return all(_is_same(inside, inner, inner_backup) for inner, inner_backup in was.inner)


def _put(folder: int, name: str, was: PathBackup) -> None:
    if stat.S_ISLNK(was.mode):
        os.symlink(os.fsdecode(was.data), name, dir_fd=folder)
    elif stat.S_ISDIR(was.mode):
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        with _opened(folder, name) as inside:
            for inner, inner_backup in was.inner:
                _put(inside, inner, inner_backup)
            os.fchmod(inside, stat.S_IMODE(was.mode))
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(was.data)
            os.fchmod(file.fileno(), stat.S_IMODE(was.mode))


@contextmanager
def _opened(folder: int, name: str) -> Iterator[int]:
    fd = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)
