"""Text from strangers, made plain: nothing in it moves a cursor, turns a line around or hides from the reader."""

import re
from typing import Final

# Control characters but tab and newline; marks that turn the direction of text; line breaks of other alphabets;
# annotations and tags, which nobody sees and a model reads; halves of characters, which no encoder takes.
_TRICKS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """The text with such characters written out: an escape becomes the four characters `\\x1b`."""
    return _TRICKS.sub(_written_out, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int) -> str:
    """The text for a title or a sentence."""
    # Cut twice: first so that a huge text is not gone through, then because writing out makes it longer.
    line = " ".join(plain(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _written_out(found: "re.Match[str]") -> str:
    return found.group().encode("unicode_escape").decode()
