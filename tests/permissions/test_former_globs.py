"""A permission rule has the verdicts on paths that it had before, and a search wants the files that it wanted."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.host import wildcards
from dragoman.permissions.rule import path_patterns
from tests.support import former_wildcards

# Of few letters, so that patterns and paths meet; with every sign that means something, finished or not.
PIECES = [
    *("a", "b", "A", ".", "-", "!", "^", ",", "é", "\n", " ", "*", "**", "**/", "/**", "?", "/", "\\", "\\*", "\\/"),
    *("[ab]", "[!a]", "[^b]", "[a-b.]", "[]a]", "[[:upper:]]", "[[:nothing:]]", "[b-a]", "[", "]", "{a,b}", "{", "}"),
]
patterns = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join)
paths = st.text("abA.-*[]é\n \\", min_size=1, max_size=3)
paths = st.lists(paths, min_size=1, max_size=4).map("/".join)


@given(patterns, st.lists(paths, min_size=1, max_size=8))
@settings(max_examples=1000, deadline=None)
@example("**/*.p[ye]m", ["a.pem", "b/a.pem", "b/a.pam"])
@example("{src,docs}/**", ["src/a/b", "docs", "docs/a", "a/src/b"])
def test_a_rule_matches_the_paths_that_it_matched(pattern: str, tried: list[str]) -> None:
    now = path_patterns(pattern)
    before = [
        re.compile(former_wildcards.path(one if "/" in one else f"**/{one}"), re.DOTALL)
        for one in former_wildcards.expand_braces(pattern)
    ]
    for path in tried:
        assert [bool(each.fullmatch(path)) for each in now] == [bool(each.fullmatch(path)) for each in before], path


@given(st.lists(patterns, min_size=1, max_size=3), st.lists(paths, min_size=1, max_size=8))
@settings(max_examples=1000, deadline=None)
def test_a_filter_wants_the_files_that_it_wanted(chosen: list[str], tried: list[str]) -> None:
    now, before = wildcards.file_filter(chosen), former_wildcards.file_filter(chosen)
    assert now is not None
    assert before is not None
    for path in tried:
        folder, slash, name = path.rpartition("/")
        assert now(folder + slash, name) == before(folder + slash, name), path
