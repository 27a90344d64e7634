"""Agentao's dialect, as its appendix has it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.dialects.contract import ErrorMessage, NotificationMessage, SessionEvent
from dragoman.dialects.vendors.named import load_dialect
from dragoman.errors import PeerMistake, RequestFailed, WireError
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.content import Image, Text
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

NAME = "agentao"
CWD = os.getcwd()
STDIO = {"name": "one", "command": "true", "args": [], "env": []}


# -- initialize ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.4.1", "8.4.3")
@pytest.mark.parametrize(
    "params", [{"protocolVersion": 1}, {"protocolVersion": True, "clientCapabilities": {}}, {"clientCapabilities": {}}]
)
def test_initialize_is_strict(params: Any) -> None:
    with pytest.raises(PeerMistake) as caught:
        load_dialect(NAME).decode_client(Raw(text(params)))
    assert caught.value.code == -32602


@pytest.mark.requirement("8.4.3")
@pytest.mark.parametrize("asked_for", [0, 1, 2, 99])
async def test_any_version_is_answered_with_1(asked_for: int) -> None:
    async with talking(an_agent(NAME)) as wire:
        hello = await Caller(wire).hello(protocolVersion=asked_for)
        assert (hello["protocolVersion"], hello["authMethods"], hello["agentInfo"]["name"]) == (1, [], "ours")


@pytest.mark.requirement("8.4.4", "8.4.5")
def test_capabilities_and_extensions_are_the_appendix_s() -> None:
    said = json.loads(load_dialect(NAME).encode_agent(AGENT, CLIENT))
    assert said["agentCapabilities"] == {
        "loadSession": True,
        "promptCapabilities": {"image": False, "audio": False, "embeddedContext": False},
        "mcpCapabilities": {"sse": True, "http": False},
    }
    methods = [entry["method"] for entry in said["_meta"]["_agentao.cn/extensions"]]
    assert methods == ["_agentao.cn/ask_user", "_agentao.cn/set_model"]


@pytest.mark.requirement("8.4.2")
def test_files_may_be_offered_under_other_names() -> None:
    body = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readFile": True, "writeFile": "yes"}}}
    can = load_dialect(NAME).decode_client(Raw(text(body))).hello.capabilities
    assert (can.read_text_file, can.write_text_file) == (True, False)


@pytest.mark.requirement("8.4.6")
async def test_before_initialize_the_code_is_its_own() -> None:
    async with talking(an_agent(NAME)) as wire:
        assert (await Caller(wire).error("session/new", cwd=CWD, mcpServers=[]))["code"] == -32002


@pytest.mark.requirement("8.4.6")
async def test_everywhere_else_it_is_an_invalid_request() -> None:
    async with talking(an_agent(None)) as wire:
        assert (await Caller(wire).error("session/new", cwd=CWD, mcpServers=[]))["code"] == -32600


# -- sessions --------------------------------------------------------------------------------------------------------


async def test_a_turn_has_the_updates_of_the_appendix_and_no_others() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        session = await caller.new()
        assert sorted(session) == ["configOptions", "sessionId"]
        (option,) = session["configOptions"]
        assert (option["id"], option["category"], option["currentValue"]) == ("model", "model", "p/a")
        end = await caller.result("session/prompt", sessionId=session["sessionId"], prompt=HELLO_WORLD)
        assert end == {"stopReason": "end_turn"}
        assert caller.told() == [
            {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Hm."}},
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}},
        ]


@pytest.mark.requirement("8.4.22")
async def test_a_cwd_that_is_no_folder_is_refused() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        for cwd in ("/no/such/folder", "relative"):
            assert (await caller.error("session/new", cwd=cwd, mcpServers=[]))["code"] == -32602


def test_http_servers_are_refused() -> None:
    http = {"type": "http", "name": "h", "url": "http://h", "headers": []}
    sse = {**http, "type": "sse"}
    assert refusal(agent_of(NAME), "session/new", {"cwd": "/", "mcpServers": [http]})[0] == -32602
    assert refusal(agent_of(NAME), "session/load", {"sessionId": "s", "cwd": "/", "mcpServers": [http]})[0] == -32602
    assert heard(agent_of(NAME), "session/new", {"cwd": "/", "mcpServers": [sse]}).mcp_servers


@pytest.mark.requirement("8.4.15")
@pytest.mark.parametrize("method", ["session/new", "session/load"])
@pytest.mark.parametrize(
    "servers",
    [
        {},
        {"mcpServers": None},
        {"mcpServers": {}},
        {"mcpServers": {"one": STDIO}},
        {"mcpServers": [{**STDIO, "name": ""}]},
        {"mcpServers": [STDIO, {**STDIO, "name": 1}]},
        {"mcpServers": [{key: value for key, value in STDIO.items() if key != "name"}]},
        {"mcpServers": ["one"]},
    ],
)
def test_servers_that_are_no_list_or_have_no_name_are_refused(method: str, servers: Any) -> None:
    assert refusal(agent_of(NAME), method, {"sessionId": "s", "cwd": "/", **servers})[0] == -32602


@pytest.mark.parametrize("method", ["session/list", "session/fork", "session/close", "authenticate", "session/nope"])
def test_what_the_appendix_does_not_have_is_not_found(method: str) -> None:
    assert refusal(agent_of(NAME), method, {"sessionId": "s", "cwd": "/", "methodId": "login"})[0] == -32601


async def test_an_unknown_session_is_a_bad_parameter() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        assert (await caller.error("session/prompt", sessionId="nope", prompt=HELLO_WORLD))["code"] == -32602


@pytest.mark.requirement("8.4.15")
@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([], [], True),
        ([STDIO], [STDIO], True),
        ([], [STDIO], False),
        ([STDIO], [], False),
        ([STDIO], [{**STDIO, "args": ["x"]}], False),
        ([STDIO, {**STDIO, "name": "two"}], [{**STDIO, "name": "two"}, STDIO], False),
    ],
)
async def test_a_session_is_loaded_with_the_servers_it_was_begun_with(
    tmp_path: Path, first: Any, second: Any, same: bool
) -> None:
    async with talking(an_agent(NAME, tmp_path)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new(mcpServers=first))["sessionId"]
        await caller.result("session/prompt", sessionId=id, prompt=HELLO_WORLD)
        here = await caller.ask("session/load", sessionId=id, cwd=CWD, mcpServers=second)
        assert ("result" in here) == same
    async with talking(an_agent(NAME, tmp_path)) as wire:
        caller = Caller(wire)
        await caller.hello()
        again = await caller.ask("session/load", sessionId=id, cwd=CWD, mcpServers=second)
        if same:
            assert list(again["result"]) == ["configOptions"]
            kinds = [update["sessionUpdate"] for update in caller.told()]
            assert kinds == ["user_message_chunk", "agent_thought_chunk", "agent_message_chunk"]
        else:
            assert again["error"]["code"] == -32602
        other = await caller.error("session/load", sessionId=id, cwd="/", mcpServers=first)
        assert other["code"] == -32602


@pytest.mark.requirement("8.4.15")
async def test_everywhere_else_the_servers_may_change(tmp_path: Path) -> None:
    async with talking(an_agent(None, tmp_path)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]
        assert await caller.result("session/load", sessionId=id, cwd=CWD, mcpServers=[STDIO])


@pytest.mark.requirement("8.4.7")
async def test_the_first_new_session_goes_on_with_a_stored_one(tmp_path: Path) -> None:
    async with talking(an_agent(NAME, tmp_path)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]
        await caller.result("session/prompt", sessionId=id, prompt=HELLO_WORLD)
    async with talking(an_agent(NAME, tmp_path, resume=id)) as wire:
        caller = Caller(wire)
        await caller.hello()
        assert (await caller.new())["sessionId"] == id
        assert (await caller.new())["sessionId"] != id
        assert caller.told()[0]["sessionUpdate"] == "user_message_chunk"
    async with talking(an_agent(NAME, tmp_path, resume="no-such-session")) as wire:
        caller = Caller(wire)
        await caller.hello()
        assert (await caller.new())["sessionId"] not in (id, "no-such-session")


# -- cancel ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.4.14")
async def test_a_cancel_is_a_request_and_ends_a_question() -> None:
    agent = Agent("ours", dialect=NAME)
    begun = asyncio.Event()
    answers: list[bool] = []

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        begun.set()
        answers.append(bool(await session.ask_permission("May I?")))

    async with talking(agent) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]
        wire.say(prompt(50, id))
        await begun.wait()
        assert await caller.result("session/cancel", sessionId=id) == {}
        assert (await wire.answer(50))["result"] == {"stopReason": "cancelled"}
        assert answers == []


# -- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.4.17")
@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"configId": "mode", "value": "plan"}, -32600),
        ({"configId": "model", "value": "p/a", "_meta": {}}, -32602),
        ({"configId": "model", "value": "p/a", "apiKey": "k"}, -32602),
        ({"configId": "model", "value": "p/a", "baseUrl": "u"}, -32602),
        ({"configId": "model", "value": "p/a", "type": "id"}, -32602),
        ({"configId": "model", "value": ""}, -32602),
        ({"configId": "model", "value": 1}, -32602),
        ({"configId": "model"}, -32602),
    ],
)
def test_an_option_takes_three_fields_and_is_the_model(params: Any, code: int) -> None:
    assert refusal(agent_of(NAME), "session/set_config_option", {"sessionId": "s", **params})[0] == code


@pytest.mark.requirement("8.4.16")
async def test_a_model_is_split_at_the_first_slash() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]

        async def current(value: str) -> str:
            result = await caller.result("session/set_config_option", sessionId=id, configId="model", value=value)
            (option,) = result["configOptions"]
            assert option["currentValue"] in [choice["value"] for choice in option["options"]]
            return str(option["currentValue"])

        assert await current("P/b") == "p/b"
        assert await current("OpenAI/org/Model") == "openai/org/Model"
        assert await current("Other") == "openai/Other"


@pytest.mark.requirement("8.4.16")
async def test_a_provider_that_cannot_be_resolved_changes_nothing() -> None:
    agent = an_agent(NAME)

    @agent.option_changed
    async def resolve(session: Session, config_id: str, value: object) -> None:
        if not str(value).startswith("p/"):
            raise RequestFailed(-32600, f"cannot resolve provider '{str(value).partition('/')[0]}'")

    async with talking(agent) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]
        error = await caller.error("session/set_config_option", sessionId=id, configId="model", value="Q/x")
        assert (error["code"], error["message"]) == (-32600, "cannot resolve provider 'q'")
        assert await caller.result("_agentao.cn/set_model", sessionId=id, model="b") == {"model": "b"}


@pytest.mark.requirement("8.4.19")
async def test_a_model_may_be_set_by_its_bare_name() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]
        assert await caller.result("_agentao.cn/set_model", sessionId=id, model="  any/thing ") == {
            "model": "any/thing"
        }
        result = await caller.result("session/set_config_option", sessionId=id, configId="model", value="a")
        assert result["configOptions"][0]["currentValue"] == "p/a"
        for key in ("_meta", "apiKey", "baseUrl"):
            more: Any = {key: {}}
            assert (await caller.error("_agentao.cn/set_model", sessionId=id, model="a", **more))["code"] == -32602
        assert (await caller.error("_agentao.cn/set_model", sessionId=id, model="  "))["code"] == -32602


@pytest.mark.requirement("8.4.18")
async def test_without_a_catalogue_there_are_no_options() -> None:
    agent = Agent("ours", dialect=NAME)
    agent.prompt(_nothing)
    async with talking(agent) as wire:
        caller = Caller(wire)
        await caller.hello()
        assert (await caller.new())["configOptions"] == []


async def _nothing(session: Session, prompt: Prompt) -> None: ...


# -- modes -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.4.20", "8.4.23")
async def test_a_preset_is_applied_and_any_other_mode_is_kept_and_echoed(tmp_path: Path) -> None:
    seen: list[tuple[str, object]] = []
    agent = an_agent(NAME, tmp_path)

    @agent.option_changed
    async def changed(session: Session, config_id: str, value: object) -> None:
        seen.append((config_id, value))

    async with talking(agent) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]
        for mode in ("plan", "code", "ask", "full-access"):
            assert await caller.result("session/set_mode", sessionId=id, modeId=mode) == {"modeId": mode}
        # `ask` is a mode of ours and none of the appendix's: a name like any other.
        assert seen == [("mode", "plan"), ("mode", "full-access")]
        assert (await caller.error("session/set_mode", sessionId=id, modeId=""))["code"] == -32602
        assert (await caller.error("session/set_mode", sessionId=id))["code"] == -32602
        assert (await caller.error("session/set_mode", sessionId="nope", modeId="code"))["code"] == -32602
        assert caller.told() == []


@pytest.mark.requirement("8.4.20")
async def test_a_preset_needs_a_session_with_modes() -> None:
    agent = Agent("ours", dialect=NAME)
    agent.prompt(_nothing)
    async with talking(agent) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.new())["sessionId"]
        assert (await caller.error("session/set_mode", sessionId=id, modeId="plan"))["code"] == -32600
        assert await caller.result("session/set_mode", sessionId=id, modeId="code") == {"modeId": "code"}


@pytest.mark.requirement("8.4.20")
def test_everywhere_else_an_unknown_mode_is_refused() -> None:
    from dragoman.agent.session_core import options_with

    mode = options.Select("mode", "Mode", "ask", [options.Choice("ask", "Ask")], category="mode")
    with pytest.raises(RequestFailed) as caught:
        options_with([mode], requests.SetOption("s", "mode", "code"), open_models=True)
    assert caught.value.code == -32602


# -- updates ---------------------------------------------------------------------------------------------------------


def shown_at_the_end(*told: events.ToolCallUpdate) -> Any:
    """What the last of these shows, once its call was announced."""
    begun = events.ToolCallUpdate("c", title="Run", content=[tools.ContentItem(Text("a"))])
    said = updates(agent_of(NAME), begun, *told)
    assert all("content" not in update for update in said[:-1])
    return [item["content"]["text"] for item in said[-1].get("content", [])]


@pytest.mark.requirement("8.4.10")
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_call_that_ends_shows_everything_it_has_shown(status: str) -> None:
    going_on = events.ToolCallUpdate("c", status="in_progress")
    assert shown_at_the_end(going_on, events.ToolCallUpdate("c", status=status)) == ["a"]


@pytest.mark.requirement("8.4.10")
def test_a_call_that_ends_with_content_of_its_own_shows_that() -> None:
    other: Any = [tools.ContentItem(Text("b"))]
    assert shown_at_the_end(events.ToolCallUpdate("c", status="completed", content=other)) == ["b"]
    assert shown_at_the_end(events.ToolCallUpdate("c", status="completed", content=None)) == []
    cleared = events.ToolCallUpdate("c", content=[])
    assert shown_at_the_end(cleared, events.ToolCallUpdate("c", status="completed")) == []


@pytest.mark.requirement("8.4.10")
def test_a_call_begins_pending_and_shows_its_content_once() -> None:
    item = tools.ContentItem(Text("out"))
    said = updates(
        agent_of(NAME),
        events.ToolCallUpdate("c", title="Run", kind="execute", status="in_progress", raw_input={"a": 1}),
        events.ToolCallContentChunk("c", item),
        events.ToolCallContentChunk("c", item),
        events.ToolCallUpdate("c", title="Ran"),
        events.ToolCallUpdate("c", status="completed", raw_output="o"),
    )
    shown = {"type": "content", "content": {"type": "text", "text": "out"}}
    assert said == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "Run",
            "kind": "execute",
            "status": "pending",
            "rawInput": {"a": 1},
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed", "content": [shown, shown]},
    ]


@pytest.mark.parametrize(
    "event",
    [
        events.PlanUpdate(options.PlanItems("p", [options.PlanEntry("c")])),
        events.UsageChanged(1, 2),
        events.CommandsChanged([options.Command("n", "d")]),
        events.SessionInfoChanged(title="t"),
        events.OptionsChanged([]),
        events.Notice("info", "n"),
        events.CompactionUpdate("c", "completed"),
        events.UnknownEvent("_x", {}),
    ],
)
def test_other_updates_are_not_sent(event: events.AnyEvent) -> None:
    assert updates(agent_of(NAME), event) == []


@pytest.mark.requirement("8.4.9")
def test_an_error_is_a_thought() -> None:
    agent = agent_of(NAME)
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO_WORLD})
    agent.encode_reply(1, request, requests.PromptAccepted("u"))
    failure = events.Failure(-32603, "It broke")
    thought, end = agent.encode_event("s", events.Idle(stop_reason="error", error=failure))
    assert isinstance(thought, NotificationMessage)
    assert json.loads(thought.params)["update"] == {
        "sessionUpdate": "agent_thought_chunk",
        "content": {"type": "text", "text": "It broke"},
    }
    assert end == ErrorMessage(1, WireError(-32603, "It broke"))


def test_what_is_no_text_is_told_in_words() -> None:
    (update,) = updates(agent_of(NAME), events.UserMessageChunk(Image("aa", "image/png"), "m"))
    assert update["content"] == {"type": "text", "text": "[image: image/png]"}


# -- permission ------------------------------------------------------------------------------------------------------

FOUR = [services.PermissionOption(f"id-{kind}", kind, kind) for kind in ("allow_once", "allow_always")]
FOUR += [services.PermissionOption(f"id-{kind}", kind, kind) for kind in ("reject_once", "reject_always")]
CALL = services.ToolCallSubject(events.ToolCallUpdate("c", title="Write"))
QUESTION = services.RequestPermission("s", "Write", FOUR, subject=CALL)


@pytest.mark.requirement("8.4.12", "8.4.11")
def test_three_options_are_offered() -> None:
    method, params = asked(agent_of(NAME), QUESTION)
    assert method == "session/request_permission"
    assert [(o["optionId"], o["kind"]) for o in params["options"]] == [
        ("allow", "allow_once"),
        ("allow_always", "allow_always"),
        ("reject", "reject_once"),
    ]
    assert (params["toolCall"]["status"], params["toolCall"]["title"]) == ("pending", "Write")


@pytest.mark.requirement("8.4.12")
@pytest.mark.parametrize(
    ("outcome", "chosen"),
    [
        ({"outcome": "selected", "optionId": "allow"}, "id-allow_once"),
        ({"outcome": "selected", "optionId": "allow_always"}, "id-allow_always"),
        ({"outcome": "selected", "optionId": "reject"}, "id-reject_once"),
        ({"outcome": "selected", "optionId": "id-allow_once"}, None),
        ({"outcome": "selected", "optionId": "reject_always"}, None),
        ({"outcome": "selected", "optionId": "allow_once"}, None),
        ({"outcome": "cancelled"}, None),
        ({"outcome": "allowed"}, None),
    ],
)
def test_an_answer_is_one_of_them_or_a_no(outcome: Any, chosen: str | None) -> None:
    reply = agent_of(NAME).decode_reply(QUESTION, Raw(text({"outcome": outcome}))).reply
    assert isinstance(reply, services.PermissionAnswer)
    if chosen is None:
        assert not isinstance(reply.outcome, services.Selected)
    else:
        assert reply.outcome == services.Selected(chosen)


def test_an_allow_that_was_not_in_the_question_is_not_offered() -> None:
    only_no = services.RequestPermission("s", "Write", [FOUR[2]], subject=CALL)
    assert [o["optionId"] for o in asked(agent_of(NAME), only_no)[1]["options"]] == ["reject"]
    reply = agent_of(NAME).decode_reply(only_no, Raw(b'{"outcome":{"outcome":"selected","optionId":"allow"}}')).reply
    assert reply == services.PermissionAnswer(services.Dismissed())


# -- asking the user -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.4.21")
def test_the_user_can_always_be_asked() -> None:
    can = load_dialect(NAME).decode_client(Raw(b'{"protocolVersion":1,"clientCapabilities":{}}')).hello.capabilities
    assert can.meta == {"_agentao.cn/extensions": [{"method": "_agentao.cn/ask_user"}]}


# -- the client ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.4.10", "agentao-1")
def test_content_is_added_unless_it_repeats_what_was_there() -> None:
    client = client_of(NAME)

    def content(*words: str, status: str = "in_progress") -> list[str]:
        items = [{"type": "content", "content": {"type": "text", "text": word}} for word in words]
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status, "content": items}
        (told,) = client.decode_notification("session/update", Raw(text({"sessionId": "s", "update": update})))
        assert isinstance(told, SessionEvent)
        assert isinstance(told.event, events.ToolCallUpdate)
        assert isinstance(told.event.content, list)
        return [item.content.text for item in told.event.content]  # type: ignore[union-attr]

    assert content("a") == ["a"]
    assert content("b") == ["a", "b"]
    assert content("a", "b", "c") == ["a", "b", "c"]
    assert content("d", status="completed") == ["a", "b", "c", "d"]
    assert content("e") == ["e"]
    # The program repeats a text with what has come since, and cuts the middle out of a long one.
    assert content("e f") == ["e f"]
    assert content("e f", "Error") == ["e f", "Error"]
    long = "e f" + "x" * 5000
    assert content(long, "Error") == [long, "Error"]
    cut = long[:4000] + " ... " + "y"
    assert content(cut, "Error", status="failed") == [cut, "Error"]


def test_the_program_s_mode_update_is_understood_although_the_appendix_has_none() -> None:
    client = client_of(NAME)
    params = {"sessionId": "s", "update": {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}}
    (told,) = client.decode_notification("session/update", Raw(json.dumps(params).encode()))
    assert isinstance(told, SessionEvent) and isinstance(told.event, events.OptionsChanged)
    (mode,) = told.event.config_options
    assert isinstance(mode, options.Select) and (mode.category, mode.current_value) == ("mode", "plan")
    assert updates(agent_of(NAME), told.event) == []
