"""Resolve paths inside the roots, and read and write files there, a write whole or not at all.

A path is resolved once, links and all. What it resolves to must lie in a root; then it is opened from that root,
component by component, without following any link: if a link is put in the way meanwhile, opening fails. So
what was checked is what is opened.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from dragoman import limits
from dragoman.errors import WorldError
from dragoman.host.private_file import replaced_file

_KERNEL: Final = ("/proc", "/sys", "/dev")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# To go through a folder it need not be readable, where the system can open it so (Linux).
_WAY: Final = _FOLDER | getattr(os, "O_PATH", 0)


class PathRefused(WorldError):
    """A path that leads out of the roots, or to something that is no file. The text is fit for the model."""


class Place(NamedTuple):
    """A path inside a root: the root as it really is, and the way from there."""

    root: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """The whole path."""
        return os.path.join(self.root, *self.parts)


class Roots:
    """The folders a session may touch, the first of which is where relative paths begin."""

    def __init__(self, roots: Sequence[str], real: Sequence[str] = ()) -> None:
        """Resolve the roots now, unless `real` has their real paths from an earlier time."""
        self.cwd: Final = roots[0]
        self.given: Final = tuple(roots)
        self.real: Final = tuple(real or map(os.path.realpath, roots))

    @property
    def folder(self) -> str:
        """Where relative paths begin, as it really is. Refused if any root leads elsewhere by now: who starts a command
        here tells it of the roots by their names."""
        if tuple(map(_real, self.given)) != self.real:
            raise PathRefused("A folder of the workspace leads elsewhere by now; a link was put in its way.")
        return self.real[0]

    def place(self, path: str, *, write: bool = False) -> Place:
        """Return where a path leads, if that is inside.

        `write` makes a difference in a view of the roots, and none here.
        """
        if not path or "\0" in path or len(os.fsencode(path)) > limits.PATH_BYTES:
            raise PathRefused("That is no path.")
        real = _real(os.path.join(self.cwd, path), path)
        for root in self.real:
            if _is_the_kernels(real) and not _is_the_kernels(root):
                break
            if real == root:
                return Place(root, ())
            if real.startswith(root.rstrip("/") + "/"):
                return Place(root, tuple(real[len(root.rstrip("/")) + 1 :].split("/")))
        raise PathRefused(f"{path} is outside of the workspace.")

    def tree(self, path: str) -> Place:
        """Return the place of a folder that is going to be walked: as `place` here, in a view where its copy lies."""
        return self.place(path)

    def shown_path(self, path: str) -> str:
        """Return what was found at a path below a `tree`, as the user knows it."""
        return path


def is_inside(path: str, folder: str) -> bool:
    """Return whether a whole path is a folder or below it, by its text alone; nothing is inside of the empty one."""
    return bool(path and folder) and f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _real(path: str, typed_path: str = "") -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # a link that became something else while it was read
        raise PathRefused(f"{typed_path or path} does not stand still.") from None


def _is_the_kernels(path: str) -> bool:
    """Return whether it lies where files are processes, devices and switches: our own environment is one of them."""
    return path in _KERNEL or path.startswith(tuple(f"{folder}/" for folder in _KERNEL))


def open_root(root: str) -> int:
    """Open a root for reading, by its real path and through no link; `OSError` if there is one by now.

    A command that works further up, in another session, can put a link in the place of a folder above this one.
    """
    folder = os.open("/", _WAY)
    try:
        for part in filter(None, root.split("/")):
            inner = os.open(part, _WAY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(".", _FOLDER, dir_fd=folder)
    finally:
        os.close(folder)


def open_folder(place: Place) -> int:
    """Open a folder for reading, from the root and without following a link; `OSError` if that cannot be done."""
    fd = open_root(place.root)
    for part in place.parts:
        try:
            inner = os.open(part, _FOLDER, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def open_file(place: Place) -> int:
    """Open a file for reading, as `open_folder` does. A pipe in its place holds nothing up."""
    if not place.parts:
        raise IsADirectoryError(place.path)
    folder = open_folder(Place(place.root, place.parts[:-1]))
    try:
        return os.open(place.parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def read_bytes(place: Place, limit: int) -> tuple[bytes, bool]:
    """Return a file's bytes up to a limit, and whether there are more."""
    with _parent(place, make=False) as (folder, name), _os_errors_refused(place):
        # Non-blocking: a FIFO would hold us up before we could see what it is.
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise PathRefused(f"{place.path} is not a file.")
        with _os_errors_refused(place), open(fd, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(fd)
    return data[:limit], len(data) > limit


def facts_of(place: Place) -> os.stat_result:
    """Return what stands there, as the file system knows it."""
    with _parent(place, make=False) as (folder, name), _os_errors_refused(place):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def write_bytes(place: Place, data: bytes) -> None:
    """Put a file there, whole or not at all; one that was there keeps its mode, but for
    setuid and setgid, and its owner where we may give it."""
    with _parent(place, make=True) as (folder, name), _os_errors_refused(place):
        before: os.stat_result | None = None
        with suppress(FileNotFoundError):
            before = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(before.st_mode):
                raise PathRefused(f"{place.path} is not a file.")
        # A new file gets what the umask allows, as any other would.
        with replaced_file(name, 0o666 if before is None else 0o600, folder=folder) as file:
            file.write(data)
            file.flush()
            if before is not None:
                _make_alike(file.fileno(), before)


def _make_alike(fd: int, before: os.stat_result) -> None:
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):
            os.fchown(fd, before.st_uid, before.st_gid)
    # Not setuid and setgid, as with any write: what had been given the bit is not what stands there now.
    os.fchmod(fd, stat.S_IMODE(before.st_mode) & 0o1777)


def remove_file(place: Place) -> None:
    """Take a file away, and nothing that a link leads to."""
    with _parent(place, make=False) as (folder, name), _os_errors_refused(place):
        os.unlink(name, dir_fd=folder)


@contextmanager
def _parent(place: Place, *, make: bool) -> Iterator[tuple[int, str]]:
    """Open the folder that a file stands in, without following a link; yield it, and the file's name."""
    if not place.parts:
        raise PathRefused(f"{place.path} is a folder.")
    with _os_errors_refused(place):
        folder = open_root(place.root)
    try:
        with _os_errors_refused(place):
            for part in place.parts[:-1]:
                inner = _enter(folder, part, make=make)
                os.close(folder)
                folder = inner
        yield folder, place.parts[-1]
    finally:
        os.close(folder)


def _enter(folder: int, part: str, *, make: bool) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(part, dir_fd=folder)
    except FileExistsError:
        pass  # another process or thread made it first
    return os.open(part, _FOLDER, dir_fd=folder)


@contextmanager
def _os_errors_refused(place: Place) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PathRefused(f"{place.path}: {(error.strerror or 'it cannot be opened').lower()}.") from error
