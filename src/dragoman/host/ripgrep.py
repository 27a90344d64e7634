"""ripgrep: found outside of the workspace, called with nothing but our own options, and its output taken apart.

Its options are fixed: no configuration file, no program run before a search, no link followed, no rules from outside
of the root. It says where lines match, or which files there are; what is shown of them is read again, from the root and
through no link, by `search`. Its output comes in any order, because its threads share the files. Up to `GATHERED`
results it is sorted by us; past it, ripgrep is started again, in order, and stopped when there are enough.

It reads the ignore files of the tree, of which a hostile one may be a link to a pipe or to an endless device. One
deadline and a bound on its memory hold for that, as for everything else that makes it slow or large.
"""

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dragoman import limits
from dragoman.errors import StartFailed, WorldError, how_to_install
from dragoman.host.guardian import Guardian
from dragoman.host.paths import PathRefused, Place, Roots
from dragoman.host.run_to_end import INPUT_BYTES, RunResult, run_to_end

# Larger files are data, not text written by hand.
FILE_BYTES: Final = 16 * 1024 * 1024
# 100,000 files take a second or two; a tree that takes this long should be asked about in parts.
SEARCH_SECONDS: Final = 30.0
GATHERED: Final = 10_000
# It takes some tens of megabytes; an ignore file without an end would take all there are.
MEMORY_BYTES: Final = limits.GIB
# Before 14, `--no-ignore-dot` does not keep it from `.rgignore`.
OLDEST: Final = 14
HOW_TO_INSTALL: Final = f"{how_to_install('agent')}, or have ripgrep {OLDEST} or newer on PATH"

_NAME: Final = "rg"
_OPTIONS: Final = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--null",
    "--no-ignore-parent",
    "--no-ignore-global",
    "--no-require-git",
    "--hidden",
    "--glob=!.git",
    "--ignore-file=/dev/stdin",
)
_LINE_OPTIONS: Final = (
    "--no-heading",
    "--with-filename",
    "--line-number",
    "--column",
    "--byte-offset",
    # The text of a line can be as long as a file. Left out here, read by us where it matters.
    "--max-columns=1",
    "--crlf",
    "--encoding=none",
    # PCRE2, with its bound on steps, for what the linear engine refuses: look-around, back references.
    "--engine=auto",
    f"--max-filesize={FILE_BYTES}",
)
# Printed after the matches of a file that turns out to be binary further down; no option silences it.
_REMARK: Final = re.compile(rb"[^\0]*? WARNING: stopped searching binary file after match \(found .* offset \d+\)\n")
_RECORD: Final = re.compile(rb"([^\0]+)\0(\d+):(\d+):(\d+):[^\n]*\n")
# A file name that means the same to ripgrep's types as to us.
_PLAIN_NAME: Final = re.compile(r"[\w.*?+@-]+", re.ASCII)
_REASON: Final = re.compile(r"^error: (.+?)\.?$", re.MULTILINE)
_VERSION: Final = re.compile(rb"ripgrep (\d+)\.")


class SearchFailed(WorldError):
    """A search that could not be done. The text is fit for the model."""


class SearchHit(NamedTuple):
    """A line that matches, by the file's path from the root and its number, from 1.

    `column` is the byte of the match in the line, from 1; `offset` is the line's first byte in the file. All three are
    0 where files are listed.
    """

    path: str
    line: int = 0
    column: int = 0
    offset: int = 0


class RipgrepResult(NamedTuple):
    """The first hits by path and line. `has_more`: there are others behind them. `is_partial`: a file was not read."""

    hits: list[SearchHit]
    has_more: bool
    timed_out: bool
    is_partial: bool


class RipgrepSearch(NamedTuple):
    """What to search for, and where: `pattern` None lists files; `patterns` narrows them by their last names."""

    pattern: str | None
    place: Place
    options: Sequence[str]
    patterns: Sequence[str]
    rules: Sequence[str]
    accepts: Callable[[str], bool]
    limit: int


def find_ripgrep(search_path: str, roots: Roots) -> str | None:
    """Return the ripgrep to use: the one of our own environment, else the first on the path.

    Never one of the workspace.
    """
    for folder in (os.path.dirname(sys.executable), *search_path.split(os.pathsep)):
        program = os.path.realpath(os.path.join(folder, _NAME))
        is_trusted = os.path.isabs(folder) and _is_outside(folder, roots) and _is_outside(program, roots)
        if is_trusted and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


async def check_ripgrep(ripgrep: str | None, guardian: Guardian | None = None) -> str:
    """Return the program if it can be used; raise `SearchFailed`, with what to install, if it cannot."""
    if ripgrep is None:
        raise SearchFailed(f"glob and grep need ripgrep, and it is not installed: {HOW_TO_INSTALL}.")
    if ripgrep not in _checked:
        output = bytearray()

        def on_output(data: bytes) -> bool:
            output.extend(data)
            return b"\n" not in data

        deadline = asyncio.get_running_loop().time() + SEARCH_SECONDS
        await _run([ripgrep, "--version"], "/", b"", on_output, deadline, guardian)
        version = _VERSION.match(output)
        if version is None or int(version[1]) < OLDEST:
            found = f"ripgrep {int(version[1])}, which is too old" if version else "no ripgrep that answers"
            raise SearchFailed(f"{ripgrep} is {found}. To have one that glob and grep can use: {HOW_TO_INSTALL}.")
        _checked.add(ripgrep)
    return ripgrep


_checked: Final[set[str]] = set()  # programs that were asked for their version and are new enough


async def run_ripgrep(ripgrep: str | None, search: RipgrepSearch, guardian: Guardian | None) -> RipgrepResult:
    """Return the first hits of a search; raise `SearchFailed` if there is no ripgrep, or it refuses the pattern."""
    program = await check_ripgrep(ripgrep, guardian)
    deadline = asyncio.get_running_loop().time() + SEARCH_SECONDS
    hits, ended = await _gather(program, search, guardian, deadline, enough=GATHERED, in_order=False)
    if len(hits) >= GATHERED:
        hits, ended = await _gather(program, search, guardian, deadline, enough=search.limit + 1, in_order=True)
    if ended.exit_code is not None and ended.exit_code < 0:
        raise SearchFailed("ripgrep ended before it was done; search in a smaller folder.")
    is_partial = ended.exit_code not in (0, 1, None)
    if is_partial and ended.stderr_tail:  # it does not tell of files here, so it is about what it was asked
        reason = _REASON.search(ended.stderr_tail)
        raise SearchFailed(f"ripgrep does not take the pattern{f': {reason[1]}' if reason else ''}.")
    hits.sort(key=lambda hit: (hit.path.split("/"), hit.line))
    return RipgrepResult(hits[: search.limit], len(hits) > search.limit, ended.timed_out, is_partial)


async def _gather(
    program: str, search: RipgrepSearch, guardian: Guardian | None, deadline: float, *, enough: int, in_order: bool
) -> tuple[list[SearchHit], RunResult]:
    records = Records(search.accepts, has_lines=search.pattern is not None)
    hits: list[SearchHit] = []

    def on_output(data: bytes) -> bool:
        hits.extend(records.feed(data))
        return len(hits) < enough

    rules = os.fsencode("".join(f"{rule}\n" for rule in search.rules))
    if len(rules) > INPUT_BYTES:  # the weakest, which come first, are left out
        rules = rules[-INPUT_BYTES:].partition(b"\n")[2]
    argv = [program, *_arguments(search, in_order=in_order)]
    return hits, await _run(argv, search.place.root, rules, on_output, deadline, guardian)


async def _run(
    argv: Sequence[str],
    cwd: str,
    input: bytes,
    on_output: Callable[[bytes], bool],
    deadline: float,
    guardian: Guardian | None,
) -> RunResult:
    seconds = max(0.0, deadline - asyncio.get_running_loop().time())
    try:
        return await run_to_end(
            argv,
            cwd=cwd,
            env={},
            input=input,
            on_output=on_output,
            seconds=seconds,
            memory=MEMORY_BYTES,
            guardian=guardian,
        )
    except (OSError, StartFailed):
        raise SearchFailed(f"{argv[0]} does not start. To have a ripgrep that does: {HOW_TO_INSTALL}.") from None


def _arguments(search: RipgrepSearch, *, in_order: bool) -> list[str]:
    what = ["--files"]
    if search.pattern is not None:
        what = [*_LINE_OPTIONS, f"--max-count={search.limit + 1}", f"--regexp={search.pattern}"]
    order = ["--sort=path"] if in_order else []
    path = "./" + "/".join(search.place.parts)
    return [*_OPTIONS, *what, *search.options, *_types(search.patterns), *order, "--", path]


class Records:
    """What ripgrep prints, taken apart: lines that match, or names of files, in the files that `accepts` takes."""

    def __init__(self, accepts: Callable[[str], bool], *, has_lines: bool) -> None:
        self._accepts = accepts
        self._read = self._lines if has_lines else self._names
        self._rest = b""
        self._last = (b"", "", False)

    def feed(self, data: bytes) -> list[SearchHit]:
        """Return the records that are complete by now."""
        return list(self._read(self._rest + data))

    def _names(self, data: bytes) -> Iterator[SearchHit]:
        *names, self._rest = data.split(b"\0")
        for name in names:
            path = os.fsdecode(name.removeprefix(b"./"))
            if self._accepts(path):
                yield SearchHit(path)

    def _lines(self, data: bytes) -> Iterator[SearchHit]:
        at = 0
        while True:
            remark = _REMARK.match(data, at)
            if remark is not None:
                at = remark.end()
            record = _RECORD.match(data, at)
            if record is None:
                break
            at = record.end()
            name, line, column, offset = record.groups()
            if name != self._last[0]:  # a file is judged once: its lines come together
                path = os.fsdecode(name.removeprefix(b"./"))
                self._last = (name, path, self._accepts(path))
            if self._last[2]:
                yield SearchHit(self._last[1], int(line), int(column), int(offset))
        self._rest = data[at:]


def _types(patterns: Sequence[str]) -> list[str]:
    """Fewer files to look at, if the last names of the patterns are simple. What they mean is decided by `accepts`.

    Not `--glob`: that would bring back what the rules of the tree leave out.
    """
    names = {pattern.rpartition("/")[2] for pattern in patterns}
    if not names or not all(_PLAIN_NAME.fullmatch(name) and "**" not in name for name in names):
        return []
    return [*(f"--type-add=wanted:{name}" for name in sorted(names)), "--type=wanted"]


def _is_outside(path: str, roots: Roots) -> bool:
    try:
        roots.place(path)
    except PathRefused:
        return True
    return False
