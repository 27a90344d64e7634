"""Text of strangers on a terminal: nothing that comes through here moves the cursor, rings, colours or turns round.

A session holds what models, users and programs wrote. Characters that act instead of showing are shown as escapes.
"""

import re
import unicodedata
from typing import Final

# Controls (C0 without tab and newline, DEL, C1), what breaks lines or turns their direction, marks nobody can see,
# and lone halves of pairs, which no encoding has. Joiners stay: scripts and emoji need them.
_UNSEEN: Final = (
    r"\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f"
)
_ACTING: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{_UNSEEN}]")
_ACTING_IN_JSON: Final = re.compile(f"[{_UNSEEN}]")
# What programs write to colour and move; in their output it means nothing here.
_SEQUENCES: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-Z\\-~]")
_CUT: Final = "…"


def harmless(text: str) -> str:
    """The text, to be shown as it is; lines and tabs stay."""
    return _ACTING.sub(_escape, text.replace("\r\n", "\n"))


def harmless_line(text: str) -> str:
    """The same on one line."""
    return harmless(" ".join(text.split()))


def harmless_output(text: str) -> str:
    """The output of a program, without its colours."""
    return harmless(_SEQUENCES.sub("", text))


def harmless_json(line: bytes) -> str:
    """JSON that means the same, and does nothing to a terminal."""
    return _ACTING_IN_JSON.sub(_json_escape, line.decode())


def width(text: str) -> int:
    """How many columns a terminal uses for it."""
    return len(text) if text.isascii() else sum(map(_width, text))


def fit(text: str, columns: int, *, keep_end: bool = False) -> str:
    """The text in at most so many columns; what is cut off is marked."""
    if width(text) <= columns:
        return text
    kept = ""
    room = columns - 1
    for character in reversed(text) if keep_end else text:
        room -= _width(character)
        if room < 0:
            break
        kept = character + kept if keep_end else kept + character
    return _CUT + kept if keep_end else kept + _CUT


def pad(text: str, columns: int) -> str:
    """The text, filled up with spaces."""
    return text + " " * (columns - width(text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _escape(found: "re.Match[str]") -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(found: "re.Match[str]") -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
