"""A view that is a copy. Simple, and as slow as copying: for workspaces of ordinary size."""

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from io import BufferedWriter
from typing import Final, Self

from dragoman.host.openat import Descent, set_mode
from dragoman.host.paths import PathRefused, Place, Roots
from dragoman.host.snapshot import SnapshotEntry, SnapshotVisit, Stamp, Unreadable, digest_of, link_entry, walk
from dragoman.host.view import View, ViewChange, ViewRefused, check_roots, sentence

# Bounds of one copy: more takes longer than a user waits, and disks are shared.
COPY_BYTES: Final = 1024 * 1024 * 1024
COPY_SECONDS: Final = 120.0
# Kept free on the disk beside the copy.
_MARGIN_BYTES: Final = 64 * 1024 * 1024
_NEW_FILE: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class CopyView(View):
    """The roots, copied. Links are not followed, other things than files, links and folders are left out."""

    @classmethod
    def open(cls, roots: Sequence[str], *, folder: str) -> Self:
        """Copies the roots into a new private folder below `folder`; `ViewRefused` if that cannot be done."""
        real = check_roots(roots, folder)
        try:
            _check_room(real, folder)
            view = cls(real, tempfile.mkdtemp(prefix="view-", dir=folder))
        except (OSError, Unreadable) as error:
            raise ViewRefused(sentence(error)) from error
        try:
            view._copy()
        except (OSError, Unreadable) as error:
            view.close()
            raise ViewRefused(sentence(error)) from error
        except BaseException:
            view.close()
            raise
        return view

    def __init__(self, roots: Sequence[str], folder: str) -> None:
        """Use `open`."""
        super().__init__(roots, folder)
        self.paths = {root: os.path.join(folder, str(at)) for at, root in enumerate(roots)}
        self.sources = self.paths
        self._entries: dict[str, dict[str, SnapshotEntry]] = {root: {} for root in roots}
        self._stamps: dict[str, dict[str, Stamp]] = {root: {} for root in roots}

    def place(self, path: str, *, write: bool = False) -> Place:
        real = os.path.join(self.roots[0], path)
        root = self._root_of(os.path.normpath(real))
        if not root:
            raise PathRefused(f"{path} is outside of the workspace.")
        return Roots([self.paths[root]]).place(os.path.relpath(os.path.normpath(real), root))

    def _copy(self) -> None:
        deadline = time.monotonic() + COPY_SECONDS
        room = COPY_BYTES
        for root, copy in self.paths.items():
            os.mkdir(copy, 0o700)
            folders: list[tuple[str, int]] = []
            with _Copy(copy) as new_copy:
                for found in walk(root, self.skipped.append):
                    entry = self._copied(found, new_copy.folder_of(found.path), root)
                    if entry is None:
                        continue
                    self._entries[root][found.path] = entry
                    room -= entry.size
                    if entry.what == "folder":
                        folders.append((found.path, entry.mode))
                    if room < 0 or time.monotonic() > deadline:
                        raise ViewRefused("The workspace is too large to be copied.")
            for path, mode in reversed(folders):  # not before: one that may not be written could not be filled
                set_mode(Place(copy, tuple(path.split("/"))), mode)

    def _copied(self, found: SnapshotVisit, folder: int, root: str) -> SnapshotEntry | None:
        """Copies one thing into a folder of the copy."""
        match found.what:
            case "folder":
                os.mkdir(found.name, 0o700, dir_fd=folder)
                return found.entry()
            case "link":
                target = os.readlink(found.name, dir_fd=found.folder)
                os.symlink(target, found.name, dir_fd=folder)
                return link_entry(target)
            case "file":
                mode = stat.S_IMODE(found.status.st_mode) & 0o777
                with open(os.open(found.name, _NEW_FILE, 0o600, dir_fd=folder), "wb") as file:
                    try:
                        digest, size = digest_of(found.folder, found.name, lambda data: _write(file, data))
                    except PermissionError:
                        os.unlink(found.name, dir_fd=folder)
                        self.skipped.append(os.path.join(root, found.path))
                        return None
                    file.flush()
                    os.fchmod(file.fileno(), mode)
                    os.utime(file.fileno(), ns=(found.status.st_atime_ns, found.status.st_mtime_ns))
                    self._stamps[root][found.path] = SnapshotVisit("", -1, "", os.fstat(file.fileno())).stamp
                return SnapshotEntry("file", mode, size, digest)

    def _differences(self, root: str) -> Iterator[tuple[str, SnapshotEntry | None, SnapshotEntry | None]]:
        entries, stamps = self._entries[root], self._stamps[root]
        seen = set[str]()
        for found in walk(self.paths[root]):
            seen.add(found.path)
            before = entries.get(found.path)
            if before is not None and found.what == "file" and stamps.get(found.path) == found.stamp:
                continue
            after = self._changed(found)
            if after != before:
                yield found.path, before, after
        for path in sorted(entries.keys() - seen):
            yield path, entries[path], None

    def _make(self, root: str) -> str:
        return self.paths[root]

    def _replace_file(self, root: str, path: str) -> SnapshotEntry | None:
        return self._entries[root].get(path)

    def _remember(self, change: ViewChange) -> None:
        root = self._root_of(change.path)
        path = os.path.relpath(change.path, root)
        if change.after is None:
            if self._entries[root].get(path) == change.before:
                del self._entries[root][path]
            return
        self._entries[root][path] = change.after
        self._stamps[root].pop(path, None)


class _Copy:
    """The copy while it is made. Its folders are opened from its root, through no link: a folder of the workspace that
    is turned into a link and back while it is copied makes us write nowhere else."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._path = ""
        self._way = Descent(root)

    def folder_of(self, path: str) -> int:
        """Return the folder that something is to be put in; it stays open until another one is asked for."""
        folder = os.path.dirname(path)
        if folder != self._path:
            self._way.close()
            self._way, self._path = Descent(self._root), ""
            for part in folder.split("/") if folder else ():
                self._way.enter(part)
            self._path = folder
        return self._way.fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._way.close()


def _check_room(roots: Sequence[str], folder: str) -> None:
    needed = 0
    for root in roots:
        for found in walk(root, lambda path: None):
            needed += found.status.st_size if found.what == "file" else 0
    if needed > COPY_BYTES:
        raise ViewRefused(
            f"The workspace has {needed >> 20} MiB, and no more than {COPY_BYTES >> 20} MiB are copied. "
            "Open a smaller folder, or use another mode."
        )
    if needed + _MARGIN_BYTES > shutil.disk_usage(folder).free:
        raise ViewRefused(f"There is no room for a copy of the workspace in {folder}.")


def _write(file: BufferedWriter, data: bytes) -> None:
    file.write(data)
