"""Put files back, each whole or not at all, and none that is not what the plan says it is.

Every file is looked at in the moment before it changes. A new content is written beside it and takes its place in one
step; so a kill leaves each file as it was or as it is to be, and at most a file with the rewind's own name, which
`remove_leavings` takes away. Nothing follows a link: a file is reached from its root, folder by folder.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from dragoman.coder.checkpoints.areas import Areas
from dragoman.coder.checkpoints.plan import CHANGED_SINCE, FileTarget, Trouble
from dragoman.host.git_images import FILE_BYTES, LINK, TOO_LARGE, FileImage
from dragoman.host.openat import beside
from dragoman.host.paths import Place, is_inside

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Restoring:
    """Restores files below real roots, in the name of a rewind. Blocks."""

    def __init__(self, areas: Areas, roots: Sequence[str], rewind_id: str) -> None:
        self._areas = areas
        # The nearest root first: a root in a root is reached without a way through the outer one.
        self._roots = sorted(roots, key=len, reverse=True)
        self._new_name: Final = _new_name(rewind_id)
        self._private_paths: dict[str, set[str]] = {}
        # Called before each file; a test kills the process there.
        self.at: Callable[[str], None] = lambda path: None

    def place(self, path: str) -> Place | None:
        """Return where a whole path stands, if that is in a root."""
        root = next((root for root in self._roots if is_inside(path, root) and path != root), None)
        if root is None:
            return None
        parts = tuple(os.path.relpath(path, root).split("/"))
        if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
            return None
        return Place(root, parts)

    def image_now(self, target: FileTarget) -> FileImage | None:
        """Return what stands there. Raises `OSError`."""
        place = self.place(target.path)
        if place is None:
            return None
        with _beside(place) as (folder, name):
            return None if folder is None else self._image(folder, name, target)

    def restore(self, targets: Sequence[FileTarget], contents: Mapping[str, bytes]) -> list[FileTarget]:
        """Restore the files, deletions first, and return those that were left alone, with the trouble."""
        failed: list[FileTarget] = []
        for target in sorted(targets, key=lambda target: target.target is not None):
            trouble = self._restore(target, contents)
            if trouble:
                failed.append(target._replace(trouble=trouble))
        return failed

    def _restore(self, target: FileTarget, contents: Mapping[str, bytes]) -> Trouble | None:
        place = self.place(target.path)
        if place is None:
            return "out of reach"
        self.at(target.path)
        try:
            if target.target is None:
                with _beside(place) as (folder, name):
                    # A folder that is none any more may have gone elsewhere, with a link in its place.
                    if folder is None or self._image(folder, name, target) != target.now:
                        return CHANGED_SINCE
                    os.unlink(name, dir_fd=folder)
                _remove_empty(place)
                return None
            data = contents.get(target.target.id)
            if data is None:
                return "not kept"
            with beside(place, make=True) as (folder, name):
                return self._put(folder, name, target, data)
        except OSError:
            return "in the way"

    def _put(self, folder: int, name: str, target: FileTarget, data: bytes) -> Trouble | None:
        assert target.target is not None
        new = self._new_name
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=folder)
        try:
            if target.target.mode == LINK:
                os.symlink(data, os.fsencode(new), dir_fd=folder)
            else:
                self._write(folder, name, new, data, target)
            # As late as can be: between this look and the next line nothing else is done.
            if self._image(folder, name, target) != target.now:
                return CHANGED_SINCE
            os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
            return None
        finally:
            with suppress(OSError):
                os.unlink(new, dir_fd=folder)

    def _write(self, folder: int, name: str, new: str, data: bytes, target: FileTarget) -> None:
        is_program = target.target is not None and bool(target.target.mode & 0o111)
        rights = self._rights_of(folder, name)
        # A new file has its rights before its content: a secret must not be readable for a moment either.
        is_shared = rights is None and target.path not in self._private(target.area)
        mode = (0o777 if is_program else 0o666) & (0o777 if is_shared else 0o700)
        with open(os.open(new, _NEW, mode, dir_fd=folder), "wb") as file:
            if rights is not None:
                os.fchmod(file.fileno(), rights | (rights & 0o444) >> 2 if is_program else rights)
            file.write(data)

    def _rights_of(self, folder: int, name: str) -> int | None:
        """Return who may read and write the file that stands there; None: there is none."""
        try:
            before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return stat.S_IMODE(before.st_mode) & 0o666 if stat.S_ISREG(before.st_mode) else None

    def _private(self, top: str) -> set[str]:
        """Return the files of an area that were for their owner alone."""
        if top not in self._private_paths:
            area = self._areas.of(top)
            self._private_paths[top] = set() if area is None else area.private_paths()
        return self._private_paths[top]

    def _image(self, folder: int, name: str, target: FileTarget) -> FileImage | None:
        """Return what stands there under this name; None: no file."""
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        area = self._areas.of(target.area) or self._areas.touched
        if stat.S_ISLNK(status.st_mode):
            return area.image_of(os.fsencode(os.readlink(name, dir_fd=folder)), LINK)
        if not stat.S_ISREG(status.st_mode):
            return None
        mode = 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644
        # A file that has become a huge one meanwhile is not read to see that.
        if (target.now is not None and not target.now.is_kept) or status.st_size > FILE_BYTES:
            return FileImage(mode, f"{TOO_LARGE}{status.st_size}:{status.st_mtime_ns}")
        with open(os.open(name, _READ, dir_fd=folder), "rb") as file:
            return area.image_of(file.read(), mode)


@contextmanager
def _beside(place: Place) -> Iterator[tuple[int | None, str]]:
    """Open the folder that a file stands in; None: it is not there."""
    try:
        opened = beside(place)
        folder, name = opened.__enter__()
    except (FileNotFoundError, NotADirectoryError):
        yield None, place.parts[-1]
        return
    try:
        yield folder, name
    finally:
        opened.__exit__(None, None, None)


def _remove_empty(place: Place) -> None:
    """Remove the folders above a file that are empty by now, as git does; never a root."""
    parts = place.parts[:-1]
    while parts:
        try:
            with beside(Place(place.root, parts)) as (folder, name):
                os.rmdir(name, dir_fd=folder)
        except OSError:
            return
        parts = parts[:-1]


def remove_leavings(rewind_id: str, paths: Iterable[str]) -> None:
    """Take away what this rewind, which was killed, has left beside files with these whole paths. Blocks.

    Others have files of such a name as well: rewinds of other sessions, which run now, and people.
    """
    for folder in {os.path.dirname(path) for path in paths}:
        with suppress(OSError):
            os.unlink(os.path.join(folder, _new_name(rewind_id)))


def _new_name(rewind_id: str) -> str:
    """Return the name that a rewind gives a new content until it takes the place of the old one."""
    return f".dragoman-{rewind_id}.tmp"
