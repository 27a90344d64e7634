"""Version 1 as the client: what this wire leaves unsaid is added, and what it says twice is told once."""

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from dragoman.dialects.contract import DecodedReply, Dialect, RequestMessage, SessionEvent
from dragoman.dialects.v1.client import ClientV1
from dragoman.errors import PeerMistake, RequestFailed, WireError
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.asking import Done, Reply
from dragoman.vocabulary.content import Text
from tests.dialects.joined_dialects import agent_with, client_of, client_with, hear
from tests.dialects.schemas import text

PROMPT = requests.PromptRequest("s", [Text("hello")])
MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}]}
CHOICES: list[Any] = [options.Choice("ask", "Ask"), options.Choice("plan", "Plan")]
MODE = options.Select("mode", "Mode", "ask", CHOICES, category="mode")
MODEL = {
    "type": "select",
    "id": "model",
    "name": "Model",
    "currentValue": "big",
    "options": [{"value": "big", "name": "Big"}],
}
MODEL_HEARD = options.Select("model", "Model", "big", [options.Choice("big", "Big")])


def update(client: Dialect, kind: str, /, **fields: Any) -> list[events.AnyEvent]:
    return hear(client, {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}})


def chunk(client: Dialect, kind: str, words: str = "a", **fields: Any) -> list[events.AnyEvent]:
    return update(client, f"{kind}_chunk", content={"type": "text", "text": words}, **fields)


def ids(*heard: list[events.AnyEvent]) -> list[str]:
    found = [event for events_of_one in heard for event in events_of_one]
    return [event.message_id for event in found if isinstance(event, events.Chunk)]


def replied(client: Dialect, request: Any, result: Any) -> DecodedReply:
    return client.decode_reply(request, Raw(text(result)))


def opened(client: Dialect, **result: Any) -> Reply | None:
    client.encode_request(requests.NewSession("/"))
    return replied(client, requests.NewSession("/"), {"sessionId": "s", **result}).reply


# -- a prompt --------------------------------------------------------------------------------------------------------


def test_a_prompt_counts_as_accepted_when_it_is_sent() -> None:
    assert client_of(1).encode_request(PROMPT) == RequestMessage(
        "session/prompt",
        b'{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}',
        requests.PromptAccepted("dragoman-1"),
        [SessionEvent("s", events.UserMessage("dragoman-1", [Text("hello")])), SessionEvent("s", events.Running())],
    )


def test_the_answer_to_a_prompt_is_the_end_of_its_turn() -> None:
    client = client_of(1)
    client.encode_request(PROMPT)
    result = {"stopReason": "refusal", "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}, "_meta": {}}
    end = events.Idle(stop_reason="refusal", usage=events.Usage(3, 1, 2), meta={})
    assert replied(client, PROMPT, result) == DecodedReply(None, [SessionEvent("s", end)])


@pytest.mark.parametrize(
    ("quota", "usage"),
    [
        ({"token_count": {"input_tokens": 7, "output_tokens": 3}, "model_usage": []}, events.Usage(10, 7, 3)),
        ({"token_count": {"input_tokens": 7}}, UNSET),
        ({"token_count": {"input_tokens": True, "output_tokens": 3}}, UNSET),
        ({"token_count": {"input_tokens": -7, "output_tokens": 3}}, UNSET),
        ({"token_count": 3}, UNSET),
        (None, UNSET),
    ],
)
def test_the_tokens_of_gemini_cli_are_found_where_it_has_them(quota: Any, usage: Any) -> None:
    client = client_of(1)
    client.encode_request(PROMPT)
    meta = {"quota": quota}
    end = events.Idle(stop_reason="end_turn", usage=usage, meta=meta)
    result = {"stopReason": "end_turn", "_meta": meta}
    assert replied(client, PROMPT, result) == DecodedReply(None, [SessionEvent("s", end)])


@pytest.mark.parametrize(
    ("result", "end"),
    [
        ({"stopReason": "tired"}, events.Idle(stop_reason="tired")),
        ({}, events.Idle(stop_reason="end_turn")),
        (None, events.Idle(stop_reason="end_turn")),
    ],
)
def test_an_odd_answer_to_a_prompt_is_an_end_all_the_same(result: Any, end: events.Idle) -> None:
    client = client_of(1)
    client.encode_request(PROMPT)
    assert replied(client, PROMPT, result) == DecodedReply(None, [SessionEvent("s", end)])


@pytest.mark.parametrize(
    "result", [1, [], "end_turn", {"stopReason": 1}, {"stopReason": None}, {"stopReason": "error"}]
)
def test_a_malformed_answer_to_a_prompt_ends_the_turn_with_an_error(result: Any) -> None:
    client = client_of(1)
    client.encode_request(PROMPT)
    failure = events.Failure(-32603, "The agent's answer is malformed")
    assert replied(client, PROMPT, result).events == [
        SessionEvent("s", events.Idle(stop_reason="error", error=failure))
    ]


def test_a_prompt_that_fails_ends_its_turn_with_the_error_and_the_session_goes_on() -> None:
    client = client_of(1)
    client.encode_request(PROMPT)
    failed = client.decode_failure(PROMPT, WireError(-32000, "who", {"reason": "auth"}))
    failure = events.Failure(-32000, "who", {"reason": "auth"})
    assert failed == DecodedReply(None, [SessionEvent("s", events.Idle(stop_reason="error", error=failure))])
    assert client.encode_request(PROMPT).immediate_reply == requests.PromptAccepted("dragoman-2")


def test_a_cancelled_request_is_a_cancelled_turn() -> None:
    client = client_of(1)
    client.encode_request(PROMPT)
    failed = client.decode_failure(PROMPT, WireError(-32800, "cancelled"))
    assert failed == DecodedReply(None, [SessionEvent("s", events.Idle(stop_reason="cancelled"))])


def test_a_second_prompt_is_refused_before_it_can_end_the_first_one() -> None:
    client = client_of(1)
    client.encode_request(PROMPT)
    with pytest.raises(PeerMistake) as caught:
        client.encode_request(PROMPT)
    assert (caught.value.code, caught.value.data) == (-32600, {"reason": "busy"})
    assert replied(client, PROMPT, {"stopReason": "end_turn"}).events == [
        SessionEvent("s", events.Idle(stop_reason="end_turn"))
    ]


def test_another_failure_is_just_a_failure() -> None:
    assert client_of(1).decode_failure(requests.NewSession("/"), WireError(-32603, "no")) is None


# -- messages --------------------------------------------------------------------------------------------------------


def test_chunks_without_ids_are_one_message_while_their_kind_goes_on() -> None:
    client = client_of(1)
    said = [chunk(client, kind) for kind in ("agent_thought", "agent_thought", "agent_message", "agent_thought")]
    assert ids(*said) == ["dragoman-1", "dragoman-1", "dragoman-2", "dragoman-3"]


@pytest.mark.parametrize(
    "between",
    [
        ("tool_call", {"toolCallId": "c", "title": "t"}),
        ("tool_call_update", {"toolCallId": "c"}),
        ("plan", {"entries": []}),
    ],
)
def test_a_new_message_begins_after_a_tool_call_or_a_plan(between: tuple[str, dict[str, Any]]) -> None:
    client = client_of(1)
    first = chunk(client, "agent_message")
    update(client, between[0], **between[1])
    assert ids(first, chunk(client, "agent_message")) == ["dragoman-1", "dragoman-2"]


def test_a_new_message_begins_with_a_turn_and_after_it() -> None:
    client = client_of(1)
    before = chunk(client, "agent_message")
    client.encode_request(PROMPT)
    within = chunk(client, "agent_message")
    replied(client, PROMPT, {"stopReason": "end_turn"})
    assert ids(before, within, chunk(client, "agent_message")) == ["dragoman-1", "dragoman-3", "dragoman-4"]


def test_an_id_that_the_agent_gives_is_kept() -> None:
    client = client_of(1)
    said = [chunk(client, "agent_message", messageId=id) for id in ("x", None, "y")]
    assert ids(*said) == ["x", "x", "y"]


def test_the_echo_of_a_prompt_is_swallowed_and_a_later_user_message_is_not() -> None:
    client = client_of(1)
    client.encode_request(PROMPT)
    assert chunk(client, "user_message", "hello") == []
    chunk(client, "agent_message")
    assert chunk(client, "user_message", "and?") == [events.UserMessageChunk(Text("and?"), "dragoman-3")]


@pytest.mark.parametrize("kind", ["tool_call", "plan"])
def test_a_user_message_after_the_agent_has_begun_is_no_echo(kind: str) -> None:
    client = client_of(1)
    client.encode_request(PROMPT)
    update(client, kind, toolCallId="c", title="t", entries=[])
    assert len(chunk(client, "user_message", "and?")) == 1


def test_a_replayed_user_message_is_told() -> None:
    assert chunk(client_of(1), "user_message", "hello") == [events.UserMessageChunk(Text("hello"), "dragoman-1")]


# -- tool calls and plans --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tool_call", "tool_call_update"])
def test_null_in_a_tool_call_means_unchanged(kind: str) -> None:
    (event,) = update(
        client_of(1),
        kind,
        toolCallId="c",
        title="t",
        name=None,
        kind=None,
        status=None,
        content=None,
        locations=None,
        rawInput=None,
        rawOutput=None,
        _meta=None,
    )
    assert event == events.ToolCallUpdate("c", title="t")


@pytest.mark.requirement("8.1.17")
def test_raw_fields_may_be_spelled_as_python_does() -> None:
    (event,) = update(client_of(1), "tool_call", toolCallId="c", title="t", raw_input={"a": 1}, raw_output=[2])
    assert event == events.ToolCallUpdate("c", title="t", raw_input={"a": 1}, raw_output=[2])


def test_a_diff_keeps_both_texts() -> None:
    content = [
        {"type": "diff", "path": "/x", "newText": "n"},
        {"type": "diff", "path": "/y", "oldText": "", "newText": ""},
    ]
    (event,) = update(client_of(1), "tool_call_update", toolCallId="c", content=content)
    assert event == events.ToolCallUpdate("c", content=[tools.Diff.of("/x", None, "n"), tools.Diff.of("/y", "", "")])


def test_a_terminal_in_a_tool_call_is_the_clients_own() -> None:
    (event,) = update(
        client_of(1), "tool_call_update", toolCallId="c", content=[{"type": "terminal", "terminalId": "t"}]
    )
    assert event == events.ToolCallUpdate("c", content=[tools.ClientTerminalItem("t")])


def test_the_only_plan_is_the_main_one() -> None:
    (event,) = update(client_of(1), "plan", entries=[{"content": "a", "priority": "low", "status": "pending"}])
    assert event == events.PlanUpdate(options.PlanItems("main", [options.PlanEntry("a", "low", "pending")]))


def test_an_unknown_update_is_kept_whole() -> None:
    (event,) = update(client_of(1), "_vendor/thing", a=[1], _meta={"k": 1})
    assert event == events.UnknownEvent("_vendor/thing", {"a": [1], "_meta": {"k": 1}})


# -- modes -----------------------------------------------------------------------------------------------------------


def test_modes_are_an_option() -> None:
    assert opened(client_of(1), modes=MODES) == requests.SessionOpened("s", [MODE])
    assert opened(client_of(1), modes=MODES, configOptions=[MODEL]) == requests.SessionOpened("s", [MODEL_HEARD, MODE])


def test_modes_beside_a_mode_option_say_nothing_new() -> None:
    option = {"type": "select", "id": "m", "name": "M", "category": "mode", "currentValue": "x", "options": []}
    found = options.Select("m", "M", "x", [], category="mode")
    assert opened(client_of(1), modes=MODES, configOptions=[option]) == requests.SessionOpened("s", [found])


def test_setting_such_an_option_sets_the_mode() -> None:
    client = client_of(1)
    opened(client, modes=MODES, configOptions=[MODEL])
    request = requests.SetOption("s", "mode", "plan")
    assert client.encode_request(request) == RequestMessage("session/set_mode", b'{"sessionId":"s","modeId":"plan"}')
    plan = options.Select("mode", "Mode", "plan", CHOICES, category="mode")
    results: list[Any] = [{}, None]
    for result in results:
        assert replied(client, request, result) == DecodedReply(requests.OptionsSet([MODEL_HEARD, plan]))


def test_setting_another_option_does_not() -> None:
    client = client_of(1)
    opened(client, modes=MODES, configOptions=[MODEL])
    request = requests.SetOption("s", "model", "big")
    assert client.encode_request(request).method == "session/set_config_option"
    assert replied(client, request, {"configOptions": [MODEL]}).reply == requests.OptionsSet([MODEL_HEARD, MODE])


@pytest.mark.parametrize("result", [{}, None, {"_meta": None}, {"modeId": "small"}])
def test_an_option_that_was_set_is_set_also_where_the_answer_has_no_options(result: Any) -> None:
    client = client_of(1)
    web = {"type": "boolean", "id": "web", "name": "Web", "currentValue": False}
    opened(client, modes=MODES, configOptions=[MODEL, web])

    def values(option: str, value: Any) -> list[Any]:
        reply = replied(client, requests.SetOption("s", option, value), result).reply
        assert isinstance(reply, requests.OptionsSet)
        return [option.current_value for option in reply.config_options]  # type: ignore[union-attr]

    assert values("model", "small") == ["small", False, "ask"]
    assert values("web", True) == ["small", True, "ask"]
    assert values("mode", "plan") == ["small", True, "plan"]
    # No value of theirs, and no option of ours: nothing is another than it was.
    assert values("web", "yes") == values("model", False) == values("other", "x") == ["small", True, "plan"]


def test_a_refused_option_is_as_it_was() -> None:
    client = client_of(1)
    opened(client, configOptions=[MODEL])
    client.decode_failure(requests.SetOption("s", "model", "small"), WireError(-32602, "no"))
    assert replied(client, requests.SetOption("s", "other", "x"), {}).reply == requests.OptionsSet([MODEL_HEARD])


@pytest.mark.parametrize("field", ["currentModeId", "modeId"])
def test_a_mode_that_changed_is_told_as_options(field: str) -> None:
    client = client_of(1)
    opened(client, modes=MODES, configOptions=[MODEL])
    plan = options.Select("mode", "Mode", "plan", CHOICES, category="mode")
    assert update(client, "current_mode_update", **{field: "plan"}) == [events.OptionsChanged([MODEL_HEARD, plan])]


def test_a_mode_option_that_appears_takes_the_place_of_the_modes() -> None:
    client = client_of(1)
    opened(client, modes=MODES)
    option = {"type": "select", "id": "m", "name": "M", "category": "mode", "currentValue": "x", "options": []}
    found = options.Select("m", "M", "x", [], category="mode")
    assert update(client, "config_option_update", configOptions=[option]) == [events.OptionsChanged([found])]
    assert client.encode_request(requests.SetOption("s", "m", "y")).method == "session/set_config_option"


# -- questions hold up the turn --------------------------------------------------------------------------------------


def test_a_question_makes_the_running_session_wait_for_the_user() -> None:
    client = client_of(1)
    asked = services.RequestPermission("s", "May I?", [])
    assert client.events_at_request(asked) == []
    client.encode_request(PROMPT)
    form = services.Elicit("?", services.Form({}), services.SessionScope("s"))
    for question in (asked, form):
        assert client.events_at_request(question) == [SessionEvent("s", events.RequiresAction())]
        assert client.events_at_reply(question) == [SessionEvent("s", events.Running())]
    elsewhere = services.Elicit("?", services.Form({}), services.RequestScope(1))
    for other in (elsewhere, services.RequestPermission("t", "May I?", []), services.ReadTextFile("s", "/x")):
        assert (client.events_at_request(other), client.events_at_reply(other)) == ([], [])


# -- opening and closing ---------------------------------------------------------------------------------------------

RESUME = requests.ResumeSession("s", "/")
REPLAY = requests.ResumeSession("s", "/", replay_from=requests.ReplayFromStart())


@pytest.mark.parametrize(
    ("agent", "request_", "method"),
    [
        (agent_with(load=True, resume=True), REPLAY, "session/load"),
        (agent_with(load=True, resume=True), RESUME, "session/resume"),
        (agent_with(load=True), RESUME, "session/load"),
        (agent_with(resume=True), RESUME, "session/resume"),
    ],
)
def test_a_session_is_loaded_for_its_story_and_resumed_without(agent: Any, request_: Any, method: str) -> None:
    assert client_of(1, agent=agent).encode_request(request_).method == method


@pytest.mark.parametrize(("agent", "request_"), [(agent_with(resume=True), REPLAY), (agent_with(), RESUME)])
def test_what_the_agent_cannot_do_is_not_asked(agent: Any, request_: Any) -> None:
    with pytest.raises(RequestFailed) as caught:
        client_of(1, agent=agent).encode_request(request_)
    assert caught.value.code == -32601


def test_a_replay_from_elsewhere_is_refused() -> None:
    request = requests.ResumeSession("s", "/", replay_from=requests.UnknownReplay("_cursor", {"type": "_cursor"}))
    with pytest.raises(PeerMistake) as caught:
        client_of(1).encode_request(request)
    assert caught.value.code == -32602


def test_a_history_that_was_not_asked_for_is_not_replayed() -> None:
    client = client_of(1, agent=agent_with(load=True))
    client.encode_request(RESUME)
    frame = (
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
        b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}}}'
    )
    assert client.decode_text_update(frame) is None
    assert chunk(client, "agent_message") == []
    assert update(client, "tool_call", toolCallId="c", title="t") == []
    assert update(client, "available_commands_update", availableCommands=[]) == [events.CommandsChanged([])]
    assert replied(client, RESUME, None).reply == requests.SessionOpened("s")
    assert len(chunk(client, "agent_message")) == 1


@pytest.mark.parametrize(
    "request_", [RESUME, requests.CloseSession("s"), requests.DeleteSession("s"), requests.Logout()]
)
def test_null_is_as_good_as_an_empty_object(request_: Any) -> None:
    expected = requests.SessionOpened("s") if request_ is RESUME else Done()
    assert replied(client_of(1), request_, None).reply == expected


def test_null_options_stay_null() -> None:
    assert opened(client_of(1), configOptions=None, modes=None) == requests.SessionOpened("s", None)
    assert opened(client_of(1), configOptions=[]) == requests.SessionOpened("s", [])
    assert opened(client_of(1)) == requests.SessionOpened("s", UNSET)


# -- memory ----------------------------------------------------------------------------------------------------------


def test_sessions_that_were_not_opened_are_forgotten_before_ours() -> None:
    client = client_of(1)
    assert isinstance(client, ClientV1)
    opened(client, modes=MODES)
    for number in range(1_000):
        hear(client, {"sessionId": f"stranger {number}", "update": {"sessionUpdate": "session_info_update"}})
    assert len(client._sessions) == 65
    assert client._sessions["s"].mode == MODE


def test_a_closed_session_is_forgotten() -> None:
    client = client_of(1)
    assert isinstance(client, ClientV1)
    opened(client, modes=MODES)
    replied(client, requests.CloseSession("s"), {})
    assert client._sessions == {}


def test_lists_that_version_1_wants_are_there() -> None:
    servers: list[Any] = [requests.McpStdio("a", "/a"), requests.McpHttp("b", "u"), requests.McpSse("c", "u")]
    asked = client_of(1, client_with()).encode_request(requests.NewSession("/", mcp_servers=servers))
    assert json.loads(asked.params)["mcpServers"] == [
        {"name": "a", "command": "/a", "args": [], "env": []},
        {"type": "http", "name": "b", "url": "u", "headers": []},
        {"type": "sse", "name": "c", "url": "u", "headers": []},
    ]
    assert json.loads(client_of(1).encode_request(requests.NewSession("/")).params) == {"cwd": "/", "mcpServers": []}
