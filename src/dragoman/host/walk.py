"""A walk through a tree inside a root: sorted, bounded, without following a link.

Folders are opened from one another, so a link that is put in the way meanwhile is not entered either. A walk holds one
descriptor for each folder it is in. What cannot be opened is counted and passed by.
"""

import os
from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from dragoman.host.ignore import EXCLUDE_FILE, GIT_FILE, GIT_FOLDER, OWN_FILE, RULES_BYTES, Ignores
from dragoman.host.paths import Place, open_root
from dragoman.host.regular_file import check_regular

# A tree of more is not one project; the walk ends there and says so.
WALK_ENTRIES: Final = 1_000_000
# Deeper folders are not entered: each costs a descriptor, and no project nests like that.
WALK_DEPTH: Final = 100

FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: a FIFO may have been put there meanwhile.
FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class WalkedFile(NamedTuple):
    """A file: its name in an open folder, which stays open until the walk goes on, and that folder's path from the
    root, which ends in a slash or is empty."""

    folder_fd: int
    folder: str
    name: str


class Walk:
    """One walk. What it had to leave out is counted here."""

    def __init__(self, place: Place, *, depth: int = WALK_DEPTH) -> None:
        self._place = place
        self._depth = depth
        self.seen = 0
        self.unreadable = 0
        self.is_cut = False

    def files(self) -> Iterator[WalkedFile]:
        """Every file that the rules of the tree do not leave out, by path."""
        folder = "".join(f"{part}/" for part in self._place.parts)
        fd, ignores = _start(self._place)
        levels = [self._level(fd, folder, ignores)]
        try:
            while levels:
                level = levels[-1]
                for name, is_folder in level.entries:
                    if not is_folder:
                        yield WalkedFile(level.fd, level.folder, name)
                    elif len(levels) > self._depth:
                        self.is_cut = self.is_cut or self._depth == WALK_DEPTH
                    else:
                        try:
                            fd = os.open(name, FOLDER_FLAGS, dir_fd=level.fd)
                        except OSError:
                            self.unreadable += 1
                            continue
                        levels.append(self._level(fd, f"{level.folder}{name}/", level.ignores))
                        break
                else:
                    os.close(levels.pop().fd)
        finally:
            for level in levels:
                os.close(level.fd)

    def _level(self, fd: int, folder: str, ignores: Ignores) -> "_Level":
        kinds: dict[str, bool] = {}
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if self.seen >= WALK_ENTRIES:
                        self.is_cut = True
                        break
                    self.seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        kinds[entry.name] = True
                    elif entry.is_file(follow_symlinks=False):
                        kinds[entry.name] = False
        except OSError:
            self.unreadable += 1
        ignores = _rules_inside(fd, folder, kinds, ignores)
        leave_out = ignores.leave_out
        kept = [entry for entry in sorted(kinds.items()) if not leave_out(folder, entry[0], is_folder=entry[1])]
        return _Level(fd, folder, ignores, iter(kept))


def rules_above(place: Place) -> Ignores:
    """The rules that folders above this one, up to the root, have for what is in it."""
    if not place.parts:
        return Ignores()
    # A file has no rules inside, so only its folder needs to be one.
    fd, ignores = _start(Place(place.root, place.parts[:-1]))
    try:
        folder = "".join(f"{part}/" for part in place.parts[:-1])
        return _rules_inside(fd, folder, _rule_files(fd), ignores)
    finally:
        os.close(fd)


def rules_inside(place: Place, above: Ignores) -> Ignores:
    """Those together with the folder's own; without its own if it cannot be opened."""
    try:
        fd = open_folder(place)
    except OSError:
        return above
    try:
        return _rules_inside(fd, "".join(f"{part}/" for part in place.parts), _rule_files(fd), above)
    finally:
        os.close(fd)


def open_file(place: Place) -> int:
    """A file for reading, opened from the root without following a link; `OSError` if that cannot be."""
    if not place.parts:
        raise IsADirectoryError(place.path)
    folder = open_folder(Place(place.root, place.parts[:-1]))
    try:
        return os.open(place.parts[-1], FILE_FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def open_folder(place: Place) -> int:
    """Open a folder for reading, from the root and without following a link; `OSError` if that cannot be done."""
    fd = open_root(place.root)
    for part in place.parts:
        try:
            inner = os.open(part, FOLDER_FLAGS, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


class _Level(NamedTuple):
    """A folder the walk is in, and what is left of it."""

    fd: int
    folder: str
    ignores: Ignores
    entries: Iterator[tuple[str, bool]]


def _start(place: Place) -> tuple[int, Ignores]:
    """The folder, and the rules of the folders above it, up to the root."""
    ignores = Ignores()
    folder = ""
    fd = open_root(place.root)
    try:
        for part in place.parts:
            ignores = _rules_inside(fd, folder, _rule_files(fd), ignores)
            inner = os.open(part, FOLDER_FLAGS, dir_fd=fd)
            os.close(fd)
            fd = inner
            folder += f"{part}/"
    except BaseException:
        os.close(fd)
        raise
    return fd, ignores


def _rules_inside(fd: int, folder: str, names: Container[str], ignores: Ignores) -> Ignores:
    if GIT_FILE not in names and GIT_FOLDER not in names and OWN_FILE not in names:
        return ignores
    return ignores.inside(folder, names, lambda name: _read_rules(fd, name))


def _rule_files(fd: int) -> set[str]:
    """Which of the names that matter are in a folder."""
    found = set()
    for name in (GIT_FILE, GIT_FOLDER, OWN_FILE):
        try:
            os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            continue
        found.add(name)
    return found


def _read_rules(folder_fd: int, name: str) -> str | None:
    """A file of rules; None if there is none. No link is followed, not even on the way to git's own."""
    try:
        if name == EXCLUDE_FILE:
            git = os.open(GIT_FOLDER, FOLDER_FLAGS, dir_fd=folder_fd)
            try:
                info = os.open("info", FOLDER_FLAGS, dir_fd=git)
            finally:
                os.close(git)
            try:
                fd = os.open("exclude", FILE_FLAGS, dir_fd=info)
            finally:
                os.close(info)
        else:
            fd = os.open(name, FILE_FLAGS, dir_fd=folder_fd)
    except OSError:
        return None
    try:
        with open(fd, "rb") as file:
            check_regular(fd, name)
            return file.read(RULES_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
