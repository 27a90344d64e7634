"""Rewinding in folders that are no git repository: small ones are kept as a whole, of others what file tools write."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.host import plain_size
from dragoman.vocabulary.requests import RewindSession
from tests.coder.test_hooks import notices
from tests.support.git_repository import repository
from tests.support.rewind_desk import desk, tree
from tests.support.scripted_turns import bash, call
from tests.support.whole_agent import ENVIRONMENT, events_of

pytestmark = pytest.mark.anyio

DONE = {"say": "done"}


def plain(folder: Path) -> Path:
    folder.mkdir()
    (folder / "old").write_text("before\n")
    (folder / "gone").write_text("here\n")
    return folder


@pytest.mark.requirement("RW16")
async def test_what_commands_have_changed_comes_back(tmp_path: Path) -> None:
    folder = plain(tmp_path / "plain")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "a").write_text("a\n")
    before = tree(folder)
    line = "echo x > old; rm gone; mkdir new; echo x > new/deep; ln -s old link; echo x > node_modules/a"
    async with desk(tmp_path, [bash(line), DONE], [bash("git init -q . && git add old"), DONE], folder=folder) as it:
        said = notices(await events_of(it.conversation))
        await it.say("two")
        after = tree(folder)
        assert said == []
        await it.rewind((await it.ids())[0], scope="files")
        assert tree(folder) == {**before, "node_modules/a": "- x\n"}
        await it.rewind(undo=True)
        assert tree(folder) == after


@pytest.mark.requirement("RW16")
async def test_a_folder_that_has_become_a_repository_goes_back_after_a_restart(tmp_path: Path) -> None:
    folder = plain(tmp_path / "plain")
    before = tree(folder)
    line = "echo x > old && git init -q . && git add -A && git -c user.name=A -c user.email=a@b.c commit -qm all"
    async with desk(tmp_path, [bash(line), DONE], folder=folder) as it:
        await it.say("one")
        session_id = it.conversation.id
    async with desk(tmp_path, [DONE], folder=folder) as other:
        await other.client.load_session(session_id, str(folder))
        await other.client.ask(RewindSession(session_id))
        assert tree(folder) == before


@pytest.mark.requirement("RW16")
async def test_in_a_folder_that_its_repository_ignores_what_commands_have_changed_comes_back(tmp_path: Path) -> None:
    folder = plain(repository(tmp_path / "project") / "scratch")
    (folder.parent / ".gitignore").write_text("scratch/\n")
    before = tree(folder)
    async with desk(tmp_path, [bash("echo x > old; rm gone"), DONE], folder=folder) as it:
        await it.say("one")
        await it.rewind(scope="files")
        assert tree(folder) == before


@pytest.mark.requirement("RW16")
async def test_a_repository_inside_of_it_is_left_alone_but_for_what_file_tools_write(tmp_path: Path) -> None:
    folder = plain(tmp_path / "plain")
    inner = repository(folder / "inner")
    write = call("write_file", path=str(inner / "file"), content="x\n")
    steps = [bash("echo x > old; echo x > inner/new"), write, DONE]
    async with desk(tmp_path, steps, folder=folder) as it:
        await it.say("one")
        await it.rewind(scope="files")
        assert tree(folder) == {"old": "- before\n", "gone": "- here\n", "inner/file": "- one\n", "inner/new": "- x\n"}


@pytest.mark.requirement("RW16")
async def test_a_plain_folder_and_a_repository_in_it_that_are_both_roots_go_back_once(tmp_path: Path) -> None:
    folder = plain(tmp_path / "plain")
    inner = repository(folder / "inner")
    before = tree(folder)
    write = call("write_file", path=str(inner / "file"), content="x\n")
    steps = [bash("echo x > old; echo x > inner/new"), write, DONE]
    async with desk(tmp_path, steps, folder=folder) as it:
        session = await it.client.new_session(str(folder), additional_directories=[str(inner)])
        await session.prompt("write").read()
        done = await it.client.ask(RewindSession(session.id))
        assert sorted(one.path.removeprefix(f"{folder}/") for one in done.files) == ["inner/file", "inner/new", "old"]
        assert tree(folder) == before


def many_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, str], str]:
    monkeypatch.setattr(plain_size, "PLAIN_FILES", 1)
    return {}, "it is no git repository and has more than 1 files"


def many_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, str], str]:
    monkeypatch.setattr(plain_size, "PLAIN_BYTES", 1)
    return {}, "it is no git repository and has more than 0 MiB"


def home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, str], str]:
    return {"HOME": str(folder)}, "it holds your home folder"


@pytest.mark.requirement("RW16")
@pytest.mark.parametrize("case", [many_files, many_bytes, home_folder])
async def test_of_a_large_one_and_the_home_folder_what_file_tools_write_comes_back_and_the_rest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Callable[..., tuple[dict[str, str], str]]
) -> None:
    folder = plain(tmp_path / "plain")
    variables, reason = case(folder, monkeypatch)
    steps = [bash("rm gone"), call("read_file", path="old"), call("write_file", path="old", content="x\n"), DONE]
    async with desk(tmp_path, steps, folder=folder, environment={**ENVIRONMENT, **variables}) as it:
        said = notices(await events_of(it.conversation))
        shown = await it.rewind(preview=True)
        sentence = f"what commands change in {folder} is not kept, because {reason}"
        assert said[-1:] == [f"A rewind does not cover everything here: {sentence}."]
        assert shown.not_covered == [sentence]
        await it.rewind(scope="files")
        assert tree(folder) == {"old": "- before\n"}


@pytest.mark.requirement("RW16")
async def test_a_folder_that_was_not_covered_stays_so_when_it_has_become_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plain(tmp_path / "plain")
    write = call("write_file", path="new", content="x\n")
    with monkeypatch.context() as patch:
        patch.setattr(plain_size, "PLAIN_FILES", 1)
        async with desk(tmp_path, [write, DONE], folder=folder) as it:
            await it.say("one")
            session_id = it.conversation.id
    async with desk(tmp_path, [bash("echo y > new; rm gone"), DONE], folder=folder) as other:
        session = await other.client.load_session(session_id, str(folder))
        await session.prompt("two").read()
        await other.client.ask(RewindSession(session_id, scope="files"))
        assert tree(folder) == {"old": "- before\n", "new": "- x\n"}


@pytest.mark.requirement("RW16")
async def test_without_git_what_file_tools_write_comes_back_and_the_rest_is_named(tmp_path: Path) -> None:
    folder = plain(tmp_path / "plain")
    steps = [call("write_file", path="new", content="x\n"), DONE]
    async with desk(tmp_path, steps, folder=folder, environment={**ENVIRONMENT, "PATH": str(tmp_path)}) as it:
        await it.say("one")
        shown = await it.rewind(scope="files")
        assert (tree(folder), shown.not_covered) == (
            {"old": "- before\n", "gone": "- here\n"},
            ["what commands change is not kept, because git is not installed"],
        )
