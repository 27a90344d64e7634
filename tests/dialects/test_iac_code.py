"""iac-code's dialect, as its reference has it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.dialects.contract import Dialect, ErrorMessage, NotificationMessage
from dragoman.dialects.vendors.iac_code import IacCodeAdapter
from dragoman.dialects.vendors.named import load_dialect
from dragoman.dialects.vendors.wire_adapter import notification_frame, request_frame
from dragoman.errors import PeerMistake, WireError
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.hello import Implementation
from tests.dialects import joined_dialects
from tests.dialects.joined_dialects import AGENT, CLIENT, result_of
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

NAME = "iac-code"
CWD = os.getcwd()


@pytest.mark.requirement("8.1.5")
def test_initialize_claims_what_the_reference_claims() -> None:
    assert json.loads(load_dialect(NAME).encode_agent(AGENT, CLIENT)) == {
        "protocolVersion": 1,
        "agentInfo": {"name": "agent", "version": "1"},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"embeddedContext": True, "image": False, "audio": False},
            "sessionCapabilities": {"list": {}, "close": {}},
        },
        "authMethods": [],
    }


@pytest.mark.requirement("8.1.4")
async def test_sessions_have_modes_and_models(tmp_path: Path) -> None:
    async with talking(an_agent(NAME, tmp_path)) as wire:
        caller = Caller(wire)
        await caller.hello()
        session = await caller.result("session/new", cwd=CWD)
        assert sorted(session) == ["models", "modes", "sessionId"]
        assert session["models"] == {
            "currentModelId": "p/a",
            "availableModels": [{"modelId": "p/a", "name": "A"}, {"modelId": "p/b", "name": "B"}],
        }
        assert session["modes"]["currentModeId"] == "ask"
        id = session["sessionId"]
        assert await caller.result("session/set_model", sessionId=id, modelId="p/b") == {}
        assert (await caller.error("session/set_model", sessionId=id, modelId="p/x"))["code"] == -32602
        loaded = await caller.result("session/load", sessionId=id, cwd=CWD)
        assert (sorted(loaded), loaded["models"]["currentModelId"]) == (["models", "modes"], "p/b")


@pytest.mark.requirement("8.1.5", "8.1.6", "8.1.7")
async def test_fork_and_resume_work_although_they_are_not_advertised(tmp_path: Path) -> None:
    async with talking(an_agent(NAME, tmp_path)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.result("session/new", cwd=CWD))["sessionId"]
        await caller.result("session/prompt", sessionId=id, prompt=HELLO_WORLD)
        fork = await caller.result("session/fork", sessionId=id, cwd=CWD)
        assert sorted(fork) == ["models", "modes", "sessionId"]
        assert fork["sessionId"] != id
        before = len(caller.told())
        resumed = await caller.result("session/resume", sessionId=id, cwd=CWD)
        assert sorted(resumed) == ["models", "modes"]
        assert len(caller.told()) == before
        await caller.result("session/load", sessionId=id, cwd=CWD)
        assert [update["type"] for update in caller.told()[before:]] == [
            "user_message_chunk",
            "agent_thought_chunk",
            "agent_message_chunk",
        ]


@pytest.mark.requirement("8.1.12")
async def test_a_list_is_of_one_folder_and_whole(tmp_path: Path) -> None:
    async with talking(an_agent(NAME, tmp_path)) as wire:
        caller = Caller(wire)
        await caller.hello()
        made = {(await caller.result("session/new", cwd=CWD))["sessionId"] for _ in range(60)}
        for method in ("sessions/list", "session/list"):
            listed = await caller.result(method, cwd=CWD)
            assert {info["sessionId"] for info in listed["sessions"]} == made
            assert "nextCursor" not in listed
            assert (await caller.error(method))["code"] == -32602


@pytest.mark.requirement("8.1.13")
async def test_config_set_sets_an_option() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.result("session/new", cwd=CWD))["sessionId"]
        result = await caller.result("config/set", sessionId=id, configId="mode", value="plan")
        assert [o["currentValue"] for o in result["configOptions"] if o["id"] == "mode"] == ["plan"]
        assert (await caller.error("config/set", sessionId=id, configId="mode", value=7))["code"] == -32602


@pytest.mark.requirement("8.1.20", "8.1.21")
async def test_an_unknown_session_is_a_bad_parameter() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.result("session/new", cwd=CWD))["sessionId"]
        await caller.result("session/close", sessionId=id)
        for session in ("nope", id):
            error = await caller.error("session/prompt", sessionId=session, prompt=HELLO_WORLD)
            assert (error["code"], error["data"]) == (-32602, {"session_id": "Session not found"})


@pytest.mark.parametrize("method", ["session/delete", "session/set_title", "authenticate", "auth/status"])
def test_what_the_reference_does_not_have_is_not_found(method: str) -> None:
    assert refusal(agent_of(NAME), method, {"sessionId": "s", "title": "t", "methodId": "login"})[0] == -32601


# -- updates ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.1.14")
async def test_text_is_said_in_both_spellings() -> None:
    async with talking(an_agent(NAME)) as wire:
        caller = Caller(wire)
        await caller.hello()
        id = (await caller.result("session/new", cwd=CWD))["sessionId"]
        awkward = 'a "quote"\n\ud83d\ude00 é'.encode("utf-16", "surrogatepass").decode("utf-16")
        end = await caller.result("session/prompt", sessionId=id, prompt=[{"type": "text", "text": awkward}])
        assert end["stopReason"] == "end_turn"
        thought, message = caller.told()
        assert message == {
            "sessionUpdate": "agent_message_chunk",
            "type": "agent_message_chunk",
            "content": {"type": "text", "text": awkward},
            "text": awkward,
        }
        assert (thought["type"], thought["text"]) == ("agent_thought_chunk", "Hm.")


def test_the_frame_of_a_text_chunk_is_the_frame_of_its_event() -> None:
    agent = agent_of(NAME)
    head, middle, tail = agent.text_frame("s", "agent_message_chunk", "m")
    whole = json.loads(head + b'"x"' + middle + b'"x"' + tail)
    assert whole["params"]["update"] == updates(agent, events.AgentMessageChunk(Text("x"), "m"))[0]


@pytest.mark.requirement("8.1.17")
def test_a_call_begins_in_progress_and_its_input_follows() -> None:
    said = updates(
        agent_of(NAME),
        events.ToolCallUpdate("c", title="Run", kind="execute", status="pending", raw_input={"a": 1}),
        events.ToolCallUpdate("c", status="completed", content=[tools.ContentItem(Text("out"))]),
    )
    assert said == [
        {
            "sessionUpdate": "tool_call",
            "type": "tool_call",
            "toolCallId": "c",
            "title": "Run",
            "kind": "execute",
            "status": "in_progress",
        },
        {
            "sessionUpdate": "tool_call_update",
            "type": "tool_call_update",
            "toolCallId": "c",
            "status": "in_progress",
            "rawInput": {"a": 1},
            "raw_input": {"a": 1},
        },
        {
            "sessionUpdate": "tool_call_update",
            "type": "tool_call_update",
            "toolCallId": "c",
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "out"}}],
            "rawOutput": "out",
            "raw_output": "out",
        },
    ]


def ended(*told: events.AnyEvent) -> Any:
    """The last update of a call, without what all of them have."""
    last = updates(agent_of(NAME), *told)[-1]
    assert (last.pop("sessionUpdate"), last.pop("type"), last.pop("toolCallId")) == (*["tool_call_update"] * 2, "c")
    return last


@pytest.mark.requirement("8.1.17")
def test_a_call_that_ends_shows_everything_it_has_shown() -> None:
    begun = events.ToolCallUpdate("c", title="Run", content=[tools.ContentItem(Text("a"))])
    more = events.ToolCallContentChunk("c", tools.ContentItem(Text("b")))
    shown = [{"type": "content", "content": {"type": "text", "text": text}} for text in ("a", "b")]
    assert ended(begun, more, events.ToolCallUpdate("c", status="completed")) == {
        "status": "completed",
        "content": shown,
        "rawOutput": "ab",
        "raw_output": "ab",
    }
    assert ended(begun, more, events.ToolCallUpdate("c", status="completed", raw_output={"code": 0})) == {
        "status": "completed",
        "content": shown,
        "rawOutput": {"code": 0},
        "raw_output": {"code": 0},
    }


@pytest.mark.requirement("8.1.17")
@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_failed_call_has_an_error_also_where_it_shows_nothing(status: str) -> None:
    begun = events.ToolCallUpdate("c", title="Run")
    assert ended(begun, events.ToolCallUpdate("c", status=status)) == {
        "status": "failed",
        "rawOutput": "It failed",
        "raw_output": "It failed",
    }
    assert ended(begun, events.ToolCallUpdate("c", status="completed")) == {"status": "completed"}


@pytest.mark.requirement("8.1.17")
def test_the_result_of_a_call_is_in_its_end_and_not_beside_its_input() -> None:
    call = events.ToolCallUpdate("c", title="Run", status="completed", raw_input={"a": 1}, raw_output="out")
    begun, follows, end = updates(agent_of(NAME), call)
    both = {"type": "tool_call_update", "sessionUpdate": "tool_call_update", "toolCallId": "c"}
    assert begun == {
        "sessionUpdate": "tool_call",
        "type": "tool_call",
        "toolCallId": "c",
        "title": "Run",
        "status": "in_progress",
    }
    assert follows == {**both, "status": "in_progress", "rawInput": {"a": 1}, "raw_input": {"a": 1}}
    assert (end["status"], end["rawOutput"], end["raw_output"]) == ("completed", "out", "out")


@pytest.mark.requirement("8.1.16")
def test_errors_and_compaction_are_messages() -> None:
    agent = agent_of(NAME)
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO_WORLD})
    agent.encode_reply(1, request, requests.PromptAccepted("u"))
    (compacted,) = updates(agent, events.CompactionUpdate("c", "completed"))
    assert compacted["type"] == "agent_message_chunk"
    told, end = agent.encode_event("s", events.Idle(stop_reason="error", error=events.Failure(-32603, "It broke")))
    assert isinstance(told, NotificationMessage)
    assert json.loads(told.params)["update"]["text"] == "[Error] It broke\n"
    assert end == ErrorMessage(1, WireError(-32603, "It broke"))


@pytest.mark.parametrize(
    "event",
    [
        events.PlanUpdate(options.PlanItems("p", [])),
        events.CommandsChanged([]),
        events.UsageChanged(1, 2),
        events.OptionsChanged([]),
        events.SessionInfoChanged(title="t"),
        events.Notice("info", "n"),
        events.CompactionUpdate("c", "in_progress"),
    ],
)
def test_other_updates_are_not_sent(event: events.AnyEvent) -> None:
    assert updates(agent_of(NAME), event) == []


@pytest.mark.requirement("8.1.10")
@pytest.mark.parametrize("reason", ["end_turn", "cancelled", "max_tokens"])
def test_the_tokens_are_zeros_where_no_model_told_any(reason: str) -> None:
    agent = agent_of(NAME)
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO_WORLD})
    agent.encode_reply(1, request, requests.PromptAccepted("u"))
    (end,) = agent.encode_event("s", events.Idle(stop_reason=reason))
    none = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    assert json.loads(end.result) == {"stopReason": reason, "usage": none}  # type: ignore[union-attr]


@pytest.mark.requirement("8.1.10")
def test_the_end_of_a_turn_has_its_tokens() -> None:
    agent = agent_of(NAME)
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO_WORLD})
    agent.encode_reply(1, request, requests.PromptAccepted("u"))
    (end,) = agent.encode_event("s", events.Idle(stop_reason="end_turn", usage=events.Usage(3, 1, 2, thought_tokens=0)))
    assert json.loads(end.result) == {  # type: ignore[union-attr]
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
    }


@pytest.mark.requirement("8.1.10", "iac-code-2")
@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}}, events.Usage(3, 1, 2)),
        ({"_meta": {"usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}}, events.Usage(3, 1, 2)),
        ({"_meta": {"usage": {"input_tokens": 1, "output_tokens": "2", "total_tokens": 3}}}, UNSET),
        ({"_meta": {"usage": {"input_tokens": 1, "output_tokens": True, "total_tokens": 3}}}, UNSET),
        ({"_meta": {"usage": 3}}, UNSET),
        ({}, UNSET),
    ],
)
def test_a_client_finds_the_tokens_in_both_places(said: Any, usage: Any) -> None:
    prompt = requests.PromptRequest("s", [Text("Hi")])
    client = client_of(NAME)
    client.encode_request(prompt)
    ((_, end),) = client.decode_reply(prompt, Raw(text({"stopReason": "end_turn", **said}))).events
    assert isinstance(end, events.Idle)
    assert (end.stop_reason, end.usage) == ("end_turn", usage)


# -- permission ------------------------------------------------------------------------------------------------------

METHOD = "session/request_permission"
KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")
FOUR = [services.PermissionOption(f"id-{kind}", kind, kind) for kind in KINDS]
CALL = events.ToolCallUpdate("c", title="Run", kind="execute", raw_input={"command": "ls"})
QUESTION = services.RequestPermission("s", "Run", FOUR, subject=services.ToolCallSubject(CALL))


@pytest.mark.requirement("8.1.18")
def test_a_question_has_its_input_under_both_names() -> None:
    method, params = asked(agent_of(NAME), QUESTION)
    assert method == METHOD
    assert [option["optionId"] for option in params["options"]] == list(KINDS)
    call = params["toolCall"]
    assert (call["title"], call["kind"], call["input"]) == ("Run", "execute", {"command": "ls"})
    assert call["input"] == call["rawInput"]


@pytest.mark.requirement("8.1.19")
@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ({"outcome": "allowed", "option_id": "allow_once"}, "id-allow_once"),
        ({"outcome": "allowed", "option_id": "allow_always"}, "id-allow_always"),
        ({"outcome": "allowed", "option_id": "reject_once"}, "id-reject_once"),
        ({"outcome": "denied"}, "id-reject_once"),
        ({"outcome": {"outcome": "selected", "optionId": "reject_always"}}, "id-reject_always"),
        ({"outcome": "allowed"}, None),
        ({"outcome": "allowed", "option_id": "id-allow_once"}, None),
        ({"outcome": {"outcome": "cancelled"}}, None),
    ],
)
def test_a_flat_answer_is_taken_and_a_no_is_a_no(answer: Any, chosen: str | None) -> None:
    reply = agent_of(NAME).decode_reply(QUESTION, Raw(text(answer))).reply
    assert isinstance(reply, services.PermissionAnswer)
    assert reply.outcome == (services.Dismissed() if chosen is None else services.Selected(chosen))


# -- the client ------------------------------------------------------------------------------------------------------

NOT_FOUND = WireError(-32601, "Method not found")
SETTING = {"session/set_config_option", "session/set_mode", "session/set_model"}


def opened() -> Dialect:
    """A client with a session that has modes and models."""
    client = client_of(NAME)
    models = {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b", "name": "B"}]}
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}]}
    client.decode_reply(requests.NewSession("/"), Raw(text({"sessionId": "s", "models": models, "modes": modes})))
    return client


@pytest.mark.requirement("8.1.5")
def test_a_client_asks_for_what_is_not_advertised() -> None:
    bare = load_dialect(NAME).decode_agent(Raw(b'{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}')).hello
    client = load_dialect(NAME).client(CLIENT, bare)
    assert client.encode_request(requests.ForkSession("s", "/")).method == "session/fork"
    assert client.encode_request(requests.ResumeSession("s", "/")).method == "session/resume"


def sent(adapter: IacCodeAdapter, client: Dialect, request: Request, id: int = 1) -> tuple[str, Any]:
    """What leaves for a request: its method and params."""
    call = client.encode_request(request)
    (frame,) = adapter.send(request_frame(id, call.method, Raw(call.params)))
    message = json.loads(frame)
    assert message["id"] == id
    return message["method"], message["params"]


def refused(adapter: IacCodeAdapter, error: WireError, id: int = 1) -> tuple[str, Any] | None:
    """What a refusal comes to: the request under another name, or None where the link gets the refusal."""
    frame = text({"jsonrpc": "2.0", "id": id, "error": {"code": error.code, "message": error.message}})
    delivered, again = adapter.receive(frame)
    if not again:
        assert delivered == [frame]
        return None
    assert delivered == []
    message = json.loads(again[0])
    assert message["id"] == id
    return message["method"], message["params"]


@pytest.mark.requirement("8.1.12", "iac-code-5")
def test_a_client_falls_back_to_the_other_name_of_the_list() -> None:
    client, adapter = client_of(NAME), IacCodeAdapter()
    assert sent(adapter, client, requests.ListSessions("/")) == ("session/list", {"cwd": "/"})
    assert refused(adapter, WireError(-32603, "Internal error")) is None
    assert sent(adapter, client, requests.ListSessions("/")) == ("session/list", {"cwd": "/"})
    assert refused(adapter, NOT_FOUND) == ("sessions/list", {"cwd": "/"})
    # The second refusal is the answer, and from now on there is one name.
    assert refused(adapter, NOT_FOUND) is None
    assert sent(adapter, client, requests.ListSessions("/")) == ("sessions/list", {"cwd": "/"})
    assert refused(adapter, NOT_FOUND) is None
    assert sent(adapter, client, requests.ResumeSession("s", "/"))[0] == "session/resume"
    assert refused(adapter, NOT_FOUND) is None
    assert sent(adapter, client, requests.SetOption("s", "x", "a"))[0] == "session/set_config_option"


def test_a_request_that_was_cancelled_is_not_asked_again() -> None:
    client, adapter = client_of(NAME), IacCodeAdapter()
    sent(adapter, client, requests.ListSessions("/"))
    cancel = notification_frame("$/cancel_request", {"requestId": 1})
    assert adapter.send(cancel) == [cancel]
    assert refused(adapter, NOT_FOUND) is None


@pytest.mark.parametrize("frame", [b"no JSON", b'{"id":1}', b'{"jsonrpc":"2.0","method":"_a"}', b"[]"])
def test_a_frame_that_is_no_answer_passes_unchanged(frame: bytes) -> None:
    adapter = IacCodeAdapter()
    assert adapter.receive(frame) == ([frame], ())
    assert adapter.send(frame) == [frame]


@pytest.mark.requirement("8.1.12")
def test_a_session_in_a_list_of_one_folder_need_not_name_it() -> None:
    result = Raw(text({"sessions": [{"sessionId": "a", "title": "A"}, {"sessionId": "b", "cwd": "/b"}, 7]}))
    assert client_of(NAME).decode_reply(requests.ListSessions("/a"), result).reply == requests.SessionList(
        [requests.SessionInfo("a", "/a", title="A"), requests.SessionInfo("b", "/b")]
    )
    # A list of every folder does not say where each session is.
    assert client_of(NAME).decode_reply(requests.ListSessions(), result).reply == requests.SessionList(
        [requests.SessionInfo("b", "/b")]
    )


@pytest.mark.requirement("8.1.13")
@pytest.mark.parametrize(
    ("option", "value", "method"),
    [
        ("x", "a", "session/set_config_option"),
        ("x", True, "session/set_config_option"),
        ("mode", "plan", "session/set_mode"),
        ("model", "b", "session/set_model"),
    ],
)
def test_a_client_falls_back_to_the_other_name_of_an_option(option: str, value: Any, method: str) -> None:
    client, adapter, request = opened(), IacCodeAdapter(), requests.SetOption("s", option, value)
    assert sent(adapter, client, request)[0] == method
    assert refused(adapter, WireError(-32602, "Invalid params")) is None
    assert sent(adapter, client, request)[0] == method
    under_its_other_name = ("config/set", {"sessionId": "s", "configId": option, "value": value})
    assert refused(adapter, NOT_FOUND) == under_its_other_name
    assert refused(adapter, NOT_FOUND) is None
    assert sent(adapter, client, request) == under_its_other_name
    # What the agent knows by the protocol's name is asked under that.
    methods = {sent(adapter, client, requests.SetOption("s", one, "b"))[0] for one in ("x", "mode", "model")}
    assert methods - {"config/set"} == SETTING - {method}
    assert sent(adapter, client, requests.ListSessions("/"))[0] == "session/list"


@pytest.mark.requirement("8.1.13")
@pytest.mark.parametrize("value", [7, "seven", True])
def test_a_value_of_an_unknown_type_is_sent_as_it_is(value: Any) -> None:
    client, adapter, request = opened(), IacCodeAdapter(), requests.SetOption("s", "x", unknown_value(value))
    _, before = sent(adapter, client, request)
    assert refused(adapter, NOT_FOUND) == ("config/set", before)


def unknown_value(value: object) -> requests.UnknownValue:
    return requests.UnknownValue("_number", value)


def config_set_replied(client: Dialect, request: requests.SetOption, result: Any) -> requests.OptionsSet:
    """The reply to a request that was asked as `config/set`."""
    adapter = IacCodeAdapter()
    sent(adapter, client, request)
    assert refused(adapter, NOT_FOUND) is not None
    ((frame,), _) = adapter.receive(text({"jsonrpc": "2.0", "id": 1, "result": result}))
    reply = client.decode_reply(request, Raw(text(json.loads(frame)["result"]))).reply
    assert isinstance(reply, requests.OptionsSet)
    return reply


@pytest.mark.requirement("8.1.13")
@pytest.mark.parametrize("result", [None, True, "ok", [], 7, {}, {"success": True}])
def test_whatever_config_set_is_answered_with_the_option_is_set(result: Any) -> None:
    reply = config_set_replied(opened(), requests.SetOption("s", "model", "b"), result)
    assert [option.current_value for option in reply.config_options] == ["b", "ask"]  # type: ignore[union-attr]


@pytest.mark.requirement("8.1.13")
def test_config_set_may_be_answered_with_every_option() -> None:
    said = {"type": "select", "id": "x", "name": "X", "currentValue": "c", "options": [{"value": "c", "name": "C"}]}
    reply = config_set_replied(opened(), requests.SetOption("s", "x", "b"), {"configOptions": [said]})
    assert reply.config_options[0] == options.Select("x", "X", "c", [options.Choice("c", "C")])


@pytest.mark.requirement("8.1.13")
def test_the_protocol_s_own_name_is_answered_in_the_protocol_s_words() -> None:
    with pytest.raises(PeerMistake):
        opened().decode_reply(requests.SetOption("s", "x", "a"), Raw(b"true"))


@pytest.mark.requirement("8.1.4")
def test_a_client_sets_a_model_as_such() -> None:
    client, request = opened(), requests.SetOption("s", "model", "b")
    assert asked(client, request) == ("session/set_model", {"sessionId": "s", "modelId": "b"})
    reply = client.decode_reply(request, Raw(b"{}")).reply
    assert isinstance(reply, requests.OptionsSet)
    assert [option.current_value for option in reply.config_options] == ["b", "ask"]  # type: ignore[union-attr]


@pytest.mark.requirement("8.1.19", "iac-code-1")
@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (services.Selected("id-allow_once"), {"outcome": {"outcome": "selected", "optionId": "id-allow_once"}}),
        (
            services.Selected("id-reject_always"),
            {"outcome": {"outcome": "cancelled"}, "_meta": {"option_id": "id-reject_always"}},
        ),
        (services.Selected("nope"), {"outcome": {"outcome": "cancelled"}, "_meta": {"option_id": "nope"}}),
        (services.Dismissed(), {"outcome": {"outcome": "cancelled"}}),
    ],
)
def test_a_client_says_no_so_that_no_agent_takes_it_for_a_yes(outcome: Any, said: Any) -> None:
    called_so = replace(AGENT, info=Implementation("iac-code", "0.16.0"))
    # In the dialect, and to an agent of that name without it.
    for client in (client_of(NAME), joined_dialects.client_of(1, agent=called_so)):
        (answer,) = client.encode_reply(1, QUESTION, services.PermissionAnswer(outcome))
        assert json.loads(answer.result) == said  # type: ignore[union-attr]


PLAIN = {
    "sessionId": "s",
    "toolCall": {"title": "Run", "kind": "execute", "input": {"command": "ls"}},
    "options": [
        *({"optionId": f"id-{kind}", "name": kind, "kind": kind} for kind in KINDS),
        {"optionId": "twice", "name": "Yes", "kind": "allow_once"},
        {"optionId": "twice", "name": "No", "kind": "reject_once"},
    ],
}


@pytest.mark.requirement("8.1.19")
@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (services.Selected("id-allow_once"), {"outcome": "allowed", "option_id": "id-allow_once"}),
        (services.Selected("id-allow_always"), {"outcome": "allowed", "option_id": "id-allow_always"}),
        (services.Selected("id-reject_once"), {"outcome": "denied"}),
        (services.Selected("id-reject_always"), {"outcome": "denied"}),
        (services.Selected("twice"), {"outcome": "denied"}),
        (services.Selected("nope"), {"outcome": "denied"}),
        (services.Selected(""), {"outcome": "denied"}),
        (services.Dismissed(), {"outcome": "denied"}),
        (services.UnknownOutcome("allowed", {"outcome": "allowed"}), {"outcome": "denied"}),
    ],
)
def test_an_agent_that_asks_in_plain_words_is_answered_in_them_and_gets_a_yes_only_for_one(
    outcome: Any, said: Any
) -> None:
    client = client_of(NAME)
    question = heard(client, "request_permission", PLAIN)
    assert (question.title, question.subject.tool_call.raw_input) == ("Run", {"command": "ls"})
    assert result_of(client.encode_reply(1, question, services.PermissionAnswer(outcome))) == said


@pytest.mark.requirement("8.1.19")
def test_only_the_question_in_plain_words_is_answered_in_them() -> None:
    client, yes = client_of(NAME), services.PermissionAnswer(services.Selected("id-allow_once"))
    flat = {"outcome": "allowed", "option_id": "id-allow_once"}
    whole = {"outcome": {"outcome": "selected", "optionId": "id-allow_once"}}
    plain, other = (heard(client, name, PLAIN, id) for id, name in ((1, "request_permission"), (2, METHOD)))
    assert result_of(client.encode_reply(2, other, yes)) == whole
    assert result_of(client.encode_reply(1, plain, yes)) == flat
    # Whatever became of the first one, its id may be that of another question.
    assert result_of(client.encode_reply(1, heard(client, METHOD, PLAIN), yes)) == whole
    plain = heard(client, "request_permission", PLAIN)
    assert client.encode_failure(1, plain, WireError(-32603, "x")) == [ErrorMessage(1, WireError(-32603, "x"))]
    assert result_of(client.encode_reply(1, heard(client, METHOD, PLAIN), yes)) == whole


def test_every_other_agent_is_told_which_no_was_chosen() -> None:
    (answer,) = joined_dialects.client_of(1).encode_reply(
        1, QUESTION, services.PermissionAnswer(services.Selected("id-reject_once"))
    )
    chosen = {"outcome": {"outcome": "selected", "optionId": "id-reject_once"}}
    assert json.loads(answer.result) == chosen  # type: ignore[union-attr]
