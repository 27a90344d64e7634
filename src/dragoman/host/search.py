"""Looking through the workspace: what is in a folder, which files have such a name, which lines match.

All of it inside the roots, without following a link, and without what the tree's own rules leave out. Results are
sorted by path and bounded; where something was cut, a sentence says so. Searching is done by ripgrep, of which a caller
that is cancelled leaves nothing behind; what it finds is looked up again from the root, through no link, before it is
shown. Names that are no text are shown with a replacement character.
"""

import asyncio
import heapq
import os
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import Final, Literal, NamedTuple

from dragoman.host import ignore, wildcards
from dragoman.host.decoding import decode_text
from dragoman.host.guardian import Guardian
from dragoman.host.paths import PathRefused, Place, open_file, open_folder
from dragoman.host.ripgrep import SEARCH_SECONDS, RipgrepResult, RipgrepSearch, SearchFailed, SearchHit, run_ripgrep
from dragoman.host.secrets import is_credential
from dragoman.host.wildcards import PATTERN_CHARACTERS, PatternRefused

# A NUL this early means that a file is no text at all.
BINARY_BYTES: Final = 64 * 1024
# Of a folder with more entries, the first of some are shown.
LISTED_FROM: Final = 1_000_000
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


async def glob(
    pattern: str, place: Place, *, ripgrep: str | None = None, guardian: Guardian | None = None
) -> FoundFiles:
    """Return the files below a folder whose paths from there match: `**/*.py`, `src/*.{c,h}`, `test_?.[ch]`.

    `ripgrep` is the program to use (`ripgrep.find_ripgrep`); raises `SearchFailed` without one.
    """
    patterns = [_relative(each, place) for each in wildcards.expand_braces(pattern)]
    base, depth = _scope(patterns)
    if await _kind(place) != "folder":
        raise PathRefused(f"{place.path} is not a folder.")
    folder = Place(place.root, (*place.parts, *base))
    try:
        os.close(open_folder(folder))
    except OSError:  # a pattern may begin with folders that are not there
        return FoundFiles([], "")
    matches = wildcards.path_matcher(patterns)
    start = _length(place)
    depth_options = [] if depth is None else [f"--max-depth={depth + 1}"]
    found = await _search(
        None, folder, ripgrep, depth_options, patterns, lambda path: matches(path[start:]), GLOB_RESULTS, guardian
    )
    paths = await asyncio.to_thread(_still_there, place.root, found.hits)
    return FoundFiles([_shown(place.root, path) for path in paths], _cut(found, GLOB_RESULTS, "files"))


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
    the program to use (`ripgrep.find_ripgrep`); raises `SearchFailed` without one, or where it refuses the expression.
    """
    is_file = await _kind(place) == "file"
    patterns = [_relative(each, place) for each in wildcards.expand_braces(glob)] if glob and not is_file else []
    _check_expression(pattern)
    limit = max(1, min(max_results, MOST_GREP_RESULTS))
    wanted = wildcards.file_filter(patterns)
    start = _length(place)
    excluded = tuple(f"{path.rstrip('/')}/" for path in without)

    def accepts(path: str) -> bool:
        whole = f"{place.root.rstrip('/')}/{path}"
        folder, slash, name = path[start:].rpartition("/")
        return (
            (wanted is None or wanted(folder + slash, name))
            and not f"{whole}/".startswith(excluded)
            and (credentials_of is None or not is_credential(whole, credentials_of))
        )

    case = ["--ignore-case" if case_insensitive else "--case-sensitive"]
    found = await _search(
        pattern, place, ripgrep, case, patterns, (lambda _: True) if is_file else accepts, limit, guardian
    )
    if is_file and found.is_partial:  # told of a file that was named, and of no other: it may hold credentials
        raise SearchFailed("The pattern takes too long on this text, or the file cannot be read; use a simpler one.")
    cut = _cut(found, limit, "matches")
    if not found.hits and not cut and r"\n" in pattern:
        cut = r"A match lies within one line, so \n matches nothing."
    return Matches(await asyncio.to_thread(_with_text, place.root, found.hits), cut)


async def _search(
    pattern: str | None,
    place: Place,
    ripgrep: str | None,
    options: Sequence[str],
    patterns: Sequence[str],
    accepts: Callable[[str], bool],
    limit: int,
    guardian: Guardian | None,
) -> RipgrepResult:
    """Run ripgrep with the rules that it is not let read itself."""
    rules = await asyncio.to_thread(ignore.rules_above, place)
    options = [*options, *await asyncio.to_thread(ignore.options_for, place.path)]
    return await run_ripgrep(ripgrep, RipgrepSearch(pattern, place, options, patterns, rules, accepts, limit), guardian)


def _cut(found: RipgrepResult, limit: int, things: str) -> str:
    """Return what a result lacks, in a sentence."""
    if found.has_more:
        return f"Only the first {limit} {things} are shown; narrow the search for the rest."
    if found.timed_out:
        return f"The search was stopped after {SEARCH_SECONDS:g} s; search in a smaller folder for the rest."
    return ""


# --- a folder


def _list(place: Place, stop: threading.Event) -> Listing:
    try:
        fd = open_folder(place)
    except OSError as error:
        raise PathRefused(f"{place.path}: {(error.strerror or 'it cannot be opened').lower()}.") from error
    try:
        with os.scandir(fd) as scan:
            seen = (
                FolderEntry(entry.name, _entry_kind(entry)) for entry in islice(scan, LISTED_FROM) if not stop.is_set()
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


def _check_expression(pattern: str) -> None:
    if not pattern or "\0" in pattern or len(pattern) > PATTERN_CHARACTERS:
        raise PatternRefused(f"A pattern of 1 to {PATTERN_CHARACTERS} characters is needed.")
    if "\n" in pattern:
        raise PatternRefused("The pattern has a line break, but a match lies within one line; search for a part.")
    try:
        pattern.encode()
    except UnicodeEncodeError:
        raise PatternRefused("The pattern holds half a character.") from None


def _length(place: Place) -> int:
    """Return how many characters of a path from the root belong to a folder."""
    return sum(len(part) + 1 for part in place.parts)


def _scope(patterns: Sequence[str]) -> tuple[list[str], int | None]:
    """Return the folders all patterns begin with, and how deep below them a match can be; None if at any depth."""
    split = [pattern.split("/") for pattern in patterns]
    base: list[str] = []
    for names in zip(*(each[:-1] for each in split), strict=False):
        if len(set(names)) > 1 or not names[0] or any(sign in names[0] for sign in "*?[\\"):
            break
        base.append(names[0])
    if any("**" in name for each in split for name in each):
        return base, None
    return base, max(len(each) for each in split) - 1 - len(base)


# --- what was found, looked up again


def _still_there(root: str, hits: Sequence[SearchHit]) -> list[str]:
    """Return the paths that are files when they are looked up from the root without following a link.

    ripgrep goes by names: a folder that was swapped for a link meanwhile would tell what is in another one.
    """
    found = []
    for folder, group in groupby(hits, key=lambda hit: hit.path.rpartition("/")[0]):
        try:
            fd = open_folder(Place(root, tuple(folder.split("/")) if folder else ()))
        except OSError:
            continue
        try:
            for hit in group:
                with suppress(OSError):
                    status = os.stat(hit.path.rpartition("/")[2], dir_fd=fd, follow_symlinks=False)
                    found += [hit.path] * stat.S_ISREG(status.st_mode)
        finally:
            os.close(fd)
    return found


def _with_text(root: str, found: Sequence[SearchHit]) -> list[Match]:
    """Return the lines themselves, read from files that are opened from the root without following a link."""
    matches = []
    for path, hits in groupby(found, key=lambda hit: hit.path):
        shown = _shown(root, path)
        try:
            fd = open_file(Place(root, tuple(path.split("/"))))
        except OSError:
            continue
        try:
            if is_searched(os.pread(fd, BINARY_BYTES, 0)):
                matches += [Match(shown, hit.line, _line(fd, hit)) for hit in hits]
        except OSError:
            continue
        finally:
            os.close(fd)
    return matches


def is_searched(beginning: bytes) -> bool:
    """Return whether `grep` reports matches in a file that begins like this: it is text, and in UTF-8."""
    decoded = decode_text(beginning, is_cut=True)
    return decoded is not None and decoded.encoding == "UTF-8"


def _line(fd: int, hit: SearchHit) -> str:
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
