"""A name is found by some of its letters."""

import subprocess
from pathlib import Path

import pytest

from dragoman.cli.terminal import fuzzy
from dragoman.cli.terminal.fuzzy import FolderFiles, best, score

FILES = ["src/store.py", "src/restored/python.txt", "tests/test_store.py", "README.md", "src/app/stop.py"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("store", ["src/store.py", "tests/test_store.py", "src/restored/python.txt"]),
        ("srcstr", ["src/store.py", "src/restored/python.txt"]),
        ("rdme", ["README.md"]),
        ("app/st", ["src/app/stop.py"]),
        ("xyz", []),
    ],
)
def test_the_last_part_and_beginnings_of_words_come_first(wanted: str, found: list[str]) -> None:
    assert best(wanted, FILES, str, 10) == found


def test_no_more_than_asked_for_and_none_out_of_order() -> None:
    assert len(best("s", FILES, str, 2)) == 2
    assert score("yp", "py") is None


@pytest.mark.parametrize("has_ripgrep", [True, False])
def test_files_that_the_folder_ignores_are_not_offered(
    has_ripgrep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_ripgrep:
        monkeypatch.setattr(fuzzy, "find_ripgrep", lambda *_: None)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "in").mkdir()
    for name in ("a.py", "in/b.py", "bad\nname", "c.log"):
        (tmp_path / name).write_text("x")
    found = set(FolderFiles(str(tmp_path)).paths())
    # Without ripgrep there are no rules; hidden folders alone are left out.
    expected = {"a.py", "in/b.py", ".gitignore"} | (set() if has_ripgrep else {"c.log"})
    assert found == expected
