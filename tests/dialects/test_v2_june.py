"""The June draft of version 2: seen at `initialize`, turns as in version 1, shapes as version 2 had them then."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.dialects.contract import RequestMessage, ResultMessage, SessionEvent
from dragoman.dialects.handshake.first_bytes import answer_initialize
from dragoman.dialects.handshake.initialize import DecodedClientHello, decode_agent, decode_client, encode_agent
from dragoman.dialects.vendors.named import load_dialect
from dragoman.errors import PeerMistake
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.hello import AgentAuth, AgentCapabilities, AgentHello, Implementation
from dragoman.vocabulary.word import Extras
from tests.dialects.joined_dialects import AGENT, CLIENT, hear, result_of
from tests.dialects.schemas import text
from tests.dialects.vendor_agents import (
    HELLO_WORLD,
    MODEL,
    Caller,
    agent_of,
    an_agent,
    asked,
    client_of,
    heard,
    refusal,
    talking,
    updates,
)

JUNE = "v2-june"
INFO = {"name": "editor", "version": "1"}
NO = services.PermissionOption("no", "No", "reject_once")
CALL = events.ToolCallUpdate("c", title="Ship")


def hello(**params: Any) -> DecodedClientHello:
    return decode_client(Raw(text(params)))


# -- initialize ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.2.1")
@pytest.mark.parametrize("more", [{}, {"clientInfo": INFO}, {"capabilities": {}}, {"clientCapabilities": {}}])
def test_version_2_without_info_is_the_june_draft(more: Any) -> None:
    heard_ = hello(protocolVersion=2, **more)
    assert (heard_.version, heard_.name) == (2, JUNE)
    assert (heard_.hello.info is not None) == ("clientInfo" in more)


@pytest.mark.requirement("8.2.1", "L6")
@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"protocolVersion": 2, "info": INFO}, 2),
        ({"protocolVersion": 2, "info": INFO, "clientInfo": INFO}, 2),
        ({"protocolVersion": 2, "clientInfo": INFO, "clientCapabilities": {"terminal": True}}, 1),
        ({"protocolVersion": 1, "clientInfo": INFO}, 1),
    ],
)
def test_other_peers_are_not_taken_for_the_june_draft(body: Any, version: int) -> None:
    assert (hello(**body).version, hello(**body).name) == (version, "")


def test_the_first_bytes_are_left_to_the_link() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2}}\n'
    assert answer_initialize(line, (1, 2), lambda: AGENT) is None


@pytest.mark.requirement("8.2.5", "8.2.3")
def test_everything_has_a_marker() -> None:
    can = AgentCapabilities(load=True, list=True, resume=True, close=True, delete=True, image=True, logout=True)
    agent = AgentHello(Implementation("ours", "7"), can, [AgentAuth("m", "M")])
    assert json.loads(load_dialect(JUNE).encode_agent(agent, CLIENT)) == {
        "protocolVersion": 2,
        "agentInfo": {"name": "ours", "version": "7"},
        "capabilities": {
            "auth": {"logout": {}},
            "session": {
                "prompt": {"image": {}},
                "mcp": {"stdio": {}},
                **{name: {} for name in ("load", "list", "resume", "close", "delete")},
            },
        },
        "authMethods": [{"type": "agent", "id": "m", "name": "M"}],
    }


@pytest.mark.requirement("8.2.1")
def test_an_agent_of_the_june_draft_is_known_by_its_answer() -> None:
    said = load_dialect(JUNE).encode_agent(AGENT, CLIENT)
    heard_ = decode_agent(Raw(said))
    assert (heard_.version, heard_.name, heard_.hello.info) == (2, JUNE, AGENT.info)
    assert heard_.hello.capabilities.load
    assert decode_agent(Raw(encode_agent(2, AGENT, CLIENT))).name == ""


# -- a turn ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.2.6")
async def test_a_prompt_is_answered_at_the_end_of_its_turn(tmp_path: Path) -> None:
    async with talking(an_agent(None, tmp_path)) as wire:
        caller = Caller(wire)
        greeted = await caller.result("initialize", protocolVersion=2, clientInfo=INFO)
        assert (greeted["protocolVersion"], greeted["agentInfo"]["name"]) == (2, "ours")
        session = await caller.new()
        assert sorted(session) == ["configOptions", "sessionId"]
        assert [option["id"] for option in session["configOptions"]] == ["mode", "model"]
        assert await caller.result("session/prompt", sessionId=session["sessionId"], prompt=HELLO_WORLD) == {
            "stopReason": "end_turn"
        }
        kinds = [update["sessionUpdate"] for update in caller.told()]
        assert kinds.count("agent_message_chunk") == 1
        assert "state_update" not in kinds
        chunk = next(update for update in caller.told() if update["sessionUpdate"] == "agent_message_chunk")
        assert (chunk["content"], bool(chunk["messageId"])) == ({"type": "text", "text": "hello"}, True)


@pytest.mark.requirement("8.2.4")
async def test_a_session_is_loaded_with_its_story(tmp_path: Path) -> None:
    async with talking(an_agent(None, tmp_path)) as wire:
        caller = Caller(wire)
        await caller.result("initialize", protocolVersion=2)
        id = (await caller.new())["sessionId"]
        await caller.result("session/prompt", sessionId=id, prompt=HELLO_WORLD)
        before = len(caller.told())
        answer = await caller.result("session/load", sessionId=id, cwd=os.getcwd(), mcpServers=[])
        assert "sessionId" not in answer
        story = caller.told()[before:]
        assert [update["sessionUpdate"] for update in story[:3]] == ["user_message", "agent_thought", "agent_message"]
        assert story[0]["content"] == HELLO_WORLD


@pytest.mark.requirement("8.2.8")
def test_an_option_is_set_by_its_id_alone() -> None:
    request = heard(agent_of(JUNE), "session/set_config_option", {"sessionId": "s", "configId": "m", "value": "a"})
    assert request == requests.SetOption("s", "m", "a")
    assert client_of(JUNE).encode_request(request) == RequestMessage(
        "session/set_config_option", b'{"sessionId":"s","configId":"m","value":"a"}'
    )


@pytest.mark.requirement("8.2.8")
def test_options_have_an_id_and_there_are_no_switches() -> None:
    changed = events.OptionsChanged([MODEL, options.Toggle("web", "Web", True)])
    client = load_dialect(JUNE).decode_client(Raw(b'{"protocolVersion":2}')).hello
    (update,) = updates(load_dialect(JUNE).agent(client, AGENT), changed)
    assert [option["id"] for option in update["configOptions"]] == ["model"]


@pytest.mark.requirement("8.2.10")
def test_a_plan_has_an_id() -> None:
    entry = options.PlanEntry("c", "high", "pending")
    said = updates(agent_of(JUNE), events.PlanUpdate(options.PlanItems("p", [entry])), events.PlanRemoved("p"))
    step = {"content": "c", "priority": "high", "status": "pending"}
    assert said == [
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "id": "p", "entries": [step]}},
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "id": "p", "entries": []}},
    ]


@pytest.mark.requirement("8.2.11")
def test_a_command_has_an_untyped_hint() -> None:
    command = options.Command("n", "d", options.CommandInput("h"))
    (update,) = updates(agent_of(JUNE), events.CommandsChanged([command]))
    assert update["availableCommands"] == [{"name": "n", "description": "d", "input": {"hint": "h"}}]


@pytest.mark.requirement("8.2.12")
def test_a_permission_is_about_a_call() -> None:
    call = events.ToolCallUpdate("c", title="Write", kind="edit")
    yes = services.PermissionOption("y", "Yes", "allow_once")
    question = services.RequestPermission("s", "Write", [yes], subject=services.ToolCallSubject(call))
    method, params = asked(agent_of(JUNE), question)
    assert (method, params["toolCall"]["toolCallId"]) == ("session/request_permission", "c")
    assert params["options"] == [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    assert "subject" not in params
    answer = agent_of(JUNE).decode_reply(question, Raw(b'{"outcome":{"outcome":"selected","optionId":"y"}}'))
    assert answer.reply == services.PermissionAnswer(services.Selected("y"))


@pytest.mark.requirement("8.2.12")
def test_a_permission_is_about_a_call_of_any_kind() -> None:
    call = events.ToolCallUpdate("c", title="Ship", kind="_deploy", status="_queued")
    question = services.RequestPermission("s", "Ship", [NO], subject=services.ToolCallSubject(call))
    _, params = asked(agent_of(JUNE), question)
    assert params["toolCall"] == {"toolCallId": "c", "title": "Ship", "kind": "_deploy", "status": "_queued"}
    assert heard(client_of(JUNE), "session/request_permission", params) == question


@pytest.mark.requirement("8.2.12")
def test_an_option_of_an_unknown_kind_is_not_offered() -> None:
    sudo = services.PermissionOption("sudo", "As root", "_sudo")
    question = services.RequestPermission("s", "Ship", [sudo, NO], subject=services.ToolCallSubject(CALL))
    _, params = asked(agent_of(JUNE), question)
    assert [option["optionId"] for option in params["options"]] == ["no"]
    answer = agent_of(JUNE).decode_reply(question, Raw(b'{"outcome":{"outcome":"selected","optionId":"sudo"}}'))
    assert answer.reply == services.PermissionAnswer(services.Dismissed())


@pytest.mark.requirement("8.2.14")
def test_a_diff_is_two_texts() -> None:
    diff = tools.Diff.of("/a", None, "b")
    (update,) = updates(agent_of(JUNE), events.ToolCallUpdate("c", title="t", content=[diff]))
    assert update == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "title": "t",
        "content": [{"type": "diff", "path": "/a", "oldText": None, "newText": "b"}],
    }


@pytest.mark.requirement("8.2.15")
def test_a_terminal_is_text() -> None:
    agent = agent_of(JUNE)
    call = events.ToolCallUpdate("c", title="t", content=[tools.TerminalItem("x")])
    said = updates(agent, events.TerminalUpdate("x", command="ls"), call)
    assert [item["type"] for item in said[-1]["content"]] == ["content"]


def test_a_call_is_one_kind_of_update_and_content_is_appended() -> None:
    agent = agent_of(JUNE)
    item = tools.ContentItem(Text("a"))
    first, second, third = updates(
        agent,
        events.ToolCallUpdate("c", title="t", status="pending"),
        events.ToolCallUpdate("c", status="in_progress"),
        events.ToolCallContentChunk("c", item),
    )
    assert {first["sessionUpdate"], second["sessionUpdate"]} == {"tool_call_update"}
    assert third == {
        "sessionUpdate": "tool_call_content_chunk",
        "toolCallId": "c",
        "content": {"type": "content", "content": {"type": "text", "text": "a"}},
    }


@pytest.mark.requirement("8.2.17")
def test_kinds_statuses_and_priorities_are_said_as_they_are() -> None:
    plan = options.PlanItems("p", [options.PlanEntry("c", "_urgent", "cancelled", meta={"a": 1})], meta={"b": 2})
    assert updates(
        agent_of(JUNE),
        events.ToolCallUpdate("c", title="t", kind="_deploy", status="_queued", meta={"k": 1}),
        events.ToolCallUpdate("c", kind="read", status="cancelled"),
        events.PlanUpdate(plan, meta={"c": 3}),
    ) == [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "title": "t",
            "kind": "_deploy",
            "status": "_queued",
            "_meta": {"k": 1},
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "kind": "read", "status": "cancelled"},
        {
            "sessionUpdate": "plan_update",
            "plan": {
                "type": "items",
                "id": "p",
                "entries": [{"content": "c", "priority": "_urgent", "status": "cancelled", "_meta": {"a": 1}}],
                "_meta": {"b": 2},
            },
            "_meta": {"c": 3},
        },
    ]


ALL_CLEARED = events.ToolCallUpdate(
    "c", title=None, kind=None, status=None, content=None, locations=None, raw_input=None, raw_output=None
)


def test_what_is_cleared_is_null_and_a_list_is_empty() -> None:
    begun = events.ToolCallUpdate("c", title="t", status="completed", content=[tools.ContentItem(Text("a"))])
    assert updates(agent_of(JUNE), begun, ALL_CLEARED)[1] == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        **dict.fromkeys(("title", "kind", "status", "rawInput", "rawOutput")),
        "content": [],
        "locations": [],
    }


def test_an_unknown_call_has_nothing_to_clear() -> None:
    assert updates(agent_of(JUNE), ALL_CLEARED) == [
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "c", "content": [], "locations": []}
    ]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (events.UserMessage, "user_message"),
        (events.AgentMessage, "agent_message"),
        (events.AgentThought, "agent_thought"),
    ],
)
def test_a_message_is_whole_cleared_or_left_alone_and_has_its_meta(kind: Any, name: str) -> None:
    said = {"sessionUpdate": name, "messageId": "m"}
    assert updates(
        agent_of(JUNE), kind("m", [Text("a")], meta={"k": 1}), kind("m", None, meta=None), kind("m", meta={})
    ) == [
        {**said, "content": [{"type": "text", "text": "a"}], "_meta": {"k": 1}},
        {**said, "content": None, "_meta": None},
        {**said, "_meta": {}},
    ]


def test_pieces_have_their_meta() -> None:
    chunk = events.AgentMessageChunk(Text("a"), "m", meta={"k": 1})
    item = events.ToolCallContentChunk("c", tools.ContentItem(Text("b")), meta={"k": 2})
    first, _, last = updates(agent_of(JUNE), chunk, events.ToolCallUpdate("c", title="t"), item)
    assert first == {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "m",
        "content": {"type": "text", "text": "a"},
        "_meta": {"k": 1},
    }
    assert last == {
        "sessionUpdate": "tool_call_content_chunk",
        "toolCallId": "c",
        "content": {"type": "content", "content": {"type": "text", "text": "b"}},
        "_meta": {"k": 2},
    }


@pytest.mark.requirement("8.2.16")
def test_an_unknown_update_is_passed_on_whole() -> None:
    fields: Any = {"a": [1], "_meta": {"k": 1}, "sessionUpdate": "tool_call_update"}
    assert updates(agent_of(JUNE), events.UnknownEvent("_vendor/thing", fields), events.UnknownEvent("later")) == [
        {"sessionUpdate": "_vendor/thing", "a": [1], "_meta": {"k": 1}},
        {"sessionUpdate": "later"},
    ]


@pytest.mark.requirement("8.2.16")
@pytest.mark.parametrize(
    "name",
    [
        *("agent_message", "agent_message_chunk", "tool_call_update", "tool_call_content_chunk", "plan_update"),
        *("usage_update", "config_option_update", "tool_call", "plan", "current_mode_update", "subagent_update"),
    ],
)
def test_an_unknown_update_under_a_known_name_is_not_said(name: str) -> None:
    assert updates(agent_of(JUNE), events.UnknownEvent(name, {"toolCallId": "c", "messageId": "m"})) == []


@pytest.mark.requirement("8.2.6")
@pytest.mark.parametrize(
    ("end", "said"),
    [
        (events.Idle(stop_reason="refusal", usage=events.Usage(3, 1, 2)), {"stopReason": "refusal"}),
        (events.Idle(stop_reason="_tired", meta={"k": 1}), {"stopReason": "_tired", "_meta": {"k": 1}}),
        (events.Idle(stop_reason="cancelled", meta=None), {"stopReason": "cancelled", "_meta": None}),
    ],
)
def test_a_turn_ends_with_any_reason_and_its_meta(end: events.Idle, said: Any) -> None:
    agent, client, prompt = agent_of(JUNE), client_of(JUNE), requests.PromptRequest("s", [Text("x")])
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO_WORLD})
    agent.encode_reply(1, request, requests.PromptAccepted("u"))
    assert result_of(agent.encode_event("s", end)) == said
    client.encode_request(prompt)
    heard_end = events.Idle(stop_reason=end.stop_reason, meta=end.meta)
    assert client.decode_reply(prompt, Raw(text(said))).events == [SessionEvent("s", heard_end)]


@pytest.mark.requirement("8.2.16")
@pytest.mark.parametrize(
    "event",
    [
        events.Running(),
        events.RequiresAction(),
        events.Notice("info", "n"),
        events.CompactionUpdate("c", "completed"),
    ],
)
def test_what_the_draft_does_not_have_is_not_said(event: events.AnyEvent) -> None:
    assert updates(agent_of(JUNE), event) == []


@pytest.mark.requirement("8.2.16")
@pytest.mark.parametrize("method", ["session/set_mode", "session/fork", "elicitation/create", "auth/status"])
def test_what_the_draft_does_not_have_is_not_heard(method: str) -> None:
    assert refusal(agent_of(JUNE), method, {"sessionId": "s", "modeId": "m", "cwd": "/"})[0] == -32601


@pytest.mark.requirement("8.2.2")
def test_logging_in_is_called_authenticate() -> None:
    assert heard(agent_of(JUNE), "authenticate", {"methodId": "login"}) == requests.Login("login")
    assert client_of(JUNE).encode_request(requests.Login("login")).method == "authenticate"


# -- the client ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.2.19")
def test_what_the_agent_says_the_client_hears() -> None:
    agent, client = agent_of(JUNE), client_of(JUNE)
    told: list[events.AnyEvent] = [
        events.AgentMessage("m", [Text("a")], meta={"k": 1}),
        events.AgentThought("t", None),
        events.ToolCallUpdate("c", title="t", status="_queued", kind="_deploy"),
        events.ToolCallContentChunk("c", tools.Diff.of("/a", "x", "y"), meta={"k": 1}),
        events.ToolCallUpdate("c", title=None, kind=None, status=None, raw_input=None, raw_output=None),
        events.PlanUpdate(options.PlanItems("p", [options.PlanEntry("c", "_urgent", "cancelled", meta={"k": 1})])),
        events.UnknownEvent("_vendor/thing", {"a": 1}),
        events.CommandsChanged([options.Command("n", "d", options.CommandInput("h"))]),
    ]
    said = [out for event in told for out in agent.encode_event("s", event)]
    heard_ = [one for out in said for one in client.decode_notification("session/update", Raw(out.params))]  # type: ignore[union-attr]
    assert heard_ == [SessionEvent("s", event) for event in told]


def test_null_clears_what_it_stands_for() -> None:
    nulls = dict.fromkeys(("title", "kind", "status", "content", "locations", "rawInput", "rawOutput"))
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", **nulls}
    assert hear(client_of(JUNE), {"sessionId": "s", "update": update}) == [ALL_CLEARED]


@pytest.mark.requirement("8.2.17")
def test_a_plan_is_heard_in_the_words_it_was_told_in() -> None:
    entries = [
        {"content": "a", "priority": "_urgent", "status": "_blocked", "_meta": {"k": 1}, "x": 2},
        {"content": "b", "priority": "low", "status": "completed"},
        {"content": "c"},
        7,
    ]
    update = {"sessionUpdate": "plan_update", "plan": {"type": "items", "id": "p", "entries": entries}, "_meta": {}}
    steps = [
        options.PlanEntry("a", "_urgent", "_blocked", meta={"k": 1}, extras=Extras({"x": 2})),
        options.PlanEntry("b", "low", "completed"),
    ]
    (event,) = hear(client_of(JUNE), {"sessionId": "s", "update": update})
    assert event == events.PlanUpdate(options.PlanItems("p", steps), meta={})


@pytest.mark.parametrize(
    ("update", "event"),
    [
        ({"sessionUpdate": "agent_message", "messageId": "m"}, events.AgentMessage("m")),
        ({"sessionUpdate": "usage_update", "used": 1, "size": 2}, events.UsageChanged(1, 2)),
        ({"sessionUpdate": "_later"}, events.UnknownEvent("_later")),
    ],
)
def test_what_stands_beside_an_update_is_kept_beside_it(update: Any, event: events.AnyEvent) -> None:
    beside = {"_meta": {"k": 1}, "x": 2}
    assert hear(client_of(JUNE), {"sessionId": "s", "update": update, **beside}) == [
        replace(event, outer=Extras(beside))
    ]


def test_what_is_unknown_in_an_update_is_kept_in_it() -> None:
    message = {"sessionUpdate": "agent_message", "messageId": "m", "content": [], "x": 1}
    item = {"type": "content", "content": {"type": "text", "text": "a"}}
    chunk = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": item, "_meta": {}, "y": 2}
    client = client_of(JUNE)
    heard_ = [event for update in (message, chunk) for event in hear(client, {"sessionId": "s", "update": update})]
    assert heard_ == [
        events.AgentMessage("m", [], extras=Extras({"x": 1})),
        events.ToolCallContentChunk("c", tools.ContentItem(Text("a")), meta={}, extras=Extras({"y": 2})),
    ]


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "agent_message", "content": []},
        {"sessionUpdate": "agent_message", "messageId": 1},
        {"sessionUpdate": "user_message", "messageId": "m", "content": "text"},
        {"sessionUpdate": "agent_thought", "messageId": "m", "content": [{"type": "text"}]},
        {"sessionUpdate": "tool_call_content_chunk", "content": {"type": "diff", "path": "/a", "newText": "b"}},
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c"},
        {"sessionUpdate": ["agent_message"]},
    ],
)
def test_a_malformed_update_is_a_mistake_and_no_unknown_one(update: Any) -> None:
    with pytest.raises(PeerMistake) as caught:
        hear(client_of(JUNE), {"sessionId": "s", "update": update})
    assert caught.value.code == -32602


def test_the_echo_of_the_prompt_that_is_being_answered_is_not_told() -> None:
    client = client_of(JUNE)
    echo = {"sessionId": "s", "update": {"sessionUpdate": "user_message", "messageId": "u", "content": HELLO_WORLD}}
    told = [events.UserMessage("u", [Text("hello")])]
    assert hear(client, echo) == told
    prompt = requests.PromptRequest("s", [Text("hello")])
    client.encode_request(prompt)
    assert hear(client, echo) == []
    # After the first word of the agent a user message is another one.
    hear(client, {"sessionId": "s", "update": {"sessionUpdate": "agent_thought", "messageId": "t"}})
    assert hear(client, echo) == told
    client.decode_reply(prompt, Raw(b'{"stopReason":"end_turn"}'))
    assert hear(client, echo) == told


def test_a_history_that_was_not_asked_for_is_not_replayed() -> None:
    can = AgentCapabilities(load=True)
    client = load_dialect(JUNE).client(CLIENT, AgentHello(None, can))
    resume = requests.ResumeSession("s", "/")
    assert client.encode_request(resume).method == "session/load"
    message = {"sessionId": "s", "update": {"sessionUpdate": "agent_message", "messageId": "m"}}
    assert hear(client, message) == []
    client.decode_reply(resume, Raw(b"{}"))
    assert hear(client, message) == [events.AgentMessage("m")]


ODD = {"optionId": "sudo", "name": "As root", "kind": "_sudo", "_meta": {"k": 1}, "x": 2}
OTHERS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def question_of(*options_: Any) -> Any:
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "Ship"}, "options": list(options_)}
    return heard(client_of(JUNE), "session/request_permission", params)


@pytest.mark.requirement("8.2.12")
def test_options_of_an_unknown_kind_are_heard_at_their_place() -> None:
    sudo = services.PermissionOption("sudo", "As root", "_sudo", meta={"k": 1}, extras=Extras({"x": 2}))
    yes, no = services.PermissionOption("yes", "Yes", "allow_once"), NO
    subject = services.ToolCallSubject(CALL)
    for said, found in (([ODD, *OTHERS], [sudo, yes, no]), ([*OTHERS, ODD], [yes, no, sudo]), ([ODD], [sudo])):
        assert question_of(*said) == services.RequestPermission("s", "Ship", found, subject=subject)


@pytest.mark.requirement("8.2.12")
@pytest.mark.parametrize("option", [{}, 7, {"optionId": "a", "kind": "_x"}, {"optionId": "a", "name": "A", "kind": 1}])
def test_an_option_that_is_none_is_refused(option: Any) -> None:
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": [ODD, option]}
    assert refusal(client_of(JUNE), "session/request_permission", params)[0] == -32602
    assert refusal(client_of(JUNE), "session/request_permission", {**params, "options": None})[0] == -32602


@pytest.mark.requirement("8.2.12")
@pytest.mark.parametrize("kind", ["_sudo", "allow", "allow_all", "Allow_once", ""])
async def test_an_option_of_an_unknown_kind_is_never_a_yes_of_ours(kind: str) -> None:
    odd = {**ODD, "kind": kind}
    permissions = PermissionHandler(PermissionPolicy(allow="all"), ["/"])
    refused = await permissions(question_of(odd, OTHERS[1]))
    assert isinstance(refused, services.PermissionAnswer)
    assert refused.outcome == services.Selected("no")
    dismissed = await permissions(question_of(odd))
    assert isinstance(dismissed, services.PermissionAnswer)
    assert dismissed.outcome == services.Dismissed()
    assert await permissions(question_of(odd, *OTHERS)) == services.PermissionOption("yes", "Yes", "allow_once")


@pytest.mark.requirement("8.2.7")
@pytest.mark.parametrize(
    "request_", [requests.NewSession("/", mcp_servers=[]), requests.ResumeSession("s", "/", mcp_servers=[])]
)
def test_a_client_says_the_type_of_its_servers(request_: Any) -> None:
    servers: list[Any] = [
        requests.McpStdio("a", "/a"),
        requests.McpHttp("b", "u"),
        requests.UnknownMcp("_x", {"type": "_x", "name": "c"}),
    ]
    _, params = asked(client_of(JUNE), replace(request_, mcp_servers=servers))
    assert params["mcpServers"] == [
        {"type": "stdio", "name": "a", "command": "/a", "args": [], "env": []},
        {"type": "http", "name": "b", "url": "u", "headers": []},
        {"type": "_x", "name": "c"},
    ]
    assert heard(agent_of(JUNE), "session/new", {"cwd": "/", **params}).mcp_servers[0] == requests.McpStdio(
        "a", "/a", [], []
    )


@pytest.mark.requirement("8.2.6")
def test_the_answer_to_a_prompt_ends_its_turn() -> None:
    client = client_of(JUNE)
    prompt = requests.PromptRequest("s", [Text("x")])
    assert client.encode_request(prompt).immediate_reply is not None
    (told,) = client.decode_reply(prompt, Raw(b'{"stopReason":"end_turn"}')).events
    assert told.event == events.Idle(stop_reason="end_turn")


def test_an_opened_session_names_itself() -> None:
    agent = agent_of(JUNE)
    request = heard(agent, "session/new", {"cwd": "/", "mcpServers": []})
    (answer,) = agent.encode_reply(1, request, requests.SessionOpened("s"))
    assert answer == ResultMessage(1, b'{"sessionId":"s"}')
