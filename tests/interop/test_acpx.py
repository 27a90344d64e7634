"""acpx, an independent client, drives `dragoman acp`: one session that goes on from process to process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support import rogue_agent
from tests.support.editor import DRAGOMAN, turns
from tests.support.git_repository import repository
from tests.support.mcp_servers import RAW_SERVER
from tests.support.needs import need_acpx
from tests.support.waiting import wait_until

pytestmark = pytest.mark.interop

SCRIPT = turns(
    [{"say": "I will write it."}, {"call": "write_file", "input": {"path": "made.txt", "content": "hello\n"}}],
)
# For a script that reads the output of acpx: this says that a permission was refused.
REFUSED = 5
# The longest of all is node's own start on a busy machine.
PATIENCE_SECONDS = 60.0

# Notes its process id, then becomes the agent.
AGENT = """\
import os, sys
with open({log!r}, "a") as log:
    log.write(f"{{os.getpid()}}\\n")
os.execv(sys.executable, {command!r})
"""


class Outcome(NamedTuple):
    code: int
    out: str
    error: str

    def messages(self) -> list[dict[str, Any]]:
        """With `--format json`: every message between acpx and the agent, as it went over the wire."""
        return [json.loads(line) for line in self.out.splitlines()]


class Acpx:
    """Each call is a process of its own. One that prompts leaves another behind, which ends a second later."""

    def __init__(self, folder: Path) -> None:
        self._command = need_acpx()
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self._log = folder / "agents.log"
        self._script = folder / "script.json"
        self.plays(SCRIPT)
        self._program = folder / "agent.py"
        self.has_options()
        self._agent = f"{sys.executable} {self._program}"
        home = folder / "home"
        home.mkdir()
        self._environment = {**os.environ, "HOME": str(home), "DRAGOMAN_HOME": str(folder / "dragoman")}

    def plays(self, script: Any) -> None:
        """What the agents that are started from now on do."""
        self._script.write_text(json.dumps(script))

    def has_options(self, *options: str) -> None:
        """How the agents that are started from now on are started."""
        command = [*DRAGOMAN, "acp", "--model", f"script:{self._script}", *options]
        self._program.write_text(AGENT.format(log=str(self._log), command=command))

    def __call__(self, *arguments: str) -> Outcome:
        self.agents_are_gone()
        return self.beside(*arguments)

    def beside(self, *arguments: str) -> Outcome:
        """A call while another one is busy."""
        return self._run(self._line(*arguments))

    def started(self, *arguments: str) -> "subprocess.Popen[str]":
        """A call that goes on."""
        self.agents_are_gone()
        return subprocess.Popen(
            self._line(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def _line(self, *arguments: str) -> list[str]:
        return [*self._command, "--agent", self._agent, "--cwd", str(self.cwd), "--ttl", "1", *arguments]

    def open(self, name: str) -> str:
        """A new session; its id."""
        done = self("sessions", "new", "--name", name)
        assert done.code == 0, done
        return done.out.strip()

    def dragoman(self, *arguments: str) -> Any:
        """Our own view of the sessions."""
        done = self.ours("sessions", *arguments, "--json")
        assert (done.code, done.error) == (0, "")
        return json.loads(done.out)

    def ours(self, *arguments: str) -> Outcome:
        """A command of ours, when no agent has the session any more."""
        self.agents_are_gone()
        return self._run([*DRAGOMAN, *arguments])

    def agents(self) -> list[int]:
        """The process ids of all the agents that were started, in order."""
        return [int(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    def agents_are_gone(self) -> None:
        """So that the next process finds the session on disk, and nowhere else."""
        wait_until(lambda: not any(map(lives, self.agents())), "the end of the agents", seconds=PATIENCE_SECONDS)

    def _run(self, command: list[str]) -> Outcome:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.cwd,
            env=self._environment,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def acpx(tmp_path: Path) -> Acpx:
    return Acpx(tmp_path)


def test_a_session_goes_on_from_process_to_process(acpx: Acpx) -> None:
    session = acpx.open("t")
    for prompt in ("first prompt", "second prompt"):
        done = acpx("--approve-all", "prompt", "-s", "t", prompt)
        assert done.code == 0, done.error
        assert "I will write it." in done.out
    acpx.agents_are_gone()

    assert len(set(acpx.agents())) == 3  # one that opened it, and one for each prompt
    assert [info["sessionId"] for info in acpx.dragoman("list")] == [session]
    events = acpx.dragoman("show", session)
    assert spoken(events, "user_message") == ["first prompt", "second prompt"]
    assert spoken(events, "agent_message_chunk") == ["I will write it.", "I will write it."]
    assert [event["stopReason"] for event in events if event.get("state") == "idle"] == ["end_turn", "end_turn"]
    # It would have taken another session without a word, had it not found this one.
    assert f"sessionId: {session}" in acpx("sessions", "show", "t").out.splitlines()
    assert session in acpx("sessions", "list").out


def test_a_retry_is_printed_and_stays_out_of_the_answer(acpx: Acpx) -> None:
    acpx.plays(turns([{"fail": "rate_limit", "times": 1}, {"say": "There."}]))
    acpx.open("t")
    printed = acpx("prompt", "-s", "t", "hello").out
    warning = "[tool] Warning: The model's rate limit is reached; trying again (1 of 3) (completed)"
    assert printed.index(warning) < printed.index("There.")
    assert acpx("--format", "quiet", "prompt", "-s", "t", "hello").out == "There.\n"


def test_a_permission_is_asked_and_the_answer_counts(acpx: Acpx) -> None:
    acpx.open("t")
    in_json = ("--format", "json", "--json-strict")

    refused = acpx(*in_json, "--deny-all", "prompt", "-s", "t", "write it")
    assert refused.code == REFUSED
    assert permissions(refused) == ["reject_once"]
    assert statuses(refused)[-1] == "failed"
    assert not (acpx.cwd / "made.txt").exists()

    allowed = acpx(*in_json, "--approve-all", "prompt", "-s", "t", "write it")
    assert allowed.code == 0
    assert permissions(allowed) == ["allow_once"]
    assert statuses(allowed)[-1] == "completed"
    assert (acpx.cwd / "made.txt").read_text() == "hello\n"


def test_a_mode_that_was_set_holds_in_the_next_process(acpx: Acpx) -> None:
    acpx.open("t")
    assert acpx("set-mode", "-s", "t", "read-only").code == 0
    done = acpx("--format", "json", "--json-strict", "--approve-all", "prompt", "-s", "t", "write it")
    assert (done.code, permissions(done), statuses(done)[-1]) == (0, [], "failed")
    assert not (acpx.cwd / "made.txt").exists()


def test_a_turn_is_cancelled_from_another_process_and_the_session_goes_on(acpx: Acpx) -> None:
    session = acpx.open("t")
    acpx.plays(turns([{"say": "I wait."}, {"say": "Never said.", "delay_ms": 600_000}]))
    with acpx.started("--format", "json", "--json-strict", "prompt", "-s", "t", "take your time") as prompt:
        assert prompt.stdout is not None
        assert any("I wait." in line for line in prompt.stdout)
        assert acpx.beside("cancel", "-s", "t").code == 0
        rest = [json.loads(line) for line in prompt.stdout]
        prompt.wait(PATIENCE_SECONDS)
    assert [message["result"] for message in rest if "result" in message] == [{"stopReason": "cancelled"}]

    acpx.plays(SCRIPT)
    assert acpx("--approve-all", "prompt", "-s", "t", "write it").code == 0
    acpx.agents_are_gone()
    assert (acpx.cwd / "made.txt").read_text() == "hello\n"
    events = acpx.dragoman("show", session)
    assert spoken(events, "user_message") == ["take your time", "write it"]
    assert [event["stopReason"] for event in events if event.get("state") == "idle"] == ["cancelled", "end_turn"]
    called = [event for event in events if event["sessionUpdate"] == "tool_call_update"]
    assert [item["changes"][0]["operation"] for item in called[0]["content"]] == ["add"]
    assert called[-1]["status"] == "completed"


def test_a_prompt_and_a_resource_of_an_mcp_server_are_used_or_refused(acpx: Acpx, tmp_path: Path) -> None:
    (tmp_path / "dragoman").mkdir()
    command = [json.dumps(word) for word in (sys.executable, *RAW_SERVER, "library")]
    (tmp_path / "dragoman" / "config.toml").write_text(
        f"[mcp.docs]\ncommand = {command[0]}\nargs = [{', '.join(command[1:])}]\n"
    )
    acpx.plays(turns([{"say": "Reviewed."}]))
    acpx.open("t")
    allowed = acpx("--approve-all", "prompt", "-s", "t", "/mcp__docs__review a.py and @docs:docs://guide")
    assert (allowed.code, "Reviewed." in allowed.out) == (0, True), allowed
    assert "[tool] docs: review a.py and @docs:docs://guide (completed)" in allowed.out
    assert "[tool] docs: docs://guide (completed)" in allowed.out
    refused = acpx("--deny-all", "prompt", "-s", "t", "/mcp__docs__hello")
    assert (refused.code, "Permission denied." in refused.out) == (REFUSED, True), refused


def test_a_skill_and_a_command_of_the_project_are_typed(acpx: Acpx) -> None:
    skill, command = acpx.cwd / ".claude/skills/pdf/SKILL.md", acpx.cwd / ".claude/commands/tidy.md"
    for file in (skill, command):
        file.parent.mkdir(parents=True)
    skill.write_text("---\nname: pdf\ndescription: Read PDF files.\n---\n\nRead fields.md.\n")
    command.write_text("---\ndescription: Tidy up\n---\n\nTidy $ARGUMENTS.\n")
    acpx.plays(turns([{"say": "Done."}]))
    session = acpx.open("t")
    for words in ("/pdf tax.pdf", "/tidy a.py"):
        done = acpx("prompt", "-s", "t", words)
        assert (done.code, "Done." in done.out) == (0, True), done
    acpx.agents_are_gone()
    assert spoken(acpx.dragoman("show", session), "user_message") == ["/pdf tax.pdf", "/tidy a.py"]


def test_a_hook_denies_what_the_client_would_allow_and_holds_a_prompt_back(acpx: Acpx, tmp_path: Path) -> None:
    deny = {"type": "command", "command": "echo 'Not on Friday.' >&2; exit 2"}
    guard = {"type": "command", "command": "grep -q secret && { echo 'No secrets.' >&2; exit 2; } || true"}
    hooks = {"PreToolUse": [{"matcher": "Write|Edit", "hooks": [deny]}], "UserPromptSubmit": [{"hooks": [guard]}]}
    (tmp_path / "dragoman").mkdir()
    (tmp_path / "dragoman" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    acpx.open("t")

    denied = acpx("--format", "json", "--json-strict", "--approve-all", "prompt", "-s", "t", "write it")
    assert (permissions(denied), statuses(denied)[-1]) == ([], "failed")
    assert "A hook of the user denies this: Not on Friday." in denied.out
    assert not (acpx.cwd / "made.txt").exists()

    assert "A hook of the user has held this prompt back: No secrets." in acpx("prompt", "-s", "t", "a secret").out


def test_a_rewind_is_typed_shown_and_done_only_with_a_yes(acpx: Acpx) -> None:
    repository(acpx.cwd)
    session = acpx.open("t")
    assert acpx("--approve-all", "prompt", "-s", "t", "write it").code == 0
    refused = acpx("--deny-all", "prompt", "-s", "t", "/rewind")
    assert (refused.code, (acpx.cwd / "made.txt").read_text()) == (REFUSED, "hello\n"), refused
    assert f"delete {acpx.cwd / 'made.txt'}" in refused.out  # what would happen
    assert acpx("--approve-all", "prompt", "-s", "t", "/rewind").code == 0
    assert not (acpx.cwd / "made.txt").exists()
    acpx.agents_are_gone()
    assert spoken(acpx.dragoman("show", session), "user_message")[:1] != ["write it"]
    assert acpx("--approve-all", "prompt", "-s", "t", "/rewind undo").code == 0
    assert (acpx.cwd / "made.txt").read_text() == "hello\n"


def test_a_session_in_a_worktree_goes_on_there_and_our_command_merges_it(acpx: Acpx) -> None:
    repository(acpx.cwd)
    acpx.has_options("--worktree", "fix", "--mode", "workspace-write")
    session = acpx.open("t")
    acpx.has_options()
    done = acpx("--approve-all", "prompt", "-s", "t", "write it")  # another process, which is told of no worktree
    assert done.code == 0, done
    assert not (acpx.cwd / "made.txt").exists()
    (info,) = acpx.dragoman("list")
    assert (info["sessionId"], info["_meta"]["dragoman/worktree"]["name"]) == (session, "fix")
    done = acpx.ours("sessions", "finish", session, "--merge", "--yes")
    assert done.code == 0, done
    assert (acpx.cwd / "made.txt").read_text() == "hello\n"


def test_a_session_is_handed_on_to_another_agent(acpx: Acpx, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    command = rogue_agent.written(theirs, rogue_agent.text("I see."))
    (tmp_path / "dragoman").mkdir()
    entry = {"command": command[0], "args": command[1:]}
    (tmp_path / "dragoman" / "acp.json").write_text(json.dumps({"servers": {"theirs": entry}}))
    session = acpx.open("t")
    assert acpx("--approve-all", "prompt", "-s", "t", "write it").code == 0
    done = acpx.ours("sessions", "continue", session, "--agent", "theirs", "And the rest?")
    assert (done.code, done.out) == (0, "I see.\n"), done
    (prompt,) = [json.dumps(one["prompt"]) for one in rogue_agent.heard(theirs, "session/prompt")]
    assert all(words in prompt for words in ("And the rest?", "write it", "I will write it.", "made.txt"))


def test_a_kind_of_helper_of_the_project_is_used(acpx: Acpx) -> None:
    kind = acpx.cwd / ".claude/agents/code-reviewer.md"
    kind.parent.mkdir(parents=True)
    kind.write_text("---\nname: code-reviewer\ndescription: Reviews code.\ntools: Read, Grep\n---\n\nYou review.\n")
    helping = {"prompt": "look", "description": "Look", "name": "code-reviewer"}
    acpx.plays(
        turns([{"call": "agent", "input": helping}, {"say": "Reviewed."}])
        | {"agents": {"code-reviewer": {"turns": [{"steps": [{"say": "All is well."}]}]}}}
    )
    acpx.open("t")
    done = acpx("--approve-all", "prompt", "-s", "t", "review it")
    assert (done.code, "All is well." in done.out, "Reviewed." in done.out) == (0, True, True), done


# -- reading ---------------------------------------------------------------------------------------------------------


def spoken(events: list[dict[str, Any]], kind: str) -> list[str]:
    found = [event["content"] for event in events if event["sessionUpdate"] == kind]
    return [(content[0] if isinstance(content, list) else content)["text"] for content in found]


def permissions(outcome: Outcome) -> list[str]:
    """The options that were chosen."""
    results = [message.get("result") or {} for message in outcome.messages()]
    return [result["outcome"]["optionId"] for result in results if "outcome" in result]


def statuses(outcome: Outcome) -> list[str]:
    updates = [message.get("params", {}).get("update", {}) for message in outcome.messages()]
    return [update["status"] for update in updates if "status" in update]


def lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
