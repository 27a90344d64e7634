"""`$NAME` and `${NAME}` in the texts of a configuration, filled in from an environment; `$$` is a dollar."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from dragoman.host.environment import is_secret

_VARIABLE: Final = re.compile(r"\$(?:(\$)|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_NOT_PASSABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
# Shorter ones are words like `Bearer`.
_LONG_WORD: Final = re.compile(r"\S{8,}")


class VariableMissing(Exception):
    """A variable that is not set; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def variables_in(text: str) -> list[str]:
    """Return the names of the variables that `fill` would put in, each once, in their order."""
    names = (found[2] or found[3] for found in _VARIABLE.finditer(text))
    return list(dict.fromkeys(name for name in names if name))


def fill(text: str, environment: Mapping[str, str]) -> str:
    """Put the values of its variables into a text; `VariableMissing` names the first that is not set."""

    def value(found: "re.Match[str]") -> str:
        if found[1]:
            return "$"
        name = found[2] or found[3]
        if name not in environment:
            raise VariableMissing(name)
        return environment[name]

    return _VARIABLE.sub(value, text)


def without_variables(text: str) -> list[str]:
    """Return what stands between the variables of a text."""
    pieces: list[str] = []
    at = 0
    for found in _VARIABLE.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
    return [*pieces, text[at:]]


def secret_variables(texts: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    """Return the variables of the texts that are secrets, by name or by what they hold now, each once."""
    names = dict.fromkeys(name for text in texts for name in variables_in(text))
    # One that is not set yet is judged by its name.
    return [name for name in names if is_secret(name, environment.get(name) or "unknown")]


def hide_words(text: str, mark: str) -> str:
    """Put `mark` for every long word between the variables of a text: `Bearer $TOKEN` stays."""
    pieces: list[str] = []
    at = 0
    for found in _VARIABLE.finditer(text):
        pieces += [_LONG_WORD.sub(mark, text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*pieces, _LONG_WORD.sub(mark, text[at:])])


def is_passable(value: object) -> bool:
    """Return whether programs and paths can have the texts of a value: no NUL in them, no half of a character.

    A value is a text, a list, or an object of a configuration; what else it may hold is not looked at.
    """
    if isinstance(value, str):
        return not _NOT_PASSABLE.search(value)
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return not any(_NOT_PASSABLE.search(text) for text in inner if isinstance(text, str))
