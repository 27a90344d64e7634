"""A session that works in the home folder says what that means, once."""

from pathlib import Path

import pytest

from dragoman.coder.session import wide_workspace_notice
from dragoman.vocabulary.events import Notice
from tests.support.editor import Editor, turns
from tests.support.whole_agent import User, events_of, scripted, whole

HOME = "/home/someone"


@pytest.mark.parametrize("roots", [[HOME], ["/home"], ["/"], ["/project", HOME]])
def test_a_root_that_holds_the_home_folder_is_told(roots: list[str]) -> None:
    notice = wide_workspace_notice(roots, HOME)
    assert "home folder" in notice
    assert "one project" in notice


@pytest.mark.parametrize("roots", [[f"{HOME}/project"], ["/srv"], ["/home/someone-else"], ["/home/some"]])
def test_a_project_is_not(roots: list[str]) -> None:
    assert wide_workspace_notice(roots, HOME) == ""


async def test_the_first_prompt_tells_it_and_the_second_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with whole(tmp_path, scripted([{"say": "one"}], [{"say": "two"}])) as (_, session):
        turns_told = [await events_of(session) for _ in range(2)]
    notices = [[e.title for e in events if isinstance(e, Notice)] for events in turns_told]
    assert [len(each) for each in notices] == [1, 0]
    assert notices[0][0].startswith("This session works in your home folder")


def test_an_editor_without_notices_is_told_too_and_in_no_message(tmp_path: Path) -> None:
    with Editor(tmp_path, turns([{"say": "done"}]), env={"HOME": str(tmp_path)}) as editor:
        editor.open()
        _, told, said, _ = editor.prompt("go")
    assert told["title"].startswith("Warning: This session works in your home folder")
    assert said["content"]["text"] == "done"


async def test_in_a_home_folder_every_hidden_file_is_asked_about_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    user = User("reject_once", "reject_once")
    paths = [".xbindkeysrc", ".config/polybar/launch.sh", "project/.hidden", "plain"]
    steps = [{"call": "write_file", "input": {"path": path, "content": "x"}} for path in paths]
    async with whole(tmp_path, scripted(steps), user=user, mode="workspace-write") as (_, session):
        await events_of(session)
    assert sorted(asked.title for asked in user.asked) == [f"Write {path}" for path in sorted(paths[:2])]
    assert [path for path in paths if (tmp_path / path).exists()] == paths[2:]
