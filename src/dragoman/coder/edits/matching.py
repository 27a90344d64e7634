"""Where the lines of an old text stand in a file: from exact to more and more tolerant, each level linear in the file.

A level makes a key of every line; the block is where the keys of the old text follow each other. Every level accepts
all that the one before it does, so the first level with a hit decides: with one hit it has the place, with more there
is none. The search is `str.find` over the keys joined by line ends, which does not become quadratic on files that are
made to be slow.

| level | lines are the same if they differ only in |
|---|---|
| `white space` | blanks at their ends |
| `indentation` | blanks at both ends |
| `blank lines` | that, and blank lines between them |
| `characters` | that, runs of blanks within, and quotes, dashes and spaces that look alike |
| `line breaks` | that, and how parentheses and brackets are broken into lines |

Pure.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

# Where a place is not unique, so many are named.
MOST_PLACES: Final = 10
# What models, web pages and word processors write for one another: one character for one, so positions stay.
QUOTES: Final = dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032\u02bc"), "'") | dict.fromkeys(
    map(ord, "\u201c\u201d\u201e\u201f\u2033"), '"'
)
DASHES: Final = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-")
SPACES: Final = dict.fromkeys(map(ord, "\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u3000"), " ")
_ALIKE: Final = QUOTES | DASHES | SPACES
_BLANKS: Final = re.compile(r"[ \t\f\v]+")
_COMMA_BEFORE_END: Final = re.compile(r",(?=[)\]}])")
# A single short line is found by chance once its indentation does not count.
_LEAST_CHARACTERS: Final = 5
# Lines that one statement in parentheses may have; what is longer is no statement that was broken into lines.
_MOST_JOINED: Final = 60


class LineMatch(NamedTuple):
    """The place of old lines in a file: which lines of the file each of them stands for.

    `units` are the old lines, one by one, or as statements where these are compared. `spans` has the lines of the file
    for each unit, without a gap: blank lines that the old text does not have belong to the unit before them, and a
    blank line that the file does not have stands for none.
    """

    level: str
    units: list[tuple[int, int]]
    spans: list[tuple[int, int]]

    @property
    def start(self) -> int:
        return self.spans[0][0]

    @property
    def end(self) -> int:
        return self.spans[-1][1]


class SeveralPlaces(NamedTuple):
    """Old lines that stand at several places; `lines` are the first of them, counted from 0."""

    lines: list[int]
    places: int


def alike(text: str) -> str:
    """Return a text with plain quotes, dashes and spaces for the ones that look like them, character for character."""
    return text if text.isascii() else text.translate(_ALIKE)


def match_lines(
    file: Sequence[str], old: Sequence[str], *, start: int = 0, end: int | None = None
) -> LineMatch | SeveralPlaces | None:
    """Return where the old lines stand in the file, by the first level that has a hit.

    `start` and `end`: only the lines between them are looked at.
    """
    looked_at = file[start:end] if start or end is not None else file
    solid = [line for line in old if line.strip()]
    if not solid:
        return None
    for level in _LEVELS:
        if level.drops_indentation and len(solid) == 1 and len(_without_blanks(solid[0])) < _LEAST_CHARACTERS:
            return None
        found = level.find(level, looked_at, old)
        if isinstance(found, LineMatch):
            return found._replace(spans=[(first + start, last + start) for first, last in found.spans])
        if found is not None:
            return SeveralPlaces([line + start for line in found.lines], found.places)
    return None


def occurrences(text: str, piece: str, most: int = 1000) -> list[int]:
    """Return where a piece begins in a text, overlapping ones too, up to a bound."""
    found: list[int] = []
    at = text.find(piece)
    while at >= 0 and len(found) < most:
        found.append(at)
        at = text.find(piece, at + 1)
    return found


# -- levels ------------------------------------------------------------------------------------------------------------


class _Level(NamedTuple):
    """One way to compare lines."""

    name: str
    key: Callable[[str], str]
    find: "Callable[[_Level, Sequence[str], Sequence[str]], LineMatch | SeveralPlaces | None]"
    drops_indentation: bool = True
    joins_lines: bool = False


def _plain_key(line: str) -> str:
    if not line.isascii():
        line = unicodedata.normalize("NFC", line).translate(_ALIKE)
    return _BLANKS.sub(" ", line.strip())


def _without_blanks(line: str) -> str:
    return "".join(_plain_key(line).split())


def _find_lines(level: _Level, file: Sequence[str], old: Sequence[str]) -> LineMatch | SeveralPlaces | None:
    """Find old lines as they follow each other, blank lines among them."""
    found = _find_keys(list(map(level.key, file)), list(map(level.key, old)))
    if isinstance(found, int):
        return LineMatch(level.name, lines_of(old), [(found + at, found + at + 1) for at in range(len(old))])
    return found


def _find_solid(level: _Level, file: Sequence[str], old: Sequence[str]) -> LineMatch | SeveralPlaces | None:
    """Find old lines, or statements, as they follow each other without the blank lines."""
    cut = statements_of if level.joins_lines else lines_of
    file_units = [unit for unit in cut(file) if any(map(str.strip, file[slice(*unit)]))]
    old_units = cut(old)
    solid = [at for at, unit in enumerate(old_units) if any(map(str.strip, old[slice(*unit)]))]
    found = _find_keys(
        [level.key("\n".join(file[slice(*unit)])) for unit in file_units],
        [level.key("\n".join(old[slice(*old_units[at])])) for at in solid],
    )
    if isinstance(found, int):
        places = dict(zip(solid, file_units[found : found + len(solid)], strict=True))
        return LineMatch(level.name, old_units, _spans(file, len(old_units), places))
    return found and SeveralPlaces([file_units[unit][0] for unit in found.lines], found.places)


def _spans(file: Sequence[str], count: int, places: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the lines of the file for every old unit, given those of the units that are not blank."""
    first, last = min(places), max(places)
    begin = places[first][0]
    while places[first][0] - begin < first and begin and not file[begin - 1].strip():
        begin -= 1
    spans: list[tuple[int, int]] = []
    reached = begin
    for at in range(count):
        if at in places:
            if spans and reached < places[at][0]:
                # Blank lines that only the file has are those of the line before them.
                spans[-1] = (spans[-1][0], places[at][0])
            spans.append(places[at])
            reached = places[at][1]
            continue
        bound = len(file) if at > last else next(place[0] for number, place in places.items() if number > at)
        is_there = reached < bound and not file[reached].strip()
        spans.append((reached, reached + is_there))
        reached += is_there
    return spans


def lines_of(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return every line as a unit of its own."""
    return [(at, at + 1) for at in range(len(lines))]


def statements_of(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the lines as statements: from a line that opens a parenthesis or bracket to the one that closes it."""
    found: list[tuple[int, int]] = []
    depth, first = 0, 0
    for at, line in enumerate(lines):
        depth += line.count("(") + line.count("[") - line.count(")") - line.count("]")
        if depth <= 0 or at - first >= _MOST_JOINED:
            found.append((first, at + 1))
            depth, first = 0, at + 1
    return [*found, (first, len(lines))] if first < len(lines) else found


def _statement_key(text: str) -> str:
    return _COMMA_BEFORE_END.sub("", _without_blanks(text))


def _find_keys(file: list[str], old: list[str]) -> int | SeveralPlaces | None:
    """Return the one index at which the old keys follow each other."""
    whole, piece = "\n".join(["", *file, ""]), "\n".join(["", *old, ""])
    found = occurrences(whole, piece)
    if not found:
        return None
    lines = [whole.count("\n", 0, at) for at in found[:MOST_PLACES]]
    return lines[0] if len(found) == 1 else SeveralPlaces(lines, len(found))


_LEVELS: Final = (
    _Level("white space", str.rstrip, _find_lines, drops_indentation=False),
    _Level("indentation", str.strip, _find_lines),
    _Level("blank lines", str.strip, _find_solid),
    _Level("characters", _plain_key, _find_solid),
    _Level("line breaks", _statement_key, _find_solid, joins_lines=True),
)
