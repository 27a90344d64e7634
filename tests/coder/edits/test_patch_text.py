"""A patch as OpenAI's models write it: read, and made where every change has one certain place."""

import pytest

from dragoman.coder.edits.patch_text import FilePatch, Hunk, PatchRefused, parse_patch, patched

FILE = """\
def a():
    x = 1
    return x

def b():
    x = 1
    return x
"""


def patch_of(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def one(*lines: str) -> FilePatch:
    (patch,) = parse_patch(patch_of("*** Update File: f.py", *lines))
    return patch


def test_every_kind_of_file_is_read() -> None:
    text = patch_of(
        "*** Add File: new.txt",
        "+one",
        "+",
        "*** Delete File: old.txt",
        "*** Update File: a.py",
        "*** Move to: b.py",
        "@@ class A",
        "@@ def f():",
        " x",
        "-y",
        "+z",
        "*** End of File",
    )
    assert parse_patch(text) == [
        FilePatch("add", "new.txt", text="one\n\n"),
        FilePatch("delete", "old.txt"),
        FilePatch("update", "a.py", "b.py", (Hunk(("class A", "def f():"), ["x", "y"], ["x", "z"], True),)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*** Begin Patch\n*** End Patch",
        patch_of("x", "*** Delete File: a"),
        patch_of("*** Add File: a", "no plus"),
        patch_of("*** Delete File: a", "-x"),
        patch_of("*** Update File: a"),
        patch_of("*** Update File: ", "-x"),
        patch_of("*** Update File: a", "?x"),
        "*** Begin Patch\n*** Delete File: a",
    ],
)
def test_what_is_no_patch_is_refused(text: str) -> None:
    with pytest.raises(PatchRefused):
        parse_patch(text)


def test_a_line_above_a_change_says_which_of_two_places_is_meant() -> None:
    changed = patched(FILE, one("@@ def b():", "-    x = 1", "+    x = 2", "     return x"))
    assert changed == FILE[: FILE.index("def b")] + FILE[FILE.index("def b") :].replace("1", "2")


def test_a_change_with_two_places_is_refused() -> None:
    with pytest.raises(PatchRefused, match="2 times in the file \\(lines 2, 6\\)"):
        patched(FILE, one("-    x = 1", "+    x = 2"))


def test_changes_follow_each_other() -> None:
    changed = patched(
        FILE, one("@@ def a():", "-    x = 1", "+    x = 2", "     return x", "@@", "-    x = 1", "+    x = 3")
    )
    assert changed == FILE.replace("x = 1", "x = 2", 1).replace("x = 1", "x = 3", 1)


def test_the_end_of_the_file_is_a_place_and_new_lines_alone_go_there() -> None:
    at_end = one("     x = 1", "-    return x", "+    return 2", "*** End of File")
    assert patched(FILE, at_end) == FILE[: FILE.rindex("return x")] + "return 2\n"
    assert patched("a\r\nb", one("+c")) == "a\r\nb\r\nc\r\n"


def test_white_space_of_the_patch_is_brought_to_the_file() -> None:
    assert (
        patched("if a:\n\tb()\n\tc()\n", one(" if a:", "     b()", "+    x()", "     c()"))
        == "if a:\n\tb()\n\tx()\n\tc()\n"
    )


def test_lines_that_are_not_there_are_told_with_the_nearest_place() -> None:
    with pytest.raises(PatchRefused, match=r"nearest place is lines 1-3(.|\n)*-     x = 5\n\+     x = 1"):
        patched(FILE, one(" def a():", "-    x = 5", "+    x = 6", "     return x"))
