"""The roots, to work in without touching them: what is changed comes back as one list, and to the roots when told.

Two ways: a copy (`copy_view`), or a layer above the roots (`overlay_view`). `open_view` chooses. `changes` compares
with what was there; `apply` brings changes to the roots, unless something was changed there, or here, since: then it
says what, and does nothing. `close` throws everything away.

Everything here blocks: call it in a thread.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, NamedTuple, Self

from dragoman.errors import WorldError
from dragoman.host.openat import Undo, beside, bytes_at, delete, entry_at, put, remove_folder, remove_tree, set_mode
from dragoman.host.paths import PathRefused, Place, is_inside
from dragoman.host.protected_names import FolderFacts, is_protected_write, look_in
from dragoman.host.snapshot import SnapshotEntry, SnapshotVisit, Unreadable, What
from dragoman.host.symlinks import symlink_refusal

# What a list of changes shows; what is larger is still applied.
SHOWN_FILE_BYTES: Final = 1024 * 1024
SHOWN_BYTES: Final = 32 * 1024 * 1024
CHANGES: Final = 10_000
# What is brought back at once, held in memory so that it can be undone.
APPLIED_BYTES: Final = 256 * 1024 * 1024

Kind = Literal["created", "modified", "deleted", "mode"]


class ViewRefused(WorldError):
    """There is no view, or its changes cannot be listed or applied; the text says why."""


class ViewChange(NamedTuple):
    """One change. `old` and `new` are a file's bytes or a link's target, or None where there is none or too much.

    `before` and `after` say what it was and what it is; they decide whether the change may still be applied.
    """

    path: str
    kind: Kind
    what: What
    old: bytes | None = None
    new: bytes | None = None
    before: SnapshotEntry | None = None
    after: SnapshotEntry | None = None
    # Whether it is at a name that makes other programs do something by themselves.
    is_protected: bool = False


class Conflict(NamedTuple):
    """Why a change cannot be applied."""

    path: str
    reason: str


class View(ABC):
    """The roots as a command sees them: `sandbox.confine(views=view.sources, enter=view.enter)`.

    File tools get at a file by `place`, and work in `paths[root]` where the view has such folders.
    """

    def __init__(self, roots: Sequence[str], folder: str) -> None:
        self.roots: Final = tuple(roots)
        self.paths: dict[str, str] = {}
        self.sources: dict[str, str] = {}  # what to show in the place of each root
        self.enter: list[str] = []  # what to start bubblewrap with
        self.skipped: Final[list[str]] = []  # what may not be read, and so is not there
        self._folder = folder
        self._facts: dict[str, FolderFacts] = {}
        self._weight = 0  # bytes of what has changed, as far as it was looked at

    @abstractmethod
    def place(self, path: str, *, write: bool = False) -> Place:
        """Return where a file is, for `paths.read_bytes` and `write_bytes`, while no command runs.

        `PathRefused` outside.
        """

    @abstractmethod
    def _differences(self, root: str) -> Iterator[tuple[str, SnapshotEntry | None, SnapshotEntry | None]]:
        """Yield every path that has changed, with what was there and what is."""

    def _changed(self, found: SnapshotVisit) -> SnapshotEntry:
        """Return what a file, link or folder of the view is now; `ViewRefused` for more than could ever be applied.

        Judged before anything is read: a file may be terabytes of nothing.
        """
        self._weight += found.status.st_size if found.what == "file" else 0
        if self._weight > APPLIED_BYTES:
            raise ViewRefused(f"More than {APPLIED_BYTES >> 20} MiB were changed, and no more can be applied at once.")
        return found.entry()

    @abstractmethod
    def _make(self, root: str) -> str:
        """Return the folder in which everything that has changed can be found."""

    @abstractmethod
    def _remember(self, change: ViewChange) -> None:
        """Compare the view with what was applied from now on."""

    def changes(self) -> list[ViewChange]:
        """Return what is different in the copy from what it was, by path; `ViewRefused` if there is too much of it."""
        found: list[ViewChange] = []
        room = SHOWN_BYTES
        self._weight = 0
        self._facts.clear()
        try:
            for root in self.roots:
                for path, before, after in self._differences(root):
                    for change in self._changes_of(root, path, before, after, room):
                        room -= len(change.old or b"") + len(change.new or b"")
                        found.append(change)
                    if len(found) > CHANGES:
                        raise ViewRefused(f"More than {CHANGES} files were changed.")
        except (OSError, Unreadable) as error:
            raise ViewRefused(sentence(error)) from error
        return found

    def links_out(self, changes: Sequence[ViewChange]) -> list[Conflict]:
        """The links among these changes that would not stay inside of the roots, once all of them are applied."""
        # Where something became something of another kind there are two changes: what comes counts, not what goes.
        ordered = sorted((change for change in changes if change.kind != "mode"), key=lambda one: one.kind != "deleted")
        after = {change.path: change for change in ordered}
        found: list[Conflict] = []
        for change in changes:
            if change.what != "link" or change.kind == "deleted":
                continue
            try:
                reason = symlink_refusal(
                    change.path, self._target_of(change), self.roots, lambda at: self._link_at(at, after)
                )
            except OSError as error:
                reason = sentence(error)
            if reason is not None:
                found.append(Conflict(change.path, reason))
        return found

    def apply(self, changes: Sequence[ViewChange]) -> list[Conflict]:
        """Brings changes to the roots. If any of them cannot be, none is, and the list says which and why."""
        conflicts = [conflict for change in changes if (conflict := self._conflict(change))]
        conflicts += self.links_out(changes)
        if conflicts:
            return conflicts
        if sum(change.after.size for change in changes if change.after) > APPLIED_BYTES:
            return [Conflict(self._root_of(changes[0].path), "more is changed than can be brought back at once")]
        undo: Undo = []
        try:
            for change in sorted(changes, key=_order):
                self._apply(change, undo)
        except (OSError, PathRefused) as error:
            for step in reversed(undo):
                with suppress(OSError, PathRefused):
                    step()
            return [Conflict(change.path, sentence(error))]
        for change in changes:
            self._remember(change)
        return []

    def close(self) -> None:
        """Throws the copy away, whatever modes a command has left there."""
        remove_tree(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _changes_of(
        self, root: str, path: str, before: SnapshotEntry | None, after: SnapshotEntry | None, room: int
    ) -> Iterator[ViewChange]:
        if before is not None and after is not None and before.what != after.what:
            yield from self._changes_of(root, path, before, None, room)
            yield from self._changes_of(root, path, None, after, room)
            return
        kind: Kind = "modified"
        if before is None or after is None:
            kind = "created" if before is None else "deleted"
        elif before.digest == after.digest:
            kind = "mode"
        one = after or before
        assert one is not None
        old = new = None
        if kind != "mode" and (before.size if before else 0) + (after.size if after else 0) <= room:
            old = _shown(root, path, before)
            new = _shown(self._make(root), path, after)
        parts = path.split("/")
        sides = (root, self._make(root))
        is_protected = any(is_protected_write(side, parts, look=self._look) for side in sides)
        yield ViewChange(os.path.join(root, path), kind, one.what, old, new, before, after, is_protected)

    def _look(self, folder: str) -> FolderFacts:
        """Return `protected_names.look_in`, called once for each folder in one list of changes."""
        if folder not in self._facts:
            self._facts[folder] = look_in(folder)
        return self._facts[folder]

    def _conflict(self, change: ViewChange) -> Conflict | None:
        root = self._root_of(change.path)
        if not root:
            return Conflict(change.path, "it is outside of the workspace")
        path = os.path.relpath(change.path, root)
        try:
            there = entry_at(root, path)
            here = entry_at(self._make(root), path) if change.kind != "deleted" else None
        except (OSError, PathRefused) as error:
            return Conflict(change.path, sentence(error))
        if self._is_stale(root, path):
            return Conflict(change.path, "it was changed meanwhile")
        is_folder = change.what == "folder"
        if is_folder and there is not None and there.what == "folder":
            pass  # made meanwhile, or not empty any more: nothing is lost either way
        elif change.before is None and there is not None and change.kind == "created":
            if there != self._replace_file(root, path):
                return Conflict(change.path, "something was put there meanwhile")
        elif change.kind != "created" and there != change.before:
            return Conflict(change.path, "it was changed meanwhile")
        if here != change.after:
            return Conflict(change.path, "it was changed again after it was shown")
        return None

    def _target_of(self, change: ViewChange) -> str:
        """Return the target of a link that was made or changed; `OSError` if it has changed since it was listed."""
        root = self._root_of(change.path)
        return os.fsdecode(bytes_at(self._make(root), os.path.relpath(change.path, root), change.after))

    def _link_at(self, path: str, after: Mapping[str, ViewChange]) -> str | None:
        """Return the target of the link that stands at a path of the roots once the changes `after` are applied."""
        change = after.get(path)
        if change is not None:
            return self._target_of(change) if change.what == "link" and change.kind != "deleted" else None
        root = self._root_of(path)
        try:
            with beside(Place(root, tuple(os.path.relpath(path, root).split("/")))) as (folder, name):
                return os.readlink(name, dir_fd=folder)
        except OSError:
            return None  # no link, or nothing at all

    def _apply(self, change: ViewChange, undo: Undo) -> None:
        root = self._root_of(change.path)
        path = os.path.relpath(change.path, root)
        place = Place(root, tuple(path.split("/")))
        mode = change.after.mode if change.after else 0
        if change.kind == "mode":
            before = change.before.mode if change.before else mode
            undo.append(lambda: set_mode(place, before))
            set_mode(place, mode)
        elif change.kind == "deleted":
            delete(place, undo)
        elif change.what == "folder":
            with beside(place, make=True) as (folder, name), suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
                undo.append(lambda: remove_folder(place))
            set_mode(place, mode)
        elif change.what == "link":
            target = self._target_of(change)
            if change.kind == "modified":
                delete(place, undo)
            with beside(place, make=True) as (folder, name):
                os.symlink(target, name, dir_fd=folder)
            undo.append(lambda: delete(place, []))
        else:
            data = bytes_at(self._make(root), path, change.after)
            if change.kind == "modified":
                old, before = bytes_at(root, path, change.before), change.before.mode if change.before else mode
                undo.append(lambda: put(place, old, before))
            else:
                undo.append(lambda: delete(place, []))
            put(place, data, mode)

    @abstractmethod
    def _replace_file(self, root: str, path: str) -> SnapshotEntry | None:
        """Return what was there, if something of another kind was."""

    def _is_stale(self, root: str, path: str) -> bool:
        """Return whether the root's own entry has changed since the view was opened, beyond what `ViewChange` shows.

        False here: for views that keep nothing else to compare with.
        """
        return False

    def _root_of(self, path: str) -> str:
        return next((root for root in self.roots if path != root and is_inside(path, root)), "")


def _order(change: ViewChange) -> tuple[int, int, str]:
    """Away with what goes, the inner first; then folders, the outer first; then what is in them."""
    depth = change.path.count("/")
    if change.kind == "deleted":
        return (0, -depth, change.path)
    return (1, depth, change.path) if change.what == "folder" and change.kind == "created" else (2, 0, change.path)


def _shown(root: str, path: str, entry: SnapshotEntry | None) -> bytes | None:
    """Return a file's bytes or a link's target, if it is still what it was and small enough to be shown."""
    if entry is None or entry.what == "folder" or entry.size > SHOWN_FILE_BYTES:
        return None
    try:
        return bytes_at(root, path, entry)
    except OSError:
        return None


def check_roots(roots: Sequence[str], folder: str) -> list[str]:
    """Return the roots as they really are, none inside of another, none around the folder for the view."""
    real = [os.path.realpath(root) for root in roots]
    place = os.path.realpath(folder)
    if any(is_inside(place, root) or (root != other and is_inside(root, other)) for root in real for other in real):
        raise ViewRefused("A workspace cannot hold another one, or the place for its own view.")
    return real


def sentence(error: Exception) -> str:
    """Return an error in words for a person."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{(error.strerror or 'it cannot be read').lower()}."
    return str(error)
