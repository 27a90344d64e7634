"""Wildcards: what they match, and that no pattern takes the time of a power of its length."""

import re
import time
from contextlib import suppress

import pytest

from dragoman.host import wildcards
from dragoman.host.wildcards import BRACE_EXPANSIONS, PATTERN_CHARACTERS, PatternRefused


def matches(pattern: str, path: str) -> bool:
    return re.fullmatch(wildcards.path(pattern), path, re.DOTALL) is not None


@pytest.mark.parametrize(
    ("pattern", "paths", "others"),
    [
        ("*.py", ["a.py", ".py"], ["a/b.py", "a.pyc", "a.p"]),
        ("**/*.py", ["a.py", "a/b.py", "a/b/c.py"], ["a.pyc", "py"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "srca", "a/src/b"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "b", "a/b/c"]),
        ("**/x/**/y.c", ["x/y.c", "a/x/b/c/y.c", "x/x/y.c"], ["y.c", "a/y.c", "xx/y.c"]),
        ("**", ["a", "a/b"], []),
        ("**/**/a", ["a", "b/a"], ["b"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("?.c", ["a.c", "ü.c"], [".c", "ab.c", "/.c"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x"]),
        ("[!a-c]x", ["dx"], ["ax", "/x"]),
        ("[^a]", ["b"], ["a", "/"]),
        ("[]]", ["]"], ["[", ""]),
        ("[!]]", ["a"], ["]"]),
        ("[[:digit:]_]", ["1", "_"], ["a", ":"]),
        ("[z-a]", ["z"], ["a", "-"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[", [], ["["]),
        ("a[b", [], ["a[b", "ab"]),
        (r"\*", ["*"], ["a", "\\*"]),
        (r"a\[b", ["a[b"], ["ab"]),
        ("a\\", [], ["a", "a\\"]),
        ("a.b", ["a.b"], ["axb"]),
        ("*a*b*c", ["abc", "xaxbxc", "aabbcc"], ["acb", "abcd"]),
        ("a\nb", ["a\nb"], ["ab"]),
    ],
)
def test_a_pattern_matches_what_it_says(pattern: str, paths: list[str], others: list[str]) -> None:
    assert [path for path in paths if not matches(pattern, path)] == []
    assert [path for path in others if matches(pattern, path)] == []


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("a", ["a"]),
        ("*.{c,h}", ["*.c", "*.h"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"]),
        ("{,x}y", ["y", "xy"]),
        ("{a}", ["{a}"]),
        ("{a,b", ["{a,b"]),
        ("a,b}", ["a,b}"]),
        (r"\{a,b}", [r"\{a,b}"]),
        ("[{,}]", ["[{,}]"]),
        ("{{a,b}}", ["{a}", "{b}"]),
        ("{a,a}", ["a"]),
    ],
)
def test_braces_are_expanded(pattern: str, meant: list[str]) -> None:
    assert wildcards.expand_braces(pattern) == meant


@pytest.mark.requirement("D12")
@pytest.mark.parametrize(
    "pattern",
    [
        "{a,b}" * 10_000,
        "{a,b}" * 800,
        "{" * 2000 + "}" * 2000,
        "{a," * 800 + "b" + "}" * 800,
        "{" + ",".join(["a"] * (BRACE_EXPANSIONS + 1)) + "}",
        "a" * (PATTERN_CHARACTERS + 1),
        "",
        "a\0b",
    ],
    ids=["10000", "800", "deep", "nested", "one long", "long", "empty", "nul"],
)
def test_too_many_braces_are_refused_at_once(pattern: str) -> None:
    start = time.process_time()
    with pytest.raises(PatternRefused):
        wildcards.expand_braces(pattern)
    assert time.process_time() - start < 0.5


@pytest.mark.requirement("D12")
@pytest.mark.parametrize("sign", ["{", "{a", "[", "[[:", "{[", "{,", "[]", "[a-", "\\", "*", "**/"])
def test_unfinished_signs_take_no_time(sign: str) -> None:
    pattern = sign * (PATTERN_CHARACTERS // len(sign))
    start = time.process_time()
    with suppress(PatternRefused):
        for each in wildcards.expand_braces(pattern):
            re.compile(wildcards.path(each))
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 100 + "*b", "a" * 250),
        ("**/a/" * 50 + "b", "a/" * 100 + "c"),
        ("**/*a*a*a*a*a*b/" * 20 + "c", ("a" * 100 + "/") * 30 + "d"),
        ("?*" * 100 + "b", "a" * 250),
        ("[ab]*" * 100 + "c", "ab" * 120),
    ],
    ids=["stars", "folders", "both", "questions", "classes"],
)
def test_a_pattern_of_many_stars_does_not_run_away(pattern: str, path: str) -> None:
    start = time.process_time()
    assert not matches(pattern, path)
    assert time.process_time() - start < 1.0


def test_a_filter_takes_names_anywhere_and_paths_from_the_folder() -> None:
    wanted = wildcards.file_filter(["*.py", "docs/*.md"])
    assert wanted is not None
    files = [("", "a.py"), ("x/y/", "b.py"), ("docs/", "a.md"), ("x/docs/", "a.md"), ("", "a.c")]
    assert [folder + name for folder, name in files if wanted(folder, name)] == ["a.py", "x/y/b.py", "docs/a.md"]


def test_no_patterns_want_everything() -> None:
    assert wildcards.file_filter([]) is None
