"""Rewinding in several folders, in worktrees, and in repositories that are not the usual ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.vocabulary.requests import RewindSession
from tests.support.git_repository import git, repository
from tests.support.rewind_desk import desk, tree
from tests.support.scripted_turns import bash, call

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("RW13")
async def test_files_of_every_root_come_back_in_repositories_and_beyond_them(tmp_path: Path) -> None:
    main, other, plain = repository(tmp_path / "main"), repository(tmp_path / "other"), tmp_path / "plain"
    plain.mkdir()
    (plain / "old").write_text("before\n")
    steps = [
        bash(f"echo x > file; echo x > {other}/file; echo x > {other}/new"),
        {"say": "."},
        call("read_file", path=str(plain / "old")),
        {"say": "."},
        call("write_file", path=str(plain / "old"), content="x\n"),
        {"say": "done"},
    ]
    async with desk(tmp_path, steps, folder=main) as it:
        session = await it.client.new_session(str(main), additional_directories=[str(other), str(plain)])
        before = [tree(folder) for folder in (main, other, plain)]
        await session.prompt("write").read()
        changed = [tree(folder) for folder in (main, other, plain)]
        assert all(one != two for one, two in zip(before, changed, strict=True)), it.model.results
        done = await it.client.ask(RewindSession(session.id))
        assert [tree(folder) for folder in (main, other, plain)] == before
        assert {file.path for file in done.files} == {
            str(main / "file"),
            str(other / "file"),
            str(other / "new"),
            str(plain / "old"),
        }
        await it.client.ask(RewindSession(session.id, undo=True))
        assert [tree(folder) for folder in (main, other, plain)] == changed


@pytest.mark.requirement("RW13")
async def test_two_roots_of_one_repository_come_back_and_what_is_beside_them_stays(tmp_path: Path) -> None:
    top = repository(tmp_path / "project")
    for name in ("one", "two", "three"):
        (top / name).mkdir()
        (top / name / "file").write_text("before\n")
    async with desk(tmp_path, [bash("for i in one two three; do echo x > ../$i/file; done"), {"say": "."}]) as it:
        session = await it.client.new_session(str(top / "one"), additional_directories=[str(top / "two")])
        await session.prompt("write").read()
        await it.client.ask(RewindSession(session.id))
        assert [(top / name / "file").read_text() for name in ("one", "two", "three")] == [
            "before\n",
            "before\n",
            "x\n",
        ]


@pytest.mark.requirement("RW13")
async def test_a_repository_that_is_a_root_in_a_root_comes_back_too(tmp_path: Path) -> None:
    outer = repository(tmp_path / "project")
    inner = repository(outer / "inner")
    async with desk(tmp_path, [bash("echo x > file; echo x > inner/file"), {"say": "."}], folder=outer) as it:
        session = await it.client.new_session(str(outer), additional_directories=[str(inner)])
        await session.prompt("write").read()
        await it.client.ask(RewindSession(session.id))
        assert tree(outer) == {"file": "- one\n", "inner/file": "- one\n"}


@pytest.mark.requirement("RW13")
async def test_in_a_worktree_files_come_back_and_the_main_checkout_stays(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    tree_of_branch = tmp_path / "branch"
    git(project, "worktree", "add", "-q", "-b", "topic", str(tree_of_branch))
    (tree_of_branch / "file").write_text("dirty\n")
    main = repository(tmp_path / "unused")
    async with desk(tmp_path, [bash("echo x > file; echo x > new"), {"say": "."}], folder=main) as it:
        (project / "file").write_text("of the user\n")
        session = await it.client.new_session(str(tree_of_branch))
        before = {path: path.stat().st_mtime_ns for path in (project / ".git").rglob("*")}
        await session.prompt("write").read()
        await it.client.ask(RewindSession(session.id))
        assert (tree_of_branch / "file").read_text() == "dirty\n"
        assert not (tree_of_branch / "new").exists()
        assert (project / "file").read_text() == "of the user\n"
        assert {path: path.stat().st_mtime_ns for path in (project / ".git").rglob("*")} == before


def with_split_index(folder: Path) -> None:
    git(folder, "update-index", "--split-index")
    (folder / "a").write_text("staged\n")
    git(folder, "add", "a")
    assert list((folder / ".git").glob("sharedindex.*"))


def with_sparse_index(folder: Path) -> None:
    """Only `in` is checked out, and the index has `out` as one entry."""
    for name in ("in/a", "out/deep/b"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(f"{name}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "more")
    git(folder, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(folder, "sparse-checkout", "set", "in")
    assert not (folder / "out").exists() and git(folder, "ls-files", "--sparse", "out") == "out/\n"


def with_untracked_cache(folder: Path) -> None:
    git(folder, "config", "core.untrackedCache", "true")
    git(folder, "update-index", "--untracked-cache")
    git(folder, "status")


def with_version_4(folder: Path) -> None:
    git(folder, "update-index", "--index-version", "4")


def with_conflicts(folder: Path) -> None:
    git(folder, "checkout", "-q", "-b", "other")
    (folder / "file").write_text("theirs\n")
    git(folder, "commit", "-q", "-a", "-m", "theirs")
    git(folder, "checkout", "-q", "main")
    (folder / "file").write_text("ours\n")
    git(folder, "commit", "-q", "-a", "-m", "ours")
    git(folder, "merge", "other")
    assert "<<<<" in (folder / "file").read_text()


@pytest.mark.requirement("RW13")
@pytest.mark.parametrize(
    "prepare", [with_split_index, with_sparse_index, with_untracked_cache, with_version_4, with_conflicts]
)
async def test_whatever_index_a_repository_has_its_files_come_back(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    folder = repository(tmp_path / "project")
    prepare(folder)
    (folder / "draft").write_text("untracked\n")
    steps = [[bash("echo x > file; rm draft; mkdir -p in; echo x > in/a; echo y > new"), {"say": "."}]]
    steps += [[bash("rm -r in; mkdir -p out/deep; echo z > out/deep/b; echo z > file"), {"say": "."}]]
    async with desk(tmp_path, *steps, folder=folder) as it:
        states, said = [tree(folder)], git(folder, "status", "--porcelain")
        for words in ("one", "two"):
            await it.say(words)
            states.append(tree(folder))
        done = await it.rewind(scope="files")
        assert (tree(folder), [file.trouble for file in done.files if file.trouble]) == (states[1], [])
        await it.rewind(scope="files", undo=True)
        assert tree(folder) == states[2]
        await it.rewind((await it.ids())[0], scope="files")
        assert tree(folder) == states[0]
        assert git(folder, "status", "--porcelain") == said


@pytest.mark.requirement("RW13")
async def test_in_a_repository_of_sha256_files_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", "--object-format=sha256")
    repository(folder)
    assert len(git(folder, "rev-parse", "HEAD").strip()) == 64
    async with desk(tmp_path, [bash("echo x > file; echo y > new"), {"say": "."}], folder=folder) as it:
        await it.say("write")
        await it.rewind(scope="files")
        assert tree(folder) == {"file": "- one\n"}
        await it.rewind(scope="files", undo=True)
        assert tree(folder) == {"file": "- x\n", "new": "- y\n"}
