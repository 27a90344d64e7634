"""What stands in fences in README and in the documentation: found, and judged as far as that is cheap."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.needs import ROOT

# Pages that people write: what the reference shows is made from the code.
_WRITTEN = (page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "reference")
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in _WRITTEN))
_FENCE = re.compile(r'^( *)```(\w+)(?: title="([^"]*)")?\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
# Where one command of a line ends and another, or a file, begins.
_JOINTS = {"|", "||", "&&", ";", ">", ">>", "<", "&"}
_TO_FILES = {">", ">>", "<"}
_OPEN, _CLOSE = "([{", ")]}"


class Snippet(NamedTuple):
    """One block: where it begins, its language, the file it is said to be (or empty), and its text."""

    page: str
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def snippets(*languages: str, pages: tuple[str, ...] = PAGES) -> list[Snippet]:
    """Those in one of the languages."""
    return [one for page in pages for one in _in_page(page) if one.language in languages]


def _in_page(page: str) -> Iterator[Snippet]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        inner = re.sub(rf"^{found[1]}", "", found[4], flags=re.MULTILINE)
        yield Snippet(page, text.count("\n", 0, found.start()) + 1, found[2], found[3] or "", inner)


def lines_of(text: str) -> list[str]:
    """The command lines of a block, without what is said about them."""
    lines = [re.sub(r"(^|\s+)#(\s.*)?$", "", line).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def commands_in(line: str) -> list[list[str]]:
    """The commands of one line, as words; the files they read and write are left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    skip = False
    for word in lexer:
        if word in _JOINTS:
            skip = word in _TO_FILES
            if not skip:
                found.append([])
        elif skip:
            skip = False
        else:
            found[-1].append(word)
    return [words for words in found if words]


def is_balanced(text: str, *, comment: str, characters: bool = False) -> bool:
    """Whether brackets and strings of Lua or Emacs Lisp close where they should. `characters`: `?x` is a letter."""
    stack: list[str] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if text.startswith(comment, at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        elif letter == '"' or (letter == "'" and not characters):
            end = re.compile(rf"{letter}(?:[^{letter}\\\n]|\\.|\n)*{letter}").match(text, at)
            if end is None:
                return False
            at = end.end() - 1
        elif letter in _OPEN:
            stack.append(_CLOSE[_OPEN.index(letter)])
        elif letter in _CLOSE and (not stack or stack.pop() != letter):
            return False
        at += 1
    return not stack


def file_named(folder: Path, name: str, text: str) -> Path:
    """The block as a file of its own."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file
