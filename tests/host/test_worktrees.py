"""Worktrees of sessions: made beside the repository, found by git's own files, merged or removed with nothing lost."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from dragoman.host.worktrees import (
    Worktree,
    WorktreeFailed,
    add_worktree,
    commit_changes,
    find_worktree,
    folders_for,
    merge_worktree,
    remove_worktree,
    state_of,
    worktrees_of,
)
from tests.support.git_repository import git, program, repository, trapped_submodule


def environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}


def made(project: Path, name: str = "") -> Worktree:
    return asyncio.run(add_worktree(str(project), name, environment(project)))


def test_a_worktree_has_the_last_commit_on_a_branch_of_its_own(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    (project / "file").write_text("not committed\n")
    worktree = made(project, "fix")
    assert worktree.folder == str(tmp_path / "shop.worktrees" / "fix")
    assert (Path(worktree.folder) / "file").read_text() == "one\n"
    assert (worktree.branch, worktree.base) == ("dragoman/fix", "main")
    assert worktrees_of(str(project)) == [worktree]
    assert find_worktree(worktree.folder) == worktree
    assert find_worktree(str(project)) is None


def test_without_a_name_it_is_the_first_free_number(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    git(project, "branch", "dragoman/task-2")
    assert [made(project).name, made(project).name] == ["task-1", "task-3"]


def test_a_name_that_there_is_gives_the_same_worktree_also_from_within(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    first = made(project, "fix")
    assert made(project, "fix") == first
    assert made(Path(first.folder), "fix") == first
    assert made(Path(first.folder), "other").path == str(tmp_path / "shop.worktrees" / "other")


def test_a_folder_below_the_top_is_found_in_the_worktree(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    (project / "web").mkdir()
    (project / "web" / "page").write_text("x")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "second")
    worktree = made(project / "web", "fix")
    assert worktree.folder == f"{worktree.path}/web"
    assert folders_for(str(project / "web")) == [worktree.folder]
    assert folders_for(str(project)) == []


@pytest.mark.parametrize("name", ["../x", "-x", "a b", "x.lock", "a..b", "x" * 65, "é"])
def test_a_name_that_is_no_branch_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(WorktreeFailed, match="cannot name a worktree"):
        made(repository(tmp_path / "shop"), name)


def test_where_none_can_be_made_the_reason_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(WorktreeFailed, match="not a git repository"):
        made(plain)
    project = repository(tmp_path / "shop")
    (project / "new").mkdir()
    with pytest.raises(WorktreeFailed, match="is not in the last commit"):
        made(project / "new", "fix")
    assert git(project, "branch", "--list", "dragoman/*") == ""
    assert not (tmp_path / "shop.worktrees" / "fix").exists()


def test_nothing_of_the_repository_is_started(tmp_path: Path) -> None:
    project, mark = repository(tmp_path / "shop"), tmp_path / "mark"
    program(project / ".git" / "hooks" / "post-checkout", f"touch {mark}")
    program(project / ".git" / "hooks" / "post-merge", f"touch {mark}")
    worktree = made(project, "fix")
    (Path(worktree.path) / "more").write_text("x")
    asyncio.run(commit_changes(worktree, "More", environment(project)))
    asyncio.run(merge_worktree(worktree, environment(project)))
    assert not mark.exists()
    git(project, "config", "filter.x.smudge", f"touch {mark}")
    with pytest.raises(WorktreeFailed, match="it would start a program"):
        made(project, "other")
    assert not mark.exists()


@pytest.mark.parametrize("step", [state_of, lambda *on: commit_changes(on[0], "More", on[1]), merge_worktree])
def test_a_filter_of_a_submodule_is_not_started(
    tmp_path: Path, step: Callable[[Worktree, dict[str, str]], Coroutine[None, None, object]]
) -> None:
    project = repository(tmp_path / "shop")
    worktree = made(project, "fix")
    for folder in (project, Path(worktree.path)):
        trapped_submodule(folder, tmp_path / "mark")
    with pytest.raises(WorktreeFailed, match="it would start a program"):
        asyncio.run(step(worktree, environment(project)))
    assert not (tmp_path / "mark").exists()


def test_a_record_that_leads_elsewhere_does_not_count(tmp_path: Path) -> None:
    project, secret = repository(tmp_path / "shop"), repository(tmp_path / "secret")
    worktree = made(project, "fix")
    record = project / ".git" / "worktrees" / "fix" / "dragoman.json"
    text = record.read_text()
    for new in (
        text.replace(worktree.path, str(secret)),
        text.replace("dragoman/fix", "main"),
        text.replace(f'"{worktree.folder}"}}', f'"{secret}"}}'),
        text.replace(f'"repository":"{project}"', f'"repository":"{secret}"'),
        text.replace('"base":"main"', '"base":"--output=x"'),
        "[]",
    ):
        assert new != text
        record.write_text(new)
        assert worktrees_of(str(project)) == []
    record.write_text(text)
    assert worktrees_of(str(project)) == [worktree]


def test_the_state_names_changes_and_commits(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    worktree = made(project, "fix")
    state = asyncio.run(state_of(worktree, environment(project)))
    assert (list(state.changed), list(state.commits)) == ([], [])
    (Path(worktree.path) / "a b").write_text("x")
    (Path(worktree.path) / "file").write_text("two\n")
    state = asyncio.run(state_of(worktree, environment(project)))
    assert sorted(state.changed) == ["a b", "file"]
    asyncio.run(commit_changes(worktree, "Change it", environment(project)))
    state = asyncio.run(state_of(worktree, environment(project)))
    assert (state.changed, [line.partition(" ")[2] for line in state.commits]) == ([], ["Change it"])


def test_a_conflict_is_undone(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    worktree = made(project, "fix")
    (Path(worktree.path) / "file").write_text("theirs\n")
    asyncio.run(commit_changes(worktree, "Theirs", environment(project)))
    (project / "file").write_text("ours\n")
    git(project, "commit", "-q", "-a", "-m", "Ours")
    before = git(project, "rev-parse", "HEAD")
    with pytest.raises(WorktreeFailed, match="does not merge into main by itself: CONFLICT"):
        asyncio.run(merge_worktree(worktree, environment(project)))
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "rev-parse", "HEAD") == before
    assert worktrees_of(str(project)) == [worktree]


def test_a_merge_waits_for_a_clean_base(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    worktree = made(project, "fix")
    (Path(worktree.path) / "file").write_text("two\n")
    asyncio.run(commit_changes(worktree, "Two", environment(project)))
    (project / "file").write_text("mine\n")
    with pytest.raises(WorktreeFailed, match="changes that are not committed"):
        asyncio.run(merge_worktree(worktree, environment(project)))
    git(project, "switch", "-q", "-c", "other")
    with pytest.raises(WorktreeFailed, match="has other checked out and not main"):
        asyncio.run(merge_worktree(worktree, environment(project)))
    assert (project / "file").read_text() == "mine\n"


def test_what_is_removed_can_be_brought_back_by_its_commit(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    worktree = made(project, "fix")
    (Path(worktree.path) / "file").write_text("two\n")
    asyncio.run(commit_changes(worktree, "Two", environment(project)))
    tip = asyncio.run(remove_worktree(worktree, environment(project)))
    assert not (tmp_path / "shop.worktrees").exists()
    assert worktrees_of(str(project)) == []
    assert git(project, "branch", "--list", "dragoman/*") == ""
    assert git(project, "show", f"{tip}:file") == "two\n"
