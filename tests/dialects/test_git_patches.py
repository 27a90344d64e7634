"""Git patches: git itself has to take them, in a real repository, and give the text that was meant."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.codec.git_patches import COMPARED_LINES, added_text, git_patch
from dragoman.vocabulary.tools import FileChange
from tests.support.needs import need

LONG = "".join(f"{number}\n" for number in range(12_000))
CASES = {
    "one line changed": ("a\nb\nc\n", "a\nB\nc\n"),
    "no newline at the end": ("a\nb", "a\nc"),
    "a newline added at the end": ("a", "a\n"),
    "a newline removed at the end": ("a\n", "a"),
    "CRLF": ("a\r\nb\r\n", "a\r\nB\r\n"),
    "CRLF becomes LF": ("a\r\n", "a\n"),
    "a lone CR, a form feed and a line separator inside lines": ("a\rb\x0cc\u2028d\n", "a\rb\x0cC\u2028d\x1cx\n"),
    "emptied": ("a\nb\n", ""),
    "filled": ("", "a\nb\n"),
    "a new file": (None, "a\nb\n"),
    "a new file without a newline": (None, "a"),
    "a new empty file": (None, ""),
    "lines that look like a patch": ("--- a\n+++ b\n@@ -1 +1 @@\n", "--- c\n+++ b\n@@ -1 +1 @@\n-x\n"),
    "far apart": (
        "".join(f"{n}\n" for n in range(50)),
        "".join(f"{n if n not in (3, 40) else 'x'}\n" for n in range(50)),
    ),
    "larger than what is compared line by line": ("a\n" * COMPARED_LINES, "b\n" * COMPARED_LINES),
    "a new file larger than that": (None, "b\n" * (COMPARED_LINES + 1)),
    "replaced between lines that stay": (LONG, LONG.replace("1", "one")),
    "one line of a long file": (LONG, LONG.replace("\n5000\n", "\nchanged\n")),
    "a line that was doubled": (LONG, LONG.replace("\n5000\n", "\n5000\n5000\n")),
    "the last line of a long file": (LONG, LONG.removesuffix("\n")),
    "lines added behind": ("a\n" * 9, "a\n" * 12),
}
NAMES = [
    "plain.txt",
    "with space.txt",
    "tab\there.txt",
    'quo"te.txt',
    "back\\slash.txt",
    "ünïcödé.txt",
    "new\nline.txt",
    "deep/er/file.txt",
]


def applied(root: Path, name: str, old: str | None, new: str, *, prefixed: bool = False) -> str:
    """What git makes of the old text with our patch."""
    git = need("git")
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([git, "init", "-q", str(root)], check=True)
    subprocess.run([git, "config", "core.autocrlf", "false"], cwd=root, check=True)
    if old is not None:
        file.write_bytes(old.encode())
    change = FileChange("add" if old is None else "modify", str(file), old_text=old, new_text=new)
    patch = git_patch(change, prefixed=prefixed)
    assert patch is not None
    # git takes off everything up to the repository; a prefix stands where the root of the path was.
    strip = str(root).count("/") + 1
    run = subprocess.run(
        [git, "apply", f"-p{strip}", "--whitespace=nowarn", "-"],
        cwd=root,
        input=patch.encode(),
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b""), patch
    return file.read_bytes().decode()


@pytest.mark.parametrize("case", CASES)
def test_git_applies_the_patch_and_gets_the_new_text(case: str, tmp_path: Path) -> None:
    old, new = CASES[case]
    assert applied(tmp_path, "file.txt", old, new) == new


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("old", [None, "a\n"])
@pytest.mark.parametrize("prefixed", [False, True])
def test_git_finds_the_file_whatever_its_name(name: str, old: str | None, prefixed: bool, tmp_path: Path) -> None:
    assert applied(tmp_path, name, old, "b\n", prefixed=prefixed) == "b\n"


def test_a_small_change_of_a_long_file_is_a_small_patch() -> None:
    old, new = CASES["one line of a long file"]
    assert git_patch(FileChange("modify", "/long", old_text=old, new_text=new)) == (
        "diff --git /long /long\n--- /long\n+++ /long\n"
        "@@ -4998,7 +4998,7 @@\n 4997\n 4998\n 4999\n-5000\n+changed\n 5001\n 5002\n 5003\n"
    )


def test_a_prefix_stands_in_the_place_of_the_root() -> None:
    change = FileChange("move", "/b c", "/a", old_text="x\n", new_text="y\n")
    assert git_patch(change, prefixed=True) == (
        "diff --git a/a b/b c\nrename from a\nrename to b c\n--- a/a\n+++ b/b c\t\n@@ -1 +1 @@\n-x\n+y\n"
    )
    windows = FileChange("modify", "C:\\w\\App.ts", old_text="x\n", new_text="y\n")
    assert str(git_patch(windows, prefixed=True)).startswith("diff --git a/C:/w/App.ts b/C:/w/App.ts\n")


def test_paths_are_absolute_and_without_a_prefix() -> None:
    assert git_patch(FileChange("modify", "/home/me/x.py", old_text="a\n", new_text="b\n")) == (
        "diff --git /home/me/x.py /home/me/x.py\n--- /home/me/x.py\n+++ /home/me/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    )
    assert git_patch(FileChange("add", "/new file", old_text=None, new_text="b")) == (
        "diff --git /new file /new file\nnew file mode 100644\n--- /dev/null\n+++ /new file\t\n"
        "@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n"
    )


def test_a_path_cannot_add_lines_to_a_patch() -> None:
    patch = git_patch(FileChange("modify", "/x\n+++ /etc/passwd", old_text="a", new_text="b"))
    assert patch is not None
    assert patch.startswith('diff --git "/x\\n+++ /etc/passwd" "/x\\n+++ /etc/passwd"\n')


@pytest.mark.parametrize("old", ["a\nb", "a\n", ""])
def test_git_deletes_the_file_by_the_patch(old: str, tmp_path: Path) -> None:
    git, file = need("git"), tmp_path / "old"
    subprocess.run([git, "init", "-q", str(tmp_path)], check=True)
    file.write_text(old)
    patch = git_patch(FileChange("delete", str(file), old_text=old))
    assert patch is not None
    command = [git, "apply", f"-p{str(tmp_path).count('/') + 1}", "-"]
    run = subprocess.run(command, cwd=tmp_path, input=patch.encode(), capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b""), patch
    assert not file.exists()


def test_a_file_that_was_moved_or_copied_has_both_names() -> None:
    moved = git_patch(FileChange("move", "/b", "/a", old_text="x\n", new_text="x\n"))
    assert moved == "diff --git /a /b\nrename from /a\nrename to /b\n"
    copied = git_patch(FileChange("copy", "/b c", "/a", old_text="x\n", new_text="y\n"))
    assert copied == ("diff --git /a /b c\ncopy from /a\ncopy to /b c\n--- /a\n+++ /b c\t\n@@ -1 +1 @@\n-x\n+y\n")


@pytest.mark.parametrize(
    "change",
    [
        FileChange("modify", "/x"),
        FileChange("modify", "/x", new_text="a"),
        FileChange("modify", "/x", old_text="a"),
        FileChange("modify", "/x", old_text="a", new_text="a"),
        FileChange("delete", "/x"),
        FileChange("move", "/x", "/y"),
        FileChange("move", "/x", "/y", new_text="a"),
    ],
)
def test_without_two_different_texts_there_is_no_patch(change: FileChange) -> None:
    assert git_patch(change) is None


@given(new=st.text(max_size=40), path=st.text(max_size=8))
def test_the_text_of_a_new_file_comes_back_out_of_its_patch(new: str, path: str) -> None:
    patch = git_patch(FileChange("add", f"/{path}", old_text=None, new_text=new))
    assert patch is not None
    assert added_text(patch) == new


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "diff --git /x /x\n--- /x\n+++ /x\n@@ -1 +1 @@\n-a\n+b\n",
        "diff --git /x /x\nnew file mode 100644\n--- /dev/null\n+++ /x\n@@ -0,0 +1,2 @@\n+a\n",
        "diff --git /x /x\nnew file mode 100644\n--- /dev/null\n+++ /x\n@@ -0,0 +1 @@\n+a\nGarbage\n",
        "diff --git /x /x\nnew file mode 100644\n--- /dev/null\n+++ /x\n@@ -0,0 +1 @@\n a\n",
        "diff --git /x /x\nnew file mode 100644\n--- /dev/null\n+++ /x\n",
        "diff --git /x /x\nnew file mode 100644\ndiff --git /y /y\nnew file mode 100644\n",
    ],
)
def test_any_other_patch_has_no_text_of_a_new_file(patch: str) -> None:
    assert added_text(patch) is None
