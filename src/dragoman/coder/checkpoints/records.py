"""What stands in a session's log about checkpoints, and what it says together. Pure.

Each note is one step: what an area looked like when it was seen first, what has changed since the step before, and by
whom. So the notes of one file are a chain, and every step begins where the one before it ended. Contents are not in
the log; it names them, and the area has them (`areas`).

A turn `begin`s before its first change and `end`s behind its last one. Where a kill came between, what is found next
is that turn's: nothing else was there to look.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from dragoman.host.git_images import FileImage, ImageChange, Look
from dragoman.store.contract import Record
from dragoman.store.entries import NoteEntry

# How the notes are called in a log.
CHECKPOINT: Final = "checkpoint"
# `first`: an area is looked at from now on. `others`: changes by other hands than the agent's. `begin` and `rewinding`:
# a turn, or a rewind, is about to change files; a rewind says which, and these have not happened yet. `unsaved`: what
# an editor shows of files that the turn is about to write, and the disk does not have. `turn` and `rewind`: what that
# has changed. `end`: it has ended.
StepKind = Literal["first", "others", "begin", "rewinding", "unsaved", "turn", "rewind", "end"]
# Steps whose changes have not happened.
PENDING: Final = ("rewinding", "unsaved")
# Changes in one note: more are several notes.
_MOST: Final = 5_000
# How a path begins that is no UTF-8; the rest is its bytes.
_BYTES: Final = "\0"


class CheckpointStep(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One note. `changes`: path, what was there and what is, each as mode and id; null: no file."""

    kind: StepKind
    # The message id of the prompt whose turn it is, or the id of the rewind.
    owner: str = ""
    # The folder that paths are relative to; empty: they are whole.
    area: str = ""
    # The index of the area in which the changes are; empty: it has none.
    index: str = ""
    changes: list[tuple[str, tuple[int, str] | None, tuple[int, str] | None]] = []
    # What is not covered, in sentences for the user.
    left_out: list[str] = []

    def images(self) -> Iterable[tuple[str, ImageChange]]:
        """Yield the changes, by whole path."""
        for path, before, after in self.changes:
            whole = os.path.join(self.area, _path(path))
            yield whole, ImageChange(before and FileImage(*before), after and FileImage(*after))


class PlacedStep(NamedTuple):
    """A step, and its place in the log."""

    sequence: int
    step: CheckpointStep


def steps_of(kind: StepKind, owner: str, area: str, look: Look) -> list[CheckpointStep]:
    """Return the notes for what a look has found."""
    changes: list[tuple[str, tuple[int, str] | None, tuple[int, str] | None]] = [
        (_text(path), _pair(change.before), _pair(change.after)) for path, change in sorted(look.changes.items())
    ]
    parts = [changes[at : at + _MOST] for at in range(0, len(changes), _MOST)] or [[]]
    # The index counts with the last part: after a kill before that the changes are found again.
    last = len(parts) - 1
    return [
        CheckpointStep(
            kind, owner, area, look.index_file if at == last else "", part, [] if at else list(look.left_out)
        )
        for at, part in enumerate(parts)
    ]


def entry_of(step: CheckpointStep) -> NoteEntry:
    """Return the entry for a log."""
    return NoteEntry(CHECKPOINT, msgspec.to_builtins(step))


def step_in(record: Record) -> CheckpointStep | None:
    """Return the step that an entry is; None: it is none, or one of another release."""
    entry = record.entry
    if not isinstance(entry, NoteEntry) or entry.kind != CHECKPOINT:
        return None
    try:
        return msgspec.convert(entry.value, CheckpointStep)
    except msgspec.ValidationError:
        return None


class CheckpointState:
    """What the steps say about now: the index of each area, the touched files, and what has begun and not ended."""

    def __init__(self) -> None:
        self.indexes: dict[str, str] = {}
        # What files beyond every repository were when they were seen last, by whole path.
        self.touched: dict[str, FileImage | None] = {}
        # The turn or rewind that has begun; empty: none.
        self.open_owner = ""
        # What an editor showed of files before the open turn wrote them, by whole path; the disk did not have it.
        self.unsaved: dict[str, FileImage] = {}
        # What the open rewind is about to do, by whole path; None: no rewind is open.
        self.rewinding: dict[str, ImageChange] | None = None

    def __repr__(self) -> str:
        return f"<CheckpointState areas={len(self.indexes)} touched={len(self.touched)} open={self.open_owner!r}>"

    def apply(self, steps: Iterable[CheckpointStep]) -> None:
        """Fold further steps into it."""
        for step in steps:
            if step.index:
                self.indexes[step.area] = step.index
            if not step.area and step.kind not in PENDING:
                self.touched.update((path, change.after) for path, change in step.images())
            if step.kind == "unsaved":
                self.unsaved.update((path, change.after) for path, change in step.images() if change.after is not None)
            elif step.kind in ("begin", "rewinding"):
                self.open_owner, self.unsaved = step.owner, {}
                # A long one has several notes.
                known = self.rewinding or {}
                self.rewinding = {**known, **dict(step.images())} if step.kind == "rewinding" else None
            elif step.kind == "end":
                self.open_owner, self.rewinding, self.unsaved = "", None, {}


def ids_in(steps: Sequence[CheckpointStep]) -> list[str]:
    """Return the names of all contents that the steps need."""
    images = (image for step in steps for _, change in step.images() for image in change)
    return list(dict.fromkeys(image.id for image in images if image is not None and image.is_kept))


def _pair(image: FileImage | None) -> tuple[int, str] | None:
    return None if image is None else (image.mode, image.id)


def _text(path: str) -> str:
    try:
        path.encode("utf-8")
        return path
    except UnicodeEncodeError:
        return _BYTES + os.fsencode(path).hex()


def _path(text: str) -> str:
    return os.fsdecode(bytes.fromhex(text[1:])) if text.startswith(_BYTES) else text
