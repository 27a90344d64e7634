"""Finding a name by some of its letters, in order: `stpy` finds `src/store.py`. For completion at the terminal.

The prompt library has a completer for this, but it takes the typed word away from the one below it, and with it the `@`
or `/` that says what is meant.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import PurePath
from typing import Final, TypeVar

from dragoman.host.paths import Roots
from dragoman.host.ripgrep import find_ripgrep

T = TypeVar("T")

# Files of a folder that can be found so; a tree has them sorted by where they are met.
FILES: Final = 50_000
_LIST_SECONDS: Final = 3.0
# A list is used again for so long: a user types a letter every tenth of a second.
_FRESH_SECONDS: Final = 10.0
# What a letter is worth: at the beginning of a word, and behind the letter that was found before it.
_WORD_START: Final = 8
_RUN: Final = 5


def score(wanted: str, name: str) -> int | None:
    """Return how well `name` fits the letters of `wanted` (higher is better); None if they are not in it in order.

    Letters of any case fit. Those in the last part of a path, at the beginning of words and next to each other count
    more; of names that fit alike the shorter one is better.
    """
    base = name.rstrip("/").rfind("/") + 1
    in_base = _score(wanted, name[base:])
    if in_base is not None:
        return in_base + 2 * len(wanted) * _WORD_START - len(name) // 4
    anywhere = _score(wanted, name)
    return None if anywhere is None else anywhere - len(name) // 4


def _score(wanted: str, name: str) -> int | None:
    folded, letters = name.casefold(), wanted.casefold()
    whole = folded.find(letters)
    if whole >= 0:
        start = _WORD_START if _begins_word(name, whole) else 0
        return len(letters) * _RUN + start + _WORD_START
    points = at = 0
    before = -2
    for letter in letters:
        at = folded.find(letter, at)
        if at < 0:
            return None
        points += _RUN if at == before + 1 else 0
        points += _WORD_START if _begins_word(name, at) else 0
        before, at = at, at + 1
    return points


def _begins_word(name: str, at: int) -> bool:
    return at == 0 or not name[at - 1].isalnum() or (name[at].isupper() and name[at - 1].islower())


def best(wanted: str, things: Iterable[T], name: Callable[[T], str], most: int) -> list[T]:
    """Return the things whose names fit, the best first, no more than `most`; those of equal worth stay in order."""
    scored = [(value, thing) for thing in things if (value := score(wanted, name(thing))) is not None]
    scored.sort(key=lambda pair: -pair[0])
    return [thing for _, thing in scored[:most]]


class FolderFiles:
    """The files of a folder that its ignore rules do not leave out, listed anew after `_FRESH_SECONDS`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: list[str] = []
        self._listed_at = -_FRESH_SECONDS

    def paths(self) -> list[str]:
        """Return paths relative to the folder, at most `FILES`. Blocks while they are listed: for a thread."""
        if time.monotonic() - self._listed_at >= _FRESH_SECONDS:
            program = find_ripgrep(os.environ.get("PATH", ""), Roots([self._folder]))
            found = self._walk() if program is None else self._by_ripgrep(program)
            self._files = [path for path in found if path.isprintable()]
            self._listed_at = time.monotonic()
        return self._files

    def _by_ripgrep(self, program: str) -> list[str]:
        command = [program, "--no-config", "--files", "--null", "--hidden", "--glob=!.git"]
        output = b""
        with suppress(OSError, subprocess.SubprocessError):
            output = subprocess.run(
                command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LIST_SECONDS,
                check=False,
            ).stdout
        return [os.fsdecode(path) for path in output.split(b"\0", FILES)[:FILES] if path]

    def _walk(self) -> list[str]:
        found: list[str] = []
        until = time.monotonic() + _LIST_SECONDS
        for place, folders, files in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            inside = PurePath(place).relative_to(self._folder)
            found += [str(inside / name) for name in sorted(files)]
            if len(found) >= FILES or time.monotonic() > until:
                break
        return found[:FILES]
