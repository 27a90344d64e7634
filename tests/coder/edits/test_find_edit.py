"""An edit has one certain place and a certain result, or it is refused: a wrong edit is worse than none."""

import time

import pytest

from dragoman.coder.edits.engine import MOST_LINES, Ambiguous, Applied, NotFound, find_edit

CODE = """\
class A:
    def f(self):
        x = 1
        return x

    def g(self):
        y = 2
        return y
"""


def test_an_exact_text_is_replaced_as_it_is_written() -> None:
    assert find_edit(CODE, "x = 1", "x = 3") == Applied(CODE.replace("x = 1", "x = 3"), "exact")


def test_a_text_with_two_places_is_refused_with_their_lines() -> None:
    assert find_edit(CODE, "return", "yield") == Ambiguous([4, 8], 2)
    assert find_edit("a-a-a", "a-a", "b") == Ambiguous([1, 1], 2)


def test_a_line_that_stands_deeper_in_one_place_and_less_deep_in_another_is_refused() -> None:
    """As a text it is in the file once: the two blanks are the end of eight."""
    assert find_edit("f()\nif a:\n        f()\n", "  f()", "  g()") == Ambiguous([1, 3], 2, "white space")
    assert find_edit("if a:\n        f_it()\n", "  f_it()", "  g()\n  h()") == Applied(
        "if a:\n        g()\n        h()\n", "exact"
    )


def test_replace_all_replaces_exact_copies() -> None:
    assert find_edit("one two", "o", "0", replace_all=True) == Applied("0ne tw0", "exact", 2)


def test_indentation_is_that_of_the_file_and_kept_lines_stay_as_they_are() -> None:
    file = CODE.replace("x = 1\n", "x = 1  \n")
    found = find_edit(
        file, "def f(self):\n    x = 1\n    return x", "def f(self):\n    x = 1\n    if x:\n        x = 2"
    )
    expected = file.replace("        return x\n", "        if x:\n            x = 2\n", 1)
    assert found == Applied(expected, "indentation")


def test_spaces_become_the_tabs_of_the_file() -> None:
    file = "func a() {\n\tone()\n\ttwo()\n}\n"
    found = find_edit(file, "    one()\n    two()", "    if ok {\n        one()\n    }\n    two()")
    assert found == Applied("func a() {\n\tif ok {\n\t\tone()\n\t}\n\ttwo()\n}\n", "indentation")


def test_a_depth_that_no_line_of_the_file_shows_is_refused() -> None:
    found = find_edit("\tfirst_thing()\n", "first_thing() ", "if ready:\n   first_thing() ")
    assert isinstance(found, NotFound)
    assert "indentation" in found.reason


def test_every_line_keeps_its_own_end() -> None:
    assert find_edit("1\r\n2\n3\r\n", "1\n2\n3", "1\nb\n3") == Applied("1\r\nb\n3\r\n", "exact")
    assert find_edit("1\r\n2\r\n", "2", "2\nx") == Applied("1\r\n2\r\nx\r\n", "exact")


def test_a_byte_order_mark_and_a_missing_last_end_stay() -> None:
    assert find_edit("\ufeffa \nb", "a\nb\n", "c\nb\n") == Applied("\ufeffc\nb", "white space")


def test_a_line_does_not_run_into_the_next_and_a_deleted_one_leaves_nothing() -> None:
    assert find_edit("a\nb\nc\n", "b\n", "x") == Applied("a\nx\nc\n", "exact")
    assert find_edit("a\n  b\nc\n", "b", "") == Applied("a\nc\n", "exact")


def test_typographic_characters_of_the_file_stay_where_the_edit_keeps_them() -> None:
    found = find_edit("It’s “open” – now.\n", 'It\'s "open" - now.', 'It\'s "closed" - now.')
    assert found == Applied("It’s “closed” – now.\n", "characters")


def test_plain_quotes_that_have_no_counterpart_are_refused() -> None:
    found = find_edit("It is “open” today.\n", 'It is "open" today.', 'It is "closed" now.\nIt was "open".')
    assert isinstance(found, NotFound)
    assert "quotes" in found.reason


def test_statements_are_the_same_however_they_are_broken_into_lines() -> None:
    found = find_edit("f(\n    a,\n    b,\n)\ng()\n", "f(a, b)\ng()", "f(a, b)\nh()")
    assert found == Applied("f(\n    a,\n    b,\n)\nh()\n", "line breaks")


def test_elided_lines_stay() -> None:
    found = find_edit(
        CODE, "def f(self):\n        ...\n        return x", "def e(self):\n        ...\n        return -x"
    )
    expected = CODE.replace("def f", "def e").replace("return x", "return -x")
    assert found == Applied(expected, "elided lines")


def test_a_remark_in_the_place_of_lines_is_refused() -> None:
    found = find_edit(CODE, "        x = 1\n        return x", "        # ... rest of the code stays the same ...")
    assert isinstance(found, NotFound)
    assert "in the place of code" in found.reason


def test_numbers_of_lines_are_left_out_if_they_are_those_of_the_place() -> None:
    assert find_edit("a\nb\nc\n", "2\tb\n3\tc", "B\nC") == Applied("a\nB\nC\n", "line numbers")
    assert isinstance(find_edit("a\nb\nc\n", "7\tb\n8\tc", "B\nC"), NotFound)


def test_escapes_are_removed_if_the_file_proves_that_they_are_too_many() -> None:
    assert find_edit('f("a")\n', 'f(\\"a\\")', 'f(\\"b\\")') == Applied('f("b")\n', "escapes")
    assert isinstance(find_edit('f("a")\n', 'f(\\"a\\")', 'f(\\"b\\n\\")'), NotFound)


def test_another_word_is_no_match_and_the_nearest_place_shows_the_difference() -> None:
    found = find_edit(CODE, "        x = 2\n        return x", "        x = 3\n        return x")
    assert isinstance(found, NotFound)
    assert found.nearest is not None
    assert (found.nearest.first, found.nearest.last) == (3, 4)
    assert found.nearest.difference == "-         x = 2\n+         x = 1\n          return x"


def test_white_space_that_differs_is_spelled_out() -> None:
    found = find_edit("if a:\n\tb = 1\n", "if a:\n  b = 1\nc = 2", "x")
    assert isinstance(found, NotFound)
    assert found.nearest is not None
    assert found.nearest.difference == "  if a:\n- ··b = 1\n- c = 2\n+ \\tb = 1"


HOSTILE = {
    "equal lines": ("a = 1\n" * MOST_LINES, "\n".join(["a = 2"] * 2_000)),
    "near matches": ("".join(f"def f{n}(a):\n    return a + {n}\n" for n in range(MOST_LINES // 4)), "def f(a):\n  x"),
    "one long line": ("word " * 800_000, " word x\nb"),
    "sixteen megabytes": ("line of text\n" * 1_250_000, "another line\nof text"),
    "open parentheses": ("(\n" * (MOST_LINES - 1), "(\n(\nfoo"),
    "marks for lines": ("a\nb\n" * 50_000, "a\n...\n" * 5_000),
    "long placeholders": ("a\n", "b\n# ... " + "existing " * 100_000),
}


@pytest.mark.parametrize(("text", "old"), HOSTILE.values(), ids=HOSTILE)
def test_no_file_makes_it_slow(text: str, old: str) -> None:
    began = time.monotonic()
    assert isinstance(find_edit(text, old, "new"), NotFound)
    assert time.monotonic() - began < 30
