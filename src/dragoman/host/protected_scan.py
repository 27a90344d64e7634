"""Where in a workspace something protected is: found by one bounded walk, before a command and after it.

A walk looks at every folder below a root, follows no link, and does not enter what is protected. It is quick the second
time: what is in a folder is remembered as long as the folder's own times say that no name came or went. The change time
cannot be set by a program; a folder that changed within the resolution of the clock is read again.
"""

import functools
import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

from dragoman.errors import WorldError
from dragoman.host.protected_names import GIT_MARKERS, is_git_folder, is_plain_protected, may_end_a_chain, plain

# Names in a workspace, and seconds for one walk: a workspace with more cannot be watched.
MOST_NAMES: Final = 1_000_000
_MOST_SECONDS: Final = 30.0
# After a command there is no bound on names: it could have made so many that nothing is found.
_PATIENT_SECONDS: Final = 300.0
# A folder whose path is longer is not entered, and counts as protected: further down no path could name what is there.
_LONGEST_PATH: Final = 1000
# Two changes of a folder within this time may have the same time stamp.
_CLOCK_NANOSECONDS: Final = 50_000_000
# Roots whose folders are remembered: some hundred bytes for each folder.
_MOST_ROOTS: Final = 8


class ScanFailed(WorldError):
    """A workspace is too large to be looked through, or a folder of it cannot be read."""


class ProtectedScan(NamedTuple):
    """What a walk has found. Paths are relative to the root, with slashes; the root itself is the empty text.

    `protected` are names of the list; `git_folders` are folders that git takes for repositories by what is in them.
    `markers` has, for each folder, the names in it that are part of what makes a git folder, as they are written.
    `sealed` are folders that cannot be read, with their change times.
    """

    root: str
    protected: tuple[str, ...]
    git_folders: tuple[str, ...]
    folders: frozenset[str]
    markers: Mapping[str, tuple[str, ...]]
    sealed: Mapping[str, int]


class _Folder(NamedTuple):
    """A folder to look at: its path from the root, its whole path, and the plain names of the last folders above."""

    path: str
    full: str
    above: tuple[str, ...]


class _Listing(NamedTuple):
    """What is in one folder, and when that was read."""

    stamp: tuple[int, int, int, int]
    read_at: int
    names: int
    folders: tuple[_Folder, ...]
    protected: tuple[str, ...]
    markers: tuple[str, ...]
    is_sealed: bool = False


_Listings = dict[str, _Listing]
_remembered: "OrderedDict[str, _Listings]" = OrderedDict()
_lock: Final = threading.Lock()


def scan_protected(
    root: str, *, sealed: Mapping[str, int] | None = None, most_names: int = MOST_NAMES
) -> ProtectedScan:
    """Walk a real folder; the shallowest come first. Blocks. `ScanFailed` if a bound is hit.

    `sealed`, given after a command, are the folders that could not be read before it: others that cannot be, and are
    the user's own, are opened up and looked into, because the command has closed them.
    """
    with _lock:
        known = _remembered.pop(root, {})
    read: _Listings = {}
    try:
        return _walk(root, known, read, sealed, most_names)
    finally:
        with _lock:
            _remembered[root] = read
            while len(_remembered) > _MOST_ROOTS:
                _remembered.popitem(last=False)


def _walk(
    root: str, known: _Listings, read: _Listings, sealed: Mapping[str, int] | None, most_names: int
) -> ProtectedScan:
    most_seconds = _MOST_SECONDS if sealed is None else _PATIENT_SECONDS
    until = time.monotonic() + most_seconds
    protected: list[str] = []
    git_folders: list[str] = []
    markers: dict[str, tuple[str, ...]] = {}
    closed: dict[str, int] = {}
    names = 0
    waiting: list[_Folder] = [_Folder("", root, ())]
    while waiting:
        deeper: list[_Folder] = []
        for folder in waiting:
            listing = _listing(folder, known.get(folder.path), sealed)
            if listing is None:
                continue
            read[folder.path] = listing
            names += listing.names
            if listing.is_sealed:
                closed[folder.path] = listing.stamp[3]
            protected += listing.protected
            if listing.markers:
                markers[folder.path] = listing.markers
                if is_git_folder(set(map(plain, listing.markers))):
                    git_folders.append(folder.path)
                    if folder.path:
                        continue  # it is protected as a whole
            deeper += listing.folders
        if (sealed is None and names > most_names) or time.monotonic() > until:
            raise ScanFailed(
                f"{root} has too many files to look through for protected ones: more than {most_names}, or it takes "
                f"more than {most_seconds:.0f} seconds."
            )
        waiting = deeper
    return ProtectedScan(root, tuple(protected), tuple(git_folders), frozenset(read), markers, closed)


def _listing(folder: _Folder, known: _Listing | None, sealed: Mapping[str, int] | None) -> _Listing | None:
    """Return what is in a folder, remembered or read now; None if it has gone."""
    try:
        status = os.lstat(folder.full)
    except OSError:
        return None
    stamp = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    if (
        known is not None
        and known.stamp == stamp
        and known.read_at - stamp[3] > _CLOCK_NANOSECONDS
        and not known.is_sealed
    ):
        return known
    if not stat.S_ISDIR(status.st_mode):
        return None
    try:
        return _read(folder, stamp)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        is_ours = status.st_uid == os.geteuid()
        if not isinstance(error, PermissionError):
            reason = (error.strerror or "it cannot be read").lower()
            raise ScanFailed(f"{folder.full} cannot be looked through for protected files: {reason}.") from None
        if sealed is None or not is_ours or sealed.get(folder.path) == status.st_ctime_ns:
            return _Listing(stamp, 0, 1, (), (), (), is_sealed=True)
    try:
        os.chmod(folder.full, stat.S_IMODE(status.st_mode) | stat.S_IRWXU)
        return _read(folder, stamp)
    except OSError:
        raise ScanFailed(f"{folder.full} was closed by the command and cannot be looked into.") from None


def _read(folder: _Folder, stamp: tuple[int, int, int, int]) -> _Listing:
    read_at = time.time_ns()
    folders: list[_Folder] = []
    protected: list[str] = []
    markers: list[str] = []
    names = 0
    prefix = f"{folder.path}/" if folder.path else ""
    with os.scandir(folder.full) as entries:
        for entry in entries:
            names += 1
            name = entry.name
            kind = _kind(name)
            if kind and (kind == 1 or (kind == 2 and is_plain_protected((*folder.above, plain(name))))):
                protected.append(prefix + name)
                continue
            if kind == 3:
                markers.append(name)
            if entry.is_dir(follow_symlinks=False):
                if len(folder.full) + len(name) > _LONGEST_PATH:
                    protected.append(prefix + name)
                    continue
                folders.append(_Folder(prefix + name, f"{folder.full}/{name}", (*folder.above[-2:], plain(name))))
    return _Listing(stamp, read_at, names, tuple(folders), tuple(protected), tuple(markers))


@functools.lru_cache(maxsize=65_536)
def _kind(name: str) -> int:
    """1: protected wherever it is; 2: protected in some folders; 3: part of a git folder; 0: none of these."""
    known = plain(name)
    if is_plain_protected((known,)):
        return 1
    if may_end_a_chain(known):
        return 2
    return 3 if known in GIT_MARKERS else 0
