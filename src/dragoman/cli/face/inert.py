"""Words of an agent, fit for the terminal that we ask the user on.

Beyond `cli.plain`, which takes the life out of them: they never hold a glyph of our frame, so what looks like our
question is our question; and a letter carries no more marks than a line can hold.
"""

import re
import unicodedata
from typing import Final

from dragoman.cli.plain import harmless, harmless_output

# What our frame is drawn with, and what could be taken for it. An agent's tables are drawn with the single lines.
FRAME: Final = "╔═╗║╚╝"
_FOR_THE_FRAME: Final = str.maketrans(
    dict.fromkeys(map(chr, range(0x2550, 0x256D)), "┼")
    | {"═": "─", "║": "│", "╔": "┌", "╗": "┐", "╚": "└", "╝": "┘", "╠": "├", "╣": "┤", "╦": "┬", "╩": "┴"}
    | dict.fromkeys("‖∥ǁ", "|")
)
# Marks on one letter. Vietnamese and Hebrew need three; emoji of families a few joiners more.
MARKS: Final = 8
_MANY: Final = "…"
_PLAIN: Final = re.compile(r"[\x20-\x7e\t\n]*")


def inert(text: str) -> str:
    """The text, to be shown as it is; lines and tabs stay."""
    return text if _PLAIN.fullmatch(text) else _few_marks(harmless(text).translate(_FOR_THE_FRAME), 0)[0]


def inert_line(text: str) -> str:
    """The same on one line."""
    return inert(" ".join(text.split()))


def inert_output(text: str) -> str:
    """The output of a program, without its colours. What it would have written over stands on a line of its own."""
    return text if _PLAIN.fullmatch(text) else inert(harmless_output(text.replace("\r\n", "\n").replace("\r", "\n")))


class InertStream:
    """The same for text that comes in pieces: a line's end or a heap of marks may be cut in two."""

    def __init__(self) -> None:
        self._held = ""
        self._marks = 0

    def feed(self, text: str) -> str:
        """What can be shown of it now."""
        if not self._held and not self._marks and _PLAIN.fullmatch(text):
            return text
        text, self._held = self._held + text, ""
        if text.endswith("\r"):
            text, self._held = text[:-1], "\r"
        shown, self._marks = _few_marks(harmless(text).translate(_FOR_THE_FRAME), self._marks)
        return shown

    def finish(self) -> str:
        """What was held back."""
        held, self._held, self._marks = self._held, "", 0
        return inert(held)


def _few_marks(text: str, before: int) -> tuple[str, int]:
    """The text with at most `MARKS` marks on a letter, and how many the last one has; `before` came in with it."""
    if text.isascii():
        return text, 0 if text else before
    kept: list[str] = []
    marks = before
    for character in text:
        if unicodedata.category(character) not in ("Mn", "Me", "Cf"):
            marks = 0
            kept.append(character)
            continue
        marks += 1
        if marks <= MARKS:
            kept.append(character)
        elif marks == MARKS + 1:
            kept.append(_MANY)
    return "".join(kept), marks
