"""What stands in a folder: files, links and folders, with what is needed to see later that one has changed.

No link is followed and nothing else than these three is looked at: pipes, sockets and devices are passed over.
Bounded in entries. A folder that may not be read is `Unreadable`, unless the caller wants to hear of it instead.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple, NoReturn

from dragoman.errors import WorldError

# A folder with more is not a workspace of source code; a large monorepo has 400,000 files.
ENTRIES: Final = 1_000_000
# Folders in folders. Real ones have some tens; what is done for each folder on the way to a file has to end.
DEPTH: Final = 256
_READ_BYTES: Final = 1024 * 1024
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

What = Literal["file", "link", "folder"]


class Unreadable(WorldError):
    """A folder cannot be taken stock of; the text says why."""


class SnapshotEntry(NamedTuple):
    """A file, a link or a folder. `digest` is of a file's bytes or a link's target; a folder has none."""

    what: What
    mode: int
    size: int
    digest: str = ""


class Stamp(NamedTuple):
    """What differs after every write to a file: `written` (mtime) can be set back, `changed` (ctime) cannot."""

    inode: int
    size: int
    written: int
    changed: int


class SnapshotVisit(NamedTuple):
    """One entry of a walk: its path from the root, its folder as a descriptor, its name there."""

    path: str
    folder: int
    name: str
    status: os.stat_result

    @property
    def what(self) -> What:
        """What it is."""
        mode = self.status.st_mode
        return "file" if stat.S_ISREG(mode) else "link" if stat.S_ISLNK(mode) else "folder"

    @property
    def stamp(self) -> Stamp:
        """When it was last touched."""
        return Stamp(self.status.st_ino, self.status.st_size, self.status.st_mtime_ns, self.status.st_ctime_ns)

    def entry(self) -> SnapshotEntry:
        """Return what it is and what is in it, which is read for that."""
        mode = stat.S_IMODE(self.status.st_mode) & 0o777
        match self.what:
            case "file":
                digest, size = digest_of(self.folder, self.name)
                return SnapshotEntry("file", mode, size, digest)
            case "link":
                return link_entry(os.readlink(self.name, dir_fd=self.folder))
            case "folder":
                return SnapshotEntry("folder", mode, 0)


def walk(
    root: str, forbidden: Callable[[str], None] | None = None, *, dir_fd: int | None = None
) -> Iterator[SnapshotVisit]:
    """Yield everything below a folder, a folder before what is in it. `forbidden` is told what may not be read.

    `dir_fd`: a folder from which `root` is looked up, where its whole path could lead elsewhere by now.
    """
    count = 0

    def on_error(error: OSError) -> None:
        if forbidden is None or not isinstance(error, PermissionError):
            _refuse(error)
        forbidden(str(error.filename))

    try:
        for top, folders, files, folder in os.fwalk(root, follow_symlinks=False, onerror=on_error, dir_fd=dir_fd):
            beneath = os.path.relpath(top, root)
            if beneath.count("/") >= DEPTH:
                raise Unreadable(f"There are more than {DEPTH} folders in each other.")
            for name in sorted([*folders, *files]):
                count += 1
                if count > ENTRIES:
                    raise Unreadable(f"There are more than {ENTRIES} files.")
                try:
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_IFMT(status.st_mode) in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
                    yield SnapshotVisit(os.path.normpath(os.path.join(beneath, name)), folder, name, status)
    except (OSError, RecursionError) as error:
        _refuse(error)


def digest_of(folder: int, name: str, take: Callable[[bytes], None] = lambda data: None) -> tuple[str, int]:
    """Return the digest and the size of a file, whose bytes `take` is given meanwhile.

    `OSError` if it is no plain file.
    """
    digest = hashlib.blake2b(digest_size=20)
    size = 0
    fd = os.open(name, _FILE, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "is not a file", name)
        while data := os.read(fd, _READ_BYTES):
            digest.update(data)
            size += len(data)
            take(data)
    finally:
        os.close(fd)
    return digest.hexdigest(), size


def link_entry(target: str) -> SnapshotEntry:
    """Return a link, which has no mode of its own."""
    return SnapshotEntry("link", 0o777, len(target), hashlib.blake2b(os.fsencode(target), digest_size=20).hexdigest())


def _refuse(error: Exception) -> NoReturn:
    reason = error.strerror if isinstance(error, OSError) else "folders are too deep"
    where = f" {error.filename}" if isinstance(error, OSError) and error.filename else ""
    raise Unreadable(f"The workspace cannot be read{where}: {(reason or 'unknown').lower()}.") from error
