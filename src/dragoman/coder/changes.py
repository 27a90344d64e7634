"""What the tools have written in a turn, so that it can be undone.

A file is restored only if it still has the content that the tool wrote: later changes by other programs are kept.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from dragoman.host.paths import PathRefused, Place, facts_of, read_bytes, remove_file, write_bytes

# What is remembered of one turn; a turn that writes more cannot be undone in full, and that is told.
REMEMBERED_BYTES: Final = 32 * 1024 * 1024


class EditedFile(NamedTuple):
    """A file that a tool has written. `before` None: it is new; `after` None: it was deleted. `kept` False: its old
    content is binary or too long."""

    place: Place
    before: str | None
    after: str | None
    kept: bool = True


class Undone(NamedTuple):
    """What came of undoing."""

    restored: list[str]
    left: list[str]
    refused: list[str]
    unsaved: list[str]


class Changes:
    """The files of the last turn that wrote any."""

    def __init__(self) -> None:
        self._changes: dict[str, EditedFile] = {}
        self._fresh = True
        self._size = 0
        # Held from the last look at where a file goes until it is there: of two writes the second sees the first.
        self.writing: Final = asyncio.Lock()

    def begin_turn(self) -> None:
        """Begin a turn: its first write replaces what can be undone."""
        self._fresh = True

    def record_write(self, place: Place, before: str | None, after: str | None, *, kept: bool = True) -> None:
        """Remember that a tool has written a file; `after` None: deleted it."""
        if self._fresh:
            self._changes, self._size, self._fresh = {}, 0, False
        first = self._changes.get(place.path)
        self._size += len(after or "") + (0 if first else len(before or ""))
        if self._size > REMEMBERED_BYTES:
            # Without its contents it cannot be put back, but `undo` still names it among the files it left alone.
            before, after, kept = None, "", False
        elif first is not None:
            before, kept = first.before, first.kept
        self._changes[place.path] = EditedFile(place, before, after, kept)

    def paths(self) -> list[str]:
        """Return the whole paths of the files that can be undone."""
        return list(self._changes)

    def undo(self, is_refused: Callable[[Place], bool] = lambda place: False, unsaved: Collection[str] = ()) -> Undone:
        """Put everything back but what is refused or `unsaved`, which can be undone later. Blocks: for a thread."""
        undone = Undone([], [], [], [])
        kept: dict[str, EditedFile] = {}
        for path, change in reversed(self._changes.items()):
            refused = is_refused(change.place)
            if refused or path in unsaved:
                kept[path] = change
                (undone.refused if refused else undone.unsaved).append(path)
            else:
                (undone.restored if _restore(change) else undone.left).append(path)
        self._changes = dict(reversed(kept.items()))
        return undone


def _restore(change: EditedFile) -> bool:
    try:
        if change.after is None:
            return _restore_deleted(change)
        data, more = read_bytes(change.place, len(change.after.encode("utf-8", "replace")))
        if more or data != change.after.encode("utf-8", "replace") or not change.kept:
            return False
        if change.before is None:
            remove_file(change.place)
        else:
            write_bytes(change.place, change.before.encode("utf-8", "replace"))
    except PathRefused:
        return False
    return True


def _restore_deleted(change: EditedFile) -> bool:
    """Write a deleted file again, unless another has taken its place. Raises `PathRefused`."""
    try:
        facts_of(change.place)
    except PathRefused as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
    else:
        return False
    if not change.kept:
        return False
    if change.before is not None:  # else the same turn has made it
        write_bytes(change.place, change.before.encode("utf-8", "replace"))
    return True
