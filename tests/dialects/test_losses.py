"""Every loss happens as `tests/requirements/losses.toml` says; `test_round_trips.py` finds no other."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from dragoman.dialects.contract import Dialect, ErrorMessage, ResultMessage
from dragoman.dialects.handshake.initialize import decode_agent, decode_client, encode_agent, encode_client
from dragoman.errors import PeerMistake, RequestFailed, WireError
from dragoman.vocabulary.hello import Implementation
from dragoman.vocabulary.requests import PromptAccepted, PromptRequest
from tests.dialects.expected import APPLIED
from tests.dialects.joined_dialects import (
    AGENT,
    CLIENT,
    agent_of,
    answer,
    ask,
    client_of,
    client_with,
    hear,
    result_of,
    say,
)
from tests.dialects.schemas import text
from tools.requirements import LOSSES

HI = {"type": "text", "text": "hi"}
PROMPT = {"sessionId": "s", "prompt": [HI]}
YES = {"optionId": "y", "name": "Yes", "kind": "allow_once"}
MODES = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}]}
MODE_OPTION = {
    "type": "select",
    "id": "mode",
    "name": "Mode",
    "category": "mode",
    "currentValue": "a",
    "options": [{"value": "a", "name": "A"}],
}
INFO = {"name": "n", "version": "1"}


def test_every_change_that_a_round_trip_expects_is_a_row() -> None:
    assert {loss.id for loss in LOSSES} >= APPLIED


def test_every_row_says_what_and_what_instead() -> None:
    assert all(loss.what and loss.instead and loss.direction in ("same", "v1→v2", "v2→v1") for loss in LOSSES)


class TwoDialects:
    """An agent that speaks one version, a client that speaks another."""

    def __init__(self, agent: int, client: int, hello: Any = CLIENT) -> None:
        self.agents_side: Dialect = client_of(agent, hello)
        self.clients_side: Dialect = agent_of(client, hello)

    def update(self, **update: Any) -> list[Any]:
        """What an update of the agent comes to at the client."""
        events = hear(self.agents_side, {"sessionId": "s", "update": update})
        return [params["update"] for params in say(self.clients_side, "s", *events)]

    def ask_agent(self, method: str, **params: Any) -> Any:
        asked = ask(self.clients_side, self.agents_side, method, params)
        return asked.method, asked.params

    def ask_client(self, method: str, **params: Any) -> Any:
        asked = ask(self.agents_side, self.clients_side, method, params)
        return asked.method, asked.params

    def answer_to_client(self, method: str, params: Any, result: Any) -> Any:
        asked = ask(self.clients_side, self.agents_side, method, params)
        return answer(self.agents_side, self.clients_side, asked.request, result)

    def answer_to_agent(self, method: str, params: Any, result: Any) -> Any:
        asked = ask(self.agents_side, self.clients_side, method, params)
        return answer(self.clients_side, self.agents_side, asked.request, result)


def refused(call: Callable[[], object]) -> int:
    try:
        call()
    except (PeerMistake, RequestFailed) as error:
        return error.code
    return 0


# -- within version 1 ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("message-without-id")
def test_a_chunk_without_an_id_gets_one_while_its_kind_goes_on() -> None:
    bridge = TwoDialects(1, 1)
    said = [bridge.update(sessionUpdate="agent_message_chunk", content=HI) for _ in range(2)]
    chunk = {"sessionUpdate": "agent_message_chunk", "content": HI, "messageId": "dragoman-1"}
    assert said == [[chunk], [chunk]]


@pytest.mark.requirement("replay-in-pieces", "resumed-state")
def test_a_version_1_replay_becomes_whole_messages_and_an_idle_session() -> None:
    bridge = TwoDialects(1, 2)
    resume = {"sessionId": "s", "cwd": "/", "replayFrom": {"type": "start"}}
    asked = ask(bridge.clients_side, bridge.agents_side, "session/resume", resume)
    chunk = {"sessionUpdate": "agent_message_chunk", "content": HI, "messageId": "m"}
    assert [bridge.update(**chunk), bridge.update(**chunk)] == [[], []]
    told = [one.event for one in bridge.agents_side.decode_reply(asked.request, Raw(b"{}")).events]
    twice = {"sessionUpdate": "agent_message", "messageId": "m", "content": [{**HI, "text": HI["text"] * 2}]}
    said = [params["update"] for params in say(bridge.clients_side, "s", *told)]
    assert said == [twice, {"sessionUpdate": "state_update", "state": "idle"}]


@pytest.mark.requirement("prompt-echo")
def test_the_echo_of_a_live_prompt_is_dropped() -> None:
    bridge = TwoDialects(1, 1)
    bridge.ask_agent("session/prompt", **PROMPT)
    assert bridge.update(sessionUpdate="user_message_chunk", content=HI) == []


@pytest.mark.requirement("null-in-tool-call")
def test_null_in_a_version_1_tool_call_changes_nothing() -> None:
    for version in (1, 2):
        said = TwoDialects(1, version).update(sessionUpdate="tool_call", toolCallId="c", title="t", name=None)
        assert [update.get("name", "absent") for update in said] == ["absent"]


@pytest.mark.requirement("call-never-announced")
def test_an_update_of_a_call_that_was_never_announced_announces_it() -> None:
    bridge = TwoDialects(1, 1)
    assert bridge.update(sessionUpdate="tool_call_update", toolCallId="c", status="failed") == [
        {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "c", "status": "failed"}
    ]
    assert bridge.update(sessionUpdate="tool_call", toolCallId="c", title="t") == [
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "t"}
    ]


@pytest.mark.requirement("diff-without-old-text")
def test_a_diff_without_old_text_has_a_null_one() -> None:
    diff = {"type": "diff", "path": "/x", "newText": "n"}
    (said,) = TwoDialects(1, 1).update(sessionUpdate="tool_call", toolCallId="c", title="t", content=[diff])
    assert said["content"] == [{**diff, "oldText": None}]


@pytest.mark.requirement("plan-for-a-client-with-plans")
def test_a_plan_becomes_a_plan_update_for_a_client_with_plans() -> None:
    assert TwoDialects(1, 1).update(sessionUpdate="plan", entries=[]) == [
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "main", "entries": []}}
    ]
    assert TwoDialects(1, 1, client_with()).update(sessionUpdate="plan", entries=[]) == [
        {"sessionUpdate": "plan", "entries": []}
    ]


@pytest.mark.requirement("modes-and-options")
def test_modes_are_sent_as_modes_and_as_an_option() -> None:
    new = ("session/new", {"cwd": "/", "mcpServers": []})
    both = {"sessionId": "s", "modes": MODES, "configOptions": [MODE_OPTION]}
    assert TwoDialects(1, 1).answer_to_client(*new, {"sessionId": "s", "modes": MODES}) == both
    other = {"currentModeId": "z", "availableModes": []}
    assert TwoDialects(1, 1).answer_to_client(*new, {**both, "modes": other}) == both


@pytest.mark.requirement("mode-changed")
def test_a_changed_mode_is_sent_as_an_option_and_as_a_mode() -> None:
    bridge = TwoDialects(1, 1)
    bridge.answer_to_client("session/new", {"cwd": "/", "mcpServers": []}, {"sessionId": "s", "modes": MODES})
    options = {"sessionUpdate": "config_option_update", "configOptions": [{**MODE_OPTION, "currentValue": "b"}]}
    mode = {"sessionUpdate": "current_mode_update", "currentModeId": "b"}
    assert bridge.update(**mode) == [options, mode]
    assert bridge.update(**mode) == [options]


@pytest.mark.requirement("mode-set")
def test_a_mode_is_set_by_its_option_where_there_is_one() -> None:
    bridge = TwoDialects(1, 1)
    result = {"sessionId": "s", "configOptions": [{**MODE_OPTION, "id": "m"}]}
    bridge.answer_to_client("session/new", {"cwd": "/", "mcpServers": []}, result)
    assert bridge.ask_agent("session/set_mode", sessionId="s", modeId="a") == (
        "session/set_config_option",
        {"sessionId": "s", "configId": "m", "value": "a"},
    )


@pytest.mark.requirement("type-of-a-config-value")
def test_the_type_of_a_string_value_is_left_out_in_version_1() -> None:
    params = {"sessionId": "s", "configId": "c", "value": "v"}
    assert TwoDialects(1, 1).ask_agent("session/set_config_option", **params, type="_odd")[1] == params
    assert TwoDialects(2, 1).ask_agent("session/set_config_option", **params, type="_odd")[1] == {
        **params,
        "type": "id",
    }


@pytest.mark.requirement("type-of-a-stdio-server")
def test_the_type_of_a_stdio_server_is_left_out_in_version_1() -> None:
    server = {"name": "n", "command": "/c", "args": [], "env": []}
    _, params = TwoDialects(1, 1).ask_agent("session/new", cwd="/", mcpServers=[{**server, "type": "stdio"}])
    assert params["mcpServers"] == [server]


@pytest.mark.requirement("form-that-lacks-parts")
def test_a_form_that_lacks_parts_is_completed() -> None:
    properties = {
        "a": {"type": "string", "enum": [], "oneOf": []},
        "b": {"type": "array", "items": {"type": "string", "enum": []}},
    }
    for form, whole in [
        ({}, {"type": "object", "properties": {}}),
        (
            {"properties": properties, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ),
    ]:
        question = {"sessionId": "s", "message": "?", "mode": "form", "requestedSchema": form}
        _, params = TwoDialects(1, 2).ask_client("elicitation/create", **question)
        assert params == {**question, "requestedSchema": whole}


@pytest.mark.requirement("question-with-two-scopes")
def test_a_question_with_two_scopes_is_about_its_session() -> None:
    question = {"sessionId": "s", "message": "?", "mode": "url", "elicitationId": "e", "url": "u"}
    assert TwoDialects(1, 2).ask_client("elicitation/create", **question, requestId=1)[1] == question


@pytest.mark.requirement("outcome-without-a-word")
def test_an_outcome_that_version_1_lacks_is_cancelled() -> None:
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": [YES]}
    for outcome in ({"outcome": "_odd"}, {"outcome": "selected", "optionId": "z"}):
        found = TwoDialects(1, 1).answer_to_agent("session/request_permission", params, {"outcome": outcome})
        assert found == {"outcome": {"outcome": "cancelled"}}


@pytest.mark.requirement("no-that-is-misheard")
def test_a_no_is_cancelled_for_an_agent_that_takes_it_for_a_yes() -> None:
    no = {"optionId": "n", "name": "No", "kind": "reject_once"}
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": [YES, no]}
    bridge = TwoDialects(1, 1)
    bridge.agents_side = client_of(1, agent=replace(AGENT, info=Implementation("iac-code", "0.16.0")))
    chosen = {"outcome": {"outcome": "selected", "optionId": "n"}}
    found = bridge.answer_to_agent("session/request_permission", params, chosen)
    assert found == {"outcome": {"outcome": "cancelled"}, "_meta": {"option_id": "n"}}
    assert TwoDialects(1, 1).answer_to_agent("session/request_permission", params, chosen) == chosen


@pytest.mark.requirement("stop-reason-without-a-word")
def test_a_stop_reason_that_version_1_lacks_is_end_turn_with_the_reason_in_meta() -> None:
    bridge = TwoDialects(1, 1)
    request = ask(bridge.clients_side, bridge.agents_side, "session/prompt", PROMPT).request
    bridge.clients_side.encode_reply(1, request, PromptAccepted("u"))
    (told,) = bridge.agents_side.decode_reply(request, Raw(b'{"stopReason":"_odd"}')).events
    found = result_of(bridge.clients_side.encode_event("s", told.event))
    assert found == {"stopReason": "end_turn", "_meta": {"stopReason": "_odd"}}


@pytest.mark.requirement("null-in-initialize", "inside-a-capability")
def test_null_and_nested_fields_in_initialize_are_dropped() -> None:
    capabilities = {"fs": {"x": 1, "_meta": {}}, "elicitation": None, "plan": {"x": 1}, "y": 2, "_meta": {"k": 1}}
    heard = decode_client(Raw(text({"protocolVersion": 1, "clientInfo": None, "clientCapabilities": capabilities})))
    said = json.loads(encode_client(heard.hello, (1,)))["clientCapabilities"]
    assert said == {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
        "auth": {"terminal": False},
        "plan": {},
        "y": 2,
        "_meta": {"k": 1},
    }


# -- to version 2 ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("other-meaning")
def test_a_field_whose_name_means_something_else_in_the_other_version_is_dropped() -> None:
    link = {"type": "resource_link", "name": "n", "uri": "u"}
    (said,) = TwoDialects(1, 2).update(
        sessionUpdate="agent_message_chunk", messageId="m", content={**link, "icons": 5, "x": 1}
    )
    assert said["content"] == {**link, "x": 1}
    assert TwoDialects(1, 2).update(sessionUpdate="terminal_update", terminalId=5) == []
    assert TwoDialects(2, 1).update(sessionUpdate="tool_call", toolCallId=5) == []


@pytest.mark.requirement("prompt-accepted")
def test_a_prompt_of_version_1_counts_as_accepted_when_it_was_sent() -> None:
    bridge = TwoDialects(1, 2)
    call = bridge.agents_side.encode_request(PromptRequest("s", []))
    assert call.immediate_reply == PromptAccepted("dragoman-1")
    replied = bridge.agents_side.decode_failure(PromptRequest("s", []), WireError(-32603, "no"))
    assert replied is not None
    (told,) = replied.events
    assert say(bridge.clients_side, "s", told.event)[0]["update"] == {
        "sessionUpdate": "state_update",
        "state": "idle",
        "stopReason": "error",
        "error": {"code": -32603, "message": "no"},
    }


@pytest.mark.requirement("files-and-terminals")
def test_files_and_terminals_of_a_version_1_client_are_absent_in_version_2() -> None:
    assert refused(lambda: TwoDialects(1, 2).ask_client("fs/read_text_file", sessionId="s", path="/x")) == -32601
    assert refused(lambda: TwoDialects(1, 2).ask_client("terminal/create", sessionId="s", command="ls")) == -32601
    capabilities = json.loads(encode_client(CLIENT, (2,)))["capabilities"]
    assert capabilities == {"auth": {"terminal": {}}, "elicitation": {"form": {}, "url": {}}}


@pytest.mark.requirement("terminal-of-the-client")
def test_a_terminal_of_the_client_becomes_text_with_its_id() -> None:
    content = [{"type": "terminal", "terminalId": "t"}]
    (said,) = TwoDialects(1, 2).update(sessionUpdate="tool_call", toolCallId="c", title="t", content=content)
    assert said["content"] == [{"type": "content", "content": {"type": "text", "text": "[terminal t]"}}]


@pytest.mark.requirement("texts-of-a-diff", "changes-without-texts")
def test_the_texts_of_a_diff_become_a_patch_and_back_only_for_a_new_file() -> None:
    new = {"type": "diff", "path": "/x", "oldText": None, "newText": "a\n"}
    changed = {"type": "diff", "path": "/y", "oldText": "a\n", "newText": "b\n"}
    (there,) = TwoDialects(1, 2).update(sessionUpdate="tool_call", toolCallId="c", title="t", content=[new, changed])
    patches = [item["patch"]["text"] for item in there["content"]]
    assert [item["changes"] for item in there["content"]] == [
        [{"operation": "add", "path": "/x"}],
        [{"operation": "modify", "path": "/y"}],
    ]
    (back,) = TwoDialects(2, 1).update(**there)
    assert back["content"] == [new, {"type": "content", "content": {"type": "text", "text": patches[1]}}]
    moved = {"type": "diff", "changes": [{"operation": "move", "oldPath": "/a", "path": "/b"}]}
    (said,) = TwoDialects(2, 1).update(sessionUpdate="tool_call_update", toolCallId="d", content=[moved])
    assert said["content"] == [{"type": "content", "content": {"type": "text", "text": "move: /a -> /b"}}]


@pytest.mark.requirement("numbers-out-of-range")
def test_numbers_out_of_the_range_of_version_2_are_left_out() -> None:
    link = {"type": "resource_link", "name": "n", "uri": "u"}
    odd = {**link, "size": -1, "annotations": {"priority": 7}}
    (said,) = TwoDialects(1, 2).update(sessionUpdate="agent_message_chunk", messageId="m", content=odd)
    assert said["content"] == {**link, "annotations": {}}
    place = [{"path": "/x", "line": 0}]
    (said,) = TwoDialects(1, 2).update(sessionUpdate="tool_call_update", toolCallId="c", locations=place)
    assert said["locations"] == [{"path": "/x"}]


@pytest.mark.requirement("nothing-to-choose")
def test_an_option_without_choices_offers_its_current_value() -> None:
    empty = {**MODE_OPTION, "options": [{"group": "g", "name": "G", "options": []}]}
    (said,) = TwoDialects(1, 2).update(sessionUpdate="config_option_update", configOptions=[empty])
    assert said["configOptions"][0]["options"] == [{"value": "a", "name": "a"}]


@pytest.mark.requirement("permission-without-options")
def test_a_permission_without_options_is_refused_in_version_2() -> None:
    params: Any = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}
    assert refused(lambda: TwoDialects(1, 2).ask_client("session/request_permission", **params)) == -32602


@pytest.mark.requirement("null-options")
def test_null_options_are_absent_in_version_2() -> None:
    result = {"sessionId": "s", "modes": None, "configOptions": None}
    assert TwoDialects(1, 2).answer_to_client("session/new", {"cwd": "/"}, result) == {"sessionId": "s"}


@pytest.mark.requirement("question-about-request-null")
def test_a_question_about_request_null_is_refused_in_version_2() -> None:
    question = {"requestId": None, "message": "?", "mode": "url", "elicitationId": "e", "url": "u"}
    assert TwoDialects(1, 1).ask_client("elicitation/create", **question)[1] == question
    assert refused(lambda: TwoDialects(1, 2).ask_client("elicitation/create", **question)) == -32602


@pytest.mark.requirement("sse-capability")
def test_the_capability_of_sse_is_absent_in_version_2_and_its_servers_pass() -> None:
    answer_ = {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"sse": True}}}
    heard = decode_agent(Raw(text(answer_))).hello
    assert json.loads(encode_agent(2, heard, CLIENT))["capabilities"]["session"]["mcp"] == {"stdio": {}}
    server = {"type": "sse", "name": "n", "url": "u", "headers": []}
    assert TwoDialects(2, 1).ask_agent("session/new", cwd="/", mcpServers=[server])[1]["mcpServers"] == [server]


# -- to version 1 ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("states")
def test_the_states_of_version_2_are_dropped_and_the_end_of_a_turn_answers_the_prompt() -> None:
    states: list[Any] = [{"state": "running"}, {"state": "requires_action"}, {"state": "_odd"}, {"state": "idle"}]
    assert [TwoDialects(2, 1).update(sessionUpdate="state_update", **state) for state in states] == [[], [], [], []]


@pytest.mark.requirement("beside-the-end")
def test_fields_beside_the_end_of_a_version_2_turn_are_dropped() -> None:
    bridge = TwoDialects(2, 1)
    ends: list[Any] = []
    usage = {"totalTokens": 0, "inputTokens": 0, "outputTokens": 0}
    for extra in (
        {"stopReason": "end_turn", "background": []},
        {"stopReason": "error", "error": {"code": 1, "message": "m"}, "usage": usage, "_meta": {"k": 1}},
    ):
        request = ask(bridge.clients_side, bridge.agents_side, "session/prompt", PROMPT).request
        accepted = bridge.agents_side.decode_reply(request, Raw(b'{"messageId":"u","_meta":{"k":1}}')).reply
        assert accepted is not None
        bridge.clients_side.encode_reply(1, request, accepted)
        update = {"sessionUpdate": "state_update", "state": "idle", **extra}
        for event in hear(bridge.agents_side, {"sessionId": "s", "update": update}):
            ends += bridge.clients_side.encode_event("s", event)
    assert ends == [ResultMessage(1, b'{"stopReason":"end_turn"}'), ErrorMessage(1, WireError(1, "m"))]


@pytest.mark.requirement("whole-messages")
def test_whole_messages_become_chunks_once_in_version_1() -> None:
    bridge = TwoDialects(2, 1)
    whole = {"sessionUpdate": "agent_message", "messageId": "m"}
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": HI}
    contents: list[Any] = [{"content": [HI, HI]}, {"content": [HI]}, {"content": None}, {"content": []}, {}]
    assert [bridge.update(**whole, **content) for content in contents] == [[chunk, chunk], [], [], [], []]


@pytest.mark.requirement("appended-content")
def test_appended_content_becomes_all_content_so_far_in_version_1() -> None:
    bridge = TwoDialects(2, 1)
    item = {"type": "content", "content": HI}
    chunk = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": item}
    assert [bridge.update(**chunk)[0]["content"] for _ in range(2)] == [[item], [item, item]]


@pytest.mark.requirement("display-terminals")
def test_the_output_of_a_terminal_becomes_text_in_the_calls_that_show_it() -> None:
    bridge = TwoDialects(2, 1)
    data = base64.b64encode(b"\x1b[31mok\x1b[0m").decode()
    assert bridge.update(sessionUpdate="terminal_update", terminalId="t", command="ls", output={"data": data}) == []
    content = [{"type": "terminal", "terminalId": "t"}]
    (said,) = bridge.update(sessionUpdate="tool_call_update", toolCallId="c", content=content)
    assert said["content"] == [{"type": "content", "content": {"type": "text", "text": "$ ls\nok"}}]


@pytest.mark.requirement("cleared-fields")
def test_cleared_fields_of_a_call_become_empty_lists_or_stay_in_version_1() -> None:
    bridge = TwoDialects(2, 1)
    bridge.update(sessionUpdate="tool_call_update", toolCallId="c", title="t")
    cleared = dict.fromkeys(("title", "kind", "status", "content", "locations", "rawInput"))
    assert bridge.update(sessionUpdate="tool_call_update", toolCallId="c", **cleared) == [
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [], "locations": []}
    ]


@pytest.mark.requirement("open-words")
def test_words_that_version_1_lacks_become_the_nearest_that_it_has() -> None:
    bridge = TwoDialects(2, 1)
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c"}
    said = [bridge.update(**call, kind="_k", status=status)[0] for status in ("_s", "paused", "cancelled")]
    assert [(update["kind"], update["status"]) for update in said] == [
        ("other", "in_progress"),
        ("other", "in_progress"),
        ("other", "failed"),
    ]
    entries = [{"content": "a", "priority": "_p", "status": status} for status in ("_s", "cancelled")]
    plan = {"type": "items", "planId": "p", "entries": entries}
    (said_plan,) = bridge.update(sessionUpdate="plan_update", plan=plan)
    assert [(e["priority"], e["status"]) for e in said_plan["plan"]["entries"]] == [
        ("medium", "pending"),
        ("medium", "completed"),
    ]
    odd = {**HI, "annotations": {"audience": ["user", "_dog"]}}
    (chunk,) = bridge.update(sessionUpdate="agent_message_chunk", messageId="m", content=odd)
    assert chunk["content"] == {**HI, "annotations": {"audience": ["user"]}}


@pytest.mark.requirement("cancelling-one-thing")
def test_cancelling_one_call_or_terminal_is_unknown_in_version_1() -> None:
    call = {"toolCallId": "c", "title": "t"}
    said = TwoDialects(2, 1).update(sessionUpdate="tool_call_update", **call, capabilities={"cancel": {}})
    assert said == [{"sessionUpdate": "tool_call", **call}]
    for method, params in (("tool_call/cancel", {"toolCallId": "c"}), ("terminal/cancel", {"terminalId": "t"})):
        assert refused(lambda m=method, p=params: TwoDialects(1, 2).ask_agent(m, sessionId="s", **p)) == -32601  # type: ignore[misc]


@pytest.mark.requirement("fields-of-version-2")
def test_fields_that_version_1_lacks_are_dropped() -> None:
    link = {"type": "resource_link", "name": "n", "uri": "u"}
    odd = {**link, "icons": [{"src": "u"}], "size": 2**63}
    (said,) = TwoDialects(2, 1).update(sessionUpdate="agent_message_chunk", messageId="m", content=odd)
    assert said["content"] == link
    status = {"status": "open", "state": {"state": "running"}}
    assert TwoDialects(2, 1).answer_to_client("session/status", {"sessionId": "s"}, status) == {"status": "open"}
    replay = {"type": "start", "_meta": {"k": 1}}
    method, params = TwoDialects(1, 2).ask_agent("session/resume", sessionId="s", cwd="/", replayFrom=replay)
    assert (method, params) == ("session/load", {"sessionId": "s", "cwd": "/", "mcpServers": []})


@pytest.mark.requirement("lists-that-must-be-there")
def test_absent_lists_are_empty_in_version_1() -> None:
    assert TwoDialects(1, 2).ask_agent("session/new", cwd="/")[1] == {"cwd": "/", "mcpServers": []}
    servers = [{"type": "stdio", "name": "n", "command": "/c"}, {"type": "http", "name": "n", "url": "u"}]
    assert TwoDialects(1, 2).ask_agent("session/new", cwd="/", mcpServers=servers)[1]["mcpServers"] == [
        {"name": "n", "command": "/c", "args": [], "env": []},
        {"type": "http", "name": "n", "url": "u", "headers": []},
    ]


@pytest.mark.requirement("replay-cursors")
def test_a_replay_from_another_place_than_the_start_is_refused_in_version_1() -> None:
    asked = {"sessionId": "s", "cwd": "/"}
    assert TwoDialects(1, 2).ask_agent("session/resume", **asked, replayFrom=None) == ("session/resume", asked)
    assert (
        refused(lambda: TwoDialects(1, 2).ask_agent("session/resume", **asked, replayFrom={"type": "_odd"})) == -32602
    )


@pytest.mark.requirement("open-commands")
def test_commands_of_an_unknown_type_are_dropped_in_version_1() -> None:
    known = {"type": "command", "name": "n", "description": "d"}
    commands = [known, {**known, "type": "_odd"}, {**known, "input": {"type": "_odd", "hint": "h"}}]
    (said,) = TwoDialects(2, 1).update(sessionUpdate="available_commands_update", availableCommands=commands)
    plain = {"name": "n", "description": "d"}
    assert said["availableCommands"] == [plain, plain]


@pytest.mark.requirement("commands-of-an-answer")
def test_the_commands_of_a_response_follow_it_in_an_update() -> None:
    bridge = TwoDialects(2, 1)
    asked = ask(bridge.clients_side, bridge.agents_side, "session/new", {"cwd": "/", "mcpServers": []})
    commands = [{"type": "command", "name": "n", "description": "d"}]
    result = {"sessionId": "s", "availableCommands": commands}
    reply = bridge.agents_side.decode_reply(asked.request, Raw(text(result))).reply
    assert reply is not None
    first, second = bridge.clients_side.encode_reply(1, asked.request, reply)
    assert first == ResultMessage(1, b'{"sessionId":"s"}')
    plain = [{"name": "n", "description": "d"}]
    assert json.loads(second.params)["update"] == {  # type: ignore[union-attr]
        "sessionUpdate": "available_commands_update",
        "availableCommands": plain,
    }


@pytest.mark.requirement("switches")
def test_switches_compactions_and_subagents_are_sent_only_to_a_client_that_names_them() -> None:
    bridge = TwoDialects(2, 1, client_with())
    switch = {"type": "boolean", "configId": "c", "name": "n", "currentValue": True}
    assert bridge.update(sessionUpdate="config_option_update", configOptions=[switch]) == [
        {"sessionUpdate": "config_option_update", "configOptions": []}
    ]
    assert bridge.update(sessionUpdate="compaction_update", compactionId="c", status="completed") == []
    assert bridge.update(sessionUpdate="subagent_update", sessionId="child") == []


@pytest.mark.requirement("notices")
def test_notices_become_finished_calls_for_a_client_that_does_not_name_them() -> None:
    bridge = TwoDialects(2, 1, client_with())
    assert bridge.update(sessionUpdate="notice", severity="info", title="t") == []  # it waits
    (told,) = bridge.update(sessionUpdate="state_update", state="running")
    assert (told["sessionUpdate"], told["kind"], told["title"]) == ("tool_call", "other", "t")
    (told,) = bridge.update(sessionUpdate="compaction_update", compactionId="c", status="completed")
    assert told["title"] == "The conversation was summarised to fit the model's context"


@pytest.mark.requirement("several-plans")
def test_of_several_plans_a_client_without_plans_gets_the_last_steps() -> None:
    bridge = TwoDialects(2, 1, client_with())
    plan = {"type": "items", "planId": "p", "entries": []}
    assert bridge.update(sessionUpdate="plan_update", plan=plan) == [{"sessionUpdate": "plan", "entries": []}]
    markdown = {"type": "markdown", "planId": "q", "content": "#"}
    assert bridge.update(sessionUpdate="plan_update", plan=markdown) == []


@pytest.mark.requirement("question-of-a-permission", "options-of-unknown-kind")
def test_the_question_of_a_permission_becomes_the_title_of_its_call() -> None:
    odd = {"optionId": "z", "name": "Z", "kind": "_allow"}
    subject = {"type": "command", "command": "ls", "cwd": "/", "_meta": {"k": 1}}
    params = {"sessionId": "s", "title": "Run?", "description": "why", "subject": subject, "options": [YES, odd]}
    notes = [{"type": "content", "content": {"type": "text", "text": words}} for words in ("why", "ls\n(in /)")]
    call = {"toolCallId": "permission: Run?", "title": "Run?", "kind": "execute"}
    assert TwoDialects(2, 1).ask_client("session/request_permission", **params)[1] == {
        "sessionId": "s",
        "toolCall": {**call, "rawInput": {"command": "ls", "cwd": "/"}, "content": notes},
        "options": [YES],
    }
    chosen = {"outcome": {"outcome": "selected", "optionId": "z"}}
    found = TwoDialects(2, 1).answer_to_agent("session/request_permission", params, chosen)
    assert found == {"outcome": {"outcome": "cancelled"}}


@pytest.mark.requirement("string-formats")
def test_formats_of_text_that_version_1_lacks_are_left_out() -> None:
    form = {"type": "object", "properties": {"a": {"type": "string", "format": "_iban"}}}
    question = {"sessionId": "s", "message": "?", "mode": "form", "requestedSchema": form}
    _, params = TwoDialects(2, 1).ask_client("elicitation/create", **question)
    assert params["requestedSchema"]["properties"] == {"a": {"type": "string"}}


@pytest.mark.requirement("answers-without-a-word")
def test_values_of_a_form_that_version_1_cannot_carry_are_left_out() -> None:
    form = {"type": "object", "properties": {}}
    question = {"sessionId": "s", "message": "?", "mode": "form", "requestedSchema": form}
    filled = {"a": "t", "b": 1.5, "c": True, "d": ["t"], "e": None, "f": {"x": 1}, "g": [1]}
    found = TwoDialects(1, 2).answer_to_agent("elicitation/create", question, {"action": "accept", "content": filled})
    assert found == {"action": "accept", "content": {"a": "t", "b": 1.5, "c": True, "d": ["t"]}}


@pytest.mark.requirement("logins-of-unknown-type", "no-stdio")
def test_logins_of_an_unknown_type_are_not_offered_and_stdio_is_always_taken() -> None:
    method = {"type": "_odd", "methodId": "m", "name": "M"}
    result = {"protocolVersion": 2, "info": INFO, "authMethods": [method], "capabilities": {"session": {}}}
    heard = decode_agent(Raw(text(result))).hello
    said = json.loads(encode_agent(1, heard, CLIENT))
    assert said["authMethods"] == []
    assert said["agentCapabilities"]["mcpCapabilities"] == {"http": False, "sse": False}
    assert heard.capabilities.mcp_stdio is False


# -- what is no loss -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "client"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_an_unknown_variant_is_said_as_it_came(agent: int, client: int) -> None:
    odd = {"type": "_hologram", "data": [1], "_meta": {"k": 1}}
    bridge = TwoDialects(agent, client)
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": odd}
    update = {"sessionUpdate": "_vendor/thing", "a": {"b": 1}}
    assert (bridge.update(**chunk), bridge.update(**update)) == ([chunk], [update])
    assert bridge.ask_agent("session/prompt", sessionId="s", prompt=[odd])[1]["prompt"] == [odd]
