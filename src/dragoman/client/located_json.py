"""JSON with the line of every value, so that a mistake in a file can be pointed at. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.errors import UsageError

Path = tuple[str | int, ...]
# A configuration has three or four levels; parsers recurse.
_DEPTH: Final = 64
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|\n')


class ConfigMistake(UsageError):
    """Something in a text is wrong; `line` counts from 1, `place` says where in the value, if that is known."""

    def __init__(self, line: int, message: str, place: Path = ()) -> None:
        super().__init__(message)
        self.line = line
        self.place = place


class LocatedJson(NamedTuple):
    """A value, and the line where each of its parts begins."""

    value: object
    lines: dict[Path, int]
    # Keys that stand twice in an object, each at its second place; the value has the last of them.
    repeated: tuple[ConfigMistake, ...] = ()

    def line(self, path: Path) -> int:
        """Return the line of a part; of the nearest one around it, if it is not there."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def name(self, path: Path) -> str:
        """Return a place in words, `servers.mine.args[0]`; a member of a list that has a name is called by it."""
        words, value = "", self.value
        for part in path:
            value = _member(value, part)
            named = value.get("name") if isinstance(part, int) and isinstance(value, dict) else part
            words += f".{key_text(named)}" if isinstance(named, str) and (named or part == "") else f"[{part}]"
        return words.removeprefix(".")


def key_text(key: str) -> str:
    """Return a key as it is shown; as JSON, in quotes, where it is blank or has characters that do not show."""
    return key if key.strip() and key.isprintable() else json.dumps(key)


def parse(text: str) -> LocatedJson:
    """Return what a text holds. Raise `ConfigMistake` if it is no JSON; a repeated key is in `LocatedJson.repeated`."""
    try:
        value = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ConfigMistake(error.lineno, f"this is not JSON: {error.msg.lower()}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigMistake(1, f"this is not JSON: {str(error)[:80]}") from None
    lines: dict[Path, int] = {}
    repeated: list[ConfigMistake] = []
    _locate(_tokens(text), (), lines, repeated)
    return LocatedJson(value, lines, tuple(repeated))


def _member(value: object, part: str | int) -> object:
    if isinstance(part, int):
        return value[part] if isinstance(value, list) and part < len(value) else None
    return value.get(part) if isinstance(value, dict) else None


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no number in JSON")


class _Token(NamedTuple):
    text: str
    line: int


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for found in _TOKEN.finditer(text):
        if found[0] == "\n":
            line += 1
        else:
            yield _Token(found[0], line)


def _locate(tokens: Iterator[_Token], path: Path, lines: dict[Path, int], repeated: list[ConfigMistake]) -> None:
    """Read one value of a text that is known to be JSON."""
    _locate_from(next(tokens), tokens, path, lines, repeated)


def _locate_from(
    token: _Token, tokens: Iterator[_Token], path: Path, lines: dict[Path, int], repeated: list[ConfigMistake]
) -> None:
    if len(path) > _DEPTH:
        raise ConfigMistake(token.line, "too many brackets inside brackets")
    lines.setdefault(path, token.line)
    if token.text == "{":
        while (token := next(tokens)).text != "}":
            if token.text == ",":
                continue
            key: Path = (*path, json.loads(token.text))
            next(tokens)  # the colon
            if key in lines:
                repeated.append(ConfigMistake(token.line, f"{token.text} stands here twice", key))
                _locate(tokens, key, {}, [])  # what is inside of it does not stand twice
            else:
                lines[key] = token.line
                _locate(tokens, key, lines, repeated)
    elif token.text == "[":
        count = 0
        while (token := next(tokens)).text != "]":
            if token.text != ",":
                _locate_from(token, tokens, (*path, count), lines, repeated)
                count += 1
