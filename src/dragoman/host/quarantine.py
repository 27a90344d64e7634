"""Where things go that a confined command has left and that must not stay: out of the workspace, into our own data.

Nothing is followed on the way: the folder a thing stands in is opened step by step below the root. Within one file
system a thing is moved as it is; over the border of two it is copied, up to a bound, and then deleted here. What cannot
be copied is deleted all the same, and that is said.
"""

import errno
import os
import shutil
import stat
import tempfile
import time
from typing import Final

from dragoman.host.openat import beside, make_writable, remove_tree
from dragoman.host.paths import Place

# What is copied of one thing; beyond that it is only deleted.
_COPIED_BYTES: Final = 1024 * 1024 * 1024
_COPIED_FILES: Final = 200_000


# The folders that this process has made.
_own: Final[set[str]] = set()


class Quarantine:
    """One folder below `parent` for what one command has left; it is made with the first thing that comes there."""

    def __init__(self, parent: str) -> None:
        self.parent: Final = parent
        self._path = ""
        self.moved: Final[list[str]] = []  # whole paths, as they were in the workspace
        self.deleted: Final[list[str]] = []  # those that could not be kept

    def folder(self) -> str:
        """Return the folder of this quarantine; it is made with the first thing that is moved there."""
        if not self._path:
            parent = self.parent or tempfile.gettempdir()
            os.makedirs(parent, mode=0o700, exist_ok=True)
            self._path = tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=parent)
            _own.add(self._path)
        return self._path

    def is_taken_by_others(self, root: str, path: str, since: int) -> bool:
        """Whether another process has moved away what stood at a path below a root, since a time in nanoseconds."""
        if not self.parent or not os.path.isdir(self.parent):
            return False
        with os.scandir(self.parent) as entries:
            others = [entry.path for entry in entries if entry.path not in _own and entry.stat().st_ctime_ns >= since]
        return any(os.path.lexists(os.path.join(other, _name(root), path)) for other in others)

    def take(self, root: str, path: str) -> None:
        """Move what stands at a relative path below a root. `OSError` if it is still there afterwards."""
        place = Place(root, tuple(path.split("/")))
        with beside(place) as (folder, name):
            make_writable(folder)
            try:
                self._take(place, folder, name)
            except FileNotFoundError:
                return

    def _take(self, place: Place, folder: int, name: str) -> None:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            os.chmod(name, stat.S_IRWXU, dir_fd=folder)  # what may not be written cannot be moved
        target = self._target(place)
        try:
            os.rename(name, target, src_dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EACCES, errno.EPERM):
                raise
        else:
            self.moved.append(place.path)
            return
        is_copied = _copy(folder, name, target, status)
        if stat.S_ISDIR(status.st_mode):
            remove_tree(f"/proc/self/fd/{folder}/{name}")
            if _is_in(folder, name):
                raise OSError(errno.ENOTEMPTY, "it could not be deleted", place.path)
        else:
            os.unlink(name, dir_fd=folder)
        (self.moved if is_copied else self.deleted).append(place.path)

    def _target(self, place: Place) -> str:
        """Return a new path in our folder, with the names it had in the workspace."""
        above = os.path.join(self.folder(), _name(place.root), *place.parts[:-1])
        os.makedirs(above, mode=0o700, exist_ok=True)
        target = os.path.join(above, place.parts[-1])
        return target if not os.path.lexists(target) else tempfile.mktemp(prefix=place.parts[-1] + "-", dir=above)


def _name(root: str) -> str:
    return os.path.basename(root) or "root"


def _is_in(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _copy(folder: int, name: str, target: str, status: os.stat_result) -> bool:
    """Return whether all of it could be copied."""
    source = f"/proc/self/fd/{folder}/{name}"
    try:
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(name, dir_fd=folder), target)
        elif stat.S_ISREG(status.st_mode):
            if status.st_size > _COPIED_BYTES:
                return False
            shutil.copyfile(source, target, follow_symlinks=False)
        elif stat.S_ISDIR(status.st_mode):
            if not _is_small(source):
                return False
            shutil.copytree(source, target, symlinks=True)
        else:
            return False
    except (OSError, shutil.Error, RecursionError):  # it may be deeper than Python can follow
        remove_tree(target)
        return False
    return True


def _is_small(path: str) -> bool:
    count = size = 0
    for folder, _, names in os.walk(path):
        count += 1 + len(names)
        for name in names:
            size += os.lstat(os.path.join(folder, name)).st_size
        if count > _COPIED_FILES or size > _COPIED_BYTES:
            return False
    return True
