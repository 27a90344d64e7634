"""The one table of hidden characters, held against Unicode's own data, and what is made of a text with them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host import text as table
from dragoman.host.text import MARKS, few_marks, harmless, hidden_character, visible, visible_line
from tools.hidden_characters import FILE, script

HIDDEN = {code for first, last in table.hidden_ranges() for code in range(first, last + 1)}
# Default_Ignorable_Code_Point of the standard, which Python does not know.
IGNORABLE = [
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
]
# Writing that must stay as it is, also in a question.
WRITINGS = [
    *(
        "plain\n\ttext",
        "Grüße e\u0301 Việt",
        "שָׁלוֹם",
        "السَّلَامُ عَلَيْكُمْ",
        "नमस्ते हिन्दी",
        "ภาษาไทยที่",
        "தமிழ்",
        "漢字かな",
        "ខ្មែរ",
        "မြန်မာ",
    ),
    *("→ ✓ ┌─┐ ≠ €", "👍🏽 🇩🇪"),
]
# Writing that has joiners, forms and blanks of its own.
PROSE = [
    "👩\u200d💻",
    "❤\ufe0f\u200d🔥",
    "1\ufe0f\u20e3 ✔\ufe0f",
    "می\u200cخواهم",
    "क्\u200dष",
    "10\u202f000\u00a0€",
    "漢\u3000字",
    "\ue0b0",
    "⠀⠀⣿",
]


def test_everything_that_unicode_says_does_not_show_is_in_the_table() -> None:
    kinds = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
    missing = [code for code in range(0x110000) if unicodedata.category(chr(code)) in kinds and code not in HIDDEN]
    assert missing == [ord("\t"), ord("\n"), ord(" ")]


def test_everything_that_may_be_ignored_is_in_the_table() -> None:
    assert {code for first, last in IGNORABLE for code in range(first, last + 1)} - HIDDEN == set()


def test_a_letter_or_sign_that_shows_is_not_in_the_table() -> None:
    listed = table.UNSEEN + table.BRAILLE_BLANK + table.SELECTORS + table.MONGOLIAN
    reasons = {code for first, last in listed for code in range(first, last + 1)}
    shown = {code for code in HIDDEN - reasons if unicodedata.category(chr(code))[0] not in "CZ"}
    assert shown == set()


def test_the_table_of_the_page_is_this_one() -> None:
    assert FILE.read_text(encoding="utf-8") == script(), "python -m tools.hidden_characters"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sh ./test\ufe0f.sh", r"sh ./test\ufe0f.sh"),
        ("a\U000e0100b\U000e0041", r"a\u{e0100}b\u{e0041}"),
        ("x\u3164y\uffa0z\u034f\u115f\u2800", r"x\u3164y\uffa0z\u034f\u115f\u2800"),
        ("rm\u00a0-rf\u3000/\u2003", r"rm\u00a0-rf\u3000/\u2003"),
        ("\x1b[2J\r\x00\x7f\x9b", r"\u001b[2J\u000d\u0000\u007f\u009b"),
        ("\u202egnp.exe\u2066\u200f", r"\u202egnp.exe\u2066\u200f"),
        ("👩\u200d💻", r"👩\u200d💻"),
        ("\ud83d\uffff\U0010ffff\ue000\U0001d173\U0001bca0", r"\ud83d\uffff\u{10ffff}\ue000\u{1d173}\u{1bca0}"),
        ("\u0378", r"\u0378"),
    ],
)
def test_in_a_question_everything_hidden_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert hidden_character(text) != ""
    assert hidden_character(shown) == ""


@pytest.mark.parametrize("text", WRITINGS)
def test_writing_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert harmless(text) == text
    assert hidden_character(text) == ""


@pytest.mark.parametrize("text", PROSE)
def test_prose_keeps_what_writing_and_emoji_need(text: str) -> None:
    assert harmless(text) == text
    assert visible(text) != text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("test\ufe0f.sh", r"test\ufe0f.sh"),
        ("a\u200db\u200c", r"a\u200db\u200c"),
        ("☎\ufe0f\ufe0e\ufe01", "☎\ufe0f" + r"\ufe0e\ufe01"),
        ("☎\u200d\u200c\u200d", "☎\u200d" + r"\u200c\u200d"),
        ("\u200b\ufe0f", r"\u200b\ufe0f"),
        ("葛\U000e0100\U000e0101", r"葛\U000e0100\U000e0101"),
        ("\u3164\u115f\ufffc", r"\u3164\u115f\ufffc"),
    ],
)
def test_in_prose_a_joiner_without_something_to_join_is_spelled_out(text: str, shown: str) -> None:
    assert harmless(text) == shown


@given(st.text(alphabet="a1é☎\u200b\u200c\u200d\ufe0e\ufe0f\u202e\x1b ", max_size=12), st.integers(0, 12))
def test_a_text_in_two_pieces_is_what_it_is_in_one(text: str, at: int) -> None:
    assert harmless(text[:at]) + harmless(text[at:], text[:at][-1:]) == harmless(text)


@given(st.text())
def test_what_was_made_visible_has_nothing_hidden(text: str) -> None:
    assert hidden_character(visible(text)) == ""
    assert "\n" not in visible_line(text)


def test_a_heap_of_marks_is_spelled_out_in_a_question_and_cut_in_prose() -> None:
    heap = "e" + "\u0301" * (MARKS + 2)
    assert visible(heap) == "e" + "\u0301" * MARKS + r"\u0301" * 2
    assert few_marks(heap) == ("e" + "\u0301" * MARKS + "…", MARKS + 2)


def test_a_line_keeps_every_blank_it_has() -> None:
    assert visible_line(" a  b\n\tc ") == r" a  b\n\tc "
