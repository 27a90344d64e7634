"""The branch of a folder, as git's own files say."""

import subprocess
from pathlib import Path

from dragoman.host.git_head import find_branch


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(["git", *who, "-C", folder, *words], check=True, capture_output=True, text=True).stdout


def test_the_branch_is_that_of_git_also_below_in_a_worktree_and_detached(tmp_path: Path) -> None:
    repository, other = tmp_path / "repository", tmp_path / "other"
    (repository / "deep").mkdir(parents=True)
    assert find_branch(str(repository)) == ""
    git(repository, "init", "-q", "-b", "topic/one")
    git(repository, "commit", "-q", "--allow-empty", "-m", "x")
    git(repository, "worktree", "add", "-q", "-b", "two", str(other))
    assert find_branch(str(repository / "deep")) == "topic/one"
    assert find_branch(str(other)) == "two"
    git(repository, "checkout", "-q", "--detach")
    assert find_branch(str(repository)) == git(repository, "rev-parse", "HEAD")[:8]


def test_files_that_are_no_repository_are_no_branch(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert find_branch(str(tmp_path)) == ""
    (tmp_path / ".git").write_text("nonsense")
    assert find_branch(str(tmp_path)) == ""
