"""Files written whole or not at all. Those that hold decisions or keys of the user are readable by the user alone."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Of the file's own name, in that of the new one beside it: a name has at most 255 bytes.
_NAME_CHARACTERS: Final = 50


@contextmanager
def replaced_file(path: str, mode: int = 0o600, *, folder: int | None = None) -> Iterator[BinaryIO]:
    """Yield a new file to be written. It takes its place at `path` when the block ends, and is on disk then; when the
    block fails, what stood there stays. `OSError` if it cannot be written.

    `folder`: an open folder that `path` is relative to. A link at `path` is replaced, not followed.
    """
    parent, name = os.path.split(path)
    new = os.path.join(parent, f".{name[:_NAME_CHARACTERS]}.{os.urandom(6).hex()}.tmp")
    fd = os.open(new, _NEW, mode, dir_fd=folder)
    try:
        with open(fd, "wb") as file:
            yield file
            file.flush()
            os.fsync(fd)
        os.rename(new, path, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise


def write_private(path: Path, content: bytes) -> None:
    """Put a file in its place, or leave the old one as it is; on disk when this returns. `OSError` if that fails.

    A folder on the way is made. A link at `path` is replaced, not followed.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replaced_file(str(path)) as file:
        file.write(content)
    with suppress(OSError):  # the file is in its place; not every file system can sync a folder
        _sync_folder(path.parent)


def make_private_folder(path: str) -> None:
    """Make a folder, and those above it that are missing, for the user alone. Raises `OSError`."""
    missing: list[str] = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        with suppress(FileExistsError):  # another process has made it
            os.mkdir(folder, 0o700)


def check_private(found: os.stat_result) -> None:
    """Raise `OSError` with a sentence if an open file is another user's, or if other users can read or change it."""
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user; run this as that user, or move it away")
    if found.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "others can read or change it; run chmod 600 on it")


def _sync_folder(path: Path) -> None:
    """Make the new name survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
