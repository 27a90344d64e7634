"""A view that is a layer above the roots: made in no time, whatever their size. The kernel's overlayfs does the work.

Each command mounts the layer for itself, in a user and mount namespace of its own, and bubblewrap starts inside; so one
command at a time. Between commands the layer is a plain folder: what is new or changed stands in it, what was deleted
is a mark in it. That folder is read for `changes`, and read and written for file tools.

The layer is what commands have made of it, so it is never walked by path names: a link in it may lead anywhere, and may
come and go. Every folder is opened from the one above it (`openat.Descent`), and nothing is made through a link.

What lies in the roots is noted when the view is opened, by its times only: enough to see later that it has changed.
"""

import errno
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, Self

from dragoman.host.openat import Descent, beside, entry_at, folder_at
from dragoman.host.paths import PathRefused, Place
from dragoman.host.snapshot import SnapshotEntry, SnapshotVisit, Stamp, Unreadable, walk
from dragoman.host.view import View, ViewChange, ViewRefused, check_roots, sentence

_PROGRAMS: Final = "/usr/bin:/bin:/usr/sbin:/sbin"
_PROBE_SECONDS: Final = 10.0
# Mount options have no way to say these that all versions agree on.
_UNSPEAKABLE: Final = frozenset(",:\\\n\"'")
_NEW_FILE: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPAQUE: Final = "user.overlay.opaque"
# Takes the lock, mounts, and becomes what follows. The lock is a descriptor that only reads, and goes with the command.
_SCRIPT: Final = """
exec 8<"$1" && shift || exit 125
{flock} -n 8 || {{ echo "Another command runs in this view." >&2; exit 125; }}
while [ "$1" != -- ]; do
    {mount} -t overlay overlay -o "$1" "$2" || exit 125
    shift 2
done
shift
exec "$@"
"""


class OverlayView(View):
    """The roots, with a layer above each."""

    @classmethod
    def open(cls, roots: Sequence[str], *, folder: str) -> Self:
        """Make the layers below `folder` and try them out; `ViewRefused` if that does not work here."""
        real = check_roots(roots, folder)
        view = None
        try:
            view = cls(real, tempfile.mkdtemp(prefix="view-", dir=folder))
            view._prepare()
        except (OSError, Unreadable) as error:
            if view is not None:
                view.close()
            raise ViewRefused(sentence(error)) from error
        except BaseException:
            if view is not None:
                view.close()
            raise
        return view

    def __init__(self, roots: Sequence[str], folder: str) -> None:
        """Use `open`."""
        super().__init__(roots, os.path.realpath(folder))
        self.sources = {root: self._part(root, "merged") for root in roots}
        self._stamps: dict[str, dict[str, Stamp]] = {}

    def place(self, path: str, *, write: bool = False) -> Place:
        whole = os.path.normpath(os.path.join(self.roots[0], path))
        root = self._root_of(whole)
        if not root:
            raise PathRefused(f"{path} is outside of the workspace.")
        parts = tuple(os.path.relpath(whole, root).split("/"))
        try:
            if write:
                return self._raised(root, parts)
            return Place(self._upper(root) if self._is_above(root, parts) else root, parts)
        except OSError as error:
            raise PathRefused(f"{path}: {(error.strerror or 'it cannot be opened').lower()}.") from error

    def _prepare(self) -> None:
        options: list[str] = []
        for root in self.roots:
            for name in ("upper", "work", "merged"):
                os.makedirs(self._part(root, name), 0o700)
            shutil.copymode(root, self._upper(root))
            if _UNSPEAKABLE & set(root + self._folder):
                raise ViewRefused(f"A layer above {root} cannot be made because of a character in its name.")
            self._stamps[root] = {found.path: found.stamp for found in walk(root, self.skipped.append)}
            layers = f"lowerdir={root},upperdir={self._upper(root)},workdir={self._part(root, 'work')}"
            options += [f"{layers},userxattr,xino=off", self._part(root, "merged")]
        lock = os.path.join(self._folder, "lock")
        os.close(os.open(lock, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        # Root needs no user namespace, and without one it can copy what others own.
        own = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
        # By their whole paths: they run unconfined, under a PATH that a workspace may be on.
        unshare, mount, flock = (shutil.which(name, path=_PROGRAMS) for name in ("unshare", "mount", "flock"))
        if not (unshare and mount and flock):
            raise ViewRefused("A layer needs the programs unshare, mount and flock of util-linux.")
        script = _SCRIPT.format(mount=mount, flock=flock)
        self.enter = [unshare, *own, "/bin/sh", "-c", script, "sh", lock, *options, "--"]
        self._try_out()

    def _try_out(self) -> None:
        """Mounts once, and looks whether what is written goes to the layer and not to the root."""
        test = 'for root; do : > "$root/.dragoman-probe" && rm "$root/.dragoman-probe" || exit 1; done'
        argv = [*self.enter, "/bin/sh", "-c", test, "sh", *self.sources.values()]
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_PROBE_SECONDS,
                cwd="/",
                env={"PATH": _PROGRAMS},
            )
        except subprocess.TimeoutExpired:
            raise ViewRefused("The layer does not come up.") from None
        if done.returncode != 0:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            raise ViewRefused(f"Overlays do not work here: {words[-1][:200] if words else 'unknown'}")

    def _differences(self, root: str) -> Iterator[tuple[str, SnapshotEntry | None, SnapshotEntry | None]]:
        upper = self._upper(root)
        for found in walk(upper):
            after = self._changed(found)
            lies_below = entry_at(root, found.path)
            if after != lies_below:
                yield found.path, lies_below, after
            if found.what == "folder" and lies_below is not None and lies_below.what == "folder":
                yield from self._gone_from(root, found.path)
            elif lies_below is not None and lies_below.what == "folder":
                yield from _all_in(root, found.path)
        yield from self._gone_from(root, ".")

    def _gone_from(self, root: str, path: str) -> Iterator[tuple[str, SnapshotEntry | None, SnapshotEntry | None]]:
        """Yield what the layer takes away from one folder of the root."""
        with self._layer(root) as layer:
            for part in [] if path == "." else path.split("/"):
                layer.enter(part)
            names = set(os.listdir(layer.fd))
            if layer.is_cut_off:
                gone = [name for name in _names_in(root, path) if name not in names]
            else:
                gone = [name for name in sorted(names) if _is_mark(layer.status(name))]
        for name in gone:
            inner = os.path.normpath(os.path.join(path, name))
            entry = entry_at(root, inner)
            if entry is not None:
                yield inner, entry, None
                if entry.what == "folder":
                    yield from _all_in(root, inner)

    def _make(self, root: str) -> str:
        return self._upper(root)

    def _is_stale(self, root: str, path: str) -> bool:
        before = self._stamps[root].get(path)
        try:
            with beside(Place(root, tuple(path.split("/")))) as (folder, name):
                now = SnapshotVisit("", -1, "", os.stat(name, dir_fd=folder, follow_symlinks=False))
        except OSError:
            return before is not None
        return now.what != "folder" and before != now.stamp

    def _replace_file(self, root: str, path: str) -> SnapshotEntry | None:
        return entry_at(root, path) if path in self._stamps[root] else None

    def _remember(self, change: ViewChange) -> None:
        root = self._root_of(change.path)
        path = os.path.relpath(change.path, root)
        self._stamps[root].pop(path, None)
        with suppress(OSError), beside(Place(root, tuple(path.split("/")))) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            self._stamps[root][path] = SnapshotVisit("", -1, "", status).stamp

    def _is_above(self, root: str, parts: tuple[str, ...]) -> bool:
        """Return whether a path is the layer's; `FileNotFoundError` if the layer says that it is gone."""
        with self._layer(root) as layer:
            for part in parts:
                status = layer.status(part)
                if status is None and not layer.is_cut_off:
                    return False
                if status is None or _is_mark(status):
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), part)
                if not stat.S_ISDIR(status.st_mode):
                    return True  # what is left of the way leads nowhere, not even in the root below
                layer.enter(part)
        return True

    def _raised(self, root: str, parts: tuple[str, ...]) -> Place:
        """Make room for a file in the layer, as the kernel would: its folders, and its mode if it was there."""
        with self._layer(root) as layer:
            for at, part in enumerate(parts, 1):
                is_last = at == len(parts)
                status = layer.status(part)
                is_marked = _is_mark(status)
                if status is None or is_marked:
                    is_hidden = is_marked or layer.is_cut_off
                    below = None if is_hidden else entry_at(root, "/".join(parts[:at]))
                    self._raise(layer, part, below, is_folder=not is_last, is_marked=is_marked, is_hidden=is_hidden)
                elif not is_last:
                    layer.enter(part)
        return Place(self._upper(root), parts)

    def _raise(
        self,
        layer: "_Layer",
        name: str,
        below: SnapshotEntry | None,
        *,
        is_folder: bool,
        is_marked: bool,
        is_hidden: bool,
    ) -> None:
        """Make one name of the layer, and go into it if it is a folder. `below` is what it is to cover."""
        if below is not None and (below.what == "folder") != is_folder:
            raise PathRefused(f"{name} is {'not ' if is_folder else ''}a folder.")
        if is_marked:
            os.unlink(name, dir_fd=layer.fd)
        if is_folder:
            os.mkdir(name, dir_fd=layer.fd)
            layer.enter(name)
            if is_hidden:
                os.setxattr(layer.fd, _OPAQUE, b"y")
            elif below is not None:
                os.fchmod(layer.fd, below.mode)
        elif below is not None:
            os.close(os.open(name, _NEW_FILE, below.mode, dir_fd=layer.fd))

    def _layer(self, root: str) -> "_Layer":
        return _Layer(self._upper(root))

    def _upper(self, root: str) -> str:
        return self._part(root, "upper")

    def _part(self, root: str, name: str) -> str:
        return os.path.join(self._folder, str(self.roots.index(root)), name)


class _Layer(Descent):
    """A way down the layer; `is_cut_off` says that nothing of the root below shows through any more."""

    def __init__(self, upper: str) -> None:
        super().__init__(upper)
        self.is_cut_off = _is_opaque(self.fd)

    def enter(self, name: str) -> None:
        """Enter as `Descent.enter` does, and note whether the folder hides all of the one below it."""
        super().enter(name)
        self.is_cut_off = self.is_cut_off or _is_opaque(self.fd)


def _all_in(root: str, path: str) -> Iterator[tuple[str, SnapshotEntry | None, SnapshotEntry | None]]:
    with folder_at(root, path) as folder:
        for found in walk(".", dir_fd=folder):
            yield os.path.normpath(os.path.join(path, found.path)), found.entry(), None


def _names_in(root: str, path: str) -> list[str]:
    try:
        with folder_at(root, path) as folder:
            return sorted(os.listdir(folder))
    except OSError:
        return []


def _is_mark(status: os.stat_result | None) -> bool:
    """Return whether this is the mark of a deletion: a character device with the number 0, 0."""
    return status is not None and stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(folder: int) -> bool:
    """Return whether a folder of the layer hides all of the folder below."""
    try:
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False
