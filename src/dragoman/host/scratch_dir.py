"""A folder that belongs to one living process: when that is killed, the next one takes it away.

The owner holds a lock on a file in it. A lock ends with its process, however that ends.
"""

import fcntl
import os
import tempfile
from contextlib import suppress
from typing import Final

from dragoman.host.openat import remove_tree

_PREFIX: Final = "of-"
_LOCK: Final = ".owner"


class ScratchDir:
    """A new folder below `parent`, after what dead processes left there was taken away. Blocks: for a thread."""

    def __init__(self, parent: str) -> None:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        parent = os.path.realpath(parent)
        sweep(parent)
        self.path: Final = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        self._lock = os.open(os.path.join(self.path, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Take it away with everything in it."""
        remove_tree(self.path)
        os.close(self._lock)


def sweep(parent: str) -> None:
    """Take away the folders of processes that are no more."""
    for name in os.listdir(parent):
        if name.startswith(_PREFIX):
            with suppress(OSError):  # its owner lives and holds the lock, or has not made the lock file yet
                _take_over(os.path.join(parent, name))


def _take_over(path: str) -> None:
    lock = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(path)
    finally:
        os.close(lock)
