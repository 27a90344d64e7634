"""Looking through the workspace: what is in a folder, which files have such a name, which lines match.

All of it inside the roots, without following a link, and without what the tree's own rules leave out. Results are
sorted by path and bounded; where something was cut, a sentence says so. Searching is done by ripgrep where there is
one, else by a process of our own; a caller that is cancelled leaves neither behind. Names that are no text are shown
with a replacement character.
"""

import asyncio
import heapq
import os
import stat
import threading
from collections.abc import Sequence
from itertools import groupby, islice
from typing import Final, Literal, NamedTuple

from dragoman.host import wildcards
from dragoman.host.decoding import decode_text
from dragoman.host.engines import SearchFailed, SearchHit, SearchRequest, ask_searcher, by_ripgrep, by_searcher, cut_by
from dragoman.host.finder import BINARY_BYTES, FinderHit
from dragoman.host.guardian import Guardian
from dragoman.host.paths import PathRefused, Place
from dragoman.host.walk import WALK_DEPTH, WALK_ENTRIES, open_file, open_folder
from dragoman.host.wildcards import PATTERN_CHARACTERS, PatternRefused

# What a model can use of one answer; more means that the question was too wide.
LISTED_ENTRIES: Final = 1_000
GLOB_RESULTS: Final = 1_000
GREP_RESULTS: Final = 100
MOST_GREP_RESULTS: Final = 1_000
# A line is shown up to this, around its match.
LINE_CHARACTERS: Final = 400

Kind = Literal["file", "folder", "link", "other"]


class FolderEntry(NamedTuple):
    """Something in a folder."""

    name: str
    kind: Kind


class Listing(NamedTuple):
    """A folder's entries by name; `cut` is empty or says what is missing."""

    entries: list[FolderEntry]
    cut: str


class FoundFiles(NamedTuple):
    """Absolute paths, sorted; `cut` is empty or says what is missing."""

    paths: list[str]
    cut: str


class Match(NamedTuple):
    """A line that matches: absolute path, line number from 1, and the line, if long only what is around the match."""

    path: str
    line: int
    text: str


class Matches(NamedTuple):
    """Matching lines by path and number; `cut` is empty or says what is missing."""

    matches: list[Match]
    cut: str


async def list_files(place: Place) -> Listing:
    """Return what is in one folder, hidden things included."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_list, place, stop)
    finally:
        stop.set()  # if we were cancelled: a thread cannot be, but it looks here


async def glob(pattern: str, place: Place, *, guardian: Guardian | None = None) -> FoundFiles:
    """Return the files below a folder whose paths from there match: `**/*.py`, `src/*.{c,h}`, `test_?.[ch]`."""
    patterns = [_relative(each, place) for each in wildcards.expand_braces(pattern)]
    base, depth = _scope(patterns)
    if await _kind(place) != "folder":
        raise PathRefused(f"{place.path} is not a folder.")
    request = {
        "task": "glob",
        "root": place.root,
        "parts": [*place.parts, *base],
        "base": list(place.parts),
        "patterns": patterns,
        "depth": depth,
        "limit": GLOB_RESULTS,
    }
    paths: list[str] = []
    answer = await ask_searcher(request, lambda path, words: paths.append(path), guardian)
    if "refused" in answer and not base:
        raise SearchFailed(answer["refused"])
    return FoundFiles([_shown(place.root, path) for path in paths], cut_by(answer, GLOB_RESULTS, "files"))


async def grep(
    pattern: str,
    place: Place,
    *,
    glob: str | None = None,
    case_insensitive: bool = False,
    max_results: int = GREP_RESULTS,
    credentials_of: str | None = None,
    without: Sequence[str] = (),
    ripgrep: str | None = None,
    guardian: Guardian | None = None,
) -> Matches:
    """Return the lines that match a regular expression, in a file or below a folder.

    Files that hold credentials are left out if `credentials_of` is a home folder, and neither found nor counted.
    So is what lies at or below the real paths `without`.
    `glob` chooses files: by name (`*.py`), or with a slash by the path from the folder (`src/**/*.py`). `ripgrep` is
    the program to use (`ripgrep.find_ripgrep`); without it, or where it does not know the expression, we search.
    """
    search = SearchRequest(
        pattern=pattern,
        place=place,
        is_file=await _kind(place) == "file",
        file_patterns=[_relative(each, place) for each in wildcards.expand_braces(glob)] if glob else [],
        ignore_case=case_insensitive,
        limit=max(1, min(max_results, MOST_GREP_RESULTS)),
        credentials_of=credentials_of,
        without=tuple(f"{path.rstrip('/')}/" for path in without),
        guardian=guardian,
    )
    if not pattern or "\0" in pattern or len(pattern) > PATTERN_CHARACTERS:
        raise PatternRefused(f"A pattern of 1 to {PATTERN_CHARACTERS} characters is needed.")
    outcome = await by_ripgrep(search, ripgrep) if ripgrep is not None else None
    if outcome is None:
        outcome = await by_searcher(search)
    return Matches(await asyncio.to_thread(_with_text, place.root, outcome.found), outcome.cut)


# --- a folder


def _list(place: Place, stop: threading.Event) -> Listing:
    try:
        fd = open_folder(place)
    except OSError as error:
        raise PathRefused(f"{place.path}: {(error.strerror or 'it cannot be opened').lower()}.") from error
    try:
        with os.scandir(fd) as scan:
            seen = (
                FolderEntry(entry.name, _entry_kind(entry)) for entry in islice(scan, WALK_ENTRIES) if not stop.is_set()
            )
            entries = heapq.nsmallest(LISTED_ENTRIES + 1, seen)
    finally:
        os.close(fd)
    cut = f"Only the first {LISTED_ENTRIES} entries are shown." if len(entries) > LISTED_ENTRIES else ""
    return Listing([FolderEntry(_as_text(name), kind) for name, kind in entries[:LISTED_ENTRIES]], cut)


def _entry_kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


async def _kind(place: Place) -> Kind:
    """Return what is to be searched; refused if it is neither file nor folder."""
    try:
        mode = os.stat(place.path, follow_symlinks=False).st_mode
    except OSError as error:
        raise PathRefused(f"{place.path}: {(error.strerror or 'it cannot be opened').lower()}.") from error
    if stat.S_ISDIR(mode):
        return "folder"
    if not stat.S_ISREG(mode):
        raise PathRefused(f"{place.path} is neither a file nor a folder.")
    return "file"


# --- patterns for files


def _relative(pattern: str, place: Place) -> str:
    """Return a pattern seen from the place; an absolute one if it leads there."""
    pattern = pattern.removeprefix(place.path.rstrip("/") + "/").removeprefix("./")
    if pattern.startswith("/"):
        raise PatternRefused(f"The pattern starts outside of {place.path}; patterns are relative to the path.")
    if ".." in pattern.split("/"):
        raise PatternRefused("The pattern leads upwards (..); give the folder as the path instead.")
    return f"{pattern}**" if pattern.endswith("/") else pattern


def _scope(patterns: Sequence[str]) -> tuple[list[str], int]:
    """Return the folders all patterns begin with, and how deep below them there can be a match."""
    split = [pattern.split("/") for pattern in patterns]
    base: list[str] = []
    for names in zip(*(each[:-1] for each in split), strict=False):
        if len(set(names)) > 1 or not names[0] or any(sign in names[0] for sign in "*?[\\"):
            break
        base.append(names[0])
    if any("**" in name for each in split for name in each):
        return base, WALK_DEPTH
    return base, max(len(each) for each in split) - 1 - len(base)


# --- the lines themselves


def _with_text(root: str, found: Sequence[SearchHit]) -> list[Match]:
    """Return the lines themselves, read from files that are opened from the root without following a link."""
    matches = []
    for path, hits in groupby(found, key=lambda each: each.path):
        shown = _shown(root, path)
        try:
            fd = open_file(Place(root, tuple(path.split("/"))))
        except OSError:
            continue
        try:
            if is_searched(os.pread(fd, BINARY_BYTES, 0)):
                matches += [Match(shown, each.hit.line, _line(fd, each.hit)) for each in hits]
        except OSError:
            continue
        finally:
            os.close(fd)
    return matches


def is_searched(beginning: bytes) -> bool:
    """Return whether `grep` reports matches in a file that begins like this: it is text, and in UTF-8."""
    decoded = decode_text(beginning, is_cut=True)
    return decoded is not None and decoded.encoding == "UTF-8"


def _line(fd: int, hit: FinderHit) -> str:
    before = LINE_CHARACTERS // 2
    skipped = max(0, hit.column - 1 - before)
    data = os.pread(fd, 4 * LINE_CHARACTERS + 4, hit.offset + skipped).partition(b"\n")[0].removesuffix(b"\r")
    if skipped:
        data = data.lstrip(bytes(range(0x80, 0xC0)))  # the rest of a character that was cut
    text = data.decode("utf-8", "replace")
    return ("…" if skipped else "") + (text if len(text) <= LINE_CHARACTERS else f"{text[:LINE_CHARACTERS]}…")


def _shown(root: str, path: str) -> str:
    return _as_text(os.path.join(root, path))


def _as_text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")
