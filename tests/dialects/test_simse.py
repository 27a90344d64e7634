"""simse's dialect, in both roles."""

import asyncio
import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.dialects.contract import ResultMessage, SessionEvent
from dragoman.dialects.vendors.named import load_dialect
from dragoman.dialects.vendors.simse import SimseAgentAdapter, SimseClientAdapter
from dragoman.dialects.vendors.wire_adapter import notification_frame, request_frame, result_frame
from dragoman.errors import WireError
from dragoman.testing import pair
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.asking import Extension, ExtensionResult
from dragoman.vocabulary.content import Content, Resource, Text, TextResource
from dragoman.vocabulary.hello import AgentHello
from tests.dialects.schemas import text
from tests.dialects.vendor_agents import Caller, agent_of, an_agent, client_of, refusal, talking, updates
from tests.support.messages import prompt
from tests.support.waiting import until

NAME = "simse"


@pytest.mark.requirement("8.5.12")
async def test_no_client_has_to_initialize() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        assert list(await caller.new()) == ["sessionId"]
        assert (await caller.error("initialize", protocolVersion=1))["code"] == -32600
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        hello = await caller.hello()
        assert (hello["protocolVersion"], hello["agentCapabilities"], hello["authMethods"]) == (1, {}, [])
        assert list(await caller.new()) == ["sessionId"]


@pytest.mark.requirement("8.5.4", "8.5.3")
async def test_an_update_stands_beside_its_session_and_where_it_belongs() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        id = (await caller.new())["sessionId"]
        end = await caller.result("session/prompt", sessionId=id, prompt="hello")
        assert end == {"stopReason": "end_turn"}
        (message,) = [m["params"] for m in wire.heard if m.get("method") == "session/update"]
        said = {
            "sessionUpdate": "agent_message_chunk",
            "type": "agent_message_chunk",
            "content": {"type": "text", "text": "hello"},
        }
        assert message == {"sessionId": id, **said, "update": said}


@pytest.mark.requirement("8.5.5")
def test_what_is_no_message_and_no_call_is_words_or_nothing() -> None:
    agent = agent_of(NAME)
    plan = options.PlanItems("p", [options.PlanEntry("a", status="completed"), options.PlanEntry("b")])
    (said,) = updates(agent, events.PlanUpdate(plan))
    assert (said["sessionUpdate"], said["content"]["text"]) == ("agent_message_chunk", "- [x] a\n- [ ] b\n")
    rest: list[events.AnyEvent] = [
        events.AgentThoughtChunk(Text("t"), "m"),
        events.UserMessageChunk(Text("t"), "m"),
        events.CommandsChanged([]),
        events.UsageChanged(1, 2),
        events.Notice("info", "n"),
    ]
    assert updates(agent, *rest) == []


@pytest.mark.requirement("8.5.8")
def test_our_own_calls_are_nothing_to_be_run() -> None:
    said = updates(
        agent_of(NAME),
        events.ToolCallUpdate("c", name="bash", title="Run", kind="execute", status="pending", raw_input={"a": 1}),
        events.ToolCallUpdate("c", status="in_progress"),
        events.ToolCallUpdate("c", status="completed", content=[tools.ContentItem(Text("out"))]),
        events.ToolCallUpdate("d", title="Run", status="failed", raw_output="no"),
    )
    assert [update["sessionUpdate"] for update in said] == [
        *("tool_call", "tool_call_update", "tool_call_update"),
        *("tool_call", "tool_call_update"),
    ]
    assert all("toolName" not in update and "input" not in update for update in said)
    assert said[2] == {
        "sessionUpdate": "tool_call_update",
        "type": "tool_call_update",
        "toolCallId": "c",
        "status": "completed",
        "output": "out",
    }
    assert (said[4]["status"], said[4]["error"]) == ("completed", "no")


def ended(*told: events.AnyEvent) -> Any:
    """The end of a call that was announced, without what every end has."""
    last = updates(agent_of(NAME), events.ToolCallUpdate("c", title="Run", status="in_progress"), *told)[-1]
    common = {"sessionUpdate": "tool_call_update", "type": "tool_call_update", "toolCallId": "c", "status": "completed"}
    assert {name: last.pop(name) for name in common} == common
    return last


@pytest.mark.requirement("8.5.9")
def test_the_output_of_a_call_is_everything_it_has_shown() -> None:
    shown = [events.ToolCallContentChunk("c", tools.ContentItem(Text(text))) for text in ("a", "b")]
    assert ended(*shown, events.ToolCallUpdate("c", status="completed")) == {"output": "ab"}
    assert ended(*shown, events.ToolCallUpdate("c", status="failed")) == {"error": "ab"}
    other: Any = [tools.ContentItem(Text("c"))]
    assert ended(*shown, events.ToolCallUpdate("c", status="completed", content=other)) == {"output": "c"}


@pytest.mark.requirement("8.5.9")
@pytest.mark.parametrize(
    ("content", "raw", "output"),
    [
        ("shown", {"exitCode": 0}, "shown"),
        ("", {"exitCode": 0}, {"exitCode": 0}),
        ("", [1], [1]),
        ("", None, ""),
        ("", UNSET, ""),
    ],
)
def test_what_a_call_shows_goes_before_what_it_returned(content: str, raw: object, output: object) -> None:
    shown: Any = [tools.ContentItem(Text(content))]
    end = events.ToolCallUpdate("c", status="completed", content=shown, raw_output=raw)
    assert ended(end) == {"output": output}


@pytest.mark.requirement("8.5.9")
@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ("no", "no"),
        ({"code": 1, "reason": None}, '{"code":1,"reason":null}'),
        ([True], "[true]"),
        ("", "It failed"),
        ({}, "It failed"),
        (None, "It failed"),
        (UNSET, "It failed"),
    ],
)
def test_an_error_is_a_text(raw: object, error: str) -> None:
    assert ended(events.ToolCallUpdate("c", status="failed", raw_output=raw)) == {"error": error}


@pytest.mark.parametrize("method", ["session/load", "session/list", "session/set_mode", "authenticate"])
def test_what_the_document_does_not_have_is_not_found(method: str) -> None:
    assert refusal(agent_of(NAME), method, {"sessionId": "s", "cwd": "/", "modeId": "m"})[0] == -32601


# -- permission ------------------------------------------------------------------------------------------------------

FOUR = [services.PermissionOption(f"id-{kind}", kind, kind) for kind in ("allow_once", "allow_always")]
FOUR += [services.PermissionOption(f"id-{kind}", kind, kind) for kind in ("reject_once", "reject_always")]


def asking() -> tuple[Agent, list[str | None]]:
    """An agent that asks once a turn, and what it was answered."""
    agent = Agent("ours", dialect=NAME)
    answers: list[str | None] = []

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        permission = await session.ask_permission("Write a file", options=FOUR, description="to new.txt")
        answers.append(permission.option.kind if permission.option is not None else None)

    return agent, answers


@pytest.mark.requirement("8.5.7")
@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        *((word, word) for word in ("allow_once", "allow_always", "reject_once", "reject_always")),
        *((word, None) for word in ("allowed", "", "yes", None, 1, {"outcome": "selected"}, ["allow_once"])),
    ],
)
async def test_a_permission_is_asked_and_answered_by_notifications(outcome: Any, kind: str | None) -> None:
    agent, answers = asking()
    async with talking(agent) as wire:
        id = (await Caller(wire).new())["sessionId"]
        wire.say(prompt(50, id))
        await until(lambda: any("requestId" in m.get("params", {}) for m in wire.heard))
        (question,) = [m["params"] for m in wire.heard if "requestId" in m.get("params", {})]
        assert question["type"] == "request_permission"
        assert question["description"] == "Write a file\nto new.txt"
        assert question["update"]["requestId"] == question["requestId"]

        def answer(session: str, request: str, word: Any) -> None:
            params = {"sessionId": session, "requestId": request, "outcome": word}
            wire.say({"method": "_simse/permission", "params": params})

        # Neither of these answers this question.
        answer("other", question["requestId"], "allow_always")
        answer(id, "permission-99", "allow_always")
        answer(id, question["requestId"], outcome)
        assert (await wire.answer(50))["result"] == {"stopReason": "end_turn"}
        assert answers == [kind]


async def test_a_question_ends_with_its_turn() -> None:
    agent, answers = asking()
    async with talking(agent) as wire:
        caller = Caller(wire)
        id = (await caller.new())["sessionId"]
        wire.say(prompt(50, id))
        await until(lambda: any("requestId" in m.get("params", {}) for m in wire.heard))
        await caller.result("session/cancel", sessionId=id)
        assert (await wire.answer(50))["result"] == {"stopReason": "cancelled"}
        assert answers == []


async def test_a_question_ends_with_its_client() -> None:
    agent, answers = asking()
    async with talking(agent) as wire:
        id = (await Caller(wire).new())["sessionId"]
        wire.say(prompt(50, id))
        await until(lambda: any("requestId" in m.get("params", {}) for m in wire.heard))
    assert True not in [answer is not None and answer.startswith("allow") for answer in answers]


# -- the client ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.5.2")
def test_a_client_sends_its_prompt_as_a_text() -> None:
    call = client_of(NAME).encode_request(requests.PromptRequest("s", [Text("a"), Text("b")]))
    assert json.loads(call.params) == {"sessionId": "s", "prompt": "ab"}


@pytest.mark.requirement("8.5.2")
@pytest.mark.parametrize("before", [[], [Text(" \n")]])
def test_an_attached_file_does_not_become_a_slash_command(before: list[Content]) -> None:
    file = Resource(TextResource("/wipe", "file:///notes.txt"))
    call = client_of(NAME).encode_request(requests.PromptRequest("s", [*before, file]))
    assert json.loads(call.params)["prompt"].startswith("[attached]\n")


def received(adapter: SimseClientAdapter, **update: Any) -> list[Any]:
    """What an update comes to on our side of the adapter."""
    frame = text({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", **update}})
    return [json.loads(one) for one in adapter.receive(frame).deliver]


def question(adapter: SimseClientAdapter) -> tuple[str, Any]:
    """A permission question: its id, and the request that the client decodes."""
    about = {"type": "request_permission", "action": "run", "description": "Run it", "requestId": "r"}
    (asked,) = received(adapter, **about)
    return asked["id"], client_of(NAME).decode_request(asked["id"], asked["method"], Raw(text(asked["params"])))


def replied(adapter: SimseClientAdapter, id: str, outs: Any) -> list[Any]:
    """What leaves for a reply of the client's dialect."""
    (out,) = outs
    if isinstance(out, ResultMessage):
        frame = text({"jsonrpc": "2.0", "id": id, "result": json.loads(out.result)})
    else:
        frame = text({"jsonrpc": "2.0", "id": id, "error": {"code": out.error.code, "message": out.error.message}})
    return [json.loads(one) for one in adapter.send(frame)]


@pytest.mark.requirement("8.5.7")
@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (services.Selected("allow_once"), "allow_once"),
        (services.Selected("allow_always"), "allow_always"),
        (services.Selected("reject_always"), "reject_always"),
        (services.Selected("nonsense"), "reject_once"),
        (services.Dismissed(), "reject_once"),
        (services.UnknownOutcome("allowed", {}), "reject_once"),
    ],
)
def test_a_client_answers_with_one_of_four_words(outcome: Any, word: str) -> None:
    adapter = SimseClientAdapter()
    id, request = question(adapter)
    assert (request.title, [option.kind for option in request.options]) == (
        "Run it",
        ["allow_once", "allow_always", "reject_once", "reject_always"],
    )
    said = replied(adapter, id, client_of(NAME).encode_reply(id, request, services.PermissionAnswer(outcome)))
    params = {"sessionId": "s", "requestId": "r", "outcome": word}
    assert said == [{"jsonrpc": "2.0", "method": "_simse/permission", "params": params}]


@pytest.mark.requirement("8.5.7")
def test_a_question_that_failed_is_a_no() -> None:
    adapter = SimseClientAdapter()
    id, request = question(adapter)
    (said,) = replied(adapter, id, client_of(NAME).encode_failure(id, request, WireError(-32603, "x")))
    assert said["params"]["outcome"] == "reject_once"


def test_a_question_that_cannot_be_answered_is_dropped() -> None:
    assert received(SimseClientAdapter(), type="request_permission", description="Run it") == []


@pytest.mark.requirement("8.5.8")
def test_a_client_runs_only_what_was_answered_for() -> None:
    client, adapter = client_of(NAME), SimseClientAdapter()
    update = {"sessionUpdate": "tool_call", "toolCallId": "c", "toolName": "bash", "input": {"command": "ls"}}
    told = []
    for outcome in (WireError(-32601, "Method not found"), ExtensionResult("out")):
        shown, wanted = received(adapter, **update)
        (event,) = client.decode_notification(shown["method"], Raw(text(shown["params"])))
        assert isinstance(event, SessionEvent)
        request = client.decode_request(wanted["id"], wanted["method"], Raw(text(wanted["params"])))
        assert isinstance(request, Extension)
        assert (request.method, request.params) == (
            "_simse/tool",
            {"sessionId": "s", "toolCallId": "c", "toolName": "bash", "input": {"command": "ls"}},
        )
        said = (
            client.encode_failure(wanted["id"], request, outcome)
            if isinstance(outcome, WireError)
            else client.encode_reply(wanted["id"], request, outcome)
        )
        told += [message["params"] for message in replied(adapter, wanted["id"], said)]
    common = {"sessionId": "s", "sessionUpdate": "tool_call_update", "type": "tool_call_update", "toolCallId": "c"}
    assert told == [
        {**common, "status": "completed", "error": "Method not found"},
        {**common, "status": "in_progress"},
        {**common, "status": "completed", "output": "out"},
    ]


def test_an_agent_that_does_not_know_initialize_is_one_without_capabilities() -> None:
    adapter = SimseClientAdapter()
    adapter.send(request_frame(1, "initialize", {}))
    frame = text({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}})
    (answer,) = adapter.receive(frame).deliver
    assert load_dialect(NAME).decode_agent(Raw(text(json.loads(answer)["result"]))).hello == AgentHello(None)
    other = frame.replace(b"-32601", b"-32603")
    assert adapter.receive(other).deliver == [other]


def test_a_client_that_never_initializes_is_initialized_by_its_first_request() -> None:
    adapter = SimseAgentAdapter()
    first = request_frame(1, "session/new", {"cwd": "/"})
    hello, delivered = adapter.receive(first).deliver
    assert delivered == first
    assert json.loads(hello)["method"] == "initialize"
    # The answer is not for the client, and after it no other `initialize` is needed.
    assert adapter.send(result_frame(json.loads(hello)["id"], {})) == []
    assert adapter.receive(first).deliver == [first]


def test_a_refused_initialize_of_the_client_does_not_count() -> None:
    adapter = SimseAgentAdapter()
    own = request_frame(7, "initialize", {})
    assert adapter.receive(own).deliver == [own]
    refused = text({"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "Invalid params"}})
    assert adapter.send(refused) == [refused]
    assert len(adapter.receive(request_frame(8, "session/new", {"cwd": "/"})).deliver) == 2
    again = request_frame(9, "initialize", {"protocolVersion": 1})
    assert adapter.receive(again).deliver == [again]
    assert adapter.send(result_frame(9, {})) == [result_frame(9, {})]
    assert len(adapter.receive(request_frame(10, "session/new", {"cwd": "/"})).deliver) == 1


def test_a_permission_that_is_cancelled_is_withdrawn_silently() -> None:
    adapter = SimseAgentAdapter()
    (update,) = adapter.send(request_frame(5, "session/update", {"sessionId": "s", "requestId": "r"}))
    assert "id" not in json.loads(update)
    assert adapter.send(notification_frame("$/cancel_request", {"requestId": 5})) == []
    late = notification_frame("_simse/permission", {"sessionId": "s", "requestId": "r", "outcome": "allow_once"})
    assert adapter.receive(late).deliver == []
    other = notification_frame("$/cancel_request", {"requestId": 6})
    assert adapter.send(other) == [other]


# -- both ends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allow", [True, False])
async def test_two_ends_understand_each_other(allow: bool) -> None:
    agent, answers = asking()

    async def decide(request: services.RequestPermission) -> services.PermissionOption | None:
        return next((option for option in request.options if option.kind == "allow_once"), None) if allow else None

    async with asyncio.timeout(30), pair(agent, dialect=NAME, permission=decide) as client:
        conversation = await client.new_session("/")
        heard = [event async for event in conversation.prompt("go")]
        assert isinstance(heard[-1], events.Idle)
        assert heard[-1].stop_reason == "end_turn"
        assert answers == ["allow_once" if allow else "reject_once"]
