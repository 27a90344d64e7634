"""`dragoman acp` as a process: raw messages in, raw messages out, in both versions and both framings."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import HELLO, Editor, Message, turns
from tests.support.ids import plain_ids
from tests.support.versions import both_versions, slow


def chunk(name: str, message: str, text: str) -> Message:
    return {"sessionUpdate": name, "messageId": message, "content": {"type": "text", "text": text}}


def begun(version: int) -> list[Message]:
    """A first turn names its session; v2 tells the prompt before that, and the state after it."""
    heard = {"sessionUpdate": "user_message", "messageId": "msg1", "content": [{"type": "text", "text": "hi"}]}
    named = {"sessionUpdate": "session_info_update", "title": "hi"}
    return [named] if version == 1 else [heard, named, {"sessionUpdate": "state_update", "state": "running"}]


def ended(version: int, reason: str, **more: Any) -> Message:
    if version == 2:
        return {"sessionUpdate": "state_update", "state": "idle", "stopReason": reason, **more}
    return {"error": more["error"]} if reason == "error" else {"result": {"stopReason": reason, **more}}


@pytest.mark.parametrize(
    ("version", "headers"),
    [(1, False), pytest.param(1, True, marks=slow), pytest.param(2, False, marks=slow), (2, True)],
    ids=["v1-lines", "v1-content-length", "v2-lines", "v2-content-length"],
)
def test_a_turn_is_played_as_it_is_written(version: int, headers: bool, tmp_path: Path) -> None:
    steps = [
        {"think": "Hm. "},
        {"think": "Well."},
        {"say": "Hello. "},
        {"say": "tick ", "repeat": 3, "delay_ms": 1},
        {"usage": {"input": 3, "output": 4}},
    ]
    with Editor(tmp_path, turns(steps), version=version, headers=headers) as editor:
        heard = plain_ids(editor.open().prompt())
    first = version  # in v2 the prompt has the first id
    assert heard == [
        *begun(version),
        chunk("agent_thought_chunk", f"msg{first}", "Hm. "),
        chunk("agent_thought_chunk", f"msg{first}", "Well."),
        chunk("agent_message_chunk", f"msg{first + 1}", "Hello. "),
        *[chunk("agent_message_chunk", f"msg{first + 1}", "tick ")] * 3,
        ended(version, "end_turn", usage={"totalTokens": 7, "inputTokens": 3, "outputTokens": 4}),
    ]


# -- every end of a turn -------------------------------------------------------------------------------------------

FAILURES = {
    "auth": {"code": -32000, "message": "The model wants a login", "data": {"reason": "auth"}},
    "rate_limit": {"code": -32603, "message": "The model's rate limit is reached", "data": {"reason": "rate_limit"}},
    "network": {"code": -32603, "message": "The model cannot be reached", "data": {"reason": "network"}},
    "server": {"code": -32603, "message": "The model's server failed", "data": {"reason": "server"}},
    "garbage": {"code": -32603, "message": "The model's answer cannot be read", "data": {"reason": "garbage"}},
}


STOPS = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
ENDED_IN_AN_ERROR = {"code": -32603, "message": "The model ended in an error", "data": {"reason": "server"}}


@both_versions
def test_each_prompt_plays_the_next_turn_to_its_end_and_the_last_one_again(version: int, tmp_path: Path) -> None:
    plan = turns(
        *[[{"stop": reason}] for reason in STOPS],
        *[[{"say": "a"}, {"fail": kind}] for kind in FAILURES],
        [{"say": "a"}, {"stop": "error"}],
        [{"say": "wait"}, {"say": "never", "delay_ms": 60_000}],
        [{"say": "last"}],
    )
    with Editor(tmp_path, plan, version=version) as editor:
        editor.open()
        assert [editor.prompt()[-1] for _ in STOPS] == [ended(version, reason) for reason in STOPS]
        for error in (*FAILURES.values(), ENDED_IN_AN_ERROR):  # after all that was said before
            *heard, end = editor.prompt()
            words = [one["content"]["text"] for one in heard if one["sessionUpdate"] == "agent_message_chunk"]
            assert (words, end) == (["a"], ended(version, "error", error=error))
        assert editor.begin()["content"]["text"] == "wait"
        editor.send({"method": "session/cancel", "params": {"sessionId": editor.session}})  # which ends it at once
        end = editor.read()
        assert end.get("result", end.get("params", {}).get("update"))["stopReason"] == "cancelled"
        for _ in range(2):
            *_, said, end = editor.prompt()
            assert (said["content"]["text"], end) == ("last", ended(version, "end_turn"))


RETRY = [{"fail": "rate_limit", "times": 2}, {"say": "There."}]
NOTICES = [
    {
        "sessionUpdate": "notice",
        "severity": "warning",
        "title": f"The model's rate limit is reached; trying again ({attempt} of 3)",
    }
    for attempt in (1, 2)
]


SHOWN = [
    {"sessionUpdate": "tool_call", "kind": "other", "status": "completed", "title": f"Warning: {notice['title']}"}
    for notice in NOTICES
]


@pytest.mark.parametrize(
    ("version", "hello", "notices"),
    [
        (2, {}, NOTICES),
        (1, {}, SHOWN),
        (1, {"clientCapabilities": {"session": {"notices": {}}}}, NOTICES),
    ],
    ids=["v2", "v1", "v1 with the capability"],
)
def test_retries_are_told_in_the_way_that_the_client_can_show(
    version: int, hello: Message, notices: list[Message], tmp_path: Path
) -> None:
    with Editor(tmp_path, turns(RETRY), version=version) as editor:
        heard = editor.open(**hello).prompt()
    told = [update for update in heard if update.get("sessionUpdate") in ("notice", "tool_call")]
    for update in told:
        update.pop("toolCallId", None)
    assert told == notices
    assert (heard[-2]["content"]["text"], heard[-1]) == ("There.", ended(version, "end_turn"))


def test_what_version_1_is_shown_of_a_retry_is_in_no_replay_and_in_no_message(tmp_path: Path) -> None:
    with Editor(tmp_path, turns([{"say": "a"}, *RETRY])) as editor:
        heard = editor.open().prompt()
        kinds = [update["sessionUpdate"] for update in heard[:-1]]
        assert kinds == ["session_info_update", "agent_message_chunk", "tool_call", "tool_call", "agent_message_chunk"]
        editor.result("session/close", {"sessionId": editor.session})
        loading = {"sessionId": editor.session, "cwd": str(editor.folder), "mcpServers": []}
        *replayed, _ = editor.ask("session/load", loading)
    updates = [message["params"]["update"] for message in replayed]
    said = [one["content"]["text"] for one in updates if one["sessionUpdate"] == "agent_message_chunk"]
    assert said == ["a", "There."]
    assert "trying again" not in str(updates)


def test_an_editor_of_version_1_is_told_of_mcp_servers_that_cannot_be_used(tmp_path: Path) -> None:
    gone = {"name": "gone", "command": "/no/such/program", "args": [], "env": []}
    with Editor(tmp_path, turns([{"say": "There."}])) as editor:
        editor.result("initialize", HELLO[1])
        opening = {"cwd": str(tmp_path), "mcpServers": [gone, {"type": "pigeon", "name": "bird"}]}
        editor.session = editor.result("session/new", opening)["sessionId"]
        titles = [update["title"] for update in editor.prompt() if update.get("sessionUpdate") == "tool_call"]
    assert sorted(titles) == [
        "Warning: MCP server bird: is of a type that is not supported here",
        "Warning: MCP server gone: could not be started: Cannot start /no/such/program: there is no such program.",
    ]


# -- negotiation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pinned", "asked", "spoken"),
    [
        pytest.param((), 1, 1, marks=slow),
        pytest.param((), 2, 2, marks=slow),
        ((), 65535, 2),
        pytest.param(("1",), 1, 1, marks=slow),
        (("1",), 2, 1),
        pytest.param(("2",), 2, 2, marks=slow),
        (("2",), 65535, 2),
    ],
)
def test_the_highest_common_version_is_spoken(pinned: tuple[str], asked: int, spoken: int, tmp_path: Path) -> None:
    options = [f"--protocol={version}" for version in pinned]
    with Editor(tmp_path, None, *options) as editor:
        assert (
            editor.result("initialize", {**HELLO[2], **HELLO[1], "protocolVersion": asked})["protocolVersion"] == spoken
        )


@pytest.mark.parametrize(
    ("pinned", "asked", "spoken"), [("1", 0, [1]), ("2", 1, [2]), pytest.param("2", 0, [2], marks=slow)]
)
def test_an_unsupported_version_is_refused_and_another_may_be_asked_for(
    pinned: str, asked: int, spoken: list[int], tmp_path: Path
) -> None:
    with Editor(tmp_path, None, "--protocol", pinned, version=spoken[0]) as editor:
        assert editor.error("initialize", {**HELLO[1], "protocolVersion": asked}) == {
            "code": -32022,
            "message": "Unsupported protocol version",
            "data": {"requested": asked, "supported": spoken},
        }
        assert editor.open().prompt()[-1] == ended(spoken[0], "end_turn")


@both_versions
def test_bad_input_gets_a_code_and_the_agent_lives(version: int, tmp_path: Path) -> None:
    with Editor(tmp_path, version=version) as editor:
        assert editor.error("session/new", {"cwd": "/"})["code"] == -32600  # before initialize
        editor.open()
        bad = {b"hello\n": -32700, b"[]\n": -32600, b"42\n": -32600, b'{"jsonrpc":"2.0","method":1,"id":7}\n': -32600}
        for line, code in bad.items():
            editor.write(line)
            assert editor.read()["error"]["code"] == code
        assert editor.error("no/such", {})["code"] == -32601
        assert editor.error("session/prompt", {"sessionId": "nobody", "prompt": [{"type": "text", "text": "x"}]}) == {
            "code": -32002,
            "message": "Session not found",
            "data": {"sessionId": "nobody"},
        }
        assert editor.error("session/prompt", {"sessionId": editor.session, "prompt": []})["code"] == -32602
        assert editor.error("initialize", HELLO[version])["code"] == -32600
        assert editor.prompt()[-1] == ended(version, "end_turn")
