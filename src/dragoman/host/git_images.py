"""What files were, as git counts it: modes and names of contents; and a look at files before git keeps them.

Git fails at what it cannot read and has no bound, so what is given to it is sorted out first. A file that is too large
to be kept is known by its size and time.
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

# A file of more is not kept, nor more than so many files and bytes at one look.
FILE_BYTES: Final = 64 * 1024 * 1024
LOOK_FILES: Final = 50_000
LOOK_BYTES: Final = 1024 * 1024 * 1024
# Git's mode of a symbolic link.
LINK: Final = 0o120000


class FileImage(NamedTuple):
    """What one file was: a mode of git's, and the name of its content; of one that was not kept, its size and time."""

    mode: int
    id: str

    @property
    def is_kept(self) -> bool:
        """Whether there is a content under the name."""
        return not self.id.startswith(TOO_LARGE)


# How the id of a file begins that is too large to be kept.
TOO_LARGE: Final = "large:"


class ImageChange(NamedTuple):
    """A file that is not what it was. None: there is no file."""

    before: FileImage | None
    after: FileImage | None


class Look(NamedTuple):
    """What one look has found, by path from the top, and the index that has it."""

    index_file: str
    changes: Mapping[str, ImageChange]
    # What is not kept, in sentences for the user.
    left_out: Sequence[str]
    # The names of all contents that were kept.
    kept: Sequence[str] = ()
    # Paths of files that were kept and that only their owner may read: git's modes do not say it.
    private: Sequence[str] = ()


class SortedFiles(NamedTuple):
    """Paths that are kept, with their modes, 0 for a file that is gone; those that are too large, as far as known."""

    kept: dict[str, int]
    large: dict[str, FileImage]
    sentences: list[str]
    private: list[str]


def sort_out(top: str, found: Iterable[str]) -> SortedFiles:
    """Look at files before git does, which fails at what it cannot read and has no bound."""
    kept: dict[str, int] = {}
    large: dict[str, FileImage] = {}
    private: list[str] = []
    folders = {"": True}
    unreadable, total, count = 0, 0, 0
    for path in found:
        whole = os.path.join(top, path)
        try:
            status = os.lstat(whole)
        except OSError:
            kept[path] = 0
            continue
        if not _is_folder(top, os.path.dirname(path), folders):
            kept[path] = 0  # a link leads to what stands there now
            continue
        mode = _mode(status)
        if not mode:
            kept[path] = 0  # a folder, a pipe: for git there is no file
        elif mode != LINK and not os.access(whole, os.R_OK):
            unreadable += 1
        elif status.st_size > FILE_BYTES or total + status.st_size > LOOK_BYTES or count >= LOOK_FILES:
            large[path] = FileImage(mode, f"{TOO_LARGE}{status.st_size}:{status.st_mtime_ns}")
        else:
            kept[path] = mode
            total += status.st_size
            count += 1
            if is_private(status):
                private.append(path)
    sentences = [f"{unreadable} files cannot be read"] if unreadable else []
    if large:
        names = ", ".join(sorted(large)[:3]) + (", …" if len(large) > 3 else "")
        sentences.append(f"{len(large)} files are too large or too many to be kept: {names}")
    return SortedFiles(kept, large, sentences, private)


def is_private(status: os.stat_result) -> bool:
    """Return whether only its owner may read a file."""
    return stat.S_ISREG(status.st_mode) and not status.st_mode & (stat.S_IRGRP | stat.S_IROTH)


def _is_folder(top: str, path: str, known: dict[str, bool]) -> bool:
    """Return whether every part of a path from the top is a folder and no link to one; `known` is filled."""
    if path in known:
        return known[path]
    here = ""
    for part in path.split("/"):
        here = os.path.join(here, part)
        if here not in known:
            known[here] = _mode_at(os.path.join(top, here)) == stat.S_IFDIR
        if not known[here]:
            return False
    return True


def _mode_at(path: str) -> int:
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0


def _mode(status: os.stat_result) -> int:
    """Return git's mode of what stands there; 0: git has none for it."""
    if stat.S_ISLNK(status.st_mode):
        return LINK
    if not stat.S_ISREG(status.st_mode):
        return 0
    return 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644
