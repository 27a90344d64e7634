"""Locks between processes: leases of sessions. The kernel has them, and releases them however a process ends."""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dragoman.store.contract import StoreFailed

# How long one process waits for another: longer than any ordinary work with the folder.
WAIT_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.005
# In a folder of sessions: a locked file for each store that holds some of them.
HOLDERS: Final = "holders"
_HOLDER: Final = re.compile(r"[0-9a-f]{32}")


@contextmanager
def locked(folder: Path, *, alone: bool) -> Iterator[None]:
    """Work in a folder beside others, or alone. `StoreFailed` when the others do not end in time."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _wait(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def _wait(lock: int, kind: int) -> None:
    until = None
    while True:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            now = time.monotonic()
            until = until or now + WAIT_SECONDS
            if now > until:
                raise StoreFailed("another process keeps the session store busy") from None
            time.sleep(_PAUSE_SECONDS)


def is_in_use(folder: Path) -> bool:
    """Return whether a process that runs holds a session of a folder. `OSError` if that cannot be seen."""
    holders = folder / HOLDERS
    try:
        names = os.listdir(holders)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return any(Holder(holders).lives(name) for name in names)


class Holder:
    """One store that lives, and holds leases under a name that is never given twice.

    It keeps a lock on a file of that name. A store that finds the name in a session tries to lock that file: success
    means that the holder is dead. Process ids are reused, and mean nothing in another container.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: int | None = None
        self._name = ""

    @property
    def name(self) -> str:
        """The name to hold leases under."""
        if self._lock is None:
            self._begin()
        return self._name

    def end(self) -> None:
        """Hold nothing any more."""
        if self._lock is not None:
            # Deleted before the lock is given up: a process that finds the file and no lock would delete it anyway.
            _unlink(self._folder / self._name)
            os.close(self._lock)
            self._lock = None

    def lives(self, name: object) -> bool:
        """Return whether the holder of that name still runs."""
        if name == self._name and self._lock is not None:
            return True
        # The name comes out of a file.
        if not isinstance(name, str) or _HOLDER.fullmatch(name) is None:
            return False
        try:
            lock = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            # Shared, so that two who ask do not take each other for the holder.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            _unlink(self._folder / name)
            return False
        finally:
            os.close(lock)

    def _begin(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Asking is cleaning: `lives` deletes the files of holders that are dead.
        for orphaned in os.listdir(self._folder):
            self.lives(orphaned)
        # Create, lock, and look whether the name still leads to our file: a cleaning process may have locked and
        # deleted it between the first two. Then a new name is tried.
        while self._lock is None:
            self._name = os.urandom(16).hex()
            path = self._folder / self._name
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Another process that cleans up may have taken the file away before it was locked.
                if same_file(path, os.fstat(lock)):
                    self._lock = lock
            except BlockingIOError:
                pass
            finally:
                if self._lock is None:
                    os.close(lock)


def same_file(path: Path | str, known: os.stat_result) -> bool:
    """Return whether the file at a path is the one we know."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (found.st_dev, found.st_ino) == (known.st_dev, known.st_ino)


def _unlink(path: Path) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it says nothing any more; the next one cleans up
