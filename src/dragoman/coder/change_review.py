"""What a question about the changes of a sandbox shows: every one of them, whole. What cannot be shown is not asked.

Promise: an answer yes was given to each change with its name, its kind, its modes, its target if it is a link, and all
of its new content. Names at which other programs run something by themselves stand first and apart, then what can be
executed, then links. Bytes that are no plain text are shown as `\\xNN`.

More changes than fit in one question are several, each shown whole (`ReviewPage`); all of them need a yes. What does
not fit in `MOST_PAGES` of them, and a file larger than `view.SHOWN_FILE_BYTES`, is `NotShowable`, and the text says
what to do.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman.coder.tools.result_text import title_text
from dragoman.errors import WorldError
from dragoman.host.view import SHOWN_BYTES, SHOWN_FILE_BYTES, Kind, ViewChange
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.tools import ContentItem, Diff, FileChange, Location, ToolContent

# One question. More is not read before it is answered.
PAGE_CHANGES: Final = 200
# Characters of old and new content in one question; a single file may have more.
PAGE_CHARACTERS: Final = 1024 * 1024
MOST_PAGES: Final = 10
# All but tabs, form feeds and the ends of lines; a carriage return alone would overwrite what stands before it.
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]|\r(?!\n)")

_GROUPS: Final = (
    "PROTECTED: these can make git, an editor, a shell or an agent run something by itself. Look at each of them:",
    "EXECUTABLE:",
    "LINKS:",
    "FILES AND FOLDERS:",
)


class NotShowable(WorldError):
    """Changes that cannot be shown whole, and so cannot be agreed to. The text says what to do."""


class ReviewPage(NamedTuple):
    """One question of several: a part of the changes, shown whole."""

    title: str
    content: list[ToolContent]
    locations: list[Location]


def pages_of(changes: Sequence[ViewChange]) -> list[ReviewPage]:
    """Return all changes as questions, in the order to ask them; `NotShowable` if one cannot be shown."""
    shown = [_Shown.of(change) for change in changes]
    shown.sort(key=lambda one: (one.group, one.change.path))
    parts = list(_parts(shown))
    if len(parts) > MOST_PAGES:
        raise NotShowable(
            f"{len(changes)} changes are more than can be shown in {MOST_PAGES} questions of {PAGE_CHANGES} changes "
            f"and {PAGE_CHARACTERS >> 20} MiB. Do the work in smaller steps, or use mode workspace-write."
        )
    summary = _summary(shown)
    return [_page(part, at, len(parts), len(changes), summary) for at, part in enumerate(parts, 1)]


class _Shown(NamedTuple):
    """A change, its line in the list, and its content in the diff."""

    change: ViewChange
    group: int
    line: str
    diff: FileChange | None
    characters: int

    @classmethod
    def of(cls, change: ViewChange) -> "_Shown":
        if any("\ud800" <= character <= "\udfff" for character in change.path):  # bytes that are no UTF-8
            raise NotShowable(f"The name {title_text(change.path)} is no text, and no client can be asked about it.")
        diff = _diff(change)
        contents = [] if diff is None else [text for text in (diff.old_text, diff.new_text) if isinstance(text, str)]
        return cls(change, _group(change), _line(change), diff, sum(map(len, contents)))


def _parts(shown: Sequence[_Shown]) -> Iterator[list[_Shown]]:
    part: list[_Shown] = []
    characters = 0
    for one in shown:
        if part and (len(part) == PAGE_CHANGES or characters + one.characters > PAGE_CHARACTERS):
            yield part
            part, characters = [], 0
        part.append(one)
        characters += one.characters
    if part:
        yield part


def _page(part: Sequence[_Shown], number: int, of: int, changes: int, summary: str) -> ReviewPage:
    title = f"Apply {changes} change{'s' if changes != 1 else ''} to the workspace"
    protected = sum(one.change.is_protected for one in part)
    notes = [f"part {number} of {of}"] if of > 1 else []
    notes += [f"{protected} protected"] if protected else []
    lines = [summary]
    if of > 1:
        lines.append(f"This is part {number} of {of}. Nothing is applied before all of them are allowed.")
    for group, heading in enumerate(_GROUPS):
        members = [f"  {one.line}" for one in part if one.group == group]
        lines += [heading, *members] if members else []
    # One diff for each file: where one of several has no patch, a wire that knows only patches shows none of them.
    diffs = [Diff([one.diff]) for one in part if one.diff is not None]
    return ReviewPage(
        f"{title} ({', '.join(notes)})" if notes else title,
        [ContentItem(Text("\n".join(lines))), *diffs],
        [Location(one.change.path) for one in part],
    )


def _summary(shown: Sequence[_Shown]) -> str:
    kinds = Counter(one.change.kind for one in shown)
    counts = [f"{count} {word}" for kind, word in _KINDS.items() if (count := kinds[kind])]
    return f"{len(shown)} change{'s' if len(shown) != 1 else ''}: {', '.join(counts)}."


_KINDS: Final[dict[Kind, str]] = {
    "created": "created",
    "modified": "modified",
    "deleted": "deleted",
    "mode": "with another mode",
}


def _group(change: ViewChange) -> int:
    if change.is_protected:
        return 0
    if change.kind == "deleted":
        return 3
    if change.what == "file" and change.after is not None and change.after.mode & 0o111:
        return 1
    return 2 if change.what == "link" else 3


def _line(change: ViewChange) -> str:
    name = title_text(change.path)
    if change.what == "link":
        old, new = (None if data is None else title_text(os.fsdecode(data)) for data in (change.old, change.new))
        if change.kind == "deleted":
            return f"deleted: {name} (link)"
        if new is None:
            raise NotShowable(f"The target of the link {name} cannot be shown. Do the work in smaller steps.")
        return f"{change.kind}: {name} -> {new}" + (f" (was -> {old})" if old is not None else " (link)")
    details = [change.what, *_modes(change)]
    if change.what == "file" and change.kind in ("created", "modified") and change.new is not None:
        details += [f"{len(change.new)} bytes"]
        details += [] if _is_text(change.new) else ["not plain text: bytes are shown as \\xNN"]
        if change.kind == "modified" and change.old is None:
            details += ["the old content is too large to be shown"]
    return f"{change.kind}: {name} ({', '.join(details)})"


def _modes(change: ViewChange) -> Iterator[str]:
    before, after = change.before, change.after
    if after is None:
        return
    if before is not None and before.what == after.what and before.mode != after.mode:
        yield f"mode {before.mode:03o} -> {after.mode:03o}"
    else:
        yield f"mode {after.mode:03o}"
    if after.what == "file" and after.mode & 0o111:
        yield "executable"


def _diff(change: ViewChange) -> FileChange | None:
    """Return the content of a file before and after; None where there is nothing but what the list says."""
    if change.what != "file" or change.kind == "mode":
        return None
    if change.kind == "deleted":
        return None if change.old is None else FileChange("delete", change.path, old_text=_content(change.old))
    if change.new is None:
        size = change.after.size if change.after else 0
        raise NotShowable(
            f"{title_text(change.path)} cannot be shown: it has {size} bytes, and a file is shown up to "
            f"{SHOWN_FILE_BYTES}, all files together up to {SHOWN_BYTES}. Do the work in smaller steps, or use mode "
            "workspace-write."
        )
    old = None if change.old is None else _content(change.old)
    return FileChange("add" if old is None else "modify", change.path, old_text=old, new_text=_content(change.new))


def _content(data: bytes) -> str:
    """Return text as it is; of other bytes all that are not plain are spelled out, and backslashes with them."""
    if _is_text(data):
        return data.decode("utf-8")
    lines = data.decode("latin-1").split("\n")
    return "\n".join(line.encode("unicode_escape").decode("ascii") for line in lines)


def _is_text(data: bytes) -> bool:
    """UTF-8 without control characters, which could make a screen show something else."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not _CONTROLS.search(data)
