"""Text of strangers, made harmless."""

import json

import pytest

from dragoman.cli.text_width import fit, harmless, harmless_json, harmless_line, harmless_output, pad, width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcödé, 漢字, 👩\u200d💻\n\ttext", "plain, ünïcödé, 漢字, 👩\u200d💻\n\ttext"),
        ("\x1b[2J\x07\x00", r"\x1b[2J\x07\x00"),
        ("one\r\ntwo\rthree", "one\ntwo\\x0dthree"),
        ("\x7f\x85\x9b", r"\x7f\x85\x9b"),
        ("\u202eexe.\u202c \u2066x\u2069 \u200f\u061c", r"\u202eexe.\u202c \u2066x\u2069 \u200f\u061c"),
        ("\u2028\u2029\ufeff\u200b", r"\u2028\u2029\ufeff\u200b"),
        ("\ud83d \U000e0041", r"\ud83d \U000e0041"),
    ],
)
def test_what_acts_is_shown_and_what_shows_stays(text: str, shown: str) -> None:
    assert harmless(text) == shown
    assert harmless(shown) == shown


def test_every_control_and_every_turn_of_direction_is_caught() -> None:
    import unicodedata

    for code in range(0x110000):
        character = chr(code)
        kind = unicodedata.category(character)
        turns = unicodedata.bidirectional(character) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        if (kind in ("Cc", "Cs", "Zl", "Zp") or turns) and character not in "\t\n":
            assert character not in harmless(character), hex(code)


def test_a_line_stays_one_line() -> None:
    assert harmless_line(" a\n b\t\x1bc\u2028d ") == "a b \\x1bc d"


def test_the_colours_of_a_program_are_left_out() -> None:
    assert harmless_output("\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b(Bend\x1b") == "red end\\x1b"


def test_json_stays_the_same_json() -> None:
    text = 'a\x1b"\\ \x7f\x9b\u202e\U000e0041 漢'
    line = harmless_json(json.dumps(text, ensure_ascii=False).encode())
    assert json.loads(line) == text
    assert harmless(line) == line
    assert "漢" in line


@pytest.mark.parametrize(
    ("text", "columns", "fitted"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("漢字かな", 5, "漢字…"),
        ("漢字かな", 8, "漢字かな"),
        ("e\u0301" * 3, 3, "e\u0301" * 3),
    ],
)
def test_text_fits_into_columns(text: str, columns: int, fitted: str) -> None:
    assert fit(text, columns) == fitted
    assert width(fitted) <= columns
    assert width(pad(fitted, columns)) == columns


def test_a_path_keeps_its_end() -> None:
    assert fit("/a/long/way", 6, keep_end=True) == "…g/way"
