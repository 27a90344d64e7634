"""Make the text of an agent harmless on the terminal where we also ask the user.

`host.text` spells out what acts on a terminal. Beyond that, the result holds no glyph of our frame, so what looks like
our question is our question; and a letter carries no more marks than a line can hold.
"""

import re
from typing import Final

from dragoman.host.text import few_marks, harmless, harmless_output, visible, visible_line

# A line that goes on beyond this is shown in parts.
LINE_LENGTH: Final = 4 * 1024
# What our frame is drawn with, and what could be taken for it. An agent's tables are drawn with the single lines.
FRAME: Final = "╔═╗║╚╝"
_FOR_THE_FRAME: Final = str.maketrans(
    dict.fromkeys(map(chr, range(0x2550, 0x256D)), "┼")
    | {"═": "─", "║": "│", "╔": "┌", "╗": "┐", "╚": "└", "╝": "┘", "╠": "├", "╣": "┤", "╦": "┬", "╩": "┴"}
    | dict.fromkeys("‖∥ǁ", "|")
)
_PLAIN: Final = re.compile(r"[\x20-\x7e\t\n]*")


def sanitize(text: str) -> str:
    """Return the text, to be shown as it is; lines and tabs stay."""
    return text if _PLAIN.fullmatch(text) else few_marks(harmless(text).translate(_FOR_THE_FRAME))[0]


def sanitize_line(text: str) -> str:
    """Return the text as `sanitize` does, on one line: each run of blanks becomes one space."""
    return sanitize(" ".join(text.split()))


def spell_out(text: str) -> str:
    """Return the text as a person has to judge it: whatever would not show as itself is spelled out.

    Lines and tabs stay.
    """
    return text if _PLAIN.fullmatch(text) else visible(text).translate(_FOR_THE_FRAME)


def spell_out_line(text: str) -> str:
    """Return the text as `spell_out` does, on one line: newlines and tabs are spelled out, every blank stays."""
    return visible_line(text).translate(_FOR_THE_FRAME)


def sanitize_output(text: str) -> str:
    """Return the output of a program, without its colours.

    What it would have written over stands on a line of its own.
    """
    return text if _PLAIN.fullmatch(text) else sanitize(harmless_output(text.replace("\r\n", "\n").replace("\r", "\n")))


class SanitizingStream:
    """Makes a text inert that comes in pieces: a line's end or a heap of marks may be cut in two."""

    def __init__(self) -> None:
        self._carriage_return = ""
        self._marks = 0
        # The last character that was shown: what joins to it comes in the next piece.
        self._before = ""

    def feed(self, text: str) -> str:
        """Return what can be shown of it now."""
        if not self._carriage_return and not self._marks and _PLAIN.fullmatch(text):
            self._before = text[-1:] or self._before
            return text
        text, self._carriage_return = self._carriage_return + text, ""
        if text.endswith("\r"):
            text, self._carriage_return = text[:-1], "\r"
        clean = harmless(text, self._before).translate(_FOR_THE_FRAME)
        shown, self._marks = few_marks(clean, self._marks)
        self._before = text[-1:] or self._before
        return shown

    def finish(self) -> str:
        """Return what was held back."""
        carriage_return, self._carriage_return, self._marks, self._before = self._carriage_return, "", 0, ""
        return sanitize(carriage_return)
