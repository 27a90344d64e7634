"""`dragoman sessions rewind` and `/rewind`, as users run them, on sessions that the real agent has made."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.chat_pane import ASKED, PROMPT, Step, chat, ready, scripted
from tests.support.command import Called, call
from tests.support.editor import HELLO, Editor, turns
from tests.support.git_repository import repository
from tests.support.versions import both_versions

TURNS: list[list[Step]] = [
    [{"call": "bash", "input": {"command": f"echo {word} > file; echo {word} > {word}"}}, {"say": f"Did {word}."}]
    for word in ("first", "second", "third")
]


class Worked:
    """A session of three prompts in a repository, closed by now."""

    def __init__(self, folder: Path, version: int = 1) -> None:
        self.folder = folder
        self.project = repository(folder / "shop")
        with Editor(folder, turns(*TURNS), "--mode", "full-access", version=version) as editor:
            self.hello = editor.result("initialize", HELLO[version])
            opening = {"cwd": str(self.project), "mcpServers": []}
            self.id = editor.session = editor.result("session/new", opening)["sessionId"]
            for word in ("one", "two", "three"):
                editor.prompt(word)

    def run(self, *words: str) -> Called:
        return call("sessions", *words, cwd=self.project, forks=True, DRAGOMAN_HOME=str(self.folder / "home"))

    def files(self) -> dict[str, str]:
        return files_in(self.project)


def files_in(folder: Path) -> dict[str, str]:
    """What stands in a folder, but for the file that a worktree has for git."""
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file() and path.name != ".git"}


BEFORE_SECOND = {"file": "first\n", "first": "first\n"}
AFTER_ALL = {"file": "third\n", "first": "first\n", "second": "second\n", "third": "third\n"}


@pytest.mark.requirement("RW8")
def test_a_session_goes_back_to_before_a_prompt_and_forth_again(tmp_path: Path) -> None:
    worked = Worked(tmp_path)
    code, out, error = worked.run("rewind", worked.id, "--to", "2", "--yes")
    assert (code, error) == (0, "")
    assert "Rewind files and conversation to before prompt 2: two\n" in out
    assert "+first\n" in out and "-third\n" in out
    assert worked.files() == BEFORE_SECOND
    shown = worked.run("show", worked.id).out
    assert ("one" in shown, "two" in shown, "Did second." in shown) == (True, False, False)
    assert worked.run("rewind", worked.id, "--undo", "--yes").code == 0
    assert worked.files() == AFTER_ALL
    assert "Did third." in worked.run("show", worked.id).out


@pytest.mark.requirement("RW2")
def test_a_fork_at_a_message_that_a_rewind_has_taken_out_is_refused(tmp_path: Path) -> None:
    worked = Worked(tmp_path)
    exported = map(json.loads, worked.run("export", worked.id).out.splitlines())
    last = [line["messageId"] for line in exported if line.get("messageId")][-1]
    assert worked.run("rewind", worked.id, "--to", "2", "--conversation", "--yes").code == 0
    code, out, error = worked.run("fork", worked.id, "--at", last)
    assert (code, out) == (1, "")
    hint = f"`dragoman sessions rewind {worked.id} --undo` brings it back, if nothing was asked since"
    assert error == f"dragoman: a rewind has taken message {last} out of the session; {hint}\n"
    assert worked.run("rewind", worked.id, "--undo", "--yes").code == 0
    assert worked.run("fork", worked.id, "--at", last).code == 0


@pytest.mark.requirement("RW8")
def test_without_a_terminal_nothing_happens_before_a_yes(tmp_path: Path) -> None:
    worked = Worked(tmp_path)
    code, out, error = worked.run("rewind", worked.id)
    assert (code, "add --yes" in error) == (2, True)
    assert "delete" in out and worked.files() == AFTER_ALL


@pytest.mark.requirement("RW8")
def test_the_files_alone_go_back_and_the_conversation_stays(tmp_path: Path) -> None:
    worked = Worked(tmp_path)
    code, out, _ = worked.run("rewind", worked.id, "--to", "2", "--files", "--yes", "--json")
    done = json.loads(out)
    assert (code, done["applied"], done["scope"], done["number"], done["prompts"]) == (0, True, "files", 2, 0)
    assert {Path(file["path"]).name: file["action"] for file in done["files"]} == {
        "file": "change",
        "second": "delete",
        "third": "delete",
    }
    assert worked.files() == BEFORE_SECOND
    assert "Did third." in worked.run("show", worked.id).out


@pytest.mark.requirement("RW2")
def test_the_conversation_alone_goes_back_and_the_files_stay(tmp_path: Path) -> None:
    worked = Worked(tmp_path)
    assert worked.run("rewind", worked.id, "--to", "1", "--conversation", "--yes").code == 0
    assert worked.files() == AFTER_ALL
    assert "Did first." not in worked.run("show", worked.id).out
    lines = worked.run("export", worked.id).out
    assert "Did first." in lines  # the log keeps all


@pytest.mark.requirement("RW8")
def test_a_number_without_a_prompt_names_the_prompts(tmp_path: Path) -> None:
    worked = Worked(tmp_path)
    code, _, error = worked.run("rewind", worked.id, "--to", "9", "--yes")
    assert code == 1
    assert "There is no prompt 9: prompts are counted from 1 to 3\n  1. one\n  2. two\n  3. three" in error


@pytest.mark.requirement("RW7")
def test_a_session_that_is_open_elsewhere_is_not_rewound(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    with Editor(tmp_path, turns(*TURNS), "--mode", "full-access") as editor:
        editor.result("initialize", HELLO[1])
        editor.session = editor.result("session/new", {"cwd": str(project), "mcpServers": []})["sessionId"]
        editor.prompt("one")
        found = call("sessions", "rewind", editor.session, "--yes", forks=True, DRAGOMAN_HOME=str(tmp_path / "home"))
        told = "another process has the session open; say /rewind there, or close it there first"
        assert (found.code, found.error) == (1, f"dragoman: {told}\n")
        assert (project / "first").exists()


@pytest.mark.requirement("RW7")
@both_versions
def test_an_editor_rewinds_by_the_extension_that_is_advertised(version: int, tmp_path: Path) -> None:
    worked = Worked(tmp_path, version)
    assert worked.hello["_meta"]["rewind"] == {"supported": True}
    opening: dict[str, Any] = {"cwd": str(worked.project), "mcpServers": [], "sessionId": worked.id}
    with Editor(tmp_path, turns(*TURNS), version=version) as editor:
        editor.result("initialize", HELLO[version])
        load = "session/load" if version == 1 else "session/resume"
        replay = {} if version == 1 else {"replayFrom": {"type": "start"}}
        history = editor.ask(load, {**opening, **replay})
        updates = [message["params"]["update"] for message in history if message.get("method") == "session/update"]
        prompts = list(dict.fromkeys(one["messageId"] for one in updates if "user" in one["sessionUpdate"]))
        wish = {"sessionId": worked.id, "messageId": prompts[1], "scope": "both"}
        shown = editor.ask("_session/rewind", {**wish, "preview": True})[-1]["result"]
        assert (shown["applied"], worked.files()) == (False, AFTER_ALL)
        done = editor.ask("_session/rewind", wish)[-1]["result"]
        assert (done["applied"], done["number"], done["prompts"], worked.files()) == (True, 2, 2, BEFORE_SECOND)
        history = editor.ask(load, {**opening, **replay})
        assert "Did second." not in json.dumps(history)
        assert editor.ask("_session/rewind", {**wish, "scope": "all"})[-1]["error"]["code"] == -32602
        assert editor.ask("_session/rewind", {**wish, "messageId": "msg_none"})[-1]["error"]["code"] == -32602


@pytest.mark.requirement("RW8")
def test_in_a_chat_the_command_shows_the_change_asks_and_does_it(tmp_path: Path) -> None:
    folder = repository(tmp_path / "work")
    with chat(tmp_path, *scripted(tmp_path, *TURNS), "--mode", "full-access") as pane:
        ready(pane)
        pane.say("one")
        pane.wait_for("Did first", PROMPT)
        pane.say("/rewind 1")
        pane.wait_for("Rewind files and conversation to before prompt 1: one", "-first", ASKED)
        assert (folder / "first").exists()
        pane.say("y")
        pane.wait_for("taken out of the conversation; the log keeps all", PROMPT)
        assert not (folder / "first").exists()
        pane.say("/rewind undo")
        pane.wait_for("Undo the last rewind", ASKED)
        pane.say("y")
        pane.wait_for("as before the rewind", PROMPT)
        assert (folder / "first").read_text() == "first\n"


@pytest.mark.requirement("RW13")
def test_a_session_with_a_worktree_goes_back_there_and_the_project_stays(tmp_path: Path) -> None:
    project, place = repository(tmp_path / "shop"), tmp_path / "shop.worktrees" / "fix"
    with Editor(tmp_path, turns(*TURNS), "--mode", "full-access", "--worktree", "fix") as editor:
        editor.result("initialize", HELLO[1])
        opened = editor.result("session/new", {"cwd": str(project), "mcpServers": []})
        editor.session = opened["sessionId"]
        for word in ("one", "two", "three"):
            editor.prompt(word)
        assert files_in(place) == AFTER_ALL
        done = editor.result("_session/rewind", {"sessionId": editor.session})
        assert ([file["path"] for file in done["files"]]) == [str(place / "file"), str(place / "third")]
        assert files_in(place) == {"file": "second\n", "first": "first\n", "second": "second\n"}
    (project / "file").write_text("the user's\n")
    environment = {"DRAGOMAN_HOME": str(tmp_path / "home")}
    code, _, error = call(
        "sessions", "rewind", editor.session, "--to", "2", "--yes", cwd=project, forks=True, **environment
    )
    assert (code, error, files_in(place)) == (0, "", BEFORE_SECOND)
    assert files_in(project) == {"file": "the user's\n"}
