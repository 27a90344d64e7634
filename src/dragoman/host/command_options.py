"""Which options a command may be given, as a list of words, and what is left beside them.

An option that is not in the list is refused, whatever it would do: `--outp` is short for `--output` to most programs,
and no list of bad options is ever complete. A grammar is written as its options, with blanks between:

    -a        a flag; flags may be joined (`-la`)
    -n:       takes a value, in the same word or in the next
    -U?       may have a value, in the same word
    -#        a number by itself (`-5`)
    --stat    a flag
    --color=  may have a value, after `=`
    --since:  takes a value, after `=` or in the next word

and `@` at the end of one says that its value is a path that is read.

A word that begins with a `HOLE` may be an option, and is refused; as a value of its own it may be anything.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman.host.shell_lexer import HOLE

_NUMBER: Final = re.compile(r"-[0-9]+")


class Arguments(NamedTuple):
    """The options and operands of a command."""

    options: frozenset[str]
    values: tuple[str, ...]
    paths: tuple[str, ...]
    operands: tuple[str, ...]


class Grammar:
    """The options that are allowed."""

    def __init__(self, *options: str) -> None:
        self._kinds: Final = dict(_option(word) for option in options for word in option.split())

    def read(self, words: Sequence[str]) -> Arguments | None:
        """Return the arguments, or None when something in them is not allowed."""
        reading = _Reading()
        rest = list(reversed(words))
        while rest:
            word = rest.pop()
            if word == "--":
                # Nothing behind it is an option.
                reading.operands += reversed(rest)
                break
            if word.startswith(HOLE):
                known = False
            elif word.startswith("--"):
                known = self._long(word, rest, reading)
            elif word.startswith("-") and word != "-":
                known = self._short(word, rest, reading)
            else:
                reading.operands.append(word)
                known = True
            if not known:
                return None
        return reading.arguments()

    def _long(self, word: str, rest: list[str], reading: "_Reading") -> bool:
        name, equals, value = word.partition("=")
        kind = self._kinds.get(name)
        if kind is None or (equals and kind.value == "") or (not equals and kind.value == ":" and not rest):
            return False
        if kind.value == ":" and not equals:
            value = rest.pop()
        reading.take(name, kind, value)
        return True

    def _short(self, word: str, rest: list[str], reading: "_Reading") -> bool:
        if "-#" in self._kinds and _NUMBER.fullmatch(word):
            return True
        for at in range(1, len(word)):
            name = f"-{word[at]}"
            kind = self._kinds.get(name)
            if kind is None:
                return False
            if kind.value == "":
                reading.take(name, kind, "")
                continue
            value = word[at + 1 :]
            if value and not value.strip(HOLE):
                return False  # if it is empty, the next word is the value
            if kind.value == ":" and not value:
                if not rest:
                    return False
                value = rest.pop()
            reading.take(name, kind, value)
            break
        return True


class _Kind(NamedTuple):
    value: str  # "", ":" or "?"
    is_path: bool


class _Reading:
    def __init__(self) -> None:
        self.options = set[str]()
        self.values: list[str] = []
        self.paths: list[str] = []
        self.operands: list[str] = []

    def take(self, name: str, kind: _Kind, value: str) -> None:
        self.options.add(name)
        if value:
            (self.paths if kind.is_path else self.values).append(value)

    def arguments(self) -> Arguments:
        return Arguments(frozenset(self.options), tuple(self.values), tuple(self.paths), tuple(self.operands))


def _option(word: str) -> tuple[str, _Kind]:
    name = word.removesuffix("@")
    value = name[-1] if name[-1] in ":=?" else ""
    return name.rstrip(":=?"), _Kind("?" if value == "=" else value, name != word)
