"""The ignore rules that ripgrep is not let read itself, as lines that it takes on its stdin.

ripgrep reads `.gitignore`, `.ignore` and `.git/info/exclude` in the folder that it searches and below. Above it, it
would go on to the top of the file system, so it is told not to; the rules that stand above the folder, up to the root,
are read here, through no link, and written again so that they begin at the root. Where a link, a pipe or a device
stands in the place of a file of rules, ripgrep is told not to read that kind of file: it would read it to its end.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from dragoman.host.paths import PathRefused, Place, read_bytes

# The longest .gitignore files kept in public have some thousand lines. What stands after this is not read.
RULES_BYTES: Final = 256 * 1024

_GIT_FOLDER: Final = ".git"
_EXCLUDE_FILE: Final = ".git/info/exclude"
# Which option keeps ripgrep from reading a file. `.rgignore` is its own.
_OPTIONS: Final = {
    ".gitignore": "--no-ignore-vcs",
    ".ignore": "--no-ignore-dot",
    ".rgignore": "--no-ignore-dot",
    _EXCLUDE_FILE: "--no-ignore-exclude",
}
_SPECIAL: Final = re.compile(r"([\\*?\[\]{}])")


def rules_above(place: Place) -> list[str]:
    """Return the rules that the folders above a place have, seen from the root, the strongest last. Blocks.

    As git has it: a deeper file is stronger than one above it, `.ignore` is stronger than git's own files, and the
    rules of a repository end where another one begins.
    """
    exclude: list[str] = []
    git: list[str] = []
    own: list[str] = []
    for depth in range(len(place.parts)):
        folder = Place(place.root, place.parts[:depth])
        if _is_repository(folder):
            exclude, git = list(_rules(folder, _EXCLUDE_FILE)), []
        git += _rules(folder, ".gitignore")
        own += _rules(folder, ".ignore")
    if place.parts and _is_repository(place):
        exclude, git = [], []
    return exclude + git + own


def options_for(folder: str) -> list[str]:
    """Return the options that keep ripgrep from what is no regular file in the place of a file of rules. Blocks."""
    found = []
    for name, option in _OPTIONS.items():
        with suppress(OSError):
            if not stat.S_ISREG(os.stat(os.path.join(folder, name), follow_symlinks=False).st_mode):
                found.append(option)
    return found


def _is_repository(folder: Place) -> bool:
    return os.path.lexists(os.path.join(folder.path, _GIT_FOLDER))


def _rules(folder: Place, name: str) -> Iterator[str]:
    """Yield the rules of a file in a folder, seen from the root; none if it is not a regular file, or behind a link."""
    try:
        data, _ = read_bytes(Place(folder.root, (*folder.parts, *name.split("/"))), RULES_BYTES)
    except PathRefused:
        return
    prefix = "".join("/" + _SPECIAL.sub(r"\\\1", part) for part in folder.parts)
    for line in data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").split("\n"):
        rule = line.removesuffix("\r")
        if rule.strip(" ") and not rule.startswith("#"):
            yield _from_root(rule, prefix) if prefix else rule


def _from_root(rule: str, prefix: str) -> str:
    """Return a rule of a folder as one of the root: with a slash inside it means a path, else a name at any depth."""
    bang, pattern = ("!", rule[1:]) if rule.startswith("!") else ("", rule)
    is_path = "/" in pattern.rstrip(" ").removesuffix("/")
    return f"{bang}{prefix}/{pattern.removeprefix('/')}" if is_path else f"{bang}{prefix}/**/{pattern}"
