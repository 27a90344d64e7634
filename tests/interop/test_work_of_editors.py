"""An editor on the TypeScript SDK and what we have beyond the schema: forks at a message, the files of Claude Code,
worktrees, hand-offs, notices. Whatever the editor did, our own commands go on with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import rogue_agent
from tests.support.command import Called, call
from tests.support.editor import turns
from tests.support.git_repository import repository
from tests.support.ts_editor import calls, new_session, of_kind, played, said

both_versions = pytest.mark.parametrize("version", [1, pytest.param(2, marks=pytest.mark.slow)])


def ours(folder: Path, *words: str) -> Called:
    """A command of ours, with the files that the agent of the editor has."""
    return call(*words, cwd=folder, forks=True, DRAGOMAN_HOME=str(folder / "home"))


def text_of(update: dict[str, Any]) -> str:
    content = update["content"]
    return str((content[0] if isinstance(content, list) else content)["text"])


@both_versions
def test_an_editor_forks_at_a_message_and_our_command_forks_there_too(tmp_path: Path, version: int) -> None:
    lines = played(
        version,
        tmp_path,
        turns([{"say": "first"}], [{"say": "second"}]),
        new_session(tmp_path),
        {"prompt": "one"},
        {"prompt": "two"},
    )
    (opened,) = of_kind(lines, "session/new")
    first = next(
        update["messageId"]
        for update in of_kind(lines, "update")
        if update["sessionUpdate"].startswith("agent_message") and text_of(update) == "first"
    )
    place = {"cwd": str(tmp_path), "mcpServers": []}
    replay = {} if version == 1 else {"replayFrom": {"type": "start"}}
    lines = played(
        version,
        tmp_path,
        turns([{"say": "third"}]),
        {"call": "session/fork", "params": {**place, "sessionId": opened["sessionId"], "messageId": first}},
        {"call": "session/close", "params": {"sessionId": "$session"}},
        {
            "call": "session/load" if version == 1 else "session/resume",
            "params": {**place, "sessionId": "$session"} | replay,
        },
        {"prompt": "three"},
    )
    fork = of_kind(lines, "session/fork")[0]["sessionId"]
    assert fork != opened["sessionId"]
    shown = json.loads(ours(tmp_path, "sessions", "show", fork, "--json").out)
    users = [text_of(event) for event in shown if event["sessionUpdate"] == "user_message"]
    assert users == ["one", "three"]
    assert "first" in str(of_kind(lines, "update"))
    assert "second" not in str(of_kind(lines, "update"))
    made = ours(tmp_path, "sessions", "fork", opened["sessionId"], "--at", first)
    assert made.code == 0, made.error
    again = json.loads(ours(tmp_path, "sessions", "show", made.out.strip(), "--json").out)
    assert [text_of(event) for event in again if event["sessionUpdate"] == "user_message"] == ["one"]


SKILL = """\
---
name: pdf
description: Read PDF files. Use when a form is asked about.
---

Read ${CLAUDE_SKILL_DIR}/fields.md.
"""
COMMAND = """\
---
description: Review a file
argument-hint: [file]
allowed-tools: Bash(git diff:*)
---

Review $ARGUMENTS.
"""
HELPER = "---\nname: code-reviewer\ndescription: Reviews code.\ntools: Read, Grep\n---\n\nYou review code.\n"


@both_versions
def test_files_of_claude_code_are_used_from_the_editor_and_at_the_terminal(tmp_path: Path, version: int) -> None:
    claude = tmp_path / ".claude"
    for place, words in {
        "skills/pdf/SKILL.md": SKILL,
        "commands/git/review.md": COMMAND,
        "agents/code-reviewer.md": HELPER,
    }.items():
        (claude / place).parent.mkdir(parents=True)
        (claude / place).write_text(words)
    (claude / "skills/pdf/fields.md").write_text("the fields")
    helping = {"prompt": "look", "description": "Look", "name": "code-reviewer"}
    script = turns(
        [{"call": "read_file", "input": {"path": str(claude / "skills/pdf/fields.md")}}, {"say": "Read."}],
        [{"call": "agent", "input": helping}, {"say": "Reviewed."}],
    ) | {"agents": {"code-reviewer": {"turns": [{"steps": [{"say": "All is well."}]}]}}}
    lines = played(
        version,
        tmp_path,
        script,
        new_session(tmp_path),
        {"prompt": "/pdf tax.pdf", "permission": "allow_once"},
        {"prompt": "/git:review a.py", "permission": "allow_once"},
    )
    # Version 2 has them in the answer, version 1 in an update behind it.
    menus = [*of_kind(lines, "session/new"), *of_kind(lines, "update")]
    (menu,) = [one["availableCommands"] for one in menus if "availableCommands" in one]
    named = {one["name"]: one for one in menu}
    assert named["git:review"]["description"] == "Review a file (command of the project)"
    assert named["git:review"]["input"]["hint"] == "[file]"
    assert named["pdf"]["description"].startswith("Read PDF files. Use when a form is asked about.")
    assert said(lines) == "Read.Reviewed."
    assert {status for _, status in calls(lines)} == {"completed"}
    assert "All is well." in str(of_kind(lines, "update"))
    (tmp_path / "script.json").write_text(json.dumps(turns([{"say": "Here too."}])))
    done = ours(tmp_path, "run", "--model", f"script:{tmp_path / 'script.json'}", "/pdf tax.pdf")
    assert (done.code, done.out) == (0, "Here too.\n")


@both_versions
def test_an_editor_works_in_a_worktree_and_our_command_finishes_it(tmp_path: Path, version: int) -> None:
    project = repository(tmp_path / "shop")
    lines = played(
        version,
        tmp_path,
        turns([{"call": "write_file", "input": {"path": "new", "content": "made\n"}}, {"say": "Done."}]),
        new_session(project, _meta={"dragoman/worktree": "fix"}),
        {"prompt": "go"},
        mode="full-access",
    )
    (opened,) = of_kind(lines, "session/new")
    assert (tmp_path / "shop.worktrees" / "fix" / "new").read_text() == "made\n"
    done = call(
        *("sessions", "finish", opened["sessionId"], "--merge", "--yes", "--message", "Add new"),
        cwd=project,
        forks=True,
        DRAGOMAN_HOME=str(tmp_path / "home"),
    )
    assert done.code == 0, done.error
    assert (project / "new").read_text() == "made\n"


@both_versions
def test_a_session_of_the_editor_is_handed_on_to_another_agent(tmp_path: Path, version: int) -> None:
    (tmp_path / "theirs").mkdir()
    embeds: dict[str, Any] = {"agentCapabilities": {"promptCapabilities": {"embeddedContext": True}}}
    command = rogue_agent.written(tmp_path / "theirs", rogue_agent.text("I see."), hello=embeds)
    (tmp_path / "home").mkdir()
    entry = {"command": command[0], "args": command[1:]}
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"theirs": entry}}))
    lines = played(version, tmp_path, turns([{"say": "Mended."}]), new_session(tmp_path), {"prompt": "Mend it"})
    (opened,) = of_kind(lines, "session/new")
    done = ours(tmp_path, "sessions", "continue", opened["sessionId"], "--agent", "theirs", "And the rest?")
    assert (done.code, done.out) == (0, "I see.\n")
    ((asked, _, record),) = [one["prompt"] for one in rogue_agent.heard(tmp_path / "theirs", "session/prompt")]
    assert asked["text"] == "And the rest?"
    assert "Mend it" in record["resource"]["text"]
    assert record["resource"]["text"].rstrip().endswith("Mended.")


@both_versions
def test_a_session_of_an_agent_of_theirs_is_handed_on_to_ours(tmp_path: Path, version: int) -> None:
    from tests.support.sdk_peers import TYPESCRIPT_V1, TYPESCRIPT_V2

    peer = TYPESCRIPT_V1 if version == 1 else TYPESCRIPT_V2
    command, *arguments = peer.command("agent")
    (tmp_path / "home").mkdir()
    entry = {"command": command, "args": arguments}
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"theirs": entry}}))
    assert ours(tmp_path, "run", "--agent", "theirs", "mode").code == 0
    (tmp_path / "script.json").write_text(json.dumps(turns([{"say": "Ours."}])))
    going_on = ("--model", f"script:{tmp_path / 'script.json'}")
    done = ours(tmp_path, "sessions", "continue", "theirs-", "go on", *going_on)
    assert (done.code, done.out) == (0, "Ours.\n"), done.error


@both_versions
def test_a_notice_reaches_the_editor_in_its_version(tmp_path: Path, version: int) -> None:
    script = turns([{"fail": "rate_limit", "times": 1}, {"say": "There."}])
    lines = played(version, tmp_path, script, new_session(tmp_path), {"prompt": "go"})
    words = "The model's rate limit is reached; trying again (1 of 3)"
    if version == 1:
        assert calls(lines) == [(f"Warning: {words}", "completed")]
    else:
        notices = [update for update in of_kind(lines, "update") if update["sessionUpdate"] == "notice"]
        assert [(one["severity"], one["title"]) for one in notices] == [("warning", words)]
    assert said(lines) == "There."
