"""`dragoman run` with an agent, a real process, that tells one thing and means another: no rule is stretched."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import rogue_agent
from tests.support.rogue_agent import call, permission, text
from tests.support.run_command import Done, run

RULES = {
    "allow": [{"kind": "execute", "command": "git status"}, {"kind": "execute", "command": "git add"}],
    "reject": [{"kind": "execute", "command": "rm"}],
}
NO = {"outcome": {"outcome": "selected", "optionId": "no"}}
YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def ruled(folder: Path, *steps: dict[str, Any]) -> Done:
    """A run of an agent that acp.json has rules for."""
    command = rogue_agent.written(folder, *steps, text("ok"))
    entry = {"command": command[0], "args": command[1:], "permissions": RULES}
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "acp.json").write_text(json.dumps({"servers": {"mine": entry}}))
    return run(folder, "hi", "--agent", "mine", cwd=project(folder))


def project(folder: Path) -> Path:
    place = folder / "project"
    place.mkdir(exist_ok=True)
    return place


def terminal(command: str, *args: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    given = [{"name": name, "value": value} for name, value in (env or {}).items()]
    return {"ask": "terminal/create", "params": {"command": command, "args": list(args), "env": given}}


def test_the_name_of_a_variable_is_no_command(tmp_path: Path) -> None:
    victim = project(tmp_path) / "victim"
    victim.touch()
    steps = [
        terminal("touch", "made", env={"git status #": "x"}),
        terminal("rm", "victim", env={"git status #": "x"}),
    ]
    done = ruled(tmp_path, *steps)
    assert [answer["code"] for answer in rogue_agent.answers(tmp_path)] == [-32602, -32602], done
    assert [path.name for path in project(tmp_path).iterdir()] == ["victim"]


@pytest.mark.parametrize("command", ["git add &>/dev/null touch made", "git status 12>&1 touch made"])
def test_a_line_that_another_shell_reads_as_two_commands_makes_nothing(command: str, tmp_path: Path) -> None:
    ruled(tmp_path, terminal(command), terminal("sh", "-c", command))
    assert "terminalId" not in rogue_agent.answers(tmp_path)[1]
    assert list(project(tmp_path).iterdir()) == []


def test_rules_hold_for_what_is_told_in_words_and_variables(tmp_path: Path) -> None:
    victim = project(tmp_path) / "victim"
    victim.touch()
    done = ruled(
        tmp_path,
        terminal("git", "status"),
        terminal("git", "status", env={"GIT_DIR": "x"}),
        terminal("rm", "victim"),
        terminal("sh", "-c", "git add &>/dev/null rm victim"),
    )
    allowed, *refused = rogue_agent.answers(tmp_path)
    assert (done.code, "terminalId" in allowed, victim.exists()) == (5, True, True), done
    assert [answer["data"]["reason"] for answer in refused] == [
        "it runs a command, and there is no user to ask",
        "the rule reject kind execute, command rm",
        "the rule reject kind execute, command rm",
    ]


OUT = "/etc/passwd"
UNIFIED = f"--- a/x\n+++ {OUT}\n@@ -1 +1 @@\n-x\n+y\n"
MARKED = f"*** Begin Patch\n*** Update File: {OUT}\n@@\n-x\n+y\n*** End Patch\n"
TELLINGS: dict[str, dict[str, Any]] = {
    "told whole": {"content": [{"type": "diff", "path": OUT, "oldText": "x", "newText": "y"}]},
    "told without its text": {"content": [{"type": "diff", "path": OUT}]},
    "a place that is none": {"locations": [{"path": [OUT]}]},
    "patch in the input": {"rawInput": {"patch": MARKED}},
    "patch under another key": {"rawInput": {"input": UNIFIED}},
    "patch in words": {"content": [{"type": "content", "content": {"type": "text", "text": MARKED}}]},
    "a command": {"rawInput": {"shellCommand": "rm -rf x"}},
    "something to run": {"rawInput": {"run": "rm"}},
    "a relative path that leaves": {"rawInput": {"where": "sub/../../../x"}},
    "a text of unknown meaning": {"rawInput": {"what": "rm -rf x"}},
}


@pytest.mark.parametrize("fields", TELLINGS.values(), ids=TELLINGS.keys())
@pytest.mark.parametrize("before", [False, True], ids=["in the question", "before the question"])
def test_edits_outside_are_not_allowed_however_they_are_told(
    fields: dict[str, Any], before: bool, tmp_path: Path
) -> None:
    inside: dict[str, Any] = {"kind": "edit", "locations": [{"path": str(project(tmp_path) / "in.txt")}]}
    steps = (
        [call(**{**inside, **fields}), permission("Edit", **inside)]
        if before
        else [permission("Edit", **{**inside, **fields})]
    )
    agent = rogue_agent.written(tmp_path, *steps, text("ok"))
    done = run(tmp_path, "hi", "--allow", "edit", "--", *agent, cwd=project(tmp_path))
    assert done.code == 5, done
    assert [answer["outcome"] for answer in rogue_agent.answers(tmp_path)] == [NO["outcome"]]


@pytest.mark.parametrize("kind", ["edit", "other"])
def test_an_edit_inside_is_allowed_and_what_is_called_other_is_not(kind: str, tmp_path: Path) -> None:
    path = str(project(tmp_path) / "in.txt")
    asked = permission("Edit", kind=kind, locations=[{"path": path}], rawInput={"file_path": path, "new_string": "a b"})
    done = run(tmp_path, "hi", "--allow", "edit", "--", *rogue_agent.written(tmp_path, asked), cwd=project(tmp_path))
    assert done.code == (0 if kind == "edit" else 5), done
    assert [one["outcome"] for one in rogue_agent.answers(tmp_path)] == [(YES if kind == "edit" else NO)["outcome"]]


CHUNKS: dict[str, dict[str, Any]] = {
    "a diff": {"type": "diff", "changes": [{"operation": "modify", "path": OUT}]},
    "nothing but a patch": {"type": "diff", "changes": [], "patch": {"format": "git_patch", "text": UNIFIED}},
    "a patch that names another file": {
        "type": "diff",
        "changes": [{"operation": "modify", "path": "IN"}],
        "patch": {"format": "git_patch", "text": UNIFIED},
    },
}


@pytest.mark.parametrize("content", CHUNKS.values(), ids=CHUNKS.keys())
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_a_diff_told_in_chunks_is_judged(content: dict[str, Any], inside: bool, tmp_path: Path) -> None:
    path = str(project(tmp_path) / "in.txt")
    told = json.loads(json.dumps(content).replace("IN", path).replace(OUT, path if inside else OUT))
    if inside:
        told = json.loads(json.dumps(told).replace("a/x", path))
    subject = {"type": "tool_call", "toolCall": {"toolCallId": "c1", "kind": "edit", "locations": [{"path": path}]}}
    steps: list[dict[str, Any]] = [
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": "Edit", "kind": "edit"}},
        {"update": {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c1", "content": told}},
        {"ask": "session/request_permission", "params": {"title": "Edit", "options": OPTIONS, "subject": subject}},
    ]
    agent = rogue_agent.written(tmp_path, *steps, version=2)
    done = run(tmp_path, "hi", "--allow", "edit", "--", *agent, cwd=project(tmp_path))
    assert done.code == (0 if inside else 5), done
    assert [one["outcome"] for one in rogue_agent.answers(tmp_path)] == [(YES if inside else NO)["outcome"]]
