"""`dragoman bridge` as an editor starts it: any agent, with what it lacks supplied."""

import json
import os
import signal
from pathlib import Path
from typing import Any, Self

import pytest

from dragoman.cli.bridge import _chosen_agent
from dragoman.cli.main import command_line
from dragoman.client.connect import connect
from tests.support.command import call
from tests.support.editor import HELLO, Editor, Message, closing_by_force
from tests.support.fork_server.client import fork_server
from tests.support.gateway import free_port
from tests.support.gateway_process import serving, words
from tests.support.rough_command import rough
from tests.support.waiting import wait_until

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("version", [1, 2])


class BridgeEditor(Editor):
    """An editor whose settings name the bridge."""

    command = "bridge"

    def thinking(self, folder: Path, script: Any) -> list[str]:
        return []

    def open(self, **hello: Any) -> Self:
        """Say hello and open a session, of an agent that tells no commands."""
        self.result("initialize", {**HELLO[self.version], **hello})
        self.session = self.result("session/new", {"cwd": str(self.folder), "mcpServers": []})["sessionId"]
        return self


def bridged(folder: Path, *options: str, version: int = 1, **more: Any) -> BridgeEditor:
    return BridgeEditor(folder, None, *options, version=version, **more)


def updates_in(heard: list[Message]) -> list[Message]:
    """The updates among messages, and among those of a turn, which stand there as they are."""
    return [message.get("params", {}).get("update", message) for message in heard]


def said(heard: list[Message]) -> str:
    """What the agent has said in these."""
    updates = updates_in(heard)
    return "".join(one["content"]["text"] for one in updates if one.get("sessionUpdate") == "agent_message_chunk")


def load(editor: Editor, session: str) -> list[Message]:
    """Open a session with its history, by the method of the editor's version."""
    where = {"sessionId": session, "cwd": str(editor.folder), "mcpServers": []}
    if editor.version == 1:
        return editor.ask("session/load", where)
    return editor.ask("session/resume", {**where, "replayFrom": {"type": "start"}})


def texts(heard: list[Message]) -> list[str]:
    """The messages that a replay shows, whole or in pieces."""
    contents = [one["content"] for one in updates_in(heard) if "message" in one.get("sessionUpdate", "")]
    return [block["text"] for one in contents for block in (one if isinstance(one, list) else [one])]


@both
def test_a_version_1_agent_serves_an_editor_of_either_version(tmp_path: Path, version: int) -> None:
    with bridged(tmp_path, "--", *rough(), version=version).open() as editor:
        assert said(editor.prompt("hi")) == "done"


@both
@pytest.mark.requirement("L8")
def test_sessions_of_an_agent_that_forgets_are_listed_and_opened_with_what_was_said(
    tmp_path: Path, version: int
) -> None:
    agent = ["--", *rough("forgets", "repeats")]
    with bridged(tmp_path, *agent, version=version).open() as editor:
        editor.prompt("remember the blue door")
        first = editor.session
    with bridged(tmp_path, *agent, version=version).open() as editor:
        listed = editor.result("session/list", {"cwd": str(tmp_path)})["sessions"]
        assert [(one["sessionId"], one["title"]) for one in listed] == [(first, "remember the blue door")]
        *replayed, answer = load(editor, first)
        assert "result" in answer
        assert texts(replayed) == ["remember the blue door", "remember the blue doordone"]
        editor.session = first
        answer_text = said(editor.prompt("which door?"))
        # The agent is told what was said before; the editor is not shown that again.
        assert answer_text.startswith("which door?")
        assert "remember the blue door" in answer_text
        assert said(editor.prompt("and now?")) == "and now?done"
    with bridged(tmp_path, *agent, version=version).open() as editor:
        *replayed, _ = load(editor, first)
        assert [text for text in texts(replayed) if text.endswith("?")] == ["which door?", "and now?"]
        editor.result("session/delete", {"sessionId": first})
        assert editor.result("session/list", {})["sessions"] == []
        assert editor.error("session/delete", {"sessionId": first})["code"] == -32002


def test_a_session_that_its_agent_has_lost_goes_on_from_the_record_and_the_editor_is_told(tmp_path: Path) -> None:
    agent = ["--", *rough("loses", "repeats")]
    with bridged(tmp_path, *agent, version=2).open() as editor:
        editor.prompt("remember the blue door")
        first = editor.session
    with bridged(tmp_path, *agent, version=2) as editor:
        editor.result("initialize", HELLO[2])
        *shown, answer = load(editor, first)
        assert "result" in answer
        notices = [one["title"] for one in updates_in(shown) if one["sessionUpdate"] == "notice"]
        assert notices == ["The agent could not open this session: No previous sessions found"]
        editor.session = first
        assert "remember the blue door" in said(editor.prompt("which door?"))
        (unknown,) = load(editor, "session-99")
        assert unknown["error"]["message"] == "No previous sessions found"


def test_a_session_that_is_not_recorded_is_not_found(tmp_path: Path) -> None:
    with bridged(tmp_path, "--", *rough("forgets")).open() as editor:
        (answer,) = load(editor, "session-9")
        assert answer["error"]["code"] == -32002


def test_an_agent_that_loads_its_sessions_is_asked_itself(tmp_path: Path) -> None:
    with bridged(tmp_path, "--", *rough("replay")).open() as editor:
        editor.prompt("hi")
        *replayed, _ = load(editor, "session-1")
        assert texts(replayed) == ["an old story "]


def test_with_no_record_nothing_is_stored_and_nothing_is_promised(tmp_path: Path) -> None:
    with bridged(tmp_path, "--no-record", "--", *rough("forgets")) as editor:
        hello = editor.result("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        assert hello["agentCapabilities"].get("loadSession", False) is False
        assert "list" not in hello["agentCapabilities"].get("sessionCapabilities", {})


@pytest.mark.requirement("L9")
def test_what_a_rule_allows_is_not_asked_and_the_rest_is(tmp_path: Path) -> None:
    def asked(*options: str) -> list[str]:
        with bridged(tmp_path, *options, "--", *rough("label")).open() as editor:
            editor.send({"id": 9, "method": "session/prompt", "params": editor.words("go")})
            questions = []
            while (message := editor.read()).get("id") != 9 or "method" in message:
                if message.get("method") == "session/request_permission":
                    questions.append(message["params"]["toolCall"]["title"])
                    outcome = {"outcome": {"outcome": "selected", "optionId": "no"}}
                    editor.send({"id": message["id"], "result": outcome})
            return questions

    assert asked("--allow", "all") == []
    # It says that it reads, and would run a command.
    assert asked("--allow", "read") == ["Reading README"]
    assert asked() == ["Reading README"]


@pytest.mark.requirement("L9")
def test_what_a_rule_rejects_is_asked_of_no_editor(tmp_path: Path) -> None:
    command = rough("label")
    entry = {"command": command[0], "args": command[1:], "permissions": {"reject": [{"command": "rm *"}]}}
    (tmp_path / "home" / "config").mkdir(parents=True)
    for folder in (tmp_path / "home", tmp_path / "home" / "config"):
        (folder / "acp.json").write_text(json.dumps({"servers": {"mine": entry}}))
    with bridged(tmp_path, "--agent", "mine").open() as editor:
        answer = said(editor.prompt("go"))
    assert '"optionId": "no"' in answer


async def test_an_agent_at_an_address_serves_an_editor_that_only_starts_programs(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    command = [*fork_server().dragoman(), "bridge", "--south", "1", f"ws://127.0.0.1:{port}"]
    async with serving(home, port, {"turns": [{"steps": [{"say": "hello"}]}]}) as server:
        environment = {"DRAGOMAN_TOKEN": server.token, "DRAGOMAN_HOME": str(tmp_path / "editor")}
        async with connect(command, env=environment, protocol=2) as client:
            conversation = await client.new_session(tmp_path)
            assert words([event async for event in conversation.prompt("go")]) == "hello"


def test_a_second_prompt_waits_and_words_can_be_sent_to_a_running_turn(tmp_path: Path) -> None:
    with bridged(tmp_path, "--", *rough("slow")).open() as editor:
        for number in (7, 8):
            editor.send({"id": number, "method": "session/prompt", "params": editor.words(str(number))})
        editor.send({"method": "session/cancel", "params": {"sessionId": editor.session}})
        ends = {message["id"]: message["result"]["stopReason"] for message in (editor.read(), editor.read())}
        assert ends == {7: "cancelled", 8: "cancelled"}


def test_the_side_of_the_editor_and_of_the_agent_can_be_pinned(tmp_path: Path) -> None:
    with bridged(tmp_path, "--north", "1", "--south", "1", "--", *rough(), version=2) as editor:
        hello = editor.result(
            "initialize", {"protocolVersion": 2, "capabilities": {}, "info": {"name": "e", "version": "1"}}
        )
        assert hello["protocolVersion"] == 1


def test_a_trace_has_both_sides_as_two_connections(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    with bridged(tmp_path, "--trace", str(file), "--", *rough(), version=2).open() as editor:
        editor.prompt("hi")
    frames = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    hellos = {one["connection"]: json.loads(one["frame"])["params"] for one in frames if '"initialize"' in one["frame"]}
    assert hellos[1]["protocolVersion"] == 2
    assert {one["connection"] for one in frames} == {1, 2}


def test_an_agent_that_dies_ends_the_bridge_with_what_it_said(tmp_path: Path) -> None:
    with bridged(tmp_path, "--", *rough("dies")).open() as editor:
        editor.send({"id": 9, "method": "session/prompt", "params": editor.words("go")})
        while (message := editor.read()).get("id") != 9:
            pass
        assert message["error"]["code"] == -32603
        code, _, errors = editor.leave()
    assert code == 1
    assert b"I cannot go on" in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.requirement("L10")
def test_whatever_ends_the_bridge_ends_the_agent_and_what_it_has_started(
    tmp_path: Path, number: signal.Signals
) -> None:
    with closing_by_force(bridged(tmp_path, "--", *rough("child", "deaf"), started=True)) as editor:
        editor.result("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        child = int(editor.stderr.readline().split()[1])
        os.kill(editor.process.pid, number)
        editor.process.wait(30)
        wait_until(lambda: not Path(f"/proc/{child}").exists(), "what the agent has started has ended")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((), "which agent? One of"),
        (("--",), "which command?"),
        (("--agent", "gemini", "--", "x"), "which agent? One of"),
        (("--north", "3", "--", "x"), "--north 3: there are 1, 2, "),
        (("--south", "nothing", "--", "x"), "--south nothing: there are 1, 2, "),
        (("--agent", "no-such-agent"), "there is no agent 'no-such-agent'"),
        (("--token-file", "f", "--", "x"), "go with an address"),
        (("https://user:pw@example.org",), "no user or password"),
    ],
)
def test_what_cannot_be_meant_is_said_and_ends_with_2(given: tuple[str, ...], sentence: str) -> None:
    ended = call("bridge", *given)
    assert ended.code == 2
    assert sentence in ended.error


@pytest.mark.parametrize(
    ("given", "name", "dialect"),
    [
        (["--", "iac-code", "acp"], "iac-code", "iac-code"),
        (["--", "python3", "-m", "agentao"], "agentao", "agentao"),
        (["--south", "2", "--", "iac-code", "acp"], "iac-code", ""),
        (["--", "npx", "-y", "@google/gemini-cli", "--acp"], "gemini-cli", ""),
        (["--", "NAME=1", "env", "node", "/opt/my-agent.js"], "my-agent.js", ""),
    ],
)
def test_a_dialect_that_is_named_after_the_program_is_found_out(given: list[str], name: str, dialect: str) -> None:
    agent = _chosen_agent(command_line("bridge").parse_args(["bridge", *given]))
    assert (agent.name, agent.dialect) == (name, dialect)


def test_an_agent_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    ended = call("bridge", "--", str(tmp_path / "no-such-program"))
    assert ended.code == 1
    assert "no-such-program" in ended.error
