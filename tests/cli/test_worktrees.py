"""`--worktree` and `sessions finish`: an editor, a script and a person at a terminal work in a worktree of git."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.chat_pane import PROMPT, Step, chat, ready, scripted
from tests.cli.pane import Pane
from tests.support.command import Called, call
from tests.support.editor import HELLO, Editor, turns
from tests.support.git_repository import git, repository
from tests.support.versions import both_versions

WRITES: list[Step] = [{"call": "write_file", "input": {"path": "new", "content": "made\n"}}, {"say": "Done."}]


def run(folder: Path, *words: str) -> Called:
    """A command of ours in the project."""
    return call(*words, cwd=folder / "shop", forks=True, DRAGOMAN_HOME=str(folder / "home"))


def script(folder: Path) -> list[str]:
    file = folder / "script.json"
    file.write_text(json.dumps(turns(WRITES)))
    return ["--model", f"script:{file}", "--mode", "full-access"]


@both_versions
def test_an_editor_works_in_a_worktree_and_finds_its_session_in_the_project(version: int, tmp_path: Path) -> None:
    project, place = repository(tmp_path / "shop"), str(tmp_path / "shop.worktrees" / "fix")
    opening: dict[str, Any] = {"cwd": str(project), "mcpServers": []}
    with Editor(tmp_path, turns(WRITES), "--mode", "full-access", version=version) as editor:
        editor.result("initialize", HELLO[version])
        wish = {**opening, "_meta": {"dragoman/worktree": "fix"}}
        editor.session = editor.result("session/new", wish)["sessionId"]
        editor.prompt()
        assert (Path(place) / "new").read_text() == "made\n"
        assert not (project / "new").exists()
        (listed,) = editor.result("session/list", {"cwd": str(project)})["sessions"]
        assert (listed["sessionId"], listed["cwd"]) == (editor.session, place)
        assert listed["_meta"]["dragoman/worktree"] == {"name": "fix", "branch": "dragoman/fix"}
    with Editor(tmp_path, turns(WRITES), version=version) as editor:
        editor.result("initialize", HELLO[version])
        editor.ask("session/resume", {**opening, "sessionId": listed["sessionId"]})
        fork = editor.ask("session/fork", {**opening, "sessionId": listed["sessionId"]})[-1]["result"]["sessionId"]
        sessions = editor.ask("session/list", {"cwd": str(project)})[-1]["result"]["sessions"]
        assert {one["sessionId"]: one["cwd"] for one in sessions} == {listed["sessionId"]: place, fork: place}
        other = {**opening, "cwd": str(tmp_path), "sessionId": listed["sessionId"]}
        assert editor.ask("session/load" if version == 1 else "session/resume", other)[-1]["error"]["code"] == -32602


def test_every_session_of_an_agent_with_the_option_has_its_own(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    with Editor(tmp_path, None, "--worktree") as editor:
        editor.result("initialize", HELLO[1])
        for _ in range(2):
            editor.ask("session/new", {"cwd": str(project), "mcpServers": []})
        editor.ask("session/new", {"cwd": str(project), "mcpServers": [], "_meta": {"dragoman/worktree": False}})
        listed = editor.ask("session/list", {"cwd": str(project)})[-1]["result"]["sessions"]
        assert sorted(Path(one["cwd"]).name for one in listed) == ["shop", "task-1", "task-2"]


@pytest.mark.parametrize("wish", [7, "../x", "a b", ["x"]])
def test_a_wish_that_cannot_be_is_refused_with_a_sentence(wish: object, tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    with Editor(tmp_path) as editor:
        editor.result("initialize", HELLO[1])
        given = {"cwd": str(project), "mcpServers": [], "_meta": {"dragoman/worktree": wish}}
        assert editor.error("session/new", given)["code"] == -32602
        assert editor.result("session/list", {}) == {"sessions": []}
    assert not (tmp_path / "shop.worktrees").exists()


def test_files_of_the_editor_are_not_read_for_a_worktree(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    reads = turns([{"call": "read_file", "input": {"path": "file"}}, {"say": "Read."}])
    lent = {"clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}}}
    with Editor(tmp_path, reads, "--worktree") as editor:
        editor.result("initialize", {**HELLO[1], **lent})
        given = {"cwd": str(project), "mcpServers": []}
        editor.session = editor.ask("session/new", given)[-1]["result"]["sessionId"]
        assert editor.prompt()[-1]["result"]["stopReason"] == "end_turn"  # with no question to the editor


def test_a_run_says_where_it_worked_and_finish_merges_it(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    ran = run(tmp_path, "run", *script(tmp_path), "--worktree=fix", "go")
    assert (ran.code, ran.out) == (0, "Done.\n")
    assert f"working in {tmp_path}/shop.worktrees/fix, on branch dragoman/fix; `dragoman sessions finish" in ran.error
    refused = run(tmp_path, "sessions", "finish", "fix", "--merge")
    assert (refused.code, refused.error.splitlines()[-1]) == (1, "dragoman: there is no terminal to ask at; add --yes")
    finished = run(tmp_path, "sessions", "finish", "go", "--merge", "--yes", "--message", "Add new")
    assert finished.code == 0, finished.error
    assert "Merged into main as" in finished.error
    assert (project / "new").read_text() == "made\n"
    assert git(project, "log", "-1", "--format=%s", "HEAD^2") == "Add new\n"
    assert git(project, "worktree", "list").count("\n") == 1


def test_files_of_options_are_named_from_where_the_user_is(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    (tmp_path / "script.json").write_text(json.dumps(turns(WRITES)))
    (tmp_path / "words.md").write_text("Be brief.")
    files = ["--model", "script:../script.json", "--system-prompt-file", "../words.md"]
    for place in (["--worktree=fix"], ["--cwd", str(tmp_path)]):
        ran = call("run", *files, "--mode", "full-access", *place, "go", cwd=project, forks=True)
        assert (ran.code, ran.out) == (0, "Done.\n"), ran.error


def test_the_list_of_a_folder_has_the_sessions_in_its_worktrees(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    run(tmp_path, "run", *script(tmp_path), "--worktree=fix", "go")
    listed = run(tmp_path, "sessions", "list", "--cwd", ".", "--json")
    (one,) = json.loads(listed.out)
    assert (one["cwd"], one["_meta"]["dragoman/worktree"]["name"]) == (f"{project}.worktrees/fix", "fix")
    assert "[worktree fix] go" in run(tmp_path, "sessions", "list", "--cwd", ".").out
    assert run(tmp_path, "sessions", "list", "--cwd", str(tmp_path)).out == ""
    run(tmp_path, "sessions", "finish", "fix", "--merge", "--yes")
    assert "worktree" not in run(tmp_path, "sessions", "list", "--json").out.replace("shop.worktrees", "")


def test_finish_says_what_is_lost_and_how_to_bring_it_back(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    run(tmp_path, "run", *script(tmp_path), "--worktree=fix", "go")
    finished = run(tmp_path, "sessions", "finish", "fix", "--remove", "--yes")
    assert finished.code == 0, finished.error
    assert "not committed: 1 file:\n  new\n" in finished.error
    commit = finished.error.partition("`git branch dragoman/fix ")[2].partition("`")[0]
    assert git(project, "show", f"{commit}:new") == "made\n"
    assert not (project / "new").exists()


def test_a_session_without_a_worktree_is_not_finished(tmp_path: Path) -> None:
    repository(tmp_path / "shop")
    run(tmp_path, "run", *script(tmp_path), "go")
    finished = run(tmp_path, "sessions", "finish", "go", "--remove", "--yes")
    assert (finished.code, "which is no worktree of ours" in finished.error) == (1, True)


def test_a_name_of_nothing_says_how_worktrees_and_sessions_are_listed(tmp_path: Path) -> None:
    repository(tmp_path / "shop")
    finished = run(tmp_path, "sessions", "finish", "nope", "--keep")
    hint = "`git worktree list` shows the worktrees of a repository, `dragoman sessions list --all` the sessions"
    said = f"dragoman: there is no worktree and no session 'nope'; {hint}\n"
    assert (finished.code, finished.error) == (1, said)


def test_a_worktree_in_use_is_not_finished(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    with Editor(tmp_path) as editor:
        editor.result("initialize", HELLO[1])
        wish = {"cwd": str(project), "mcpServers": [], "_meta": {"dragoman/worktree": "fix"}}
        editor.ask("session/new", wish)
        finished = run(tmp_path, "sessions", "finish", "fix", "--remove", "--yes")
    assert finished.code == 1
    assert f"works in {tmp_path}/shop.worktrees/fix: " in finished.error
    assert (tmp_path / "shop.worktrees" / "fix" / "file").exists()


def test_a_person_is_asked_what_shall_become_of_it(tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    run(tmp_path, "run", *script(tmp_path), "--worktree=fix", "go")
    home = {"DRAGOMAN_HOME": str(tmp_path / "home")}
    folder = tmp_path / "pane"
    folder.mkdir()
    finish = f"cd {project}; exec {sys.executable} -m dragoman.cli.main sessions finish fix"
    with Pane(folder, ["sh", "-c", finish], home) as pane:
        pane.wait_for(r"\[m\]erge into main, \[k\]eep, or \[r\]emove\?")
        pane.say("m")
        pane.wait_for(r"Commit the 1 file first\? \[y/N\]")
        pane.say("y")
        pane.wait_for(r"Merge dragoman/fix into main\? \[y/N\]")
        pane.say("n")
        assert pane.left() == 1
        assert "nothing was merged" in pane.screen()
    assert not (project / "new").exists()
    assert (tmp_path / "shop.worktrees" / "fix" / "new").exists()


def test_a_chat_in_a_worktree_tells_the_model_where_it_is(tmp_path: Path) -> None:
    repository(tmp_path / "work")
    with chat(tmp_path, *scripted(tmp_path, WRITES), "--mode", "full-access", "--worktree=fix") as pane:
        ready(pane)
        assert "on branch dragoman/fix" in pane.screen()
        pane.say("go")
        pane.wait_for(r"Done\.", PROMPT)
    assert (tmp_path / "work.worktrees" / "fix" / "new").exists()
