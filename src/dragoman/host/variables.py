"""`$NAME` and `${NAME}` in the texts of a configuration, filled in from an environment; `$$` is a dollar. Pure."""

import re
from collections.abc import Mapping
from typing import Final

_VARIABLE: Final = re.compile(r"\$(?:(\$)|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


class VariableMissing(Exception):
    """A variable that is not set; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def variables_in(text: str) -> list[str]:
    """The names of the variables that `fill` would put in, each once, in their order."""
    names = (found[2] or found[3] for found in _VARIABLE.finditer(text))
    return list(dict.fromkeys(name for name in names if name))


def fill(text: str, environment: Mapping[str, str]) -> str:
    """The text with the values of its variables; `VariableMissing` names the first that is not set."""

    def value(found: "re.Match[str]") -> str:
        if found[1]:
            return "$"
        name = found[2] or found[3]
        if name not in environment:
            raise VariableMissing(name)
        return environment[name]

    return _VARIABLE.sub(value, text)


def without_variables(text: str) -> list[str]:
    """What stands between the variables of a text."""
    pieces: list[str] = []
    at = 0
    for found in _VARIABLE.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
    return [*pieces, text[at:]]
