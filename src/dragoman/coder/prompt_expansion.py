"""The prompt that a command or a skill becomes: arguments and variables in their places, command lines apart. Pure.

`$ARGUMENTS` is what was typed behind the name, as it was typed; `$1` to `$9` are its words, split as a shell splits
them. A file that names `$0` or `$ARGUMENTS[0]` counts from there, as skills do; others count from `$1`, as commands do.
`$NAME` is a word by its place in the `arguments` of the front matter. A word that was not typed stays as it is written.

Everything is put in its place in one pass over the file: an argument is never read as a variable, a command line or
the name of a file to attach, and nor is what a command prints.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from dragoman.host.markdown_files import split_front_matter, words_in
from dragoman.host.trusted_parts import MOST_EMBEDDED, embedded_commands

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_PLACE: Final = re.compile(
    rf"\\(?P<escaped>\$(?=ARGUMENTS|[0-9]))"
    rf"|\$ARGUMENTS\[(?P<index>[0-9]{{1,2}})\]"
    rf"|\$\{{(?P<braced>{_NAME})\}}"
    rf"|\$(?P<name>{_NAME})"
    rf"|\$(?P<number>[0-9])(?![0-9.,]*[0-9])"
)
_FROM_ZERO: Final = re.compile(r"(?<!\\)\$(?:0(?![0-9.,]*[0-9])|ARGUMENTS\[)")
_MENTION: Final = re.compile(r"(?:^|(?<=\s))@((?:[^\s\\]|\\ )+)")
_CODE: Final = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_ALL: Final = "ARGUMENTS"
# What may stand behind a path in a sentence, and is not its end.
_PUNCTUATION: Final = ".,;:!?)"


class PromptPiece(NamedTuple):
    """A part of a prompt: words, or a command line whose output takes its place."""

    text: str
    is_command: bool = False


class Expanded(NamedTuple):
    """A prompt in pieces, and the files that it names with `@`."""

    pieces: Sequence[PromptPiece]
    mentions: Sequence[str] = ()


def expand(text: str, arguments: str, variables: Mapping[str, str]) -> Expanded:
    """Return what a file becomes. `variables` are put in for `${NAME}`; more than the most command lines stay text."""
    fields, body = split_front_matter(text)
    body = body.strip()
    places = _Places(body, arguments, words_in(fields.get("arguments", "")), variables)
    pieces: list[PromptPiece] = []
    end = 0
    for found in [*embedded_commands(body)][:MOST_EMBEDDED]:
        pieces.append(PromptPiece(places.fill(body[end : found.start])))
        pieces.append(PromptPiece(places.fill(found.line), is_command=True))
        end = found.end
    pieces.append(PromptPiece(places.fill(body[end:])))
    if arguments and not places.has_arguments:
        pieces.append(PromptPiece(f"\n\n{arguments}"))
    words = "\n".join(body[start:stop] for start, stop in _texts(body))
    return Expanded([piece for piece in pieces if piece.text], _mentions(_CODE.sub("", words), places))


class _Places:
    """Fills in one file. `has_arguments`: what was typed has a place in it."""

    def __init__(self, body: str, arguments: str, names: Sequence[str], variables: Mapping[str, str]) -> None:
        self._all = arguments
        self._words = _split(arguments)
        self._first = 0 if _FROM_ZERO.search(body) else 1
        self._names = {name: index for index, name in enumerate(names)}
        self._variables = variables
        self.has_arguments = any(self._is_argument(found) for found in _PLACE.finditer(body))

    def fill(self, text: str) -> str:
        """Return a part of the file with everything in its place."""
        return _PLACE.sub(self._value, text)

    def _is_argument(self, found: "re.Match[str]") -> bool:
        """Return whether what was typed stands here: not a `$5` that is a price."""
        return found["name"] == _ALL or (not found["braced"] and self._value(found) not in ("$", found[0]))

    def _value(self, found: "re.Match[str]") -> str:
        if found["escaped"]:
            return "$"
        if found["braced"]:
            return self._variables.get(found["braced"], found[0])
        if found["name"] == _ALL:
            return self._all
        if found["name"]:
            return self._word(self._names.get(found["name"]), found[0])
        return self._word(int(found["index"]) if found["index"] else int(found["number"]) - self._first, found[0])

    def _word(self, index: int | None, written: str) -> str:
        return self._words[index] if index is not None and 0 <= index < len(self._words) else written


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # a quote that nothing ends
        return arguments.split()


def _texts(body: str) -> list[tuple[int, int]]:
    """Return where the words between the command lines begin and end."""
    found = [*embedded_commands(body)]
    return [
        *zip([0, *(one.end for one in found)], [*(one.start for one in found), len(body)], strict=True),
    ]


def _mentions(words: str, places: _Places) -> list[str]:
    """Return the paths behind an `@` of the file itself; one of them may be an argument: `@$1`."""
    found = (places.fill(match[1]).replace("\\ ", " ").rstrip(_PUNCTUATION) for match in _MENTION.finditer(words))
    return list(dict.fromkeys(path for path in found if path))
