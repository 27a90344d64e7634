"""Small acts on one thing below a root, each without following a link, each with the way back where there is one."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Self

from dragoman.host.paths import Place, open_root, write_bytes
from dragoman.host.snapshot import SnapshotEntry, SnapshotVisit, digest_of

# What takes back what was done, in the order in which it was done.
Undo = list[Callable[[], object]]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Descent:
    """A way down from a root, which is a real path, folder by folder and through no link. `fd` is the folder it has
    come to."""

    def __init__(self, root: str) -> None:
        self.fd = open_root(root)

    def enter(self, name: str) -> None:
        """Go on into a folder; `OSError` if there is none, or a link."""
        inner = os.open(name, _FOLDER, dir_fd=self.fd)
        os.close(self.fd)
        self.fd = inner

    def status(self, name: str) -> os.stat_result | None:
        """Return what stands in this folder under a name; a link is a link."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Close the folder it has come to."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def beside(place: Place, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that something stands in, without following a link; yield it, and the name there."""
    with Descent(place.root) as descent:
        for part in place.parts[:-1]:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descent.fd)
            descent.enter(part)
        yield descent.fd, place.parts[-1]


@contextmanager
def folder_at(root: str, path: str) -> Iterator[int]:
    """Open a folder below a root without following a link; `.` is the root itself. Raises `OSError`."""
    with Descent(root) as descent:
        for part in [] if path == "." else path.split("/"):
            descent.enter(part)
        yield descent.fd


def make_writable(folder: int) -> None:
    """Give the owner of an open folder every right to it, if that is us: a command may have taken them away."""
    status = os.fstat(folder)
    if status.st_uid == os.geteuid() and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(folder, stat.S_IMODE(status.st_mode) | stat.S_IRWXU)


def entry_at(root: str, path: str) -> SnapshotEntry | None:
    """Return what stands there now; None if nothing does, or nothing that is looked at."""
    try:
        with beside(Place(root, tuple(path.split("/")))) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_IFMT(status.st_mode) not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
                raise OSError(0, "it is no file", path)
            return SnapshotVisit(path, folder, name, status).entry()
    except (FileNotFoundError, NotADirectoryError):
        return None


def bytes_at(root: str, path: str, entry: SnapshotEntry | None) -> bytes:
    """Return a file's bytes or a link's target; `OSError` if it is not what the entry says."""
    with beside(Place(root, tuple(path.split("/")))) as (folder, name):
        if entry is not None and entry.what == "link":
            return os.fsencode(os.readlink(name, dir_fd=folder))
        pieces: list[bytes] = []
        digest, _ = digest_of(folder, name, pieces.append)
    if entry is not None and digest != entry.digest:
        raise OSError(0, "it was changed meanwhile", path)
    return b"".join(pieces)


def put(place: Place, data: bytes, mode: int) -> None:
    """Write a file, whole or not at all."""
    write_bytes(place, data)
    set_mode(place, mode)


def set_mode(place: Place, mode: int) -> None:
    """Changes what may be done with a file or a folder."""
    with beside(place) as (folder, name):
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            now = os.fstat(fd).st_mode
            # A folder keeps what it got from the folder around it: whose group files have, and who may delete them.
            special_bits = now & (stat.S_ISGID | stat.S_ISVTX) if stat.S_ISDIR(now) else 0
            if stat.S_IMODE(now) & 0o777 != mode:
                os.fchmod(fd, mode | special_bits)
        finally:
            os.close(fd)


def delete(place: Place, undo: Undo) -> None:
    """Take a file, a link or an empty folder away."""
    path = "/".join(place.parts)
    entry = entry_at(place.root, path)
    if entry is None:
        return
    if entry.what == "folder":
        mode = entry.mode
        if remove_folder(place):
            undo.append(lambda: make_folder(place, mode))
        return
    data = bytes_at(place.root, path, entry)
    with beside(place) as (folder, name):
        os.unlink(name, dir_fd=folder)
    undo.append(lambda: make_again(place, entry, data))


def make_again(place: Place, entry: SnapshotEntry, data: bytes) -> None:
    """Brings back what was taken away."""
    if entry.what == "file":
        put(place, data, entry.mode)
        return
    with beside(place) as (folder, name):
        os.symlink(os.fsdecode(data), name, dir_fd=folder)


def make_folder(place: Place, mode: int) -> None:
    """Make a folder."""
    with beside(place) as (folder, name):
        os.mkdir(name, dir_fd=folder)
    set_mode(place, mode)


def remove_tree(path: str) -> None:
    """Take a folder away with all that is in it, whatever a command has left there. What cannot go, stays.

    Names are looked up in the folders they were found in: a link that is put in the way leads to nothing else. Folders
    that are not empty are raised to the top before they are emptied: no depth is too deep.
    """
    with suppress(OSError):
        top = os.open(path, _FOLDER)
        try:
            # All of one level, and then what came up from the next, as long as that helps.
            while sum(_removed(name, top) for name in os.listdir(top)):
                pass
        finally:
            os.close(top)
        os.rmdir(path)


def _removed(name: str, top: int) -> bool:
    """Return whether something is gone. What was in a folder inside of it is then beside it."""
    try:
        try:
            os.unlink(name, dir_fd=top)
        except IsADirectoryError:
            _raise_inner(name, top)
            os.rmdir(name, dir_fd=top)
    except OSError:
        return False
    return True


def _raise_inner(name: str, top: int) -> None:
    _open_up(name, top)
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inner in os.listdir(folder):
            try:
                os.unlink(inner, dir_fd=folder)
            except IsADirectoryError:
                _open_up(inner, folder)
                os.rename(inner, os.urandom(12).hex(), src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)


def _open_up(name: str, folder: int) -> None:
    """Let us into a folder. It may be one that cannot be opened; a descriptor that only names it can be had always."""
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)


def remove_folder(place: Place) -> bool:
    """Return whether it is gone. Something that came into it meanwhile keeps it."""
    with beside(place) as (folder, name):
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError:
            return False
    return True
