"""Clients on the official SDKs drive our agents: what their handlers were given, from the first line to the last."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.modes import MODES
from tests.support.fork_server.client import fork_server
from tests.support.ids import plain_ids
from tests.support.needs import ROOT
from tests.support.sdk_peers import PEERS, PYTHON_V2, Clients, Line, Peer

EXAMPLE = ROOT / "examples" / "agent.py"

every_peer = pytest.mark.parametrize("peer", PEERS, ids=str)


def told(lines: list[Line]) -> list[Line]:
    """What a peer's client saw, and a third item where a line came more than once."""
    lines = plain_ids(lines)
    runs = [(line, len(list(same))) for line, same in groupby(lines)]
    return [line if count == 1 else [*line, count] for line, count in runs]


def opened(peer: Peer, name: str, **more: Any) -> list[Line]:
    hello = {"protocolVersion": peer.version, "name": name}
    return [["initialize", hello], ["session", {"sessionId": "sess1", **more}]]


def update(name: str, **fields: Any) -> Line:
    return ["update", {"sessionUpdate": name, **fields}]


def chunk(name: str, message: str, text: str) -> Line:
    return update(name, messageId=message, content={"type": "text", "text": text})


def state(name: str, **fields: Any) -> Line:
    return update("state_update", state=name, **fields)


# -- the example agent ---------------------------------------------------------------------------------------------

ASKED = ["allow_once", "allow_always", "reject_once", "reject_always"]
WELL = {"type": "content", "content": {"type": "text", "text": "All is well."}}


def greeting_v1(number: int, *, message: int, prompt: str, answer: str) -> list[Line]:
    call = {"toolCallId": f"call{number}", "title": "Look around", "kind": "read", "status": "in_progress"}
    ended = {"allow_once": "completed", "reject_once": "completed", "cancel": "failed"}[answer]
    return [
        chunk("agent_thought_chunk", f"msg{message}", "A prompt has arrived."),
        update("tool_call", **call),
        ["permission", {"toolCall": {**call, "title": "May I look around?"}, "options": ASKED}],
        *([update("tool_call_update", toolCallId=f"call{number}", content=[WELL])] if answer == "allow_once" else []),
        update("tool_call_update", toolCallId=f"call{number}", status=ended),
        *([] if answer == "cancel" else [chunk("agent_message_chunk", f"msg{message + 1}", f"You said: {prompt}")]),
        ["end", {"stopReason": "cancelled" if answer == "cancel" else "end_turn"}],
    ]


def greeting_v2(number: int, *, message: int, prompt: str, answer: str) -> list[Line]:
    call = {"toolCallId": f"call{number}", "title": "Look around", "kind": "read", "status": "in_progress"}
    asked = {"title": "May I look around?", "subject": {"type": "tool_call", "toolCall": call}, "options": ASKED}
    ended = {"allow_once": "completed", "reject_once": "completed", "cancel": "cancelled"}[answer]
    said = chunk("agent_message_chunk", f"msg{message + 2}", f"You said: {prompt}")
    return [
        update("user_message", messageId=f"msg{message}", content=[{"type": "text", "text": prompt}]),
        state("running"),
        chunk("agent_thought_chunk", f"msg{message + 1}", "A prompt has arrived."),
        update("tool_call_update", **call),
        state("requires_action"),
        ["permission", asked],
        state("running"),
        *([update("tool_call_content_chunk", toolCallId=f"call{number}", content=WELL)] * (answer == "allow_once")),
        update("tool_call_update", toolCallId=f"call{number}", status=ended),
        *([said] * (answer != "cancel")),
        state("idle", stopReason="cancelled" if answer == "cancel" else "end_turn"),
        ["end", {"messageId": f"msg{message}"}],
    ]


@every_peer
def test_the_example_agent_asks_hears_the_answer_and_can_be_cancelled(
    clients: Clients, peer: Peer, tmp_path: Path
) -> None:
    plan = [
        {"prompt": "yes", "permission": "allow_once"},
        {"prompt": "no", "permission": "reject_once"},
        {"prompt": "stop", "permission": "cancel"},
        {"prompt": "again", "permission": "allow_once"},
        {"call": "_unknown"},
    ]
    greeting, messages = (greeting_v1, (1, 3, 5, 6)) if peer.version == 1 else (greeting_v2, (1, 4, 7, 9))
    agent = fork_server().command(EXAMPLE.read_text())
    assert told(clients.watched(peer, agent, tmp_path, tmp_path / "home", *plan)) == [
        *opened(peer, "greeter"),
        *greeting(1, message=messages[0], prompt="yes", answer="allow_once"),
        *greeting(2, message=messages[1], prompt="no", answer="reject_once"),
        *greeting(3, message=messages[2], prompt="stop", answer="cancel"),
        *greeting(4, message=messages[3], prompt="again", answer="allow_once"),
        ["error", {"code": -32601, "message": "Method not found", "data": None}],
        ["exit", 0],
    ]


# -- dragoman acp --------------------------------------------------------------------------------------------------

SCRIPT = {
    "turns": [
        {"steps": [{"think": "Hm."}, {"say": "tick ", "repeat": 1000}, {"usage": {"input": 3, "output": 4}}]},
        {"steps": [{"say": "wait"}, {"say": "never", "delay_ms": 60_000}]},
        {"steps": [{"fail": "rate_limit", "times": 1}, {"say": "After."}, {"stop": "max_tokens"}]},
        {"steps": [{"say": "Oh."}, {"fail": "auth"}]},
    ]
}
PLAN = ({"prompt": "a"}, {"prompt": "b", "cancel_at": "wait"}, {"prompt": "c"}, {"prompt": "d"}, {"call": "_unknown"})
USAGE = {"totalTokens": 7, "inputTokens": 3, "outputTokens": 4}
LOGIN = {"code": -32000, "message": "The model wants a login", "data": {"reason": "auth"}}
UNKNOWN = ["error", {"code": -32601, "message": "Method not found", "data": None}]


def opening(line: Line, version: int) -> Line:
    """The answer to a new session, as far as it is about modes: an option, and in v1 what came before options too."""
    kind, session = line
    name = "configId" if version == 2 else "id"
    (mode,) = [option for option in session["configOptions"] if option[name] == "mode"]
    values = [choice["value"] for choice in mode["options"]]
    if version == 1:
        assert [known["id"] for known in session["modes"]["availableModes"]] == values
        assert session["modes"]["currentModeId"] == mode["currentValue"]
    return [kind, {"sessionId": session["sessionId"], "mode": mode["currentValue"], "modes": values}]


STORY_V1 = [
    update("session_info_update", title="a"),
    chunk("agent_thought_chunk", "msg1", "Hm."),
    [*chunk("agent_message_chunk", "msg2", "tick "), 1000],
    ["end", {"stopReason": "end_turn", "usage": USAGE}],
    chunk("agent_message_chunk", "msg3", "wait"),
    ["end", {"stopReason": "cancelled"}],
    update(
        "tool_call",
        toolCallId="notice-msg4-1",
        kind="other",
        status="completed",
        title="Warning: The model's rate limit is reached; trying again (1 of 3)",
    ),
    chunk("agent_message_chunk", "msg5", "After."),
    ["end", {"stopReason": "max_tokens"}],
    chunk("agent_message_chunk", "msg6", "Oh."),
    ["error", LOGIN],
    UNKNOWN,
    ["exit", 0],
]


def story_v2(last: Line) -> list[Line]:
    def begun(message: str, prompt: str) -> list[Line]:
        heard = update("user_message", messageId=message, content=[{"type": "text", "text": prompt}])
        named = [update("session_info_update", title=prompt)] if message == "msg1" else []
        return [heard, *named, state("running")]

    return [
        *begun("msg1", "a"),
        chunk("agent_thought_chunk", "msg2", "Hm."),
        [*chunk("agent_message_chunk", "msg3", "tick "), 1000],
        state("idle", stopReason="end_turn", usage=USAGE),
        ["end", {"messageId": "msg1"}],
        *begun("msg4", "b"),
        chunk("agent_message_chunk", "msg5", "wait"),
        state("idle", stopReason="cancelled"),
        ["end", {"messageId": "msg4"}],
        *begun("msg6", "c"),
        update("notice", severity="warning", title="The model's rate limit is reached; trying again (1 of 3)"),
        chunk("agent_message_chunk", "msg7", "After."),
        state("idle", stopReason="max_tokens"),
        ["end", {"messageId": "msg6"}],
        *begun("msg8", "d"),
        chunk("agent_message_chunk", "msg9", "Oh."),
        last,
        ["end", {"messageId": "msg8"}],
        UNKNOWN,
        ["exit", 0],
    ]


@every_peer
def test_dragoman_acp_streams_is_cancelled_retries_and_fails_in_order(
    clients: Clients, peer: Peer, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    # The draft of the Python SDK for v2 knows no `error` beside a stop reason, and drops it.
    error = {} if peer == PYTHON_V2 else {"error": LOGIN}
    story = STORY_V1 if peer.version == 1 else story_v2(state("idle", stopReason="error", **error))
    agent = [*fork_server().dragoman(), "acp", "--model", f"script:{script}"]
    hello, session, *heard = told(clients.watched(peer, agent, tmp_path, tmp_path / "home", *PLAN))
    if peer.version == 1:  # in v2 the answer has them
        assert heard.pop(0)[1]["sessionUpdate"] == "available_commands_update"
    expected = [*opened(peer, "dragoman", mode="ask", modes=list(MODES)), *story]
    assert [hello, opening(session, peer.version), *heard] == expected


# -- hooks ---------------------------------------------------------------------------------------------------------

DENY = {"type": "command", "command": "echo 'Not on Friday.' >&2; exit 2"}
GUARD = {"type": "command", "command": "grep -q secret && { echo 'No secrets.' >&2; exit 2; } || true"}


@every_peer
def test_a_client_sees_what_a_hook_denies_and_which_prompt_it_holds_back(
    clients: Clients, peer: Peer, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": [{"steps": [{"call": "bash", "input": {"command": "touch ran"}}]}]}))
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [DENY]}], "UserPromptSubmit": [{"hooks": [GUARD]}]}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    agent = [*fork_server().dragoman(), "acp", "--model", f"script:{script}", "--mode", "full-access"]
    plan = {"prompt": "a secret"}, {"prompt": "go"}
    lines = clients.watched(peer, agent, tmp_path, tmp_path / "home", *plan)
    assert (tmp_path / "ran").exists() is False
    assert not [line for line in lines if line[0] == "permission"]
    updates = json.dumps([line[1] for line in lines if line[0] == "update"])
    assert "A hook of the user has held this prompt back: No secrets." in updates
    assert "A hook of the user denies this: Not on Friday." in updates
    ends = [line[1] for line in lines if line[0] == "end" and "stopReason" in line[1]]
    ends += [line[1] for line in lines if line[0] == "update" and line[1].get("state") == "idle"]
    assert [end["stopReason"] for end in ends] == ["refusal", "end_turn"]
