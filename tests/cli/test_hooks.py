"""Hooks as people meet them: `config show`, `trust`, `run`, a chat, and an editor at a real `dragoman acp`."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.chat_pane import PROMPT, chat, ready
from tests.cli.chat_pane import scripted as chat_script
from tests.support.command import Called, call
from tests.support.editor import Editor, closing_by_force, turns
from tests.support.machine import lives
from tests.support.managed_place import looking_at, written
from tests.support.run_command import Done, run, scripted
from tests.support.waiting import wait_until

TOUCH = {"call": "bash", "input": {"command": "touch ran"}}
# As in the documentation of Claude Code, word for word in its form.
DENY = {
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [{"type": "command", "command": "echo 'Use the tools.' >&2; exit 2", "timeout": 5}],
            }
        ]
    }
}


def user_hooks(folder: Path, hooks: Any) -> Path:
    (folder / "home").mkdir(exist_ok=True)
    file = folder / "home" / "hooks.json"
    file.write_text(json.dumps(hooks))
    return file


def project_hooks(folder: Path, hooks: Any) -> Path:
    (folder / ".claude").mkdir(exist_ok=True)
    file = folder / ".claude" / "settings.json"
    file.write_text(json.dumps(hooks))
    return file


def dragoman(folder: Path, *words: str) -> Called:
    return call(*words, cwd=folder, forks=True, DRAGOMAN_HOME=str(folder / "home"))


def played(folder: Path) -> Done:
    return run(folder, "go", "--mode", "full-access", "--stream-json", *scripted(folder, [TOUCH, {"say": "."}]))


def test_run_is_denied_a_call_by_a_hook_of_the_user(tmp_path: Path) -> None:
    user_hooks(tmp_path, DENY)
    done = played(tmp_path)
    assert (tmp_path / "ran").exists() is False
    assert "A hook of the user denies this: Use the tools." in done.out + done.error


def test_a_project_is_trusted_with_its_hooks_shown_and_again_after_a_change(tmp_path: Path) -> None:
    file = project_hooks(tmp_path, DENY)
    first = played(tmp_path)
    assert (tmp_path / "ran").exists()
    assert f"The hooks of {file} do not run: the project is not trusted" in first.out
    (tmp_path / "ran").unlink()
    shown = dragoman(tmp_path, "trust", str(tmp_path), "--yes")
    assert "hook at PreToolUse Bash (.claude/settings.json)" in shown.error
    assert "confined by nothing" in shown.error
    played(tmp_path)
    assert (tmp_path / "ran").exists() is False
    file.write_text(json.dumps(DENY).replace("Use the tools.", "Use other tools."))
    changed = played(tmp_path)
    assert (tmp_path / "ran").exists()
    assert "it has changed since it was trusted" in changed.out


@pytest.mark.requirement("HK13")
def test_config_show_lists_hooks_with_origin_and_whether_they_run(tmp_path: Path) -> None:
    user = user_hooks(tmp_path, {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "notify me"}]}]}})
    project = project_hooks(tmp_path, DENY)
    found = json.loads(dragoman(tmp_path, "config", "show", "--json").out)["hooks"]
    why = f"the project is not trusted (it has not been trusted here): dragoman trust {tmp_path}"
    common = {"matcher": "", "state": "runs"}
    assert found == [
        {**common, "event": "Stop", "runs": "notify me", "origin": "user", "file": str(user)},
        {
            "event": "PreToolUse",
            "matcher": "Bash",
            "runs": "echo 'Use the tools.' >&2; exit 2",
            "origin": "project",
            "file": str(project),
            "state": why,
        },
    ]
    dragoman(tmp_path, "trust", str(tmp_path), "--yes")
    lines = dragoman(tmp_path, "config", "show").out.splitlines()
    assert f"{'hooks':18} Stop: notify me  (user, {user})" in lines
    assert f"{'':18} PreToolUse Bash: echo 'Use the tools.' >&2; exit 2  (project, {project})" in lines


@pytest.mark.requirement("HK13")
def test_config_show_names_what_is_not_understood_and_what_the_administrator_turns_off(tmp_path: Path) -> None:
    file = user_hooks(tmp_path, {"hooks": {"PermissionRequest": [], "Stop": [{"hooks": [{"type": "prompt"}]}]}})
    shown = dragoman(tmp_path, "config", "show").out
    assert f"{file}: PermissionRequest: there is no such event here, so its hooks do not run" in shown
    assert f"{file}: Stop: a hook of type prompt is not run; only commands are" in shown
    user_hooks(tmp_path, DENY)
    managed = written(tmp_path, "[hooks]\nuser = false\n")
    with looking_at(managed):
        (hook,) = json.loads(dragoman(tmp_path, "config", "show", "--json").out)["hooks"]
    assert hook["state"] == f"the administrator's file {managed} does not allow hooks of the user"


def test_an_editor_at_a_real_agent_meets_every_event_also_the_last(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = f"cat >> {shlex.quote(str(told))}; echo >> {shlex.quote(str(told))}"
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    user_hooks(tmp_path, {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}] for event in events}})
    with Editor(tmp_path, turns([TOUCH], [{"say": "Done."}]), "--mode", "full-access") as editor:
        editor.open()
        editor.prompt("go")
    said = [json.loads(line) for line in told.read_text().splitlines()]
    assert [one["hook_event_name"] for one in said] == list(events)
    assert (said[3]["tool_name"], said[3]["tool_input"]) == ("Bash", {"command": "touch ran"})


@pytest.mark.requirement("HK9")
def test_a_killed_agent_leaves_no_hook_behind(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = f"echo $$ > {pid}.part; mv {pid}.part {pid}; exec sleep 1000"
    user_hooks(tmp_path, {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}})
    with closing_by_force(Editor(tmp_path)) as editor:
        editor.open()
        editor.send({"id": 7000, "method": "session/prompt", "params": editor.words("go")})
        wait_until(pid.exists, "the hook runs")
        editor.process.kill()
        wait_until(lambda: not lives(int(pid.read_text())), "the hook is gone")


def test_a_chat_shows_why_a_prompt_was_held_back(tmp_path: Path) -> None:
    guard = {"type": "command", "command": "grep -q secret && { echo 'No secrets.' >&2; exit 2; } || true"}
    user_hooks(tmp_path, {"hooks": {"UserPromptSubmit": [{"hooks": [guard]}]}})
    with chat(tmp_path, *chat_script(tmp_path, [{"say": "I heard you."}])) as pane:
        ready(pane)
        pane.say("the secret is 42")
        pane.wait_for(r"A hook of the user has held this prompt back: No secrets\.", PROMPT)
        pane.say("the weather is fine")
        pane.wait_for(r"I heard you\.", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
