"""Measure, cut and pad text by the columns that it has on a terminal.

The text has to be harmless first (`host.text`, whose functions can be imported from here as well): characters that move
the cursor have no width.
"""

import unicodedata
from collections.abc import Iterator
from typing import Final

from dragoman.host.text import harmless, harmless_json, harmless_line, harmless_output

__all__ = ["fit", "harmless", "harmless_json", "harmless_line", "harmless_output", "in_diff_colour", "pad", "width"]

_CUT: Final = "…"
# Of the lines of a diff, by the mark each begins with; numbers as a terminal knows them.
DIFF_COLOURS: Final = {"+": "32", "-": "31", "@": "36"}


def width(text: str) -> int:
    """Return how many columns a terminal uses for it."""
    return len(text) if text.isascii() else sum(map(_width, text))


def fit(text: str, columns: int, *, keep_end: bool = False) -> str:
    """Return the text in at most so many columns; what is cut off is marked."""
    if width(text) <= columns:
        return text
    result = ""
    room = columns - 1
    for character in reversed(text) if keep_end else text:
        room -= _width(character)
        if room < 0:
            break
        result = character + result if keep_end else result + character
    return _CUT + result if keep_end else result + _CUT


def pad(text: str, columns: int) -> str:
    """Return the text, filled up with spaces."""
    return text + " " * (columns - width(text))


def wrap_line(line: str, columns: int, mark: str = "  … ") -> Iterator[str]:
    """Cut a line in parts that fit.

    What goes on stands behind the mark: only our own words are at the margin, and no long text of others can look like
    a line of ours.
    """
    line = line.expandtabs(4)
    if width(line) <= columns:
        yield line
        return
    if line.isascii():  # a character a column, which is quick for the longest lines
        yield line[:columns]
        step = columns - width(mark)
        yield from (f"{mark}{line[at : at + step]}" for at in range(columns, len(line), step))
        return
    part: list[str] = []
    used = 0
    for character in line:
        wide = width(character)
        if used + wide > columns:
            yield "".join(part)
            part, used = [mark], width(mark)
        part.append(character)
        used += wide
    yield "".join(part)


def in_diff_colour(text: str, mark: str) -> str:
    """Return the text in the colour of a line of a diff that begins with this mark; as it is for any other."""
    colour = DIFF_COLOURS.get(mark)
    return text if colour is None else f"\x1b[{colour}m{text}\x1b[0m"


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
