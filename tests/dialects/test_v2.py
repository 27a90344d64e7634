"""Version 2: what it adds to names. The vocabulary has its meaning, so the round trips say most of it."""

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from dragoman.dialects.contract import DecodedReply, Dialect, NotificationMessage, RequestMessage, ResultMessage
from dragoman.errors import PeerMistake
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.content import Annotations, ResourceLink, Text
from dragoman.vocabulary.word import Extras
from tests.dialects.joined_dialects import agent_of, client_of, hear, updates_of
from tests.dialects.schemas import assert_valid, text

PROMPT = {"sessionId": "s", "prompt": [{"type": "text", "text": "hello"}]}


def heard(dialect: Dialect, method: str, params: Any) -> Any:
    return dialect.decode_request(1, method, Raw(text(params)))


def state(**fields: Any) -> list[events.AnyEvent]:
    return hear(client_of(2), {"sessionId": "s", "update": {"sessionUpdate": "state_update", **fields}})


# -- prompts and states ----------------------------------------------------------------------------------------------


def test_a_prompt_is_answered_when_it_is_accepted() -> None:
    agent = agent_of(2)
    request = heard(agent, "session/prompt", PROMPT)
    assert request == requests.PromptRequest("s", [Text("hello")])
    assert agent.encode_reply(1, request, requests.PromptAccepted("m")) == [ResultMessage(1, b'{"messageId":"m"}')]


def test_a_prompt_may_come_while_another_one_runs() -> None:
    agent = agent_of(2)
    assert heard(agent, "session/prompt", PROMPT) == heard(agent, "session/prompt", PROMPT)


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(PeerMistake) as caught:
        heard(agent_of(2), "session/prompt", {"sessionId": "s", "prompt": []})
    assert caught.value.code == -32602


@pytest.mark.parametrize("result", [None, {}, {"_meta": {"k": 1}}])
def test_an_older_draft_accepts_without_naming_the_message(result: Any) -> None:
    request = requests.PromptRequest("s", [Text("hello")])
    reply = client_of(2).decode_reply(request, Raw(text(result))).reply
    assert isinstance(reply, requests.PromptAccepted)
    assert (reply.message_id, reply.meta) == ("", (result or {}).get("_meta", UNSET))


def test_the_end_of_a_turn_is_an_idle_with_a_reason() -> None:
    failure = events.Failure(-32603, "no", {"reason": "network"})
    end = events.Idle(stop_reason="error", error=failure, usage=events.Usage(3, 1, 2))
    said = updates_of(agent_of(2), end)
    assert said == [
        {
            "sessionUpdate": "state_update",
            "state": "idle",
            "stopReason": "error",
            "error": {"code": -32603, "message": "no", "data": {"reason": "network"}},
            "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2},
        }
    ]
    assert hear(client_of(2), {"sessionId": "s", "update": said[0]}) == [end]


@pytest.mark.parametrize(
    ("fields", "event"),
    [
        ({"state": "running"}, events.Running()),
        ({"state": "requires_action", "_meta": {"k": 1}}, events.RequiresAction(meta={"k": 1})),
        ({"state": "idle"}, events.Idle()),
        ({"state": "unknown", "x": 1}, events.UnknownState("unknown", {"x": 1})),
        ({"state": "_asleep", "until": 5}, events.UnknownState("_asleep", {"until": 5})),
        (
            {"state": "idle", "background": [{"type": "terminal", "terminalId": "t"}, {"type": "_job", "n": 1}]},
            events.Idle(
                background=[
                    events.Background("terminal", {"type": "terminal", "terminalId": "t"}),
                    events.Background("_job", {"type": "_job", "n": 1}),
                ]
            ),
        ),
    ],
)
def test_every_state_is_heard_and_said_as_it_is(fields: dict[str, Any], event: events.AnyEvent) -> None:
    assert state(**fields) == [event]
    assert updates_of(agent_of(2), event) == [{"sessionUpdate": "state_update", **fields}]


@pytest.mark.parametrize("name", ["user_message", "state_update", "terminal_update", "tool_call_content_chunk"])
def test_an_unknown_update_is_never_taken_for_a_known_one(name: str) -> None:
    """A version 1 agent has no states; an update of that name there is something else."""
    heard_there = hear(client_of(1), {"sessionId": "s", "update": {"sessionUpdate": name, "state": "idle"}})
    assert heard_there == [events.UnknownEvent(name, {"state": "idle"})]
    assert agent_of(2).encode_event("s", *heard_there) == []


# -- tool calls ------------------------------------------------------------------------------------------------------


def test_a_diff_with_texts_gets_a_patch() -> None:
    call = events.ToolCallUpdate("c", content=[tools.Diff.of("/x", "a\n", "b\n")])
    (said,) = updates_of(agent_of(2), call)
    assert said["content"] == [
        {
            "type": "diff",
            "changes": [{"operation": "modify", "path": "/x"}],
            "patch": {"format": "git_patch", "text": "diff --git /x /x\n--- /x\n+++ /x\n@@ -1 +1 @@\n-a\n+b\n"},
        }
    ]


def test_a_diff_that_has_a_patch_keeps_it() -> None:
    patch = tools.Patch("_mine", "text")
    change = tools.FileChange("move", "/b", "/a", "text", old_text="a", new_text="b")
    (said,) = updates_of(agent_of(2), events.ToolCallUpdate("c", content=[tools.Diff([change], patch)]))
    assert said["content"] == [
        {
            "type": "diff",
            "changes": [{"operation": "move", "path": "/b", "oldPath": "/a", "fileType": "text"}],
            "patch": {"format": "_mine", "text": "text"},
        }
    ]


def test_several_changes_make_one_patch_of_those_that_have_texts() -> None:
    added, gone = tools.FileChange("add", "/a", old_text=None, new_text="a\n"), tools.FileChange("delete", "/b")
    deleted = tools.FileChange("delete", "/c", old_text="c\n")
    (said,) = updates_of(agent_of(2), events.ToolCallUpdate("c", content=[tools.Diff([added, gone, deleted])]))
    (diff,) = said["content"]
    assert [change["path"] for change in diff["changes"]] == ["/a", "/b", "/c"]
    assert diff["patch"]["text"] == (
        "diff --git /a /a\nnew file mode 100644\n--- /dev/null\n+++ /a\n@@ -0,0 +1 @@\n+a\n"
        "diff --git /c /c\ndeleted file mode 100644\n--- /c\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n"
    )
    (said,) = updates_of(agent_of(2), events.ToolCallUpdate("c", content=[tools.Diff([gone])]))
    assert "patch" not in said["content"][0]


def test_a_terminal_of_the_client_is_never_taken_for_one_of_the_agent() -> None:
    (said,) = updates_of(agent_of(2), events.ToolCallUpdate("c", content=[tools.ClientTerminalItem("t")]))
    assert said["content"] == [{"type": "content", "content": {"type": "text", "text": "[terminal t]"}}]


def test_three_states_of_a_field_stay_three() -> None:
    said = updates_of(agent_of(2), events.ToolCallUpdate("c", title=None, kind="read"))
    assert said == [{"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": None, "kind": "read"}]


def test_raw_fields_may_be_spelled_as_python_does() -> None:
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "raw_input": 1, "x": 2}
    assert hear(client_of(2), {"sessionId": "s", "update": update}) == [
        events.ToolCallUpdate("c", raw_input=1, extras=Extras({"x": 2}))
    ]


# -- MCP servers -----------------------------------------------------------------------------------------------------

SSE = requests.McpSse("m", "u", [requests.HttpHeader("k", "v")], meta={"a": 1}, extras=Extras({"x": 1}))


@pytest.mark.usefixtures("schemas")
def test_an_sse_server_passes_as_a_transport_of_its_own() -> None:
    asked = client_of(2).encode_request(requests.NewSession("/", mcp_servers=[SSE, requests.McpSse("n", "u")]))
    params = json.loads(asked.params)
    assert params["mcpServers"] == [
        {"type": "sse", "name": "m", "url": "u", "headers": [{"name": "k", "value": "v"}], "_meta": {"a": 1}, "x": 1},
        {"type": "sse", "name": "n", "url": "u"},
    ]
    assert_valid(2, "NewSessionRequest", params)
    request = heard(agent_of(2), asked.method, params)
    assert request == requests.NewSession("/", mcp_servers=[SSE, requests.McpSse("n", "u")])


def test_a_malformed_sse_server_is_unknown_and_never_asked_of_a_version_1_agent() -> None:
    request = heard(agent_of(2), "session/new", {"cwd": "/", "mcpServers": [{"type": "sse", "name": 1}]})
    assert request.mcp_servers == [requests.UnknownMcp("sse", {"type": "sse", "name": 1})]
    with pytest.raises(PeerMistake) as caught:
        client_of(1).encode_request(request)
    assert caught.value.code == -32602


# -- what must be valid here -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            events.AgentMessageChunk(Text("a", Annotations(priority=2.0, audience=["user"])), "m"),
            {"content": {"type": "text", "text": "a", "annotations": {"audience": ["user"]}}, "messageId": "m"},
        ),
        (
            events.AgentMessageChunk(ResourceLink("n", "u", size=-1), "m"),
            {"content": {"type": "resource_link", "name": "n", "uri": "u"}, "messageId": "m"},
        ),
        (
            events.ToolCallUpdate("c", locations=[tools.Location("/x", 0), tools.Location("/y", 1)]),
            {"toolCallId": "c", "locations": [{"path": "/x"}, {"path": "/y", "line": 1}]},
        ),
        (
            events.OptionsChanged(
                [options.Select("m", "M", "x", []), options.Select("n", "N", "y", [options.ChoiceGroup("g", "G", [])])]
            ),
            {
                "configOptions": [
                    {
                        "type": "select",
                        "configId": "m",
                        "name": "M",
                        "currentValue": "x",
                        "options": [{"value": "x", "name": "x"}],
                    },
                    {
                        "type": "select",
                        "configId": "n",
                        "name": "N",
                        "currentValue": "y",
                        "options": [{"value": "y", "name": "y"}],
                    },
                ]
            },
        ),
    ],
)
def test_what_version_2_does_not_allow_is_left_out(event: events.AnyEvent, said: dict[str, Any]) -> None:
    (update,) = updates_of(agent_of(2), event)
    assert {key: value for key, value in update.items() if key != "sessionUpdate"} == said


def test_a_permission_without_options_is_refused() -> None:
    with pytest.raises(PeerMistake) as caught:
        agent_of(2).encode_request(services.RequestPermission("s", "May I?", []))
    assert caught.value.code == -32602


def test_the_frame_of_a_text_chunk_is_the_frame_of_its_event() -> None:
    agent = agent_of(2)
    head, tail = agent.text_frame('s"', "agent_message_chunk", "m\n")
    (said,) = agent.encode_event('s"', events.AgentMessageChunk(Text("é\n"), "m\n"))
    assert isinstance(said, NotificationMessage)
    frame = json.loads(head + '"é\\n"'.encode() + tail)
    assert frame == {"jsonrpc": "2.0", "method": "session/update", "params": json.loads(said.params)}


# -- beside the updates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_what_stands_beside_an_update_goes_along_with_it(version: int) -> None:
    params = {"sessionId": "s", "update": {"sessionUpdate": "session_info_update"}, "_meta": {"trace": "00"}, "x": 1}
    (event,) = hear(client_of(version), params)
    assert event == events.SessionInfoChanged(outer=Extras({"_meta": {"trace": "00"}, "x": 1}))
    (said,) = agent_of(version).encode_event("s", event)
    assert isinstance(said, NotificationMessage)
    assert json.loads(said.params) == params


@pytest.mark.parametrize("version", [1, 2])
def test_extensions_pass_with_their_params_or_without(version: int) -> None:
    agent, client = agent_of(version), client_of(version)
    for params in (b"", b'{"a":[1]}', b"null"):
        request = agent.decode_request(1, "_vendor/do", Raw(params))
        assert not isinstance(request, requests.CancelTurn)
        assert client.encode_request(request) == RequestMessage("_vendor/do", params)  # type: ignore[arg-type]
        sent = client.encode_notification(*agent.decode_notification("_vendor/told", Raw(params)))  # type: ignore[arg-type]
        assert sent == [NotificationMessage("_vendor/told", params)]
    reply = client.decode_reply(request, Raw(b'{"b":1}'))  # type: ignore[arg-type]
    assert isinstance(reply, DecodedReply)
    assert reply.reply is not None
    assert agent.encode_reply(1, request, reply.reply) == [ResultMessage(1, b'{"b":1}')]  # type: ignore[arg-type]
