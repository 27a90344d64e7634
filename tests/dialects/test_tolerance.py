"""Peers that are known to be wrong, and can only have meant one thing.

The numbers are ids of `tests/requirements/compatibility.toml`.
"""

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from dragoman.dialects.contract import Dialect, NotificationMessage, ResultMessage, SessionEvent
from dragoman.dialects.handshake.initialize import decode_agent
from dragoman.errors import PeerMistake, WireError
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.asking import Extension
from dragoman.vocabulary.content import Audio, Image, Resource, ResourceLink, Text, TextResource
from dragoman.vocabulary.hello import AgentAuth
from tests.dialects.joined_dialects import agent_of, client_of, hear
from tests.dialects.schemas import text


def heard(dialect: Dialect, method: str, params: Any) -> Any:
    return dialect.decode_request(1, method, Raw(text(params)))


@pytest.mark.requirement("8.5.1", "8.1.2")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("odd", [{}, {"mcpServers": None}, {"mcpServers": {}}, {"mcpServers": "none"}])
def test_mcp_servers_may_be_missing_or_odd(version: int, odd: Any) -> None:
    request = heard(agent_of(version), "session/new", {"cwd": "/", **odd})
    assert (request.cwd, request.mcp_servers or []) == ("/", [])


@pytest.mark.requirement("8.5.2")
@pytest.mark.parametrize("version", [1, 2])
def test_a_prompt_may_be_a_string(version: int) -> None:
    request = heard(agent_of(version), "session/prompt", {"sessionId": "s", "prompt": "hello"})
    assert request == requests.PromptRequest("s", [Text("hello")])


@pytest.mark.requirement("8.3.6")
def test_a_stdio_server_may_have_a_type() -> None:
    server = {"type": "stdio", "name": "n", "command": "c", "args": [], "env": []}
    request = heard(agent_of(1), "session/new", {"cwd": "/", "mcpServers": [server]})
    assert request.mcp_servers == [requests.McpStdio("n", "c", [], [])]


@pytest.mark.requirement("8.1.12")
@pytest.mark.parametrize("version", [1, 2])
def test_sessions_list_is_session_list(version: int) -> None:
    assert heard(agent_of(version), "sessions/list", {"cwd": "/x"}) == requests.ListSessions("/x")


@pytest.mark.requirement("8.1.13")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("value", ["big", True, False])
def test_config_set_is_set_config_option(version: int, value: Any) -> None:
    request = heard(agent_of(version), "config/set", {"sessionId": "s", "configId": "c", "value": value})
    assert request == requests.SetOption("s", "c", value)


@pytest.mark.requirement("8.1.13")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("value", [1, None, [], {}])
def test_any_other_value_is_refused(version: int, value: Any) -> None:
    with pytest.raises(PeerMistake) as caught:
        heard(agent_of(version), "config/set", {"sessionId": "s", "configId": "c", "value": value})
    assert caught.value.code == -32602


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/new", {"mcpServers": []}),
        ("session/new", {"cwd": 1}),
        ("session/prompt", {"sessionId": "s"}),
        ("session/prompt", {"sessionId": "s", "prompt": 1}),
        ("session/prompt", {"prompt": "hello"}),
        ("session/set_config_option", {"sessionId": "s", "configId": "c"}),
        ("session/set_config_option", {"sessionId": "s", "configId": "c", "type": "id", "value": [1]}),
        ("session/new", []),
        ("session/new", "x"),
    ],
)
def test_what_could_mean_anything_is_refused(version: int, method: str, params: Any) -> None:
    with pytest.raises(PeerMistake) as caught:
        heard(agent_of(version), method, params)
    assert caught.value.code == -32602


@pytest.mark.parametrize("version", [1, 2])
def test_a_value_of_an_unknown_type_is_kept_as_it_is(version: int) -> None:
    request = heard(
        agent_of(version),
        "session/set_config_option",
        {"sessionId": "s", "configId": "c", "type": "_range", "value": [1, 2]},
    )
    assert request == requests.SetOption("s", "c", requests.UnknownValue("_range", [1, 2]))


# -- what a client sends -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.1.3")
@pytest.mark.parametrize("method", ["session/new", "session/load", "session/fork", "session/resume"])
def test_every_opening_may_go_without_servers(method: str) -> None:
    request = heard(agent_of(1), method, {"cwd": "/", "sessionId": "s"})
    assert (request.mcp_servers or []) == []


@pytest.mark.requirement("8.1.2")
def test_an_object_of_servers_is_a_map_by_name() -> None:
    odd = {"files": {"command": "c", "env": {"A": "1"}}, "web": {"type": "http", "url": "http://h"}, "note": "x"}
    request = heard(agent_of(1), "session/new", {"cwd": "/", "mcpServers": odd})
    assert request.mcp_servers == [
        requests.McpStdio("files", "c", [], [requests.EnvVariable("A", "1")]),
        requests.McpHttp("web", "http://h", []),
    ]


@pytest.mark.requirement("8.2.7")
@pytest.mark.parametrize("version", [1, 2])
def test_the_lists_of_a_server_may_be_left_out(version: int) -> None:
    servers = [{"type": "stdio", "name": "n", "command": "c"}, {"type": "http", "name": "h", "url": "http://h"}]
    stdio, http = heard(agent_of(version), "session/new", {"cwd": "/", "mcpServers": servers}).mcp_servers
    assert (stdio.command, stdio.args or [], stdio.env or []) == ("c", [], [])
    assert (http.url, http.headers or []) == ("http://h", [])


@pytest.mark.requirement("8.1.8")
@pytest.mark.parametrize(
    ("name", "fields", "block"),
    [
        ("TextContentBlock", {"text": "a"}, Text("a")),
        ("ImageContentBlock", {"data": "aa", "mimeType": "image/png"}, Image("aa", "image/png")),
        ("AudioContentBlock", {"data": "aa", "mimeType": "audio/wav"}, Audio("aa", "audio/wav")),
        ("ResourceContentBlock", {"uri": "file:///a/b.txt"}, ResourceLink("b.txt", "file:///a/b.txt")),
        (
            "EmbeddedResourceContentBlock",
            {"resource": {"uri": "file:///a", "text": "t"}},
            Resource(TextResource("t", "file:///a")),
        ),
    ],
)
def test_a_block_may_have_the_name_of_its_class(name: str, fields: Any, block: Any) -> None:
    request = heard(agent_of(1), "session/prompt", {"sessionId": "s", "prompt": [{"type": name, **fields}]})
    assert request.prompt == [block]


@pytest.mark.requirement("8.3.8")
@pytest.mark.parametrize(
    ("block", "meant"),
    [
        ({"type": "resource_link", "uri": "file:///a/b.txt"}, ResourceLink("b.txt", "file:///a/b.txt")),
        ({"type": "resource_link", "uri": "x:"}, ResourceLink("x:", "x:")),
        ({"type": "image", "data": "iVBORw0KGgo="}, Image("iVBORw0KGgo=", "image/png")),
        ({"type": "image", "data": "aaaa"}, Image("aaaa", "application/octet-stream")),
        ({"type": "audio", "data": "SUQzAA=="}, Audio("SUQzAA==", "audio/mpeg")),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_link_may_lack_its_name_and_media_their_type(version: int, block: Any, meant: Any) -> None:
    assert heard(agent_of(version), "session/prompt", {"sessionId": "s", "prompt": [block]}).prompt == [meant]


@pytest.mark.requirement("8.1.11")
def test_a_cancel_with_an_id_is_a_cancel() -> None:
    assert heard(agent_of(1), "session/cancel", {"sessionId": "s"}) == requests.CancelTurn("s")


# -- what an agent sends -----------------------------------------------------------------------------------------------


def one(params: Any) -> Any:
    (event,) = hear(client_of(1), params)
    return event


@pytest.mark.requirement("8.1.14")
@pytest.mark.parametrize("name", ["agent_message_chunk", "agent_thought_chunk", "AgentMessageChunk"])
def test_an_update_may_be_named_by_type_and_carry_bare_text(name: str) -> None:
    event = one({"sessionId": "s", "update": {"type": name, "text": "hi"}})
    assert (event.text, event.extras) == ("hi", UNSET)


@pytest.mark.requirement("8.1.15")
@pytest.mark.parametrize(
    ("update", "event"),
    [
        (
            {"sessionUpdate": "AgentMessageChunk", "content": {"type": "text", "text": "a"}},
            events.AgentMessageChunk(Text("a"), "dragoman-1"),
        ),
        (
            {"type": "ToolCallStart", "toolCallId": "c", "title": "t", "status": "in_progress"},
            events.ToolCallUpdate("c", title="t", status="in_progress"),
        ),
        (
            {"sessionUpdate": "ToolCallProgress", "toolCallId": "c", "status": "completed", "raw_output": 1},
            events.ToolCallUpdate("c", status="completed", raw_output=1),
        ),
    ],
)
def test_an_update_may_have_the_name_of_its_class(update: Any, event: Any) -> None:
    assert one({"sessionId": "s", "update": update}) == event


@pytest.mark.requirement("8.1.14")
def test_an_unknown_name_stays_unknown() -> None:
    assert one({"sessionId": "s", "update": {"sessionUpdate": "Nope"}}) == events.UnknownEvent("Nope", {})
    with pytest.raises(PeerMistake):
        hear(client_of(1), {"sessionId": "s", "update": {"type": "nope", "text": "x"}})


@pytest.mark.requirement("8.5.4")
def test_an_update_may_stand_beside_its_session() -> None:
    event = one({"sessionId": "s", "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}})
    assert event.text == "a"


@pytest.mark.requirement("8.5.6")
def test_a_type_beside_the_name_says_nothing_new() -> None:
    update = {"sessionUpdate": "tool_call", "type": "tool_call", "toolCallId": "c", "title": "t"}
    event = one({"sessionId": "s", "update": update})
    assert (event.tool_call_id, event.title) == ("c", "t")


@pytest.mark.requirement("8.5.9", "8.5.10")
@pytest.mark.parametrize(
    ("fields", "event"),
    [
        (
            {"sessionUpdate": "tool_call", "toolName": "read", "input": {"p": 1}},
            events.ToolCallUpdate("c", title="read", raw_input={"p": 1}),
        ),
        (
            {"sessionUpdate": "tool_call_update", "status": "completed", "output": "o"},
            events.ToolCallUpdate("c", status="completed", raw_output="o"),
        ),
        (
            {"sessionUpdate": "tool_call_update", "status": "completed", "error": "no"},
            events.ToolCallUpdate("c", status="failed", raw_output={"error": "no"}),
        ),
    ],
)
def test_a_call_may_call_its_fields_otherwise(fields: Any, event: Any) -> None:
    assert one({"sessionId": "s", "update": {"toolCallId": "c", **fields}}) == event


@pytest.mark.requirement("8.1.18")
@pytest.mark.parametrize("method", ["session/request_permission", "request_permission"])
def test_a_permission_may_lack_the_id_of_its_call(method: str) -> None:
    options = [{"optionId": "a", "name": "A", "kind": "allow_once"}]
    params = {"sessionId": "s", "options": options, "toolCall": {"title": "T", "kind": "edit", "input": {"x": 1}}}
    request = heard(client_of(1), method, params)
    assert request.subject.tool_call == events.ToolCallUpdate(
        "permission: T", title="T", kind="edit", raw_input={"x": 1}
    )


@pytest.mark.requirement("8.1.4")
def test_models_are_shown_as_the_option_they_have_become() -> None:
    models = {"currentModelId": "b", "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b"}]}
    opened = client_of(1).decode_reply(requests.NewSession("/"), Raw(text({"sessionId": "s", "models": models}))).reply
    assert isinstance(opened, requests.SessionOpened)
    choices: list[Any] = [options.Choice("a", "A"), options.Choice("b", "b")]
    assert opened.config_options == [options.Select("model", "Model", "b", choices, category="model")]


@pytest.mark.requirement("8.4.18")
def test_an_option_may_lack_its_value_and_its_names() -> None:
    bare = {"id": "model", "name": "Model", "type": "select", "options": [{"value": "p/m"}]}
    opened = (
        client_of(1)
        .decode_reply(requests.NewSession("/"), Raw(text({"sessionId": "s", "configOptions": [bare]})))
        .reply
    )
    assert isinstance(opened, requests.SessionOpened)
    assert opened.config_options == [options.Select("model", "Model", "p/m", [options.Choice("p/m", "p/m")])]
    event = one({"sessionId": "s", "update": {"sessionUpdate": "config_option_update", "configOptions": [bare]}})
    assert event.config_options == opened.config_options


@pytest.mark.requirement("8.4.8")
def test_any_stop_reason_ends_a_turn() -> None:
    client = client_of(1)
    prompt = requests.PromptRequest("s", [Text("x")])
    client.encode_request(prompt)
    (told,) = client.decode_reply(prompt, Raw(b'{"stopReason":"tired"}')).events
    assert told.event == events.Idle(stop_reason="tired")


# -- answers to a permission: a yes is one that was offered, everything else is a no -----------------------------------

OFFERED = [
    services.PermissionOption("y", "Yes", "allow_once"),
    services.PermissionOption("n", "No", "reject_once"),
]


@pytest.mark.requirement("8.1.19")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ({"outcome": "allowed", "option_id": "y"}, "y"),
        ({"outcome": "allowed", "optionId": "y"}, "y"),
        ({"outcome": "selected", "optionId": "y"}, "y"),
        ({"outcome": "allowed", "option_id": "n"}, "n"),
        ({"outcome": "denied"}, "n"),
        ({"outcome": "denied", "option_id": "y"}, "n"),
        ({"outcome": "rejected"}, "n"),
        ({"outcome": "allowed"}, None),
        ({"outcome": "allowed", "option_id": "never"}, None),
        ({"outcome": "allowed", "option_id": "y", "optionId": "n"}, None),
        ({"outcome": "cancelled", "option_id": "y"}, None),
    ],
)
def test_a_flat_answer_is_a_yes_only_to_what_was_offered(version: int, answer: Any, chosen: str | None) -> None:
    question = services.RequestPermission("s", "May I?", OFFERED)
    reply = agent_of(version).decode_reply(question, Raw(text(answer))).reply
    assert isinstance(reply, services.PermissionAnswer)
    assert reply.outcome == (services.Dismissed() if chosen is None else services.Selected(chosen))


@pytest.mark.requirement("8.1.19")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("word", ["Allowed", "allow", "yes", "", "ok"])
def test_an_unknown_word_is_no_answer(version: int, word: str) -> None:
    question = services.RequestPermission("s", "May I?", OFFERED)
    with pytest.raises(PeerMistake):
        agent_of(version).decode_reply(question, Raw(text({"outcome": word, "option_id": "y"})))


# -- the older draft of version 2 --------------------------------------------------------------------------------------


def now(update: Any) -> Any:
    (event,) = hear(client_of(2), {"sessionId": "s", "update": update})
    return event


@pytest.mark.requirement("8.2.2")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("authenticate", requests.Login("login")),
        ("auth/login", requests.Login("login")),
        ("logout", requests.Logout()),
        ("auth/logout", requests.Logout()),
    ],
)
def test_logging_in_and_out_has_two_names(version: int, method: str, request_: Any) -> None:
    params = {"methodId": "login"} if isinstance(request_, requests.Login) else {}
    assert heard(agent_of(version), method, params) == request_


@pytest.mark.requirement("8.2.3")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("key", ["id", "methodId"])
def test_a_login_method_may_have_either_id(version: int, key: str) -> None:
    answer: Any = {"protocolVersion": version, "authMethods": [{"type": "agent", key: "m", "name": "M"}]}
    answer |= {"info": {"name": "a", "version": "1"}, "capabilities": {"session": {}}} if version == 2 else {}
    assert decode_agent(Raw(text(answer))).hello.auth_methods == [AgentAuth("m", "M")]


@pytest.mark.requirement("8.2.4")
def test_a_load_is_a_resume_from_the_start() -> None:
    request = heard(agent_of(2), "session/load", {"sessionId": "s", "cwd": "/", "mcpServers": []})
    assert request == requests.ResumeSession("s", "/", mcp_servers=[], replay_from=requests.ReplayFromStart())


@pytest.mark.requirement("8.2.5")
def test_markers_of_the_older_draft_are_ignored() -> None:
    marked: Any = {"session": {"list": {}, "resume": {}, "close": {}, "load": {}}, "auth": {"logout": {}}}
    answer = {"protocolVersion": 2, "info": {"name": "a", "version": "1"}, "capabilities": marked}
    can = decode_agent(Raw(text(answer))).hello.capabilities
    assert (can.list, can.resume, can.close, can.load) == (True, True, True, True)


@pytest.mark.requirement("8.2.8")
def test_options_may_have_an_id_and_groups_a_group() -> None:
    group = {"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}]}
    option = {"id": "m", "name": "M", "type": "select", "currentValue": "a", "options": [group]}
    meant = options.Select("m", "M", "a", [options.ChoiceGroup("g", "G", [options.Choice("a", "A")])])
    assert now({"sessionUpdate": "config_option_update", "configOptions": [option]}).config_options == [meant]
    opened = (
        client_of(2)
        .decode_reply(requests.NewSession("/"), Raw(text({"sessionId": "s", "configOptions": [option]})))
        .reply
    )
    assert isinstance(opened, requests.SessionOpened)
    assert opened.config_options == [meant]


@pytest.mark.requirement("8.2.9")
def test_an_unknown_category_is_kept() -> None:
    option: Any = {"configId": "m", "name": "M", "type": "select", "currentValue": "a", "category": "_x"}
    option |= {"options": [{"value": "a", "name": "A"}]}
    (heard_,) = now({"sessionUpdate": "config_option_update", "configOptions": [option]}).config_options
    assert heard_.category == "_x"


@pytest.mark.requirement("8.2.10")
def test_a_plan_may_have_an_id() -> None:
    plan = {"type": "items", "id": "p", "entries": [{"content": "c", "priority": "high", "status": "pending"}]}
    event = now({"sessionUpdate": "plan_update", "plan": plan})
    assert event.plan == options.PlanItems("p", [options.PlanEntry("c", "high", "pending")])


@pytest.mark.requirement("8.2.11")
def test_the_input_of_a_command_may_have_no_type() -> None:
    command = {"name": "n", "description": "d", "input": {"hint": "h"}}
    event = now({"sessionUpdate": "available_commands_update", "availableCommands": [command]})
    assert event.available_commands == [options.Command("n", "d", options.CommandInput("h"))]


@pytest.mark.requirement("8.2.12")
def test_a_permission_may_be_about_a_call_and_nothing_else() -> None:
    call = {"toolCallId": "c", "title": "Write a file", "kind": "edit"}
    asked = [{"optionId": "a", "name": "A", "kind": "allow_once"}]
    request = heard(client_of(2), "session/request_permission", {"sessionId": "s", "toolCall": call, "options": asked})
    assert (request.title, request.subject) == (
        "Write a file",
        services.ToolCallSubject(events.ToolCallUpdate("c", title="Write a file", kind="edit")),
    )


@pytest.mark.requirement("8.2.14")
def test_a_diff_may_be_two_texts() -> None:
    item = {"type": "diff", "path": "/a", "oldText": None, "newText": "b\n"}
    (diff,) = now({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [item]}).content
    assert diff.changes == [tools.FileChange("add", "/a")]
    assert "+b" in diff.patch.text


@pytest.mark.requirement("8.2.17")
@pytest.mark.parametrize("word", ["status", "kind"])
def test_an_unknown_word_is_kept(word: str) -> None:
    event = now({"sessionUpdate": "tool_call_update", "toolCallId": "c", word: "_new"})
    assert getattr(event, word) == "_new"


# -- small things on either side ---------------------------------------------------------------------------------------


@pytest.mark.requirement("8.4.19")
def test_a_model_may_be_set_by_its_bare_name_everywhere() -> None:
    agent = agent_of(1)
    opening = heard(agent, "session/new", {"cwd": "/", "mcpServers": []})
    choices: list[Any] = [options.Choice("p/a", "A"), options.Choice("p/b", "B")]
    model = options.Select("model", "Model", "p/a", choices, category="model")
    agent.encode_reply(1, opening, requests.SessionOpened("s", [model]))
    request = heard(agent, "_agentao.cn/set_model", {"sessionId": "s", "model": " b "})
    assert request == requests.SetOption("s", "model", "p/b")
    after = options.Select("model", "Model", "p/b", choices, category="model")
    answered, told = agent.encode_reply(1, request, requests.OptionsSet([after]))
    assert answered == ResultMessage(1, b'{"model":"b"}')
    assert isinstance(told, NotificationMessage)
    (option,) = json.loads(told.params)["update"]["configOptions"]
    assert (option["id"], option["currentValue"]) == ("model", "p/b")
    params = {"sessionId": "other", "model": "b"}
    assert heard(agent, "_agentao.cn/set_model", params) == Extension("_agentao.cn/set_model", params)


@pytest.mark.requirement("8.4.4")
def test_extensions_are_found_in_both_places() -> None:
    one, two = [{"method": "_a/x", "description": "d"}], ["_a/y", {"method": "_a/x"}, 7]
    answer = {
        "protocolVersion": 1,
        "_meta": {"_a/extensions": one},
        "agentCapabilities": {"_meta": {"_a/extensions": two}},
    }
    assert decode_agent(Raw(text(answer))).hello.extension_methods() == ["_a/x", "_a/y"]


@pytest.mark.requirement("8.1.6")
def test_a_load_that_tells_no_story_is_a_load() -> None:
    client = client_of(1)
    request = requests.ResumeSession("s", "/", replay_from=requests.ReplayFromStart())
    assert client.encode_request(request).method == "session/load"
    assert client.decode_reply(request, Raw(b"{}")).reply == requests.SessionOpened("s")


@pytest.mark.requirement("8.1.20")
@pytest.mark.parametrize("code", [-32602, -32603, -32002, -1])
def test_any_code_is_a_failure(code: int) -> None:
    client = client_of(1)
    prompt = requests.PromptRequest("s", [Text("x")])
    client.encode_request(prompt)
    failed = client.decode_failure(prompt, WireError(code, "no"))
    assert failed is not None
    assert failed.events[0].event == events.Idle(stop_reason="error", error=events.Failure(code, "no"))


@pytest.mark.requirement("8.3.15")
def test_a_call_may_begin_in_progress() -> None:
    update = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "status": "in_progress"}
    assert one({"sessionId": "s", "update": update}).status == "in_progress"


@pytest.mark.requirement("8.4.20")
def test_what_stands_beside_an_answer_is_no_harm() -> None:
    modes = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
    client = client_of(1)
    client.decode_reply(requests.NewSession("/"), Raw(text({"sessionId": "s", "modes": modes})))
    request = requests.SetOption("s", "mode", "b")
    assert client.encode_request(request).method == "session/set_mode"
    reply = client.decode_reply(request, Raw(b'{"modeId":"b"}')).reply
    assert isinstance(reply, requests.OptionsSet)
    assert [option.current_value for option in reply.config_options] == ["b"]  # type: ignore[union-attr]


@pytest.mark.requirement("8.4.17")
def test_meta_is_taken_everywhere_else() -> None:
    params = {"sessionId": "s", "configId": "model", "value": "a", "_meta": {"k": 1}}
    assert heard(agent_of(1), "session/set_config_option", params).meta == {"k": 1}


@pytest.mark.requirement("8.5.8")
def test_a_tool_is_never_run_because_a_call_arrived() -> None:
    update = {"sessionUpdate": "tool_call", "toolCallId": "c", "toolName": "bash", "input": {"command": "x"}}
    client = client_of(1)
    (told,) = client.decode_notification("session/update", Raw(text({"sessionId": "s", "update": update})))
    assert isinstance(told, SessionEvent)
    assert isinstance(told.event, events.ToolCallUpdate)


@pytest.mark.requirement("8.5.7")
def test_a_permission_inside_an_update_is_no_permission() -> None:
    update = {"type": "request_permission", "action": "a", "description": "d", "requestId": "r"}
    with pytest.raises(PeerMistake):
        hear(client_of(1), {"sessionId": "s", "update": update})
    event = one({"sessionId": "s", "update": {"sessionUpdate": "request_permission", **update}})
    assert isinstance(event, events.UnknownEvent)


@pytest.mark.requirement("8.5.1")
@pytest.mark.parametrize("version", [1, 2])
def test_a_relative_folder_is_refused(version: int) -> None:
    with pytest.raises(PeerMistake) as caught:
        heard(agent_of(version), "session/new", {"cwd": "here", "mcpServers": []})
    assert caught.value.code == -32602
