"""Files of the user's own that hold decisions or keys: written whole or not at all, and readable by the user alone."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_private(path: Path, content: bytes) -> None:
    """Put a file in its place, or leave the old one as it is; on disk when this returns. `OSError` if that fails.

    A folder on the way is made. A link at `path` is replaced, not followed.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        fd = os.open(temporary, _NEW, 0o600)
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    with suppress(OSError):  # the file is in its place; not every file system can sync a folder
        _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Make the new name survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
