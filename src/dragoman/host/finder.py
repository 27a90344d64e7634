"""Where a regular expression matches in the lines of a file. Python's `re`, made to behave as ripgrep does.

A match lies in one line, lines end at a newline (a carriage return before it is not part of the line), and a file
with a NUL is searched up to it. Most files are judged by the texts that a match must hold; only what holds them meets
the expression itself. Pure, and as slow as the expression wants: `calls` and `is_matching` show a signal handler,
which `re` does let in, whether one call still runs.
"""

import importlib
import re
import warnings
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dragoman.host.wildcards import PATTERN_CHARACTERS, PatternRefused

# A NUL this early means that the file is no text at all.
BINARY_BYTES: Final = 64 * 1024
# Lines are tried together up to this size, so that a file without a match costs few calls.
_TOGETHER: Final = 64 * 1024
# Looking for this many texts is about as quick as one look with the expression.
_MOST_NEEDED: Final = 8


class FinderHit(NamedTuple):
    """A line that matches: its number from 1, the first match's byte in it from 1, and its first byte in the file."""

    line: int
    column: int
    offset: int


class Finder:
    """One expression, ready for many files."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        self.calls = 0
        self.is_matching = False
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        self._pattern = _compile(pattern, flags)
        parsed = _parsed(pattern, flags)
        self._folds = bool(self._pattern.flags & re.IGNORECASE)
        needed = _needed_texts(parsed)
        if needed and all("\n" in text for text in needed):
            raise PatternRefused("The pattern has a line break, but a match lies within one line; search for a part.")
        if self._folds:
            needed = tuple(text.lower() for text in needed) if "".join(needed).isascii() else ()
        self._needed = needed
        self._needed_bytes = tuple(text.encode() for text in needed)
        self._may_look_at_many_lines = parsed is not None and not _sees_its_surroundings(parsed)

    def find(self, data: bytes) -> Iterator[FinderHit]:
        """Every matching line of a file, in order."""
        folds = self._folds
        if not folds and not self._may_match(data):
            return
        end = data.find(b"\0")
        if end >= 0:
            if end < BINARY_BYTES:
                return
            data = data[:end]
        if folds and data.isascii() and not self._may_match(data.lower()):
            return
        text = data.decode("utf-8", "surrogateescape")
        is_ascii = len(text) == len(data)
        line = 1
        offset = at = 0
        for start, stop in self._candidates(text, can_fold=is_ascii):
            found = self._search(text[start : stop - 1] if text.endswith("\r", start, stop) else text[start:stop])
            if found is None:
                continue
            line += text.count("\n", at, start)
            offset += start - at if is_ascii else _size(text[at:start])
            at = start
            column = found.start() if is_ascii else _size(text[start : start + found.start()])
            yield FinderHit(line, column + 1, offset)

    def _may_match(self, data: bytes) -> bool:
        needed = self._needed_bytes
        return not needed or any(text in data for text in needed)

    def _candidates(self, text: str, *, can_fold: bool) -> Iterator[tuple[int, int]]:
        """The lines that could match, from where to where."""
        if len(self._needed) == 1 and (can_fold or not self._folds):
            return _lines_with(self._needed[0], text, text.lower() if self._folds else text)
        if self._may_look_at_many_lines:
            return self._lines_of_matching_parts(text)
        return _lines(text, 0, len(text))

    def _lines_of_matching_parts(self, text: str) -> Iterator[tuple[int, int]]:
        start = 0
        while start < len(text):
            stop = text.find("\n", start + _TOGETHER) + 1 or len(text)
            part = text[start:stop]
            if self._search(part.replace("\r\n", "\n")) is not None:
                yield from _lines(text, start, stop)
            start = stop

    def _search(self, text: str) -> re.Match[str] | None:
        self.calls += 1
        self.is_matching = True
        found = self._pattern.search(text)
        self.is_matching = False
        return found


def _compile(pattern: str, flags: int) -> re.Pattern[str]:
    if not pattern or len(pattern) > PATTERN_CHARACTERS:
        raise PatternRefused(f"A pattern of 1 to {PATTERN_CHARACTERS} characters is needed.")
    try:
        pattern.encode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sets inside sets, which mean nothing in Python yet
            return re.compile(pattern, flags)
    except UnicodeEncodeError as error:
        raise PatternRefused("The pattern holds half a character.") from error
    except re.error as error:
        raise PatternRefused(f"The pattern is no regular expression: {error.msg}.") from error
    except (RecursionError, OverflowError, MemoryError) as error:
        raise PatternRefused("The pattern is too deep or too large; use a simpler one.") from error


def _lines(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Every line between two places that begin one; a newline at the end begins none."""
    while start < stop:
        end = text.find("\n", start, stop)
        if end < 0:
            end = stop
        yield start, end
        start = end + 1


def _lines_with(needed: str, text: str, folded: str) -> Iterator[tuple[int, int]]:
    at = folded.find(needed)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        if end < 0:
            end = len(text)
        yield start, end
        at = folded.find(needed, end)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


# --- what the expression says about itself --------------------------------------------------------------------------
# `re` has no public view of a parsed expression. Its own parser is private but has kept these names since Python 2;
# without it, or with a surprise in it, the search is only slower.


def _parsed(pattern: str, flags: int) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("re._parser").parse(pattern, flags)
    except Exception:
        return None


_AROUND: Final = ("ASSERT", "ASSERT_NOT", "ATOMIC_GROUP", "POSSESSIVE_REPEAT", "GROUPREF_EXISTS")
_AT_ENDS: Final = ("AT_BEGINNING_STRING", "AT_END_STRING")


def _sees_its_surroundings(parsed: Any) -> bool:
    """Whether it may match a line alone but not the same line between others."""
    try:
        return any(_steps_that_see(parsed))
    except Exception:
        return True


def _steps_that_see(value: Any) -> Iterator[bool]:
    if isinstance(value, tuple) and value and str(value[0]) == "AT":
        yield str(value[1]) in _AT_ENDS
    elif isinstance(value, tuple) and value and str(value[0]) in _AROUND:
        yield True
    elif hasattr(value, "data"):
        yield from _steps_that_see(value.data)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _steps_that_see(each)


def _needed_texts(parsed: Any) -> tuple[str, ...]:
    """Texts of which every match holds at least one; none if that is not known."""
    try:
        return _needed_by(parsed)
    except Exception:
        return ()


def _needed_by(parsed: Any) -> tuple[str, ...]:
    """Of all that each match needs, what is likely to be rarest: where the shortest text is longest."""
    choices: list[tuple[str, ...]] = []
    run = ""
    for operation, argument in parsed:
        name = str(operation)
        if name == "LITERAL":
            run += chr(argument)
            continue
        choices.append((run,))
        run = ""
        if name == "SUBPATTERN" and argument[1] == argument[2] == 0:
            choices.append(_needed_by(argument[3]))
        elif name in ("MAX_REPEAT", "MIN_REPEAT") and argument[0] >= 1:
            choices.append(_needed_by(argument[2]))
        elif name == "BRANCH":
            branches = [_needed_by(branch) for branch in argument[1]]
            choices.append(tuple(text for texts in branches for text in texts) if all(branches) else ())
    choices.append((run,))
    known = [texts for texts in choices if texts and all(texts) and len(texts) <= _MOST_NEEDED]
    return max(known, key=lambda texts: min(map(len, texts)), default=())
