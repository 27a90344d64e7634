"""Files as a test sees them from outside: a snapshot of folders, and a thread that swaps two names."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def snapshot(*folders: Path) -> dict[str, object]:
    """Everything below these folders: what it is, its mode, its bytes."""
    found: dict[str, object] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            mode = path.lstat().st_mode
            if path.is_symlink():
                found[str(path)] = (mode, str(path.readlink()))
            elif path.is_file():
                found[str(path)] = (mode, path.read_bytes())
            else:
                found[str(path)] = (mode, None)
    return found


_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


@contextmanager
def swapper(one: Path, other: Path) -> Iterator[list[int]]:
    """A thread that exchanges two names, again and again; how often it has."""
    stop = threading.Event()
    count = [0]
    libc = ctypes.CDLL(None, use_errno=True)

    def swap() -> None:
        while not stop.is_set():
            swapped = libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
            assert swapped == 0, os.strerror(ctypes.get_errno())
            count[0] += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()
