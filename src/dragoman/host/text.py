"""Text of strangers, made fit to be shown: the one table of characters that hide, and what is done about them.

Some characters show nothing, look like a blank, or make what follows show in another order or place. A file name with
one of them looks like another file; a line of them carries a text that a model reads and a person does not see. They
are dealt with in two ways:

- `visible` is for what a person has to judge before it happens: commands, paths, titles of questions, diffs. Every
  hidden character is spelled out (`\\u202e`, `\\u{e0041}`), also the ones that ordinary writing uses.
- `harmless` is for everything else that is shown: answers, output, lists. What acts on a terminal or shows nothing is
  spelled out (`\\x1b`, `\\u202e`, `\\U000e0041`); joiners stay where a script or an emoji needs them, and so do the
  blanks of typography.

Pure. The browser page has the same table: `python -m tools.hidden_characters` writes it there, and a test fails where
it is stale. Another test compares the table with Python's Unicode data.
"""

import functools
import re
import unicodedata
from typing import Final

Ranges = tuple[tuple[int, int], ...]

# -- the table -------------------------------------------------------------------------------------------------------

# Categories Cc, Cf, Cs, Co, Zl and Zp of Unicode, without tab and newline; a test finds what is missing here.
CONTROLS: Final[Ranges] = (
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),
    (0x2028, 0x2029),
    (0xD800, 0xDFFF),  # halves of characters, which no encoding has
    (0xFFF9, 0xFFFB),
)
FORMATS: Final[Ranges] = (
    (0xAD, 0xAD),
    (0x61C, 0x61C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),  # 2065 is not assigned, and shows nothing by promise of the standard
    (0xFEFF, 0xFEFF),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
)
# Format characters of scripts that do show, by themselves or by what they do to the signs beside them.
SCRIPT_FORMATS: Final[Ranges] = (
    (0x600, 0x605),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
)
# Every category of blanks but the space itself.
BLANKS: Final[Ranges] = (
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
# They look as the font of the reader says, and as nothing where it says nothing.
PRIVATE: Final[Ranges] = ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
# What the categories do not tell. Their letters and marks are blank or nothing at all.
UNSEEN: Final[Ranges] = (
    (0x34F, 0x34F),  # combining grapheme joiner
    (0x115F, 0x1160),  # fillers of Hangul
    (0x17B4, 0x17B5),  # inherent vowels of Khmer, never written
    (0x3164, 0x3164),  # Hangul filler
    (0xFFA0, 0xFFA0),  # its half-width form
    (0xFFF0, 0xFFF8),  # not assigned, and shown as nothing by promise
    (0xFFFC, 0xFFFC),  # the place of an object that is not there
    (0x13441, 0x13442),  # blanks of Egyptian
    (0x16FE4, 0x16FE4),  # filler of Khitan
    (0x1BC9D, 0x1BC9D),  # selects a letter of Duployan, and is none
    (0x1D159, 0x1D159),  # a note without a head
    (0xE0000, 0xE00FF),  # tags: a whole alphabet that does not show
    (0xE01F0, 0xE0FFF),  # not assigned, and shown as nothing by promise
)
# Braille without dots: a blank, and half of the pictures that programs draw with the others.
BRAILLE_BLANK: Final[Ranges] = ((0x2800, 0x2800),)
# They choose how the letter before them looks. A row of them is an alphabet that does not show.
SELECTORS: Final[Ranges] = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
# The same for Mongolian, which cannot be written without them.
MONGOLIAN: Final[Ranges] = ((0x180B, 0x180D), (0x180F, 0x180F))
# No characters, now and for ever.
NONCHARACTERS: Final[Ranges] = (
    (0xFDD0, 0xFDEF),
    *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000)),
)

# Needed in prose, beside letters of their scripts and between emoji: non-joiner, joiner, text and emoji form.
_JOINERS: Final = "\\u200c\\u200d"
_FORMS: Final = "\\ufe0e\\ufe0f"


def hidden_ranges() -> list[tuple[int, int]]:
    """Return the ranges of the table, sorted and joined: what `visible` spells out besides unassigned characters."""
    every = CONTROLS + FORMATS + SCRIPT_FORMATS + BLANKS + PRIVATE + UNSEEN
    joined: list[tuple[int, int]] = []
    for first, last in sorted(every + BRAILLE_BLANK + SELECTORS + MONGOLIAN + NONCHARACTERS):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _classes(*tables: Ranges) -> str:
    """Return the ranges as the inside of a character class."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for table in tables for first, last in table)


_PLAIN: Final = re.compile(r"[\x20-\x7e\t\n]*")
# What programs write to colour and move; in their output it means nothing here.
_SEQUENCES: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-Z\\-~]")


# Compiled when first used: that takes some milliseconds, and most text is plain.
@functools.cache
def _hidden() -> "re.Pattern[str]":
    return re.compile(f"[{_classes(tuple(hidden_ranges()))}]")


@functools.cache
def _acting(*, in_json: bool = False) -> "re.Pattern[str]":
    """Return what `harmless` spells out.

    In JSON the controls of ASCII are escaped already, or blanks between its words.
    """
    acts = _classes(
        tuple(pair for pair in CONTROLS if pair[0] > 0x1F),
        tuple(pair for pair in FORMATS if pair != (0x200B, 0x200F)),
        ((0x200B, 0x200B), (0x200E, 0x200F)),  # without the joiners, which have rules of their own
        UNSEEN,
        ((0xFE00, 0xFE0D), (0xE0100, 0xE01EF)),
        NONCHARACTERS,
    )
    # A joiner stays behind a character that shows and is not ASCII, a form also behind a digit (keycaps); one each.
    no_base = f"\\x00-\\x7f{_JOINERS}{acts}"
    no_base_of_forms = f"\\x00-\\x22\\x24-\\x29\\x2b-\\x2f\\x3a-\\x7f{_JOINERS}{_FORMS}{acts}"
    ascii_controls = "" if in_json else "\\x00-\\x08\\x0b-\\x1f"
    return re.compile(f"[{ascii_controls}{acts}]|(?<![^{no_base}])[{_JOINERS}]|(?<![^{no_base_of_forms}])[{_FORMS}]")


# Marks on one letter. Vietnamese and Hebrew need three; emoji of families a few joiners more.
MARKS: Final = 8
_MARK_KINDS: Final = ("Mn", "Me", "Cf")

# -- for questions ---------------------------------------------------------------------------------------------------


def hidden_character(text: str) -> str:
    """Return the first character of the text that `visible` would spell out, or nothing."""
    if _PLAIN.fullmatch(text):
        return ""
    found = _hidden().search(text)
    end = found.start() if found else len(text)
    unassigned = next((one for one in text[:end] if unicodedata.category(one) == "Cn"), "")
    return unassigned or (found[0] if found else "")


def visible(text: str) -> str:
    """Spell out every character that does not show as itself; lines, tabs and spaces stay.

    Also spelled: what this release's Unicode does not know, and marks heaped on one letter beyond what writing needs.
    """
    if _PLAIN.fullmatch(text):
        return text
    is_listed = _hidden().match
    shown: list[str] = []
    marks = 0
    for character in text:
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in _MARK_KINDS else 0
        is_hidden = kind == "Cn" or marks > MARKS or is_listed(character) is not None
        shown.append(_spelled(character) if is_hidden else character)
    return "".join(shown)


def visible_line(text: str) -> str:
    """Do what `visible` does on one line: newlines and tabs are spelled out as well, and no blank is left out."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"


# -- for everything else ---------------------------------------------------------------------------------------------


def harmless(text: str, before: str = "") -> str:
    """Spell out what acts on a terminal or shows nothing; lines and tabs stay, `\\r\\n` is a line.

    `before` is the character that was shown before this text, if it goes on from there: joiners depend on it.
    """
    if _PLAIN.fullmatch(text):
        return text
    text = text.replace("\r\n", "\n")
    if not before:
        return _acting().sub(_escape, text)
    whole, at = before + text, len(before)
    pieces: list[str] = []
    for found in _acting().finditer(whole, at):
        pieces += whole[at : found.start()], _escape(found)
        at = found.end()
    return "".join([*pieces, whole[at:]])


def harmless_line(text: str) -> str:
    """Do what `harmless` does on one line, with single spaces."""
    return harmless(" ".join(text.split()))


def harmless_output(text: str) -> str:
    """Do what `harmless` does with the output of a program, after its colours were taken out."""
    return harmless(_SEQUENCES.sub("", text))


def harmless_json(line: bytes) -> str:
    """Return JSON that means the same, and does nothing to a terminal."""
    text = line.decode()
    return text if text.isascii() and "\x7f" not in text else _acting(in_json=True).sub(_json_escape, text)


def few_marks(text: str, before: int = 0) -> tuple[str, int]:
    """Leave at most `MARKS` marks on a letter, and count those of the last; `before` came in with it."""
    if text.isascii():
        return text, 0 if text else before
    kept: list[str] = []
    marks = before
    for character in text:
        if unicodedata.category(character) not in _MARK_KINDS:
            marks = 0
            kept.append(character)
            continue
        marks += 1
        if marks <= MARKS:
            kept.append(character)
        elif marks == MARKS + 1:
            kept.append("…")
    return "".join(kept), marks


def _escape(found: "re.Match[str]") -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(found: "re.Match[str]") -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
