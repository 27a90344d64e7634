"""Markdown files with front matter, for agents: slash commands, skills, kinds of helpers; the user's or a project's.

A project's are content of strangers: no link out of the project is followed, and names, counts and sizes are bounded.
Read only; what may be done with them is decided elsewhere (`trusted_parts`).
"""

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from dragoman.host.paths import PathRefused, Roots, read_bytes
from dragoman.host.regular_file import read_regular

# More of them are not a menu any more; a longer one is a book.
MOST_FILES: Final = 200
FILE_BYTES: Final = 64 * 1024
# Of all of one folder, and names that are looked at.
ALL_BYTES: Final = 2 * 1024 * 1024
_MOST_NAMES: Final = 2000
# Folders in folders: each is a part of a command's name.
_DEPTH: Final = 3
NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE)
SKILL: Final = "SKILL.md"
# Where a project has them; what stands in the first wins.
PROJECT_FOLDERS: Final = (".agents", ".claude")
# From a working folder up to the repository's root; a deeper one is no project.
_MOST_FOLDERS: Final = 40
_FIELD: Final = re.compile(r"([A-Za-z_][\w-]*)\s*:(?:\s+(.*)|)$")
_BLOCK: Final = re.compile(r"[>|][+-]?[0-9]?")
_YES: Final = frozenset({"true", "yes", "on", "1"})


class MarkdownFile(NamedTuple):
    """A file: what it is called, its path, what is in it. `project` is the folder whose it is; empty: the user's own.

    `place` is its path in the project, by which trust names it.
    """

    name: str
    path: str
    text: str
    project: str = ""
    place: str = ""

    def read_again(self) -> str:
        """Return what is in it now. `OSError` if it cannot be read. Blocks."""
        read = _reader_in(self.project) if self.project else _read_own
        return read(os.path.join(self.project, self.place) if self.project else self.path)[1]


_Read = Callable[[str], tuple[str, str]]


def own_markdown(folder: str, *, skills: bool = False) -> Iterator[MarkdownFile]:
    """Yield the user's files in a folder of theirs; links are followed. Blocks: for a thread."""
    for name, path in _skills_in(folder) if skills else _names_in(folder):
        try:
            real, text = _read_own(path)
        except OSError:
            continue
        yield MarkdownFile(name, real, text)


def project_markdown(project: str, kind: str) -> Iterator[MarkdownFile]:
    """Yield the files of a project of a kind: `commands`, `agents` or `skills`. Blocks: for a thread."""
    read = _reader_in(project)
    left = ALL_BYTES
    for folder in PROJECT_FOLDERS:
        base = os.path.join(project, folder, kind)
        for name, path in _skills_in(base) if kind == "skills" else _names_in(base):
            try:
                real, text = read(path)
            except OSError:
                continue
            left -= len(text)
            if left < 0:
                return
            yield MarkdownFile(name, real, text, project, os.path.relpath(path, project))


def project_folders(folder: str, user_home: str = "") -> list[str]:
    """Return a folder by its real path, and those above it up to its repository's root; nearest first. Blocks.

    A home folder that is a repository, of dotfiles, is not the project of everything in it.
    """
    here = os.path.realpath(folder)
    home = os.path.realpath(user_home) if user_home else ""
    found = [here]
    for _ in range(_MOST_FOLDERS):
        if os.path.lexists(os.path.join(here, ".git")):
            return found
        above = os.path.dirname(here)
        if above in (here, home):
            break
        found.append(here := above)
    return found[:1]


def _names_in(folder: str, above: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield `NAME` and path of each `NAME.md`; those of a folder in it are called `FOLDER:NAME`."""
    count = 0
    for entry in _entries(folder):
        name = entry.removesuffix(".md")
        path = os.path.join(folder, entry)
        if not NAME.fullmatch(name):
            continue
        if name != entry:
            yield ":".join((*above, name)), path
        elif len(above) + 1 < _DEPTH and os.path.isdir(path) and not os.path.islink(path):
            yield from _names_in(path, (*above, name))
        count += 1
        if count >= MOST_FILES:
            return


def _skills_in(folder: str) -> Iterator[tuple[str, str]]:
    """Yield name and path of each `NAME/SKILL.md`."""
    names = [name for name in _entries(folder) if NAME.fullmatch(name)]
    for name in names[:MOST_FILES]:
        yield name, os.path.join(folder, name, SKILL)


def _entries(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, _MOST_NAMES))
    except OSError:
        return []


def _read_own(path: str) -> tuple[str, str]:
    return os.path.realpath(path), read_regular(path, FILE_BYTES).decode("utf-8", "replace")


def _reader_in(project: str) -> _Read:
    """Return a function that reads a file of a project, if that is where its links lead."""
    roots = Roots([project])

    def read(path: str) -> tuple[str, str]:
        try:
            place = roots.place(path)
            return place.path, read_bytes(place, FILE_BYTES)[0].decode("utf-8", "replace")
        except PathRefused as error:
            raise OSError(str(error)) from error

    return read


# -- front matter ----------------------------------------------------------------------------------------------------


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields between the first two lines of `---`, and what follows.

    A list is its items with commas; a text of several lines is one line. More lenient than YAML, as people write
    `description: Use it when: …` and `argument-hint: [a] [b]`.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.startswith("---\n") or "\n---\n" not in f"{text[3:]}\n":
        return {}, text
    head, _, body = f"{text[3:]}\n".partition("\n---\n")
    fields: dict[str, str] = {}
    key = ""
    for line in head.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if stripped.startswith("- "):
            fields[key] = ", ".join(filter(None, (fields.get(key, ""), _plain(stripped[2:]))))
        elif not line[0].isspace() and (found := _FIELD.match(line)):
            key, value = found[1], (found[2] or "").strip()
            fields[key] = "" if _BLOCK.fullmatch(value) else _plain(value)
        elif line[0].isspace() and key:
            fields[key] = f"{fields[key]} {_plain(stripped)}".strip()
    return fields, body[:-1]


def _plain(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def words_in(value: str) -> list[str]:
    """Return the words of a field that lists names: between blanks and commas, also in brackets and quotes.

    What stands in round brackets belongs to the word before: `Bash(git add:*)` is one.
    """
    found = re.findall(r"[^\s,()\[\]\"']+(?:\([^)]*\)?)?", value)
    return [word.strip() for word in found]


def is_yes(value: str, default: bool) -> bool:
    """Return what a field of yes or no says; `default` where it is not there."""
    return value.strip().lower() in _YES if value.strip() else default
