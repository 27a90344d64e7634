"""`dragoman acp --dialect NAME`: our coding agent, spoken to as a documented one."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.permissions import JudgedCall, decide_call
from dragoman.coder.resolver import Resolver, provider_of
from dragoman.errors import RequestFailed
from dragoman.permissions.facts import Action
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.options import Choice
from tests.support.command import call
from tests.support.editor import DRAGOMAN, Editor, turns

HELLO = {"protocolVersion": 1, "clientCapabilities": {}}
WRITE = {"call": "write_file", "input": {"path": "new.txt", "content": "new"}}
Message = dict[str, Any]


def new(editor: Editor) -> Message:
    editor.result("initialize", HELLO)
    opened: Message = editor.result("session/new", {"cwd": str(editor.folder), "mcpServers": []})
    editor.session = opened["sessionId"]
    return opened


def turn_with(editor: Editor, answer: Any) -> tuple[list[Message], Message, Message]:
    """A prompt whose one question gets this answer: the updates, the question, the end."""
    editor.send({"id": "p", "method": "session/prompt", "params": editor.words("go")})
    updates: list[Message] = []
    question: Message = {}
    while True:
        message = editor.read()
        if message.get("method") == "session/update":
            updates.append(message["params"]["update"])
        elif "method" in message:
            question = message["params"]
            editor.send({"id": message["id"], "result": answer})
        else:
            return updates, question, message


def test_an_unknown_dialect_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    done = call("acp", "--dialect", "klingon", DRAGOMAN_HOME=str(tmp_path))
    assert (done.code, done.out) == (2, "")
    for name in ("iac-code", "elephant", "agentao", "simse"):
        assert name in done.error


@pytest.mark.requirement("8.3.1", "8.3.11")
@pytest.mark.parametrize("headers", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_elephant_is_answered_in_its_own_framing_and_asks(tmp_path: Path, headers: bool) -> None:
    script = turns([WRITE, {"think": "Hm."}, {"say": "Done."}])
    with Editor(tmp_path, script, "--dialect", "elephant", headers=headers) as editor:
        assert new(editor)["modes"]["currentModeId"] == "full"
        no = {"outcome": {"outcome": "selected", "optionId": "reject_once"}}
        updates, question, end = turn_with(editor, no)
        assert [option["optionId"] for option in question["options"]] == ["allow_once", "reject_once"]
        assert end["result"] == {"stopReason": "end_turn"}
        assert not (tmp_path / "new.txt").exists()
        kinds = [update["sessionUpdate"] for update in updates]
        assert kinds[:2] == ["user_message_chunk", "tool_call"]
        assert "agent_thought_chunk" not in kinds
        yes = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        turn_with(editor, yes)
        assert (tmp_path / "new.txt").read_text() == "new"


def test_elephant_begins_in_one_of_its_modes_or_not_at_all(tmp_path: Path) -> None:
    with Editor(tmp_path, None, "--dialect", "elephant", "--mode", "read-only") as editor:
        assert new(editor)["modes"]["currentModeId"] == "read-only"
    done = call("acp", "--dialect", "elephant", "--mode", "full-access", DRAGOMAN_HOME=str(tmp_path))
    assert (done.code, "full, read-only, safe, sandbox" in done.error) == (2, True)


@pytest.mark.requirement("8.1.19")
def test_iac_code_takes_flat_answers(tmp_path: Path) -> None:
    answers = [
        ({"outcome": "denied"}, False),
        ({"outcome": "allowed", "option_id": "reject_once"}, False),
        ({"outcome": "yes"}, False),
        ({"outcome": "allowed", "option_id": "allow_once"}, True),
    ]
    with Editor(tmp_path, turns([WRITE, {"say": "Done."}]), "--dialect", "iac-code") as editor:
        assert set(new(editor)) == {"sessionId", "modes", "models"}
        for answer, written in answers:
            updates, question, end = turn_with(editor, answer)
            assert question["toolCall"]["input"] == WRITE["input"]
            assert end["result"]["stopReason"] == "end_turn"
            assert (tmp_path / "new.txt").exists() == written, answer
            calls = [update for update in updates if update["type"] in ("tool_call", "tool_call_update")]
            assert [call["status"] for call in calls][:2] == ["in_progress", "in_progress"]
            assert calls[1]["raw_input"] == WRITE["input"]
            assert calls[-1]["status"] == ("completed" if written else "failed")


def test_agentao_is_started_as_its_users_start_it(tmp_path: Path) -> None:
    home = {**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home")}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    early = {"jsonrpc": "2.0", "id": 0, "method": "session/list", "params": {}}
    said = "".join(json.dumps(message) + "\n" for message in (early, hello))
    run = subprocess.run(
        [*DRAGOMAN, "--acp", "--resume"], input=said, capture_output=True, text=True, check=False, env=home
    )
    refused, greeted = map(json.loads, run.stdout.splitlines())
    assert refused["error"]["code"] == -32002
    assert "_agentao.cn/extensions" in greeted["result"]["_meta"]
    assert greeted["result"]["agentInfo"]["name"] == "dragoman"


@pytest.mark.requirement("8.4.7")
def test_agentao_resumes_the_newest_session_of_its_folder(tmp_path: Path) -> None:
    with Editor(tmp_path, turns([{"say": "One."}]), "--dialect", "agentao") as editor:
        new(editor)
        editor.prompt()
        session = editor.session
    with Editor(tmp_path, turns([{"say": "Two."}]), "--dialect", "agentao", "--resume") as editor:
        assert new(editor)["sessionId"] == session
        assert [editor.read()["params"]["update"]["sessionUpdate"] for _ in range(2)] == [
            "user_message_chunk",
            "agent_message_chunk",
        ]


@pytest.mark.requirement("8.4.21")
def test_agentao_asks_the_user_by_its_own_method(tmp_path: Path) -> None:
    script = turns([{"call": "ask_user", "input": {"question": "Which?"}}, {"say": "Done."}])
    with Editor(tmp_path, script, "--dialect", "agentao") as editor:
        new(editor)
        updates, question, _ = turn_with(editor, {"answer": "that one"})
        assert (question["question"], question["sessionId"]) == ("Which?", editor.session)
        assert updates[-2]["status"] == "completed"
        for answer in (
            {"answer": "(user unavailable)"},
            {"answer": "(user unavailable)", "outcome": "cancelled", "text": "(user unavailable)"},
            {"outcome": "unavailable"},
        ):
            updates, _, end = turn_with(editor, answer)
            shown = [update["content"] for update in updates if update.get("toolCallId") and update.get("content")]
            assert shown[-1] == [{"type": "content", "content": {"type": "text", "text": "(user unavailable)"}}]
            assert end["result"] == {"stopReason": "end_turn"}


@pytest.mark.requirement("8.4.16")
def test_agentao_knows_the_provider_of_its_environment(tmp_path: Path) -> None:
    env = {"LLM_PROVIDER": "Acme", "ACME_API_KEY": "k", "ACME_BASE_URL": "http://127.0.0.1:9/v1"}
    with Editor(tmp_path, None, "--dialect", "agentao", env=env) as editor:
        new(editor)

        def choose(value: str) -> Message:
            params = {"sessionId": editor.session, "configId": "model", "value": value}
            return editor.ask("session/set_config_option", params)[-1]

        (option,) = choose("ACME/big/Model")["result"]["configOptions"]
        assert option["currentValue"] == "acme/big/Model"
        (option,) = choose("small")["result"]["configOptions"]
        assert option["currentValue"] == "acme/small"
        error = choose("Other/x")["error"]
        assert (error["code"], error["message"]) == (-32600, "cannot resolve provider 'other'")


@pytest.mark.requirement("8.2.1")
def test_the_june_draft_is_seen_by_a_process_too(tmp_path: Path) -> None:
    with Editor(tmp_path, turns([{"say": "Hi."}])) as editor:
        hello = editor.result("initialize", {"protocolVersion": 2})
        assert (hello["protocolVersion"], hello["agentInfo"]["name"]) == (2, "dragoman")
        assert "load" in hello["capabilities"]["session"]
        editor.session = editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})["sessionId"]
        assert editor.prompt()[-1]["result"]["stopReason"] == "end_turn"


# -- what stands behind them -----------------------------------------------------------------------------------------


class Stubborn:
    """A supply whose every model fails in a way that has a key in it."""

    def current(self) -> str:
        return "acme/now"

    def choices(self) -> list[Choice]:
        return []

    def make(self, name: str) -> Any:
        raise ValueError("sk-secret")


def test_a_resolver_that_fails_tells_no_more_than_its_provider_and_the_kind() -> None:
    told: list[str] = []
    resolver = Resolver(Stubborn(), "acme", told.append)  # type: ignore[arg-type]
    with pytest.raises(RequestFailed) as caught:
        resolver.make("acme/other")
    assert (caught.value.code, caught.value.message) == (-32600, "cannot resolve provider 'acme'")
    assert told == ["dragoman: cannot resolve provider 'acme': ValueError\n"]


def test_the_provider_of_the_environment() -> None:
    assert provider_of({}) is None
    found = provider_of({"LLM_PROVIDER": " My-Host ", "MY_HOST_BASE_URL": "http://h", "MY_HOST_MODEL": "m"})
    assert found == ("my-host", {"api_key_env": "MY_HOST_API_KEY", "base_url": "http://h"}, "m")


@pytest.mark.parametrize(
    ("mode", "tool", "act", "verdict"),
    [
        ("ask", "web_fetch", Action("fetch", "h"), "allow"),
        ("workspace-write", "web_fetch", Action("fetch", "h"), "allow"),
        ("read-only", "web_fetch", Action("fetch", "h"), "deny"),
        ("safe", "web_fetch", Action("fetch", "h"), "deny"),
        ("ask", "web_fetch", Action("fetch", "h", guarded=True), "ask"),
        ("ask", "web_fetch", Action("fetch", "h", blocked_reason="no"), "deny"),
        ("ask", "bash", Action("fetch", "h"), "ask"),
        ("ask", "web_fetch", Action("edit", "h"), "ask"),
    ],
)
def test_a_page_is_fetched_unasked_only_where_it_would_be_asked_about(
    mode: str, tool: str, act: Action, verdict: str
) -> None:
    call = JudgedCall("1", tool, {}, [act])
    assert decide_call(call, mode, [], fetches=True).verdict == verdict
    if verdict == "allow":
        assert decide_call(call, mode, []).verdict == "ask"
        assert (
            decide_call(call, mode, [PermissionRule("reject", tool=tool, subject="h")], fetches=True).verdict == "deny"
        )
