"""Remove what no session needs any more: with a session that is deleted, by age, and by size.

Each session has a folder in every area it was in, with the names of the contents it needs; a content that no session
names is removed. A rewind whose contents are gone says so for each file.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from dragoman.coder.checkpoints.areas import CHECKPOINTS, IDS, OBJECTS, SESSIONS, area_lock

# A session that has kept nothing for so long loses its checkpoints.
KEPT_DAYS: Final = 30
# All checkpoints together; the oldest sessions lose theirs above it.
MOST_BYTES: Final = 2 * 1024**3
# So often at most.
_EVERY_SECONDS: Final = 24 * 3600.0
_MARK: Final = "cleaned"


class _Kept(NamedTuple):
    """What one session keeps in one area, and when it has kept something last."""

    folder: str
    used_at: float


def forget_session(home: str, session_id: str) -> None:
    """Remove what a session has kept. Blocks."""
    if not session_id or os.path.basename(session_id) != session_id or session_id in (".", ".."):
        return  # a client may say anything, and this is a name of a folder
    for area in _areas(home):
        folder = os.path.join(area, SESSIONS, session_id)
        if os.path.isdir(folder):
            shutil.rmtree(folder, ignore_errors=True)
            _sweep(area)


def clean_sometimes(home: str) -> None:
    """Clean up, if that was not done for a day. Blocks."""
    mark = os.path.join(home, CHECKPOINTS, _MARK)
    with suppress(OSError):
        if time.time() - os.stat(mark).st_mtime < _EVERY_SECONDS:
            return
    with suppress(OSError):
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(mark)
        clean(home)


def clean(home: str, *, now: float | None = None, most_bytes: int = MOST_BYTES) -> None:
    """Remove what is too old, and the oldest of what is too much. Blocks."""
    now = time.time() if now is None else now
    kept = sorted((one for area in _areas(home) for one in _sessions(area)), key=lambda one: one.used_at)
    old = [one for one in kept if now - one.used_at > KEPT_DAYS * 24 * 3600]
    for one in old:
        shutil.rmtree(one.folder, ignore_errors=True)
    for area in _areas(home):
        _sweep(area)
    for one in kept[len(old) :]:
        if _size(os.path.join(home, CHECKPOINTS)) <= most_bytes:
            return
        shutil.rmtree(one.folder, ignore_errors=True)
        _sweep(os.path.dirname(os.path.dirname(one.folder)))


def _areas(home: str) -> list[str]:
    folder = os.path.join(home, CHECKPOINTS)
    try:
        return [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _sessions(area: str) -> Iterator[_Kept]:
    with suppress(OSError):
        for entry in os.scandir(os.path.join(area, SESSIONS)):
            used = [entry.stat().st_mtime]
            with suppress(OSError):
                used.append(os.stat(os.path.join(entry.path, IDS)).st_mtime)
            yield _Kept(entry.path, max(used))


def _sweep(area: str) -> None:
    """Remove the contents that no session names, unless a session is just keeping some."""
    with area_lock(area, alone=True) as is_alone:
        if not is_alone:
            return
        needed: set[str] = set()
        for one in _sessions(area):
            with suppress(FileNotFoundError), open(os.path.join(one.folder, IDS), encoding="ascii") as file:
                needed.update(line.strip() for line in file)
        for folder, _, names in os.walk(os.path.join(area, OBJECTS)):
            for name in names:
                if os.path.basename(folder) + name not in needed:
                    with suppress(OSError):
                        os.unlink(os.path.join(folder, name))


def _size(folder: str) -> int:
    total = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(inner, name)).st_size
    return total
