"""Looking through the workspace: what is in a folder, which files have such a name, which lines match.

All of it inside the roots, without following a link, and without what the tree's own rules leave out. Results are
sorted by path and bounded; where something was cut, a sentence says so. Searching is done by ripgrep where there is
one, else by a process of our own; a caller that is cancelled leaves neither behind. Names that are no text are shown
with a replacement character.
"""

import asyncio
import heapq
import json
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from typing import Any, Final, Literal, NamedTuple

from dragoman.errors import StartFailed, WorldError
from dragoman.host import ripgrep as rg
from dragoman.host import wildcards
from dragoman.host.errand import run_errand
from dragoman.host.finder import BINARY_BYTES, Hit
from dragoman.host.guardian import Guardian
from dragoman.host.ignore import Ignores
from dragoman.host.paths import PathRefused, Place
from dragoman.host.walk import WALK_DEPTH, WALK_ENTRIES, open_file, open_folder, rules_above, rules_inside
from dragoman.host.wildcards import PATTERN_CHARACTERS, PatternRefused

# What a model can use of one answer; more means that the question was too wide.
LISTED_ENTRIES: Final = 1_000
GLOB_RESULTS: Final = 1_000
GREP_RESULTS: Final = 100
MOST_GREP_RESULTS: Final = 1_000
# A line is shown up to this, around its match.
LINE_CHARACTERS: Final = 400
# 100,000 files take a second or two; a tree that takes this long should be asked about in parts.
SEARCH_SECONDS: Final = 30.0
# ripgrep's matches come in any order. Up to here they are sorted by us, past it ripgrep is asked for them in order.
GATHERED: Final = 10_000

Kind = Literal["file", "folder", "link", "other"]


class Entry(NamedTuple):
    """Something in a folder."""

    name: str
    kind: Kind


class Listing(NamedTuple):
    """A folder's entries by name; `cut` is empty or says what is missing."""

    entries: list[Entry]
    cut: str


class Files(NamedTuple):
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


class SearchFailed(WorldError):
    """A search that could not be done. The text is fit for the model."""


async def list_files(place: Place) -> Listing:
    """What is in one folder, hidden things included."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_list, place, stop)
    finally:
        stop.set()  # if we were cancelled: a thread cannot be, but it looks here


async def glob(pattern: str, place: Place, *, guardian: Guardian | None = None) -> Files:
    """The files below a folder whose paths from there match: `**/*.py`, `src/*.{c,h}`, `test_?.[ch]`."""
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
    answer = await _ask_searcher(request, lambda path, words: paths.append(path), guardian)
    if "refused" in answer and not base:
        raise SearchFailed(answer["refused"])
    return Files([_shown(place.root, path) for path in paths], _cut(answer, GLOB_RESULTS, "files"))


async def grep(
    pattern: str,
    place: Place,
    *,
    glob: str | None = None,
    case_insensitive: bool = False,
    max_results: int = GREP_RESULTS,
    ripgrep: str | None = None,
    guardian: Guardian | None = None,
) -> Matches:
    """The lines that match a regular expression, in a file or below a folder.

    `glob` chooses files: by name (`*.py`), or with a slash by the path from the folder (`src/**/*.py`). `ripgrep` is
    the program to use (`ripgrep.find_ripgrep`); without it, or where it does not know the expression, we search.
    """
    search = _Search(
        pattern=pattern,
        place=place,
        is_file=await _kind(place) == "file",
        file_patterns=[_relative(each, place) for each in wildcards.expand_braces(glob)] if glob else [],
        ignore_case=case_insensitive,
        limit=max(1, min(max_results, MOST_GREP_RESULTS)),
        guardian=guardian,
    )
    if not pattern or "\0" in pattern or len(pattern) > PATTERN_CHARACTERS:
        raise PatternRefused(f"A pattern of 1 to {PATTERN_CHARACTERS} characters is needed.")
    outcome = await _by_ripgrep(search, ripgrep) if ripgrep is not None else None
    if outcome is None:
        outcome = await _by_searcher(search)
    return Matches(await asyncio.to_thread(_with_text, place.root, outcome.found), outcome.cut)


# --- a folder


def _list(place: Place, stop: threading.Event) -> Listing:
    try:
        fd = open_folder(place)
    except OSError as error:
        raise PathRefused(f"{place.path}: {(error.strerror or 'it cannot be opened').lower()}.") from error
    try:
        with os.scandir(fd) as scan:
            seen = (Entry(entry.name, _entry_kind(entry)) for entry in islice(scan, WALK_ENTRIES) if not stop.is_set())
            entries = heapq.nsmallest(LISTED_ENTRIES + 1, seen)
    finally:
        os.close(fd)
    cut = f"Only the first {LISTED_ENTRIES} entries are shown." if len(entries) > LISTED_ENTRIES else ""
    return Listing([Entry(_as_text(name), kind) for name, kind in entries[:LISTED_ENTRIES]], cut)


def _entry_kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


async def _kind(place: Place) -> Kind:
    """What is to be searched; refused if it is neither file nor folder."""
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
    """A pattern seen from the place; an absolute one if it leads there."""
    pattern = pattern.removeprefix(place.path.rstrip("/") + "/").removeprefix("./")
    if pattern.startswith("/"):
        raise PatternRefused(f"The pattern starts outside of {place.path}; patterns are relative to the path.")
    if ".." in pattern.split("/"):
        raise PatternRefused("The pattern leads upwards (..); give the folder as the path instead.")
    return f"{pattern}**" if pattern.endswith("/") else pattern


def _scope(patterns: Sequence[str]) -> tuple[list[str], int]:
    """The folders all patterns begin with, and how deep below them there can be a match."""
    split = [pattern.split("/") for pattern in patterns]
    base: list[str] = []
    for names in zip(*(each[:-1] for each in split), strict=False):
        if len(set(names)) > 1 or not names[0] or any(sign in names[0] for sign in "*?[\\"):
            break
        base.append(names[0])
    if any("**" in name for each in split for name in each):
        return base, WALK_DEPTH
    return base, max(len(each) for each in split) - 1 - len(base)


# --- lines that match


class _Search(NamedTuple):
    pattern: str
    place: Place
    is_file: bool
    file_patterns: list[str]
    ignore_case: bool
    limit: int
    guardian: Guardian | None


class _Found(NamedTuple):
    """A hit in a file, by its path from the root."""

    path: str
    hit: Hit


class _Outcome(NamedTuple):
    found: list[_Found]
    cut: str


async def _by_searcher(search: _Search) -> _Outcome:
    request = {
        "task": "grep",
        "root": search.place.root,
        "parts": search.place.parts,
        "pattern": search.pattern,
        "is_file": search.is_file,
        "patterns": search.file_patterns,
        "ignore_case": search.ignore_case,
        "limit": search.limit,
    }
    found: list[_Found] = []

    def take(path: str, words: str) -> None:
        line, column, offset, _ = words.split(":")
        found.append(_Found(path, Hit(int(line), int(column), int(offset))))

    answer = await _ask_searcher(request, take, search.guardian)
    if "refused" in answer:
        raise SearchFailed(answer["refused"])
    return _Outcome(found, _cut(answer, search.limit, "matches"))


async def _by_ripgrep(search: _Search, ripgrep: str) -> _Outcome | None:
    """None if ripgrep cannot: it does not know the expression, or it does not start."""
    try:
        above = await asyncio.to_thread(rules_above, search.place)
        gathered = await _gather(search, ripgrep, above, in_order=False)
        if gathered.has_overflowed:
            gathered = await _gather(search, ripgrep, above, in_order=True)
    except (OSError, StartFailed):
        return None
    if gathered.has_failed:
        return None
    kept = await asyncio.to_thread(_what_counts, search, gathered.found, above)
    cut = ""
    if len(kept) > search.limit or gathered.has_overflowed:
        cut = _first_only(search.limit, "matches")
    elif gathered.is_late:
        cut = _TOO_LATE
    return _Outcome(kept[: search.limit], cut)


class _Gathered(NamedTuple):
    found: list[rg.Found]
    has_overflowed: bool
    is_late: bool
    has_failed: bool


async def _gather(search: _Search, ripgrep: str, above: Ignores, *, in_order: bool) -> _Gathered:
    place = search.place
    records = rg.Records()
    found: list[rg.Found] = []

    def take(data: bytes) -> bool:
        found.extend(records.feed(data))
        return len(found) <= GATHERED

    argv = rg.command(
        ripgrep,
        search.pattern,
        place.parts[-1] if search.is_file and place.parts else "",
        ignore_case=search.ignore_case,
        file_patterns=[] if search.is_file else search.file_patterns,
        in_order=in_order,
    )
    ended = await run_errand(
        argv,
        cwd=os.path.dirname(place.path) if search.is_file else place.path,
        env={},
        input=_more_rules(above),
        take=take,
        seconds=SEARCH_SECONDS,
        guardian=search.guardian,
    )
    has_failed = ended.exit_code not in (0, 1, None) and bool(ended.complaint)
    return _Gathered(found, len(found) > GATHERED, ended.is_late, has_failed)


def _more_rules(above: Ignores) -> bytes:
    """Rules that save ripgrep work, not rules it is trusted with: as many as fit."""
    lines = os.fsencode("".join(f"{line}\n" for line in above.floating()))
    return lines if len(lines) <= 32 * 1024 else b""


def _what_counts(search: _Search, found: Iterable[rg.Found], above: Ignores) -> list[_Found]:
    """The hits in files that our own rules and patterns want, in order."""
    place = search.place
    if search.is_file:
        return [_Found("/".join(place.parts), hit) for _, hit in sorted(found, key=lambda each: each.hit)]
    base = "".join(f"{part}/" for part in place.parts)
    wanted = wildcards.file_filter(search.file_patterns)
    rules: dict[str, Ignores | None] = {"": rules_inside(place, above)}

    def rules_of(folder: str) -> Ignores | None:
        """The rules in a folder; None if it is left out itself."""
        if folder not in rules:
            outer, _, name = folder[:-1].rpartition("/")
            outer = f"{outer}/" if outer else ""
            around = rules_of(outer)
            left_out = around is None or around.leave_out(base + outer, name, is_folder=True)
            inner = Place(place.root, (*place.parts, *folder[:-1].split("/")))
            rules[folder] = None if around is None or left_out else rules_inside(inner, around)
        return rules[folder]

    kept = []
    for path, hits in groupby(sorted(found, key=_order), key=lambda each: each.path):
        folder, slash, name = path.rpartition("/")
        folder += slash
        around = rules_of(folder)
        if around is None or around.leave_out(base + folder, name, is_folder=False):
            continue
        if wanted is None or wanted(folder, name):
            kept += [_Found(base + path, each.hit) for each in hits]
    return kept


def _order(found: rg.Found) -> tuple[list[str], Hit]:
    return found.path.split("/"), found.hit


def _with_text(root: str, found: Sequence[_Found]) -> list[Match]:
    """The lines themselves, read from files that are opened from the root without following a link."""
    matches = []
    for path, hits in groupby(found, key=lambda each: each.path):
        shown = _shown(root, path)
        try:
            fd = open_file(Place(root, tuple(path.split("/"))))
        except OSError:
            continue
        try:
            if b"\0" not in os.pread(fd, BINARY_BYTES, 0):
                matches += [Match(shown, each.hit.line, _line(fd, each.hit)) for each in hits]
        except OSError:
            continue
        finally:
            os.close(fd)
    return matches


def _line(fd: int, hit: Hit) -> str:
    before = LINE_CHARACTERS // 2
    skipped = max(0, hit.column - 1 - before)
    data = os.pread(fd, 4 * LINE_CHARACTERS + 4, hit.offset + skipped).partition(b"\n")[0].removesuffix(b"\r")
    if skipped:
        data = data.lstrip(bytes(range(0x80, 0xC0)))  # the rest of a character that was cut
    text = data.decode("utf-8", "replace")
    return ("…" if skipped else "") + (text if len(text) <= LINE_CHARACTERS else f"{text[:LINE_CHARACTERS]}…")


# --- our own process

_PACKAGE_FOLDER: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Without site and without the environment: quick, and nothing of the workspace is imported.
_SEARCHER: Final = "import sys; sys.path.insert(0, sys.argv[1]); from dragoman.host.searcher import main; main()"
_TOO_LATE: Final = f"The search was stopped after {SEARCH_SECONDS:g} s; search in a smaller folder for the rest."


async def _ask_searcher(
    request: dict[str, Any], take: Callable[[str, str], None], guardian: Guardian | None
) -> dict[str, Any]:
    """Hands over every record, and returns how the searcher ended; `late` if it did not."""
    answer: dict[str, Any] = {}
    rest = bytearray()

    def take_data(data: bytes) -> bool:
        rest.extend(data)
        # A path may hold a newline, so a record ends with the first one after its NUL.
        while (nul := rest.find(b"\0")) >= 0 and (end := rest.find(b"\n", nul)) >= 0:
            path, words = os.fsdecode(bytes(rest[:nul])), rest[nul + 1 : end].decode()
            del rest[: end + 1]
            if path:
                take(path, words)
            else:
                answer.update(json.loads(words))
        return True

    argv = [sys.executable, "-I", "-S", "-c", _SEARCHER, _PACKAGE_FOLDER]
    ended = await run_errand(
        argv,
        cwd="/",
        env={},
        input=json.dumps(request).encode() + b"\n",
        take=take_data,
        seconds=SEARCH_SECONDS,
        guardian=guardian,
    )
    if ended.is_late:
        return {"late": True}
    return answer or {"refused": "The search ended before it was done; search in a smaller folder."}


def _cut(answer: dict[str, Any], limit: int, things: str) -> str:
    if answer.get("late"):
        return _TOO_LATE
    if answer.get("more"):
        return _first_only(limit, things)
    if answer.get("walk_cut"):
        return "The folder is too large or too deep to be searched to the end; search in a smaller one."
    return ""


def _first_only(limit: int, things: str) -> str:
    return f"Only the first {limit} {things} are shown; narrow the search for the rest."


def _shown(root: str, path: str) -> str:
    return _as_text(os.path.join(root, path))


def _as_text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")
