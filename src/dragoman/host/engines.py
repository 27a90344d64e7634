"""Who looks for lines that match: ripgrep where there is one, else a process of our own. Same question, same answer.

ripgrep walks by itself and quicker than we do, but its word is not final: what it finds is held against our own rules
and patterns. Neither process outlives the question.
"""

import asyncio
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby
from typing import Any, Final, NamedTuple

from dragoman.errors import StartFailed, WorldError
from dragoman.host import ripgrep as rg
from dragoman.host import wildcards
from dragoman.host.finder import FinderHit
from dragoman.host.guardian import Guardian
from dragoman.host.ignore import EXCLUDE_FILE, GIT_FILE, OWN_FILE, Ignores
from dragoman.host.paths import Place
from dragoman.host.run_to_end import run_to_end
from dragoman.host.secrets import is_credential
from dragoman.host.walk import rules_above, rules_inside

# 100,000 files take a second or two; a tree that takes this long should be asked about in parts.
SEARCH_SECONDS: Final = 30.0
# ripgrep's matches come in any order. Up to here they are sorted by us, past it ripgrep is asked for them in order.
GATHERED: Final = 10_000


class SearchFailed(WorldError):
    """A search that could not be done. The text is fit for the model."""


class SearchRequest(NamedTuple):
    """What is looked for, and where."""

    pattern: str
    place: Place
    is_file: bool
    file_patterns: list[str]
    ignore_case: bool
    limit: int
    credentials_of: str | None
    without: tuple[str, ...]  # real paths, each with a slash at its end
    guardian: Guardian | None


class SearchHit(NamedTuple):
    """A hit in a file, by its path from the root."""

    path: str
    hit: FinderHit


class SearchOutcome(NamedTuple):
    """The first hits by path and line; `cut` is empty or says what is missing."""

    found: list[SearchHit]
    cut: str


async def by_searcher(search: SearchRequest) -> SearchOutcome:
    """Search in a process of our own."""
    request = {
        "task": "grep",
        "root": search.place.root,
        "parts": search.place.parts,
        "pattern": search.pattern,
        "is_file": search.is_file,
        "patterns": search.file_patterns,
        "ignore_case": search.ignore_case,
        "limit": search.limit,
        "credentials_of": search.credentials_of,
        "without": search.without,
    }
    found: list[SearchHit] = []

    def on_output(path: str, words: str) -> None:
        line, column, offset, _ = words.split(":")
        found.append(SearchHit(path, FinderHit(int(line), int(column), int(offset))))

    answer = await ask_searcher(request, on_output, search.guardian)
    if "refused" in answer:
        raise SearchFailed(answer["refused"])
    found.sort(key=_order)
    cut = _first_only(search.limit, "matches") if len(found) > search.limit else cut_by(answer, search.limit, "matches")
    return SearchOutcome(found[: search.limit], cut)


async def by_ripgrep(search: SearchRequest, ripgrep: str) -> SearchOutcome | None:
    """Search with ripgrep; None if it cannot: it refuses the expression, does not start, or would wait for rules."""
    try:
        if await asyncio.to_thread(_would_wait, search.place.path):
            return None
        above = await asyncio.to_thread(rules_above, search.place)
        gathered = await _gather(search, ripgrep, above, in_order=False)
        if gathered.has_overflowed:
            gathered = await _gather(search, ripgrep, above, in_order=True)
    except (OSError, StartFailed):
        return None
    if gathered.has_failed:
        return None
    counted = await asyncio.to_thread(_what_counts, search, gathered.found, above)
    cut = ""
    if len(counted) > search.limit or gathered.has_overflowed:
        cut = _first_only(search.limit, "matches")
    elif gathered.timed_out:
        cut = _TOO_LATE
    return SearchOutcome(counted[: search.limit], cut)


def _would_wait(folder: str) -> bool:
    """Return whether a pipe or a device stands in the place of a file of rules, which ripgrep would read to its end."""
    for name in (GIT_FILE, OWN_FILE, ".rgignore", EXCLUDE_FILE):
        with suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISREG(os.stat(os.path.join(folder, name)).st_mode):
                return True
    return False


class _Gathered(NamedTuple):
    found: list[rg.RipgrepLine]
    has_overflowed: bool
    timed_out: bool
    has_failed: bool


async def _gather(search: SearchRequest, ripgrep: str, above: Ignores, *, in_order: bool) -> _Gathered:
    place = search.place
    records = rg.Records()
    found: list[rg.RipgrepLine] = []

    def on_output(data: bytes) -> bool:
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
    ended = await run_to_end(
        argv,
        cwd=os.path.dirname(place.path) if search.is_file else place.path,
        env={},
        input=_more_rules(above),
        on_output=on_output,
        seconds=SEARCH_SECONDS,
        guardian=search.guardian,
    )
    has_failed = ended.exit_code not in (0, 1, None) and bool(ended.stderr_tail)
    return _Gathered(found, len(found) > GATHERED, ended.timed_out, has_failed)


def _more_rules(above: Ignores) -> bytes:
    """Rules that save ripgrep work, not rules it is trusted with: as many as fit."""
    lines = os.fsencode("".join(f"{line}\n" for line in above.floating()))
    return lines if len(lines) <= 32 * 1024 else b""


def _what_counts(search: SearchRequest, found: Iterable[rg.RipgrepLine], above: Ignores) -> list[SearchHit]:
    """Return the hits in files that our own rules and patterns want, in order."""
    place = search.place
    if search.is_file:
        return [SearchHit("/".join(place.parts), hit) for _, hit in sorted(found, key=lambda each: each.hit)]
    base = "".join(f"{part}/" for part in place.parts)
    wanted = wildcards.file_filter(search.file_patterns)
    rules: dict[str, Ignores | None] = {"": rules_inside(place, above)}

    def rules_of(folder: str) -> Ignores | None:
        """Return the rules in a folder; None if it is left out itself."""
        if folder not in rules:
            outer, _, name = folder[:-1].rpartition("/")
            outer = f"{outer}/" if outer else ""
            around = rules_of(outer)
            left_out = around is None or around.leave_out(base + outer, name, is_folder=True)
            inner = Place(place.root, (*place.parts, *folder[:-1].split("/")))
            rules[folder] = None if around is None or left_out else rules_inside(inner, around)
        return rules[folder]

    counted = []
    for path, hits in groupby(sorted(found, key=_order), key=lambda each: each.path):
        folder, slash, name = path.rpartition("/")
        folder += slash
        around = rules_of(folder)
        if around is None or around.leave_out(base + folder, name, is_folder=False):
            continue
        whole = f"{place.path.rstrip('/')}/{path}"
        if f"{whole}/".startswith(search.without):
            continue
        if search.credentials_of is not None and is_credential(whole, search.credentials_of):
            continue
        if wanted is None or wanted(folder, name):
            counted += [SearchHit(base + path, each.hit) for each in hits]
    return counted


def _order(found: rg.RipgrepLine | SearchHit) -> tuple[list[str], FinderHit]:
    return found.path.split("/"), found.hit


# --- our own process

_PACKAGE_FOLDER: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Without site and without the environment: quick, and nothing of the workspace is imported.
_SEARCHER: Final = "import sys; sys.path.insert(0, sys.argv[1]); from dragoman.host.searcher import main; main()"
_TOO_LATE: Final = f"The search was stopped after {SEARCH_SECONDS:g} s; search in a smaller folder for the rest."


async def ask_searcher(
    request: dict[str, Any], on_output: Callable[[str, str], None], guardian: Guardian | None
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
                on_output(path, words)
            else:
                answer.update(json.loads(words))
        return True

    argv = [sys.executable, "-I", "-S", "-c", _SEARCHER, _PACKAGE_FOLDER]
    ended = await run_to_end(
        argv,
        cwd="/",
        env={},
        input=json.dumps(request).encode() + b"\n",
        on_output=take_data,
        seconds=SEARCH_SECONDS,
        guardian=guardian,
    )
    if ended.timed_out:
        return {"late": True}
    return answer or {"refused": "The search ended before it was done; search in a smaller folder."}


def cut_by(answer: dict[str, Any], limit: int, things: str) -> str:
    """Return what an answer of our own process lacks, in a sentence."""
    if answer.get("late"):
        return _TOO_LATE
    if answer.get("more"):
        return _first_only(limit, things)
    if answer.get("walk_cut"):
        return "The folder is too large or too deep to be searched to the end; search in a smaller one."
    return ""


def _first_only(limit: int, things: str) -> str:
    return f"Only the first {limit} {things} are shown; narrow the search for the rest."
