"""Read a patch as OpenAI's models write it, and make its changes to a file. Pure.

    *** Begin Patch
    *** Update File: src/app.py        (or `*** Add File:`, `*** Delete File:`)
    *** Move to: src/main.py           (may be left out)
    @@ def run():                      (a line above the change, may be left out; several narrow it down)
     a line that stays
    -a line that goes
    +a line that comes
    *** End of File                    (may be left out: the lines above are the last of the file)
    *** End Patch

A hunk is an edit: its lines that stay or go are found by `match_lines`, as those of `edit_file` are, between the hunk
before it and the end of the file, first in the block below its last `@@` line. It must have one place there, and its
result must be certain.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from dragoman.coder.edits.compose import Doubtful, replace_lines
from dragoman.coder.edits.indentation import indent_of
from dragoman.coder.edits.lines import BYTE_ORDER_MARK, FileLines, split_lines
from dragoman.coder.edits.matching import LineMatch, SeveralPlaces, match_lines
from dragoman.coder.edits.nearest import nearest_place

# Of one patch. More than this no user looks at.
MOST_FILES: Final = 50
MOST_HUNKS: Final = 200
# A file of more lines is no source; a search takes a second there.
MOST_LINES: Final = 200_000
_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_END_OF_FILE: Final = "*** End of File"
_MOVE: Final = "*** Move to: "
_HEADERS: Final[dict[str, Literal["add", "delete", "update"]]] = {
    "*** Add File: ": "add",
    "*** Delete File: ": "delete",
    "*** Update File: ": "update",
}


class PatchRefused(Exception):
    """A patch that cannot be read or made; the text says why, for the model."""


class Hunk(NamedTuple):
    """One change of a file: the lines it is below, and the old lines that become the new ones."""

    below: tuple[str, ...]
    old: list[str]
    new: list[str]
    is_at_end: bool = False


class FilePatch(NamedTuple):
    """What a patch does to one file. `text` is that of a new file; `moved_to` is empty where it stays."""

    kind: Literal["add", "delete", "update"]
    path: str
    moved_to: str = ""
    hunks: tuple[Hunk, ...] = ()
    text: str = ""


def parse_patch(text: str) -> list[FilePatch]:
    """Return the files of a patch. Raises `PatchRefused` for what is no patch, or more than one call may have."""
    lines = [line.rstrip("\r") for line in text.strip().split("\n")]
    if lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
        raise PatchRefused(f"A patch begins with the line {_BEGIN!r} and ends with {_END!r}.")
    starts = [at for at, line in enumerate(lines[:-1]) if line.startswith(tuple(_HEADERS))]
    if not starts or (starts[0] != 1 and any(line.strip() for line in lines[1 : starts[0]])):
        raise PatchRefused("The first line of a patch names a file: '*** Update File: PATH', Add or Delete.")
    if len(starts) > MOST_FILES:
        raise PatchRefused(f"A patch is for up to {MOST_FILES} files; this one has {len(starts)}.")
    ends = [*starts[1:], len(lines) - 1]
    patches = [_file(lines[start], lines[start + 1 : end]) for start, end in zip(starts, ends, strict=True)]
    if sum(len(patch.hunks) for patch in patches) > MOST_HUNKS:
        raise PatchRefused(f"A patch has up to {MOST_HUNKS} changes. Make several calls.")
    return patches


def patched(text: str, patch: FilePatch) -> str:
    """Return the text of a file after its hunks. Raises `PatchRefused` if one has no certain place."""
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    file = split_lines(text[len(mark) :])
    if len(file.bodies) > MOST_LINES:
        raise PatchRefused(f"{patch.path} has more than {MOST_LINES:,} lines and is not patched.")
    reached = 0
    for number, hunk in enumerate(patch.hunks, 1):
        try:
            file, reached = _with_hunk(file, hunk, reached)
        except Doubtful as doubt:
            which = f"change {number} of {len(patch.hunks)}" if len(patch.hunks) > 1 else "the change"
            raise PatchRefused(f"{patch.path}: {which} was not made: {doubt}") from None
    return mark + file.join()


# -- reading -----------------------------------------------------------------------------------------------------------


def _file(header: str, lines: Sequence[str]) -> FilePatch:
    prefix = next(one for one in _HEADERS if header.startswith(one))
    path, kind = header.removeprefix(prefix).strip(), _HEADERS[prefix]
    if not path:
        raise PatchRefused(f"{header.strip()!r} names no file.")
    if kind == "add":
        if any(not line.startswith("+") for line in lines):
            raise PatchRefused(f"{path}: every line of a new file begins with '+'.")
        return FilePatch(kind, path, text="".join(f"{line[1:]}\n" for line in lines))
    if kind == "delete":
        if any(line.strip() for line in lines):
            raise PatchRefused(f"{path}: nothing follows '{prefix.strip()} {path}'.")
        return FilePatch(kind, path)
    moved_to = ""
    if lines and lines[0].startswith(_MOVE):
        moved_to, lines = lines[0].removeprefix(_MOVE).strip(), lines[1:]
    hunks = tuple(_hunks(path, lines))
    if not hunks and not moved_to:
        raise PatchRefused(f"{path}: the patch has no change of it.")
    return FilePatch(kind, path, moved_to, hunks)


def _hunks(path: str, lines: Sequence[str]) -> Iterator[Hunk]:
    below: list[str] = []
    old: list[str] = []
    new: list[str] = []
    for line in [*lines, "@@"]:
        if line.startswith("@@") or line.strip() == _END_OF_FILE:
            if old or new:
                yield Hunk(tuple(below), old, new, is_at_end=line.strip() == _END_OF_FILE)
                below, old, new = [], [], []
            anchor = line[2:].strip().removesuffix("@@").strip()
            if line.startswith("@@") and anchor:
                below.append(anchor)
            continue
        sign, body = line[:1] or " ", line[1:]
        if sign not in " -+":
            raise PatchRefused(
                f"{path}: a line of a change begins with ' ', '-', '+' or '@@', and not as {line[:80]!r}."
            )
        old += [body] if sign in " -" else []
        new += [body] if sign in " +" else []


# -- making ------------------------------------------------------------------------------------------------------------


def _with_hunk(file: FileLines, hunk: Hunk, reached: int) -> tuple[FileLines, int]:
    """Return the file with a hunk, and the line behind it. Raises `Doubtful`."""
    if hunk.old == hunk.new:
        raise Doubtful("it changes nothing")
    if not any(line.strip() for line in hunk.old):
        return _appended(file, hunk)
    start = _below(file, hunk.below, reached)
    found = _place(file, hunk, start)
    part = replace_lines(file, found, hunk.old, hunk.new)
    bodies = [*file.bodies[: part.start], *part.bodies, *file.bodies[part.end :]]
    ends = [*file.ends[: part.start], *part.ends, *file.ends[part.end :]]
    return FileLines(bodies, ends), part.start + len(part.bodies)


def _appended(file: FileLines, hunk: Hunk) -> tuple[FileLines, int]:
    """Return the file with lines at its end: what a hunk without old lines means, if it says so or names no place."""
    if hunk.below and not hunk.is_at_end:
        raise Doubtful("it has no line of the file beside its new lines; give one that stays, above or below them")
    end = file.usual_end
    ends = [one or end for one in file.ends] + [end] * len(hunk.new)
    return FileLines([*file.bodies, *hunk.new], ends), len(ends)


def _below(file: FileLines, anchors: Sequence[str], reached: int) -> int:
    """Return the first line below the `@@` lines of a hunk, each looked for below the one before."""
    start = reached
    for anchor in anchors:
        places = [at for at in range(start, len(file.bodies)) if file.bodies[at].strip() == anchor]
        places = places or [at for at in range(start, len(file.bodies)) if file.bodies[at].strip().startswith(anchor)]
        if len(places) != 1:
            how_often = "is not" if not places else f"is {len(places)} times"
            raise Doubtful(f"the line '@@ {anchor}' {how_often} in the file there")
        start = places[0] + 1
    return start


def _block_end(file: FileLines, start: int) -> int:
    """Return the end of the block that the line before `start` opens: the first line that is no deeper."""
    depth = len(indent_of(file.bodies[start - 1]).expandtabs(8))
    for at in range(start, len(file.bodies)):
        body = file.bodies[at]
        if body.strip() and len(indent_of(body).expandtabs(8)) <= depth:
            return at
    return len(file.bodies)


def _place(file: FileLines, hunk: Hunk, start: int) -> LineMatch:
    """Return the one place of a hunk's old lines from a line on; else, without `@@` lines, in the whole file."""
    if hunk.is_at_end:
        start = max(start, len(file.bodies) - len(hunk.old) - 1)
    found = match_lines(file.bodies, hunk.old, start=start, end=_block_end(file, start)) if hunk.below else None
    found = found or match_lines(file.bodies, hunk.old, start=start)
    if found is None and start and not hunk.is_at_end:
        # The anchor itself may stand first among the lines of the hunk.
        found = match_lines(file.bodies, hunk.old, start=start - 1 if hunk.below else 0)
    if isinstance(found, LineMatch):
        return found
    if isinstance(found, SeveralPlaces):
        lines = ", ".join(str(line + 1) for line in found.lines)
        raise Doubtful(f"its lines are {found.places} times in the file (lines {lines}); give more of the lines around")
    nearest = nearest_place(file.bodies, hunk.old)
    if nearest is None:
        raise Doubtful("its lines are not in the file. Read the file and copy them exactly")
    raise Doubtful(
        f"its lines are not in the file. The nearest place is lines {nearest.first}-{nearest.last} "
        f"(- patch, + file):\n{nearest.difference}"
    )
