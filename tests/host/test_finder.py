"""Lines that match, with Python's `re` behaving as ripgrep does."""

import pytest

from dragoman.host.finder import BINARY_BYTES, Finder, FinderHit
from dragoman.host.wildcards import PATTERN_CHARACTERS, PatternRefused


def hits(pattern: str, data: bytes, *, ignore_case: bool = False) -> list[FinderHit]:
    return list(Finder(pattern, ignore_case=ignore_case).find(data))


def lines(pattern: str, data: bytes, *, ignore_case: bool = False) -> list[int]:
    return [hit.line for hit in hits(pattern, data, ignore_case=ignore_case)]


def test_a_hit_says_line_column_and_offset_in_bytes() -> None:
    data = "eins\nzwölf ärger\näh ärger ärger\n".encode()
    assert hits("ärger", data) == [FinderHit(2, 8, 5), FinderHit(3, 5, 19)]
    assert data[19:].startswith("äh".encode())


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("b", "a\nb\nab", [2, 3]),
        ("^b", "a\nb\nab", [2]),
        ("a$", "a\r\nba\nab", [1, 2]),
        ("^$", "a\n\nb\n", [2]),
        ("", "", []),
        (r"a\s+b", "a\nb\na b", [3]),
        ("a[^x]*b", "a\nb\nacb", [3]),
        ("[^x]+", "x\n\ny\n", [3]),
        (r"\Aa", "b\na\n", [2]),
        (r"a\Z", "a\nb\n", [1]),
        (r"foo(?!\s*bar)", "foo\nbar\nfoo bar\n", [1]),
        (r"(?<!x)foo", "foo\nxfoo\n", [1]),
        ("(?>[^x]*)b?", "ab\n", [1]),
        ("a|b", "c\nb\na\n", [2, 3]),
        ("(abc)+d", "abd\nabcabcd\n", [2]),
        ("(?:abc)?d", "abc\nd\n", [2]),
        (r"(\w)\1", "ab\nbb\n", [2]),
        (r"\bab\b", "abc\nab\nx ab.", [2, 3]),
        ("a{2}", "a\naa\n", [2]),
        ("interface{}", "interface{}\n", [1]),
        ("(?i)AB", "ab\nAb\nx", [1, 2]),
        ("[[:alpha:]]", "1\n", []),
    ],
)
def test_a_match_lies_in_one_line(pattern: str, text: str, expected: list[int]) -> None:
    if pattern:
        assert lines(pattern, text.encode()) == expected


@pytest.mark.parametrize("text", ["Straße\nstraSSe\n", "ab\nAB\n", "Ärger\nÄRGER\n"])
def test_case_is_ignored_when_asked(text: str) -> None:
    word = text.partition("\n")[0]
    assert lines(word.upper() if word.isascii() else word, text.encode(), ignore_case=True)[0] == 1


def test_case_is_ignored_in_a_file_that_is_not_all_ascii() -> None:
    assert lines("value", "ü\nVALUE\n".encode(), ignore_case=True) == [2]


def test_bytes_that_are_no_text_do_not_hide_what_is() -> None:
    assert hits("b", b"\xff\xfe\nab\n") == [FinderHit(2, 2, 3)]


def test_a_binary_file_is_not_searched() -> None:
    assert lines("a", b"a\n\0") == []


def test_a_file_is_searched_up_to_a_late_nul() -> None:
    before = b"a\n" + b"x" * BINARY_BYTES + b"\na\n"
    assert lines("^a$", before + b"\0a\n") == [1, 3]


def test_many_lines_without_a_needed_text_are_found_across_parts() -> None:
    data = b"".join(b"x%d\n" % number for number in range(50_000))
    assert lines(r"[y-z]|^x\d*9999$", data) == [10_000, 20_000, 30_000, 40_000, 50_000]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "no regular expression"),
        ("[a", "no regular expression"),
        ("*", "no regular expression"),
        ("a\nb", "line break"),
        ("x" * (PATTERN_CHARACTERS + 1), "characters"),
        ("(" * 2000 + ")" * 2000, "simpler"),
        ("\ud800", "half a character"),
    ],
    ids=["bracket", "class", "star", "newline", "long", "deep", "surrogate"],
)
def test_a_pattern_that_cannot_be_is_refused_with_a_sentence(pattern: str, words: str) -> None:
    with pytest.raises(PatternRefused, match=words):
        Finder(pattern)
