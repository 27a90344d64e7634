"""ripgrep, where it is installed: found outside of the workspace, and called with nothing but our own options.

It says where lines match; what stands there we read ourselves. Its options are fixed: no configuration file, no
program run before a search, no link followed, no rules from outside the folder that is searched.
"""

import os
import re
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman.host.finder import FinderHit
from dragoman.host.paths import PathRefused, Roots
from dragoman.host.searcher import FILE_BYTES

_NAME: Final = "rg"
_OPTIONS: Final = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--no-heading",
    "--with-filename",
    "--null",
    "--line-number",
    "--column",
    "--byte-offset",
    # The text of a line can be as long as a file. Left out here, read by us where it matters.
    "--max-columns=1",
    "--no-ignore-parent",
    "--no-ignore-global",
    "--no-require-git",
    "--hidden",
    "--glob=!.git",
    "--crlf",
    "--encoding=none",
    f"--max-filesize={FILE_BYTES}",
)
# Printed after the matches of a file that turns out to be binary further down; no option silences it.
_REMARK: Final = re.compile(rb"[^\0]*? WARNING: stopped searching binary file after match \(found .* offset \d+\)\n")
_RECORD: Final = re.compile(rb"([^\0]+)\0(\d+):(\d+):(\d+):[^\n]*\n")
# A file name that means the same to ripgrep's types as to us.
_PLAIN_NAME: Final = re.compile(r"[\w.*?+@-]+", re.ASCII)


class RipgrepLine(NamedTuple):
    """A line that matches, in a file below the folder that was searched."""

    path: str
    hit: FinderHit


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


def command(
    ripgrep: str, pattern: str, path: str, *, ignore_case: bool, file_patterns: Sequence[str], in_order: bool
) -> list[str]:
    """Return the command line that searches `path`, seen from the folder it runs in.

    Reads more rules from its stdin.
    """
    return [
        ripgrep,
        *_OPTIONS,
        "--ignore-case" if ignore_case else "--case-sensitive",
        *(["--sort=path"] if in_order else []),
        *_types(file_patterns),
        "--ignore-file=/dev/stdin",
        f"--regexp={pattern}",
        "--",
        f"./{path}",
    ]


class Records:
    """What ripgrep prints, taken apart."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[RipgrepLine]:
        """Return the records that are complete by now."""
        data = self._rest + data
        found = []
        at = 0
        while True:
            remark = _REMARK.match(data, at)
            if remark is not None:
                at = remark.end()
            record = _RECORD.match(data, at)
            if record is None:
                break
            at = record.end()
            path, line, column, offset = record.groups()
            found.append(
                RipgrepLine(os.fsdecode(path.removeprefix(b"./")), FinderHit(int(line), int(column), int(offset)))
            )
        self._rest = data[at:]
        return found


def _types(file_patterns: Sequence[str]) -> list[str]:
    """Fewer files to search, if the last names of the patterns are simple. Who filters by path does it afterwards.

    Not `--glob`: that would bring back what the rules of the tree leave out.
    """
    names = {pattern.rpartition("/")[2] for pattern in file_patterns}
    if not names or not all(_PLAIN_NAME.fullmatch(name) and "**" not in name for name in names):
        return []
    return [*(f"--type-add=wanted:{name}" for name in sorted(names)), "--type=wanted"]


def _is_outside(path: str, roots: Roots) -> bool:
    try:
        roots.place(path)
    except PathRefused:
        return True
    return False
