"""Sees to it that a confined command leaves nothing in a workspace that runs when a person looks at it.

Before the command everything protected is found (`protected_scan`). What can be shown read-only is; the `.git` of the
workspace is shown as a layer (`git_layer`); the rest is remembered (`path_backup`). After the command, when none of its
processes lives any more, the workspace is looked through again: what is new and protected is moved to a quarantine,
what was changed is put back, and each is said in a note. What is shown read-only could still be moved away with a
folder above it, so those folders are looked at as well. While the command runs, a new protected file can stand there
for a moment: that window is known and documented.

Commands may run beside each other. What one of them has made or changed is not what was there before for another that
begins meanwhile: that one goes by what the first has found. So watches begin one after the other, and know each other.
"""

import os
import stat
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from dragoman.errors import WorldError
from dragoman.host.bubblewrap import Bind
from dragoman.host.git_config import configured_files, repository_above
from dragoman.host.git_layer import GitLayer, git_folders_of, layers_of
from dragoman.host.path_backup import BackupLimit, PathBackup, TooLarge, back_up, is_unchanged, restore
from dragoman.host.placeholders import is_placeholder
from dragoman.host.protected_names import links_of
from dragoman.host.protected_scan import ProtectedScan, ScanFailed, scan_protected
from dragoman.host.quarantine import Quarantine

# Binding costs bubblewrap more with each that there is: about 10 ms for this many. Those that cannot be remembered are
# bound beyond that, up to the second number.
_MOST_BOUND: Final = 40
_MOST_LARGE: Final = 150
# What is remembered in memory for one command.
_KEPT_FILES: Final = 20_000
_KEPT_BYTES: Final = 64 * 1024 * 1024
_KEPT_FILE_BYTES: Final = 1024 * 1024
# Folders that are thrown away and made again as a whole: something bound in them would be in the way.
_MADE_AGAIN: Final = frozenset(
    {"node_modules", "vendor", "venv", ".venv", ".tox", ".nox", "target", "dist", "build", "out", "site-packages"}
)
# Two changes of a folder within this time may have the same time stamp.
_CLOCK_NANOSECONDS: Final = 50_000_000
# Named in a note; the others are counted.
_NAMED: Final = 20


class CannotWatch(WorldError):
    """A workspace cannot be watched over, so that nothing may write in it. The text says why."""


class WorkspaceWatch:
    """The watch over some roots during one command. Blocks; `CannotWatch` if it cannot be had."""

    def __init__(
        self,
        roots: Sequence[str],
        *,
        binds: bool,
        scratch: str,
        quarantine: str,
        protected_paths: Iterable[str] = (),
    ) -> None:
        """`binds`: things can be shown read-only. `scratch` is an empty folder of ours that lives as long as this."""
        self.fixed: Final[list[str]] = []  # whole paths that the command may not change
        self.pinned: Final[list[str]] = []  # folders that it may not move
        self.layers: Final[list[Bind]] = []
        self._binds = binds
        self._scratch = scratch
        self._quarantine = Quarantine(quarantine)
        self._git: list[GitLayer] = []
        self._stuck: list[str] = []
        self._doubtful: list[str] = []
        self._began_at = time.time_ns() - _CLOCK_NANOSECONDS
        self._extra = [os.path.realpath(path) for path in protected_paths]
        self._limit = BackupLimit(_KEPT_FILES, _KEPT_BYTES)
        self.roots: Final[list[_WatchedRoot]] = []
        with _lock:
            try:
                for root in roots:
                    self._begin(root)
            except (ScanFailed, OSError) as error:
                raise CannotWatch(f"Commands cannot be confined in this workspace: {error}") from error
            _active.add(self)

    @property
    def has_layers(self) -> bool:
        """Whether the command can commit."""
        return bool(self._git)

    def settle(self) -> list[str]:
        """Take back what must not stay, and say what that was. The command has ended with all of its processes."""
        try:
            return self._settled()
        finally:
            with _lock:
                _active.discard(self)

    def _settled(self) -> list[str]:
        notes: list[str] = []
        for layer in reversed(self._git):
            try:
                notes += layer.bring_back()
            except OSError as error:
                notes.append(f"What the command did in {layer.real} was not brought back: {error.strerror}.")
        restored: list[str] = []
        for watched in self.roots:
            try:
                restored += self._settle(watched)
            except (ScanFailed, OSError) as error:
                notes.append(
                    f"It could not be seen whether the command left something that runs by itself: {error} "
                    f"Look through {watched.before.root} before you open it with other programs."
                )
        return [*self._notes(restored), *notes]

    # -- before --------------------------------------------------------------------------------------------------------

    def _begin(self, root: str) -> None:
        before = scan_protected(root)
        folders = filter(None, (repository_above(root), root, *_repositories(before)))
        configured = [path for folder in folders for path in configured_files(folder)]
        configured += [path for name in before.protected for path in _linked_inside(root, name)]
        extra = [path[len(root) + 1 :] for path in (*self._extra, *configured) if path.startswith(f"{root}/")]
        found = [path for path in (*before.protected, *before.git_folders) if not _is_new(os.path.join(root, path))]
        found += [path for path in extra if _is_there(root, path)]
        names = dict.fromkeys(name for name in found if not is_placeholder(os.path.join(root, name)))
        watched = _WatchedRoot(before, frozenset(names), extra)
        self.roots.append(watched)
        if "" in before.git_folders:
            self.fixed.append(root)
            return
        for name in self._layered(root):
            names.pop(name, None)
        for name in list(names):
            target = _linked(root, name)
            if target:
                watched.links[name] = target
                if _is_there(root, target):
                    names[target] = None
                else:
                    watched.extra.append(target)
        self._guard(watched, list(names))

    def _layered(self, root: str) -> list[str]:
        """Show the git folder as a layer, if that can be; the names in the root that need no more."""
        folders = git_folders_of(root) if self._binds else None
        if folders is None or any(layer.real == folders.common for layer in self._git):
            return []
        scratch = os.path.join(self._scratch, f"root-{len(self.roots)}")
        os.mkdir(scratch, 0o700)
        try:
            layers = layers_of(folders, scratch)
        except OSError:
            return []  # it is not ours to write: read-only like everything protected
        for layer in layers:
            layer.begin_with(other for watch in _active for other in watch._git)
        self._git += layers
        self.layers.extend(bind for layer in layers for bind in layer.binds)
        return [".git"] if folders.own == os.path.join(root, ".git") else []

    def _guard(self, watched: "_WatchedRoot", names: Sequence[str]) -> None:
        """Bind the shallowest where that can be done, and remember the others."""
        root = watched.before.root
        count = large = 0
        for name in names:
            mode = os.lstat(os.path.join(root, name)).st_mode
            can_be_bound = not stat.S_ISLNK(mode) and _MADE_AGAIN.isdisjoint(name.split("/")[:-1])
            is_bound = self._binds and can_be_bound and count < _MOST_BOUND
            count += is_bound
            try:
                backups = _known(os.path.join(root, name)) or back_up(root, name, BackupLimit(1000, _KEPT_FILE_BYTES))
                self._limit.take(0 if backups is None else _size(backups))
            except (TooLarge, OSError):
                large += not is_bound
                if large > _MOST_LARGE:
                    raise OSError(
                        f"there are more than {_MOST_LARGE} large protected folders, such as {name}"
                    ) from None
                self._fix(watched, name, None)
                # It could not be put back if it was moved away with a folder above it.
                self.pinned.extend(folder for folder in _above(root, name) if folder not in self.pinned)
                continue
            if is_bound:
                self._fix(watched, name, backups)
            if backups is not None and (not is_bound or _has_other_names(os.path.join(root, name))):
                watched.backups[name] = backups

    def _fix(self, watched: "_WatchedRoot", name: str, backups: PathBackup | None) -> None:
        root = watched.before.root
        self.fixed.append(os.path.join(root, name))
        watched.fixed[name] = _Fixed(_identities(root, name), backups)

    # -- after ---------------------------------------------------------------------------------------------------------

    def _settle(self, watched: "_WatchedRoot") -> list[str]:
        before = watched.before
        root = before.root
        if root in self.fixed:
            return []
        after = scan_protected(root, sealed=before.sealed)
        there = [path for path in watched.extra if _is_there(root, path)]
        for path in dict.fromkeys([*after.protected, *there]):
            if path not in watched.names and not is_placeholder(os.path.join(root, path)):
                self._take(root, path)
        for path in after.git_folders:
            if path not in watched.names:
                self._break(before, after, path)
        lost: dict[str, PathBackup | None] = {
            path: backups for path, backups in watched.backups.items() if not is_unchanged(root, path, backups)
        }
        for path, fixed in watched.fixed.items():
            if _identities(root, path) != fixed.above:
                lost[path] = fixed.was
        restored = [os.path.join(root, path) for path, was in lost.items() if self._restored(root, path, was)]
        for path, target in watched.links.items():
            whole = os.path.join(root, path)
            if os.path.islink(whole) and os.path.realpath(whole) != os.path.join(root, target):
                self._take(root, path)  # another link on its way was changed
        return restored

    def _restored(self, root: str, path: str, was: PathBackup | None) -> bool:
        """Take away what stands in the place of a protected thing; whether the thing itself could be put back."""
        if _is_there(root, path) and not self._take(root, path):
            return False
        if self._quarantine.is_taken_by_others(root, path, self._began_at):
            # A command of another agent ran meanwhile. What was there when this one began may be what that has made.
            self._doubtful.append(os.path.join(root, path))
            return False
        return was is not None and restore(root, path, was)

    def _break(self, before: ProtectedScan, after: ProtectedScan, path: str) -> None:
        """Make a folder that became a git folder none: as a whole if it is new, else what is new of what makes it."""
        if path and path not in before.folders:
            self._take(after.root, path)
            return
        old = before.markers.get(path, ())
        new = [name for name in after.markers[path] if name not in old] or list(after.markers[path])
        for name in new:
            self._take(after.root, f"{path}/{name}" if path else name)

    def _take(self, root: str, path: str) -> bool:
        """Return whether a path could be moved away. One that could not is reported, and hinders nothing else."""
        try:
            self._quarantine.take(root, path)
        except OSError:
            self._stuck.append(os.path.join(root, path))
            return False
        return True

    def _notes(self, restored: Sequence[str]) -> list[str]:
        notes: list[str] = []
        moved, deleted = self._quarantine.moved, self._quarantine.deleted
        if moved:
            notes.append(
                f"Moved out of the workspace to {self._quarantine.folder()}, because it would run something when a "
                f"person opens or looks at a folder: {_list(moved)}. Use write_file for such a file; it asks the user."
            )
        if deleted:
            notes.append(f"Deleted for the same reason, and too large to be kept: {_list(deleted)}.")
        if self._stuck:
            notes.append(
                f"DANGER: these would run something when a person opens or looks at a folder, and could not be moved "
                f"away: {_list(self._stuck)}. Delete them before you open the workspace with other programs."
            )
        if self._doubtful:
            notes.append(
                f"Not put back, because another agent works in the same folder and has moved it away as well: "
                f"{_list(self._doubtful)}. Look for it in {self._quarantine.parent}."
            )
        if restored:
            notes.append(f"Put back as it was before the command, because it is protected: {_list(restored)}.")
        return notes


class _Fixed(NamedTuple):
    """A thing that is shown read-only: which folders are above it, and what it was if that could be kept."""

    above: Sequence[tuple[int, int]]
    was: PathBackup | None


class _WatchedRoot:
    """A root, what was protected in it before the command, and what is remembered of it."""

    def __init__(self, before: ProtectedScan, names: frozenset[str], extra: list[str]) -> None:
        self.before: Final = before
        self.names: Final = names
        self.extra: Final = extra  # protected, and not found by their names
        self.backups: Final[dict[str, PathBackup]] = {}
        self.fixed: Final[dict[str, _Fixed]] = {}
        self.links: Final[dict[str, str]] = {}  # where protected links lead to in the root


# The watches over commands that run now, and what guards them: one begins at a time.
_active: "Final[weakref.WeakSet[WorkspaceWatch]]" = weakref.WeakSet()
_lock: Final = threading.Lock()


def _around(path: str) -> Iterator[tuple["_WatchedRoot", str]]:
    """Yield the roots of other commands in which a path lies, and its name there."""
    for watch in _active:
        for watched in watch.roots:
            if path.startswith(f"{watched.before.root}/"):
                yield watched, path[len(watched.before.root) + 1 :]


def _is_new(path: str) -> bool:
    """Return whether something protected came while another command ran: then it is not what was there before."""
    return any(name not in watched.names for watched, name in _around(path))


def _known(path: str) -> PathBackup | None:
    """Return what something protected was before another command that runs now."""
    for watched, name in _around(path):
        fixed = watched.fixed.get(name)
        known = watched.backups.get(name) or (fixed.was if fixed else None)
        if known is not None:
            return known
    return None


def _above(root: str, name: str) -> list[str]:
    """Return the folders between a root and a thing in it, outermost first."""
    parts = name.split("/")
    return [os.path.join(root, *parts[:count]) for count in range(1, len(parts))]


def _identities(root: str, name: str) -> Sequence[tuple[int, int]]:
    """Return which folders these are: one that was moved away and made again is another one."""
    try:
        found = [os.lstat(path) for path in _above(root, name)]
    except OSError:
        return [(0, 0)]
    return [(status.st_dev, status.st_ino) for status in found]


def _repositories(before: ProtectedScan) -> list[str]:
    """Return the folders below a root that have a git folder of their own."""
    return [os.path.join(before.root, os.path.dirname(path)) for path in before.protected if path.endswith("/.git")]


def _linked_inside(root: str, name: str) -> list[str]:
    """Return where links in a protected folder lead to."""
    path = os.path.join(root, name)
    return [] if os.path.islink(path) else links_of(path)


def _linked(root: str, name: str) -> str:
    """Return what a protected link leads to, if that is in the root: it is as good as protected.

    Empty: it is no such link.
    """
    path = os.path.join(root, name)
    real = os.path.realpath(path) if os.path.islink(path) else ""
    return real[len(root) + 1 :] if real.startswith(f"{root}/") else ""


def _has_other_names(path: str) -> bool:
    """Whether a file, or one in a small folder, can be written under another name, where nothing is read-only."""
    files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names] or [path]
    return any(stat.S_ISREG(status.st_mode) and status.st_nlink > 1 for status in map(os.lstat, files))


def _is_there(root: str, path: str) -> bool:
    return os.path.lexists(os.path.join(root, path))


def _size(backups: PathBackup) -> int:
    return len(backups.data) + sum(_size(inner) for _, inner in backups.inner)


def _list(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
