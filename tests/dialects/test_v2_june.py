"""The June draft of version 2: seen at `initialize`, turns as in version 1, shapes as version 2 had them then."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from dragoman.dialects.contract import Answer, Call, Told
from dragoman.dialects.greeting import greet
from dragoman.dialects.handshake import HeardClient, hear_agent, hear_client, say_agent
from dragoman.dialects.named import named
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.hello import AgentAuth, AgentCapabilities, AgentHello, Implementation
from tests.dialects.schemas import text
from tests.dialects.seeds import (
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
from tests.dialects.speech import AGENT, CLIENT

JUNE = "v2-june"
INFO = {"name": "editor", "version": "1"}


def hello(**params: Any) -> HeardClient:
    return hear_client(Raw(text(params)))


# -- initialize ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"clientInfo": INFO}, {"capabilities": {}}, {"clientCapabilities": {}}])
def test_8_2_1_version_2_without_info_is_the_june_draft(more: Any) -> None:
    heard_ = hello(protocolVersion=2, **more)
    assert (heard_.version, heard_.name) == (2, JUNE)
    assert (heard_.hello.info is not None) == ("clientInfo" in more)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"protocolVersion": 2, "info": INFO}, 2),
        ({"protocolVersion": 2, "info": INFO, "clientInfo": INFO}, 2),
        ({"protocolVersion": 2, "clientInfo": INFO, "clientCapabilities": {"terminal": True}}, 1),
        ({"protocolVersion": 1, "clientInfo": INFO}, 1),
    ],
)
def test_8_2_1_everybody_else_is_not(body: Any, version: int) -> None:
    assert (hello(**body).version, hello(**body).name) == (version, "")


def test_the_first_bytes_are_left_to_the_link() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2}}\n'
    assert greet(line, (1, 2), lambda: AGENT) is None


def test_8_2_5_everything_has_a_marker() -> None:
    can = AgentCapabilities(load=True, list=True, resume=True, close=True, delete=True, image=True, logout=True)
    agent = AgentHello(Implementation("ours", "7"), can, [AgentAuth("m", "M")])
    assert json.loads(named(JUNE).say_agent(agent, CLIENT)) == {
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


def test_an_agent_of_the_june_draft_is_known_by_its_answer() -> None:
    said = named(JUNE).say_agent(AGENT, CLIENT)
    heard_ = hear_agent(Raw(said))
    assert (heard_.version, heard_.name, heard_.hello.info) == (2, JUNE, AGENT.info)
    assert heard_.hello.capabilities.load
    assert hear_agent(Raw(say_agent(2, AGENT, CLIENT))).name == ""


# -- a turn ----------------------------------------------------------------------------------------------------------


async def test_8_2_6_a_prompt_is_answered_at_the_end_of_its_turn(tmp_path: Path) -> None:
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


async def test_8_2_4_a_session_is_loaded_with_its_story(tmp_path: Path) -> None:
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


def test_8_2_8_an_option_is_set_by_its_id_alone() -> None:
    request = heard(agent_of(JUNE), "session/set_config_option", {"sessionId": "s", "configId": "m", "value": "a"})
    assert request == requests.SetOption("s", "m", "a")
    assert client_of(JUNE).ask(request) == Call(
        "session/set_config_option", b'{"sessionId":"s","configId":"m","value":"a"}'
    )


def test_8_2_8_options_have_an_id_and_there_are_no_switches() -> None:
    changed = events.OptionsChanged([MODEL, options.Toggle("web", "Web", True)])
    client = named(JUNE).hear_client(Raw(b'{"protocolVersion":2}')).hello
    (update,) = updates(named(JUNE).agent(client, AGENT), changed)
    assert [option["id"] for option in update["configOptions"]] == ["model"]


def test_8_2_10_a_plan_has_an_id() -> None:
    entry = options.PlanEntry("c", "high", "pending")
    said = updates(agent_of(JUNE), events.PlanUpdate(options.PlanItems("p", [entry])), events.PlanRemoved("p"))
    step = {"content": "c", "priority": "high", "status": "pending"}
    assert said == [
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "id": "p", "entries": [step]}},
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "id": "p", "entries": []}},
    ]


def test_8_2_11_a_command_has_an_untyped_hint() -> None:
    command = options.Command("n", "d", options.CommandInput("h"))
    (update,) = updates(agent_of(JUNE), events.CommandsChanged([command]))
    assert update["availableCommands"] == [{"name": "n", "description": "d", "input": {"hint": "h"}}]


def test_8_2_12_a_permission_is_about_a_call() -> None:
    call = events.ToolCallUpdate("c", title="Write", kind="edit")
    yes = services.PermissionOption("y", "Yes", "allow_once")
    question = services.RequestPermission("s", "Write", [yes], subject=services.ToolCallSubject(call))
    method, params = asked(agent_of(JUNE), question)
    assert (method, params["toolCall"]["toolCallId"]) == ("session/request_permission", "c")
    assert params["options"] == [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    assert "subject" not in params
    answer = agent_of(JUNE).hear_reply(question, Raw(b'{"outcome":{"outcome":"selected","optionId":"y"}}'))
    assert answer.reply == services.PermissionAnswer(services.Selected("y"))


def test_8_2_14_a_diff_is_two_texts() -> None:
    diff = tools.Diff.of("/a", None, "b")
    (update,) = updates(agent_of(JUNE), events.ToolCallUpdate("c", title="t", content=[diff]))
    assert update == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "title": "t",
        "content": [{"type": "diff", "path": "/a", "oldText": None, "newText": "b"}],
    }


def test_8_2_15_a_terminal_is_text() -> None:
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


@pytest.mark.parametrize(
    "event",
    [
        events.Running(),
        events.RequiresAction(),
        events.Notice("info", "n"),
        events.CompactionUpdate("c", "completed"),
        events.UnknownEvent("_x", {}),
    ],
)
def test_8_2_16_what_the_draft_does_not_have_is_not_said(event: events.AnyEvent) -> None:
    assert updates(agent_of(JUNE), event) == []


@pytest.mark.parametrize("method", ["session/set_mode", "session/fork", "elicitation/create", "auth/status"])
def test_8_2_16_what_the_draft_does_not_have_is_not_heard(method: str) -> None:
    assert refusal(agent_of(JUNE), method, {"sessionId": "s", "modeId": "m", "cwd": "/"})[0] == -32601


def test_8_2_2_logging_in_is_called_authenticate() -> None:
    assert heard(agent_of(JUNE), "authenticate", {"methodId": "login"}) == requests.Login("login")
    assert client_of(JUNE).ask(requests.Login("login")).method == "authenticate"


# -- the client ------------------------------------------------------------------------------------------------------


def test_what_the_agent_says_the_client_hears() -> None:
    agent, client = agent_of(JUNE), client_of(JUNE)
    told: list[events.AnyEvent] = [
        events.AgentMessage("m", [Text("a")]),
        events.ToolCallUpdate("c", title="t", status="pending"),
        events.ToolCallContentChunk("c", tools.Diff.of("/a", "x", "y")),
        events.PlanUpdate(options.PlanItems("p", [options.PlanEntry("c", "high", "pending")])),
        events.CommandsChanged([options.Command("n", "d", options.CommandInput("h"))]),
    ]
    said = [out for event in told for out in agent.tell("s", event)]
    heard_ = [one for out in said for one in client.hear_note("session/update", Raw(out.params))]  # type: ignore[union-attr]
    assert heard_ == [Told("s", event) for event in told]


def test_the_answer_to_a_prompt_ends_its_turn() -> None:
    client = client_of(JUNE)
    prompt = requests.Prompt("s", [Text("x")])
    assert client.ask(prompt).early is not None
    (told,) = client.hear_reply(prompt, Raw(b'{"stopReason":"end_turn"}')).told
    assert told.event == events.Idle(stop_reason="end_turn")


def test_an_opened_session_names_itself() -> None:
    agent = agent_of(JUNE)
    request = heard(agent, "session/new", {"cwd": "/", "mcpServers": []})
    (answer,) = agent.reply(1, request, requests.SessionOpened("s"))
    assert answer == Answer(1, b'{"sessionId":"s"}')
