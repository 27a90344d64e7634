"""What git may run in spite of its settings: whatever cannot be read counts as something."""

import os
from pathlib import Path

import pytest

from dragoman.host.safe_git import git_programs


@pytest.mark.parametrize("kind", ["pipe", "long", "elsewhere"])
def test_a_git_file_that_is_no_pointer_is_a_reason_to_ask(tmp_path: Path, kind: str) -> None:
    match kind:
        case "pipe":
            os.mkfifo(tmp_path / ".git")
        case "long":
            (tmp_path / ".git").write_text("gitdir: " + "x" * 5000)
        case _:
            (tmp_path / ".git").write_text("gitdir: file\n")
            (tmp_path / "file").touch()
    assert "cannot be read" in programs(tmp_path)


def test_a_plain_repository_is_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]\n\tbare = false\n")
    assert programs(tmp_path) == ""


def programs(folder: Path) -> str:
    real = os.path.realpath(folder)
    return git_programs(real, [real], {"HOME": str(folder / "home")}, diffs=False)
