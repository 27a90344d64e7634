"""elephant.ai's dialect, as its document has it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.dialects.vendors.elephant import IgnoredLogin
from dragoman.dialects.vendors.named import load_dialect
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.content import Audio, Image, Resource, Text, TextResource
from tests.dialects.joined_dialects import AGENT, CLIENT
from tests.dialects.schemas import text
from tests.dialects.vendor_agents import (
    HELLO_WORLD,
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
from tests.support.messages import prompt

NAME = "elephant"
CWD = os.getcwd()
STDIO = {"type": "stdio", "name": "n", "command": "c", "args": [], "env": []}


@pytest.mark.requirement("8.3.13")
def test_initialize_claims_what_the_document_claims() -> None:
    said = json.loads(load_dialect(NAME).encode_agent(AGENT, CLIENT))
    assert said == {
        "protocolVersion": 1,
        "agentInfo": {"name": "agent", "version": "1"},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"audio": True, "image": True, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {},
        },
        "authMethods": [],
    }


@pytest.mark.requirement("8.3.4")
@pytest.mark.parametrize("version", [0, 1, 2, 7])
async def test_the_version_is_always_1(version: int) -> None:
    async with talking(an_agent(NAME)) as wire:
        assert (await Caller(wire).hello(protocolVersion=version))["protocolVersion"] == 1


@pytest.mark.requirement("8.3.5")
async def test_a_login_is_taken_and_means_nothing() -> None:
    assert heard(agent_of(NAME), "authenticate", {"methodId": "any"}) == IgnoredLogin()
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        assert await caller.result("authenticate", methodId="whatever") == {}
        assert (await caller.error("authenticate"))["code"] == -32602


@pytest.mark.requirement("8.3.11")
async def test_the_modes_are_the_document_s(tmp_path: Path) -> None:
    seen: list[object] = []
    agent = an_agent(NAME, tmp_path)

    @agent.option_changed
    async def changed(session: Session, config_id: str, value: object) -> None:
        seen.append(value)

    async with talking(agent) as wire:
        caller = Caller(wire)
        await caller.hello()
        session = await caller.new()
        assert sorted(session) == ["modes", "sessionId"]
        assert session["modes"]["currentModeId"] == "full"
        assert session["modes"]["availableModes"] == [
            {"id": "full", "name": "Full Access", "description": "All tools available"},
            {"id": "read-only", "name": "Read-Only", "description": "No local writes or execution"},
            {"id": "safe", "name": "Safe Mode", "description": "Excludes potentially dangerous tools"},
            {
                "id": "sandbox",
                "name": "Sandbox Mode",
                "description": "Disable local file/shell tools; use sandbox_* tools instead",
            },
        ]
        id = session["sessionId"]
        for mode in ("safe", "full"):
            assert await caller.result("session/set_mode", sessionId=id, modeId=mode) == {}
        # Full is the mode that asks, and never the one that does not.
        assert seen == ["safe", "ask"]
        for mode in ("full-access", "ask", "plan", ""):
            assert (await caller.error("session/set_mode", sessionId=id, modeId=mode))["code"] == -32602
        assert caller.told() == [
            {"sessionUpdate": "current_mode_update", "currentModeId": "safe"},
            {"sessionUpdate": "current_mode_update", "currentModeId": "full"},
        ]


@pytest.mark.requirement("8.3.11")
def test_a_mode_of_ours_is_told_as_the_nearest() -> None:
    agent = agent_of(NAME)
    choices: list[Any] = [options.Choice(mode, mode) for mode in ("ask", "plan", "workspace-write")]
    request = heard(agent, "session/new", {"cwd": "/", "mcpServers": []})
    mode = options.Select("mode", "Mode", "plan", choices, category="mode")
    (answer,) = agent.encode_reply(1, request, requests.SessionOpened("s", [mode]))
    assert json.loads(answer.result)["modes"]["currentModeId"] == "read-only"  # type: ignore[union-attr]


@pytest.mark.requirement("8.3.7")
@pytest.mark.parametrize("kind", ["http", "sse"])
def test_only_servers_that_are_started_are_taken(kind: str) -> None:
    reached = {"type": kind, "name": "n", "url": "http://h", "headers": []}
    assert refusal(agent_of(NAME), "session/new", {"cwd": "/", "mcpServers": [reached]})[0] == -32602
    assert heard(agent_of(NAME), "session/new", {"cwd": "/", "mcpServers": [STDIO]}).mcp_servers == [
        requests.McpStdio("n", "c", [], [])
    ]


@pytest.mark.requirement("8.3.9")
def test_embedded_text_stays_an_attachment() -> None:
    block = {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}
    request = heard(agent_of(NAME), "session/prompt", {"sessionId": "s", "prompt": [block]})
    assert request.prompt == [Resource(TextResource("t", "file:///a"))]


def test_pictures_and_sounds_are_taken() -> None:
    blocks = [{"type": "image", "data": "aa", "mimeType": "image/png"}, {"type": "audio", "data": "aa"}]
    request = heard(agent_of(NAME), "session/prompt", {"sessionId": "s", "prompt": blocks})
    assert request.prompt == [Image("aa", "image/png"), Audio("aa", "application/octet-stream")]


@pytest.mark.requirement("8.3.10")
async def test_a_second_prompt_is_refused_with_a_text() -> None:
    agent = Agent("ours", dialect=NAME)
    gate = asyncio.Event()

    @agent.prompt
    async def wait(session: Session, prompt: Prompt) -> None:
        await gate.wait()

    async with talking(agent) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]
        wire.say(prompt(50, id))
        error = await caller.error("session/prompt", sessionId=id, prompt=HELLO_WORLD)
        assert (error["code"], error["data"]) == (-32600, "busy")
        gate.set()
        assert (await wire.answer(50))["result"] == {"stopReason": "end_turn"}


@pytest.mark.requirement("8.3.17")
async def test_error_data_is_a_text() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        error = await caller.error("session/prompt", sessionId="nope", prompt=HELLO_WORLD)
        assert (error["code"], error["data"]) == (-32602, "nope")
        folder = await caller.error("session/new", cwd="/no/such/folder", mcpServers=[])
        assert (folder["code"], folder["data"]) == (-32602, "/no/such/folder")


@pytest.mark.requirement("8.3.16", "8.3.12")
async def test_a_turn_repeats_the_prompt_and_has_no_thoughts(tmp_path: Path) -> None:
    async with talking(an_agent(NAME, tmp_path)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]
        end = await caller.result("session/prompt", sessionId=id, prompt=HELLO_WORLD)
        assert end == {"stopReason": "end_turn"}
        turn = [
            {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hello"}},
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}},
        ]
        assert caller.told() == turn
        # What was not sent was kept.
        log = await agent_log(tmp_path, id)
        assert "Hm." in log
        loaded = await caller.result("session/load", sessionId=id, cwd=CWD, mcpServers=[])
        assert list(loaded) == ["modes"]
        assert caller.told() == turn * 2


async def agent_log(folder: Path, id: str) -> str:
    """Everything that is on disk of a session, thoughts too."""
    found = [path for path in folder.rglob("*") if path.is_file() and id in path.name]
    return "".join(path.read_bytes().decode("latin-1") for path in found)


@pytest.mark.requirement("8.3.15")
def test_a_call_is_in_progress_from_its_first_word() -> None:
    said = updates(
        agent_of(NAME),
        events.ToolCallUpdate("c", title="Run", kind="execute", status="pending", raw_input={"a": 1}),
        events.ToolCallUpdate("c", status="pending"),
        events.ToolCallUpdate(
            "c", status="completed", content=[tools.ContentItem(Text("o"))], raw_output={"exitCode": 0}
        ),
    )
    assert said == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "Run",
            "kind": "execute",
            "status": "in_progress",
            "rawInput": {"a": 1},
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress"},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "o"}}],
            "rawOutput": {"exitCode": 0},
        },
    ]


@pytest.mark.requirement("8.3.15")
@pytest.mark.parametrize("status", ["pending", "in_progress", "completed", "failed"])
def test_a_call_that_shows_something_at_once_begins_in_progress_all_the_same(status: str) -> None:
    call = events.ToolCallUpdate("c", title="Run", status=status, content=[tools.ContentItem(Text("o"))])
    assert updates(agent_of(NAME), call) == [
        {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Run", "status": "in_progress"},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "status": "in_progress" if status == "pending" else status,
            "content": [{"type": "content", "content": {"type": "text", "text": "o"}}],
        },
    ]


def test_a_plan_has_the_document_s_words_and_a_removed_one_is_empty() -> None:
    plan = options.PlanItems("p", [options.PlanEntry("c", "_urgent", "cancelled")])
    assert updates(agent_of(NAME), events.PlanUpdate(plan), events.PlanRemoved("q"), events.PlanRemoved("p")) == [
        {"sessionUpdate": "plan", "entries": [{"content": "c", "priority": "medium", "status": "completed"}]},
        {"sessionUpdate": "plan", "entries": []},
    ]


def test_a_plan_is_one_plan() -> None:
    plan = options.PlanItems("p", [options.PlanEntry("c", "high", "pending")])
    assert updates(agent_of(NAME), events.PlanUpdate(plan)) == [
        {"sessionUpdate": "plan", "entries": [{"content": "c", "priority": "high", "status": "pending"}]}
    ]


@pytest.mark.requirement("8.3.16")
@pytest.mark.parametrize(
    "event",
    [
        events.AgentThoughtChunk(Text("t"), "m"),
        events.CommandsChanged([options.Command("n", "d")]),
        events.UsageChanged(1, 2),
        events.OptionsChanged([]),
        events.SessionInfoChanged(title="t"),
        events.Notice("error", "n"),
    ],
)
def test_other_updates_are_not_sent(event: events.AnyEvent) -> None:
    assert updates(agent_of(NAME), event) == []


@pytest.mark.parametrize("method", ["session/list", "session/resume", "session/set_config_option", "session/close"])
def test_what_the_document_does_not_have_is_not_found(method: str) -> None:
    params = {"sessionId": "s", "cwd": "/", "configId": "mode", "value": "ask"}
    assert refusal(agent_of(NAME), method, params)[0] == -32601


# -- permission ------------------------------------------------------------------------------------------------------

FOUR = [services.PermissionOption(f"id-{kind}", kind, kind) for kind in ("allow_always", "allow_once")]
FOUR += [services.PermissionOption(f"id-{kind}", kind, kind) for kind in ("reject_once", "reject_always")]
QUESTION = services.RequestPermission(
    "s", "Run", FOUR, subject=services.ToolCallSubject(events.ToolCallUpdate("c", title="Run"))
)


@pytest.mark.requirement("8.3.14")
def test_two_options_are_offered() -> None:
    assert asked(agent_of(NAME), QUESTION)[1]["options"] == [
        {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"},
    ]


@pytest.mark.requirement("8.3.14")
@pytest.mark.parametrize(
    ("outcome", "chosen"),
    [
        ({"outcome": "selected", "optionId": "allow_once"}, "id-allow_once"),
        ({"outcome": "selected", "optionId": "reject_once"}, "id-reject_once"),
        ({"outcome": "selected", "optionId": "allow_always"}, None),
        ({"outcome": "selected", "optionId": "id-allow_always"}, None),
        ({"outcome": "cancelled"}, None),
        ({"outcome": "nonsense"}, None),
    ],
)
def test_an_answer_is_one_of_them_or_a_no(outcome: Any, chosen: str | None) -> None:
    reply = agent_of(NAME).decode_reply(QUESTION, Raw(text({"outcome": outcome}))).reply
    assert isinstance(reply, services.PermissionAnswer)
    assert (reply.outcome.option_id if isinstance(reply.outcome, services.Selected) else None) == chosen


# -- the client ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.3.6")
def test_a_client_says_the_type_of_its_servers() -> None:
    request = requests.NewSession("/", mcp_servers=[requests.McpStdio("n", "c", [], [])])
    assert json.loads(client_of(NAME).encode_request(request).params)["mcpServers"] == [STDIO]
