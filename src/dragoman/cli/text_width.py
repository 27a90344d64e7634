"""Measure, cut and pad text by the columns that it has on a terminal.

The text has to be harmless first (`host.text`, whose functions can be imported from here as well): characters that move
the cursor have no width.
"""

import unicodedata
from typing import Final

from dragoman.host.text import harmless, harmless_json, harmless_line, harmless_output

__all__ = ["fit", "harmless", "harmless_json", "harmless_line", "harmless_output", "pad", "width"]

_CUT: Final = "…"


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


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
