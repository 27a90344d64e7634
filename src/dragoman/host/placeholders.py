"""Folders that stand where nothing may be made, as long as a sandboxed command needs them.

A sandbox can forbid to change what is there; what is not there has nothing to hold on to. So an empty folder is put in
its place, and taken away after. It is known by its odd mode, so that one left over by a killed process is recognised;
and held by a lock, so that of many users, in this process and in others, the last one takes it away.
"""

import fcntl
import os
import stat
import time
from typing import Final, Self

_MODE: Final = 0o1555
_TRIES: Final = 100
# Between making a folder and giving it its mode lies less than this, mostly.
_STEP_SECONDS: Final = 0.001


class Placeholder:
    """A placeholder that this process holds."""

    @classmethod
    def hold(cls, path: str) -> Self:
        """Make the placeholder, or share the one that is there. Raises `OSError` where neither is possible."""
        for attempt in range(_TRIES):
            try:
                os.mkdir(path)
                os.chmod(path, _MODE)
            except FileExistsError:
                if not is_placeholder(path):
                    if attempt == _TRIES - 1 or not _may_be_in_the_making(path):
                        raise
                    time.sleep(_STEP_SECONDS)
                    continue
            try:
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            fcntl.flock(fd, fcntl.LOCK_SH)  # waits at most for a `release` that removes it
            if _is_still(path, fd):
                return cls(path, fd)
            os.close(fd)
        raise OSError(f"{path} comes and goes")

    def __init__(self, path: str, fd: int) -> None:
        """Use `hold`."""
        self.path = path
        self._fd = fd

    def release(self) -> None:
        """Remove the folder, unless another `Placeholder` holds it or something was put in it. Idempotent."""
        if self._fd < 0:
            return
        try:
            # Who fails here has lost the shared lock, too: of two who let go at once, the second succeeds.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(self.path, self._fd):
                os.rmdir(self.path)
        except OSError:
            pass
        finally:
            os.close(self._fd)
            self._fd = -1


def is_placeholder(path: str) -> bool:
    """Return whether an empty folder with our mode stands there."""
    try:
        mode = os.lstat(path).st_mode
        return stat.S_ISDIR(mode) and stat.S_IMODE(mode) == _MODE and not os.listdir(path)
    except OSError:
        return False


def _may_be_in_the_making(path: str) -> bool:
    """Return whether another `hold` may be between making it and giving it its mode, or a `release` just removed it."""
    try:
        return os.listdir(path) == []
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _is_still(path: str, fd: int) -> bool:
    try:
        there = os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(there, os.fstat(fd))
