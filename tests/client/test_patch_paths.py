"""The files of a patch text, in every form in which agents write patches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.client.patch_paths import patch_paths

GIT = """diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1 @@
-x
+y
"""
CASES: list[tuple[str, str, list[str]]] = [
    ("git", GIT, ["src/a.py"]),
    (
        "plain unified",
        "--- old.txt\t2020-01-01\n+++ new.txt\t2020-01-02\n@@ -1 +1 @@\n-x\n+y\n",
        ["old.txt", "new.txt"],
    ),
    ("absolute", "--- /dev/null\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+x\n", ["/etc/passwd"]),
    ("absolute behind a prefix", "--- a//etc/passwd\n+++ b//etc/passwd\n@@ -1 +1 @@\n", ["/etc/passwd"]),
    ("one header", "+++ b/../../etc/passwd\n@@ -1 +1 @@\n+x\n", ["../../etc/passwd"]),
    ("windows lines", "--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n", ["x"]),
    ("old lines", "--- a/x\r+++ b/x\r@@ -1 +1 @@\r", ["x"]),
    ("hidden behind a return", "-x\r--- a/x\r+++ /etc/passwd\n@@ -1 +1 @@\n", ["x", "/etc/passwd"]),
    ("rename", "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to ../y\n", ["x", "y", "../y"]),
    ("copy", "copy from x\ncopy to /etc/y\n", ["x", "/etc/y"]),
    ("only a mode", "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n", ["run.sh"]),
    ("blanks in names", "diff --git a/my file b/my file\nnew file mode 100644\n", ["my file"]),
    ("quoted", 'diff --git "a/\\303\\244" "b/\\303\\244"\n--- "a/\\303\\244"\n+++ "b/\\303\\244"\n', ["ä"]),
    ("quoted way out", '--- "a/x"\n+++ "b/\\056./\\"q\\"/../../../etc"\n@@ -1 +1 @@\n', ["x", '../"q"/../../../etc']),
    ("one quoted", 'diff --git a/x "b/\\t"\n', ["x", "\t"]),
    (
        "marked",
        """*** Begin Patch
*** Update File: a.py
*** Move to: /etc/b
@@ def f
-x
+y
*** Add File: c
+z
*** Delete File: ../d
*** End Patch
""",
        ["a.py", "/etc/b", "c", "../d"],
    ),
    ("svn", "Index: /etc/x\n=====\n", ["/etc/x"]),
    ("context", "*** /etc/x\t1\n--- /etc/y\t2\n***************\n*** 1 ****\n", ["/etc/x", "/etc/y"]),
    ("search and replace", "src/a.py\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", ["src/a.py"]),
    ("in a fence", "/etc/x\n```py\n<<<<<<< SEARCH\nx\n", ["/etc/x"]),
    ("blocks for a known file", "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n\n<<<<<<< SEARCH\na\n", []),
    ("hunks alone", "@@ -1,2 +1,2 @@\n-x\n+y\n", []),
    ("a line that was taken away", "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1 @@\n--- /etc/y\n z\n", ["x.sql"]),
    ("described by a bridge", "move: /a b -> /etc/c\nmodify: /w/d\n", ["/a b", "/etc/c", "/w/d"]),
    ("prose", "A line.\n\n---\n\nAnother one, *** with stars ***.\n", []),
]


@pytest.mark.parametrize(("text", "paths"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_files_of_a_patch_are_found(text: str, paths: list[str]) -> None:
    assert sorted(patch_paths(text).paths) == sorted(paths)
    assert patch_paths(text).unclear == ""


@pytest.mark.parametrize(
    ("text", "unclear"),
    [
        (
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n",
            "a patch in it makes a link or a repository",
        ),
        ("diff --git a/l b/l\nnew file mode 160000\n", "a patch in it makes a link or a repository"),
        ("*** Add File: x\n" * 20_000, "a patch in it names more files than can be judged"),
        ("--- a/x\n" * 600_000, "a text in it is too long to be read for a patch"),
        ("diff --git a/x y z b/q\n", "a patch in it has names that cannot be told apart"),
        ('--- "a/x\n+++ "b/y\n@@ -1 +1 @@\n', "a patch in it has a name that cannot be read"),
        ('--- "a/\\q"\n+++ b/y\n@@ -1 +1 @@\n', "a patch in it has a name that cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, unclear: str) -> None:
    assert patch_paths(text).unclear == unclear


@given(st.text(st.sampled_from(list('-+*ab/ \n\r"\\07@:<diftgSEARCH'))))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert all(patch_paths(f"--- {text}\n+++ {text}\ndiff --git {text}\n*** Add File: {text}").paths)
