"""Finds the files that a path with wildcards stands for, so that a pattern is judged by what it reaches.

Which wildcards an agent's tool understands is not known, so all of them count: `*`, `?`, `[...]`, `**`, `{a,b}`, and
names that begin with a dot match as any other. Links are not followed; one that a pattern may lead through is listed
itself, and its target is for the caller to judge. A bounded look, like that of `credential_files`, for all patterns of
a call together; nothing is read.
"""

import os
import re
import sys
from collections.abc import Collection, Iterator
from typing import Final

from dragoman.host import wildcards
from dragoman.host.credential_files import LEFT_OUT, MOST_ENTRIES

# A call that reads more files than this is not judged one by one.
MOST_MEANT: Final = 1_000
# No person writes a longer one; an expression takes time in proportion to the square of this, for each name.
_CHARACTERS: Final = 512
_WILD: Final = re.compile(r"[*?\[{]")


class TooManyFiles(Exception):
    """A pattern stands for more files than can be judged."""


def is_wild(path: str) -> bool:
    """Return whether a path may be a pattern. A name such as `[id]` may be one, and may be meant as it is."""
    return _WILD.search(path) is not None


class PatternSearch:
    """The search for what the patterns of one call mean. `MOST_ENTRIES` bounds how often a name is held against one."""

    def __init__(self, left_out: Collection[str] = LEFT_OUT) -> None:
        """`left_out`: folders with these names are not entered."""
        self._left = MOST_ENTRIES
        self._left_out = left_out

    def paths_meant(self, pattern: str) -> list[str]:
        """Return the paths there are that an absolute pattern may mean, or raise `TooManyFiles`. Blocks."""
        parts = pattern.split("/")
        if len(pattern) > _CHARACTERS:
            raise TooManyFiles
        wild = next((at for at, part in enumerate(parts) if is_wild(part)), len(parts))
        folder = "/".join(parts[:wild]) or "/"
        try:
            spellings = wildcards.expand_braces("/".join(parts[wild:]).rstrip("/") or ".")
            beginnings = _beginnings(spellings)
            matches = re.compile("|".join(_expressions(spellings)), re.DOTALL).fullmatch
            leads = re.compile("|".join(_expressions(beginnings)), re.DOTALL).fullmatch
        except (wildcards.PatternRefused, re.error):
            raise TooManyFiles from None
        found: list[str] = []
        is_deep = any("**" in each for each in spellings)
        depth = sys.maxsize if is_deep else max(each.count("/") for each in spellings)
        for name, is_way in self._below(folder, depth=depth, cost=len(beginnings)):
            if matches(name) or (is_way and leads(name)):
                found.append(os.path.join(folder, name))
            if len(found) > MOST_MEANT:
                raise TooManyFiles
        return found

    def _below(self, folder: str, *, depth: int, cost: int) -> Iterator[tuple[str, bool]]:
        """Yield every path below a folder, from there, and whether it is a link to a folder, which is not entered.

        `depth`: into how many folders in each other it goes. Each path takes `cost` of what is left.
        """
        waiting = [""]
        while waiting:
            inner = waiting.pop()
            self._left -= cost
            for entry in _entries(os.path.join(folder, inner)):
                self._left -= cost
                if self._left < 0:
                    raise TooManyFiles
                name = os.path.join(inner, entry.name)
                yield name, entry.is_symlink() and entry.is_dir()
                if name.count("/") < depth and entry.name not in self._left_out and entry.is_dir(follow_symlinks=False):
                    waiting.append(name)


def _expressions(patterns: list[str]) -> Iterator[str]:
    return (f"(?:{wildcards.path(each)})" for each in patterns)


def _beginnings(patterns: list[str]) -> list[str]:
    """Return the folders on the way to what the patterns mean."""
    found = [pattern.split("/") for pattern in patterns]
    return list(dict.fromkeys("/".join(parts[:at]) for parts in found for at in range(1, len(parts) + 1)))


def _entries(folder: str) -> "Iterator[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:  # none, or not ours to read
        return
