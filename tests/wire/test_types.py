"""The codec: what is kept, what is tolerated, what is refused."""

import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from dragoman.errors import INVALID_PARAMS, PARSE_ERROR, PeerMistake
from dragoman.wire import lenient, v1, v2
from dragoman.wire.types import RawExtras, UnknownVariant, decode, encode

TEXT_UPDATE = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}


def test_absent_null_and_value_are_three_things() -> None:
    title = [b"{}", b'{"title":null}', b'{"title":"t"}']
    read = [decode(text, v1.SessionInfoUpdate) for text in title]
    assert [update.title for update in read] == [UNSET, None, "t"]
    assert [json.loads(encode(update)) for update in read] == [
        {"sessionUpdate": "session_info_update"},
        {"sessionUpdate": "session_info_update", "title": None},
        {"sessionUpdate": "session_info_update", "title": "t"},
    ]


def test_null_is_refused_where_the_schema_has_no_null() -> None:
    assert refusal(v1.PromptRequest, {"sessionId": None, "prompt": []}) == (
        INVALID_PARAMS,
        "Invalid params at $.sessionId: expected `str`, got `null`",
        {"path": "$.sessionId"},
    )


def test_a_value_equal_to_the_default_of_the_schema_is_still_sent() -> None:
    given_value = {"promptCapabilities": {"image": False}, "loadSession": False}
    assert again(v1.AgentCapabilities, given_value) == given_value


def test_attributes_are_snake_case_and_the_wire_is_camel_case() -> None:
    request = v1.CreateTerminalRequest(session_id="s", command="c", output_byte_limit=1, meta={"a": 1})
    assert encode(request) == b'{"_meta":{"a":1},"sessionId":"s","command":"c","outputByteLimit":1}'


def test_values_are_frozen_and_equal_by_value() -> None:
    one, other = v1.TextContent(text="t"), v1.TextContent(text="t")
    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(AttributeError):
        one.text = "u"  # type: ignore[misc]


def test_an_unknown_field_is_kept_beside_the_known_ones() -> None:
    read = decode(b'{"type":"text","text":"t","vendor":{"a":[1, 2]}}', v1.TextContent)
    assert read == v1.TextContent(text="t", extras=RawExtras({"vendor": Raw(b'{"a":[1,2]}')}))
    assert json.loads(encode(read)) == {"type": "text", "text": "t", "vendor": {"a": [1, 2]}}


def test_a_field_called_extras_is_an_unknown_field_like_any_other() -> None:
    message = {"type": "text", "text": "t", "extras": {"fields": {}}}
    assert again(v1.ContentBlock, message) == message


def test_a_known_field_wins_over_one_that_was_kept_under_its_name() -> None:
    content = v1.TextContent(text="t", extras=RawExtras({"text": Raw(b'"other"')}))
    assert json.loads(encode(content)) == {"type": "text", "text": "t"}


def test_an_unknown_variant_is_kept_whole() -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "video", "text": 3, "frames": [1]}}
    read = decode(text({"sessionId": "s", "update": update}), v1.SessionNotification)
    assert read.update == v1.SessionUpdateAgentMessageChunk(
        content=UnknownVariant("video", Raw(b'{"frames":[1],"text":3,"type":"video"}'))
    )
    assert json.loads(encode(read)) == {"sessionId": "s", "update": update}


def test_an_unknown_state_is_kept_whole_and_a_known_one_is_typed() -> None:
    idle = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "brand_new"}
    asleep = {"sessionUpdate": "state_update", "state": "asleep", "usage": 1}
    assert decode(text(idle), v2.SessionUpdate) == v2.SessionUpdateStateUpdateIdle(stop_reason="brand_new")
    assert decode(text(asleep), v2.SessionUpdate) == UnknownVariant("asleep", Raw(text(asleep)))
    assert again(v2.SessionUpdate, idle) == idle


@pytest.mark.parametrize(
    ("kind", "message", "path"),
    [
        (v1.ContentBlock, {"type": "text"}, "$"),
        (v1.ContentBlock, {"type": "text", "text": 1}, "$.text"),
        (v1.ContentBlock, {"text": "t"}, "$"),
        (v1.ContentBlock, {"type": 1, "text": "t"}, "$.type"),
        (v1.ContentBlock, {"type": "resource", "resource": {"uri": "u"}}, "$.resource"),
        (v1.ContentBlock, {"type": "resource", "resource": {"uri": 1, "text": "t"}}, "$.resource.uri"),
        (v1.SessionUpdate, {"sessionUpdate": "tool_call", "title": "t"}, "$"),
        (
            v1.PromptRequest,
            {"sessionId": "s", "prompt": [{"type": "text", "text": "t"}, {"type": "text"}]},
            "$.prompt[1]",
        ),
        (v1.PromptRequest, {"sessionId": "s", "prompt": "hello"}, "$.prompt"),
        (v1.NewSessionRequest, {"cwd": "/", "mcpServers": [{"type": "http", "name": "n"}]}, "$.mcpServers[0]"),
        (v1.RequestPermissionOutcome, {"outcome": "selected"}, "$"),
        (v1.PromptResponse, {"stopReason": "tired"}, "$.stopReason"),
        (v1.CreateElicitationRequest, {"mode": "form", "message": "m", "requestedSchema": {}}, "$"),
        (v2.SessionUpdate, {"sessionUpdate": "state_update"}, "$"),
        (v2.SessionUpdate, {"sessionUpdate": "state_update", "state": 1}, "$.state"),
        (v2.AvailableCommand, {"name": "n", "description": "d"}, "$"),
        (v2.PromptRequest, {"sessionId": "s", "prompt": []}, "$.prompt"),
        (v2.DiffChange, {"operation": "move", "path": "/p"}, "$"),
        (v2.InitializeRequest, {"protocolVersion": 65536, "info": {"name": "n", "version": "v"}}, "$.protocolVersion"),
        (v2.InitializeRequest, {"protocolVersion": True, "info": {"name": "n", "version": "v"}}, "$.protocolVersion"),
        (v2.InitializeRequest, {"protocolVersion": 1.5, "info": {"name": "n", "version": "v"}}, "$.protocolVersion"),
    ],
)
def test_what_is_known_and_malformed_is_refused(kind: Any, message: Any, path: str) -> None:
    assert refusal(kind, message)[::2] == (INVALID_PARAMS, {"path": path})
    # An unknown field beside it changes nothing.
    assert refusal(kind, {"vendor": 1, **message})[::2] == (INVALID_PARAMS, {"path": path})


@pytest.mark.parametrize(
    ("kind", "message", "read"),
    [
        # The default of the schema, where it gives one.
        (v1.PromptCapabilities, {"image": "yes"}, v1.PromptCapabilities(image=False)),
        (
            v1.ClientCapabilities,
            {"fs": 7},
            v1.ClientCapabilities(fs=v1.FileSystemCapabilities(read_text_file=False, write_text_file=False)),
        ),
        (
            v2.InitializeRequest,
            {"protocolVersion": 2, "info": {"name": "n", "version": "v"}, "capabilities": []},
            v2.InitializeRequest(
                protocol_version=2, info=v2.Implementation(name="n", version="v"), capabilities=v2.ClientCapabilities()
            ),
        ),
        # Otherwise absent.
        (v1.TextContent, {"text": "t", "annotations": 1}, v1.TextContent(text="t")),
        (v1.TextContent, {"text": "t", "_meta": []}, v1.TextContent(text="t")),
        (v1.ToolCallUpdate, {"toolCallId": "t", "kind": "juggle"}, v1.ToolCallUpdate(tool_call_id="t")),
        (v1.ToolCallUpdate, {"toolCallId": "t", "kind": None}, v1.ToolCallUpdate(tool_call_id="t", kind=None)),
        (v2.ToolCallUpdate, {"toolCallId": "t", "kind": "juggle"}, v2.ToolCallUpdate(tool_call_id="t", kind="juggle")),
        # An array that must be there is empty.
        (v1.Plan, {"entries": "none"}, v1.Plan(entries=())),
        (v1.NewSessionRequest, {"cwd": "/", "mcpServers": None}, v1.NewSessionRequest(cwd="/", mcp_servers=())),
        (v2.NewSessionRequest, {"cwd": "/", "mcpServers": None}, v2.NewSessionRequest(cwd="/")),
        # Invalid items are dropped, unknown ones are not.
        (
            v1.ToolCallUpdate,
            {"toolCallId": "t", "locations": [1, {"path": "/p"}, {"path": 2}]},
            v1.ToolCallUpdate(
                tool_call_id="t",
                locations=(v1.ToolCallLocation(path="/p"),),
                # A call is judged by its places, so it stays known that there were more.
                extras=RawExtras({"locations": Raw(b'[1,{"path":"/p"},{"path":2}]')}),
            ),
        ),
        (v1.Annotations, {"audience": ["user", "dog"]}, v1.Annotations(audience=("user",))),
        (
            v2.AgentMessage,
            {"messageId": "m", "content": [{"type": "text"}, {"type": "new"}]},
            v2.AgentMessage(message_id="m", content=(UnknownVariant("new", Raw(b'{"type":"new"}')),)),
        ),
    ],
)
def test_a_lenient_field_takes_its_default(kind: Any, message: Any, read: Any) -> None:
    assert decode(text(message), kind) == read


def test_what_must_be_there_is_not_invented() -> None:
    assert refusal(v1.Plan, {})[1] == "Invalid params at $: missing field `entries`"


@pytest.mark.parametrize(
    ("message", "read"),
    [
        (
            {"name": "n", "command": "c", "args": [], "env": []},
            v1.McpServerStdio(name="n", command="c", args=(), env=()),
        ),
        (
            {"type": "stdio", "name": "n", "command": "c", "args": [], "env": []},
            v1.McpServerStdio(name="n", command="c", args=(), env=(), type="stdio"),
        ),
        ({"type": "http", "name": "n", "url": "u", "headers": []}, v1.McpServerHttp(name="n", url="u", headers=())),
        ({"type": "pigeon", "loft": 3}, UnknownVariant("pigeon", Raw(b'{"type":"pigeon","loft":3}'))),
    ],
)
def test_a_v1_mcp_server_without_type_is_stdio(message: Any, read: Any) -> None:
    assert decode(text(message), v1.McpServer) == read
    assert again(v1.McpServer, message) == message


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"value": "x"}, v1.SetSessionConfigOptionRequestValueId),
        ({"type": "id", "value": "x"}, v1.SetSessionConfigOptionRequestValueId),
        ({"type": "boolean", "value": "x"}, v1.SetSessionConfigOptionRequestValueId),
        ({"type": "boolean", "value": True}, v1.SetSessionConfigOptionRequestBoolean),
        ({"type": "range", "value": [1, 2]}, UnknownVariant),
    ],
)
def test_a_v1_config_value_is_told_by_its_own_type(message: dict[str, Any], kind: type) -> None:
    request = {"sessionId": "s", "configId": "c", **message}
    assert type(decode(text(request), v1.SetSessionConfigOptionRequest)) is kind
    assert again(v1.SetSessionConfigOptionRequest, request) == request


def test_a_v1_config_boolean_needs_its_type() -> None:
    assert (
        refusal(v1.SetSessionConfigOptionRequest, {"sessionId": "s", "configId": "c", "value": True})[0]
        == INVALID_PARAMS
    )


def test_options_are_flat_or_grouped() -> None:
    flat = {"type": "select", "id": "i", "name": "n", "currentValue": "v", "options": [{"value": "v", "name": "n"}]}
    grouped = {**flat, "options": [{"group": "g", "name": "n", "options": [{"value": "v", "name": "n"}]}]}
    options = [decode(text(message), v1.SessionConfigOption).options for message in (flat, grouped)]
    option = v1.SessionConfigSelectOption(value="v", name="n")
    assert options == [(option,), (v1.SessionConfigSelectGroup(group="g", name="n", options=(option,)),)]


def test_a_resource_is_text_or_blob() -> None:
    assert decode(b'{"uri":"u","blob":"b"}', v1.EmbeddedResourceResource) == v1.BlobResourceContents(uri="u", blob="b")
    assert decode(b'{"uri":"u","text":"t"}', v1.EmbeddedResourceResource) == v1.TextResourceContents(uri="u", text="t")
    mixed = {"uri": "u", "text": None, "blob": "b"}
    assert again(v1.EmbeddedResourceResource, mixed) == mixed


def test_an_elicitation_is_for_a_session_or_for_a_request() -> None:
    form = {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    assert decode(text({**form, "requestId": 1}), v2.CreateElicitationRequest).request_id == 1
    assert refusal(v2.CreateElicitationRequest, {**form, "requestId": 1, "sessionId": "s"})[0] == INVALID_PARAMS
    # The anyOf of v1 allows both; there null is an id as well.
    assert decode(text({**form, "requestId": None, "sessionId": "s"}), v1.CreateElicitationRequest).request_id is None


def test_what_is_kept_does_not_hold_the_frame_in_memory() -> None:
    frame = text({"type": "hologram", "padding": "x" * 100})
    other = text({"type": "text", "text": "t", "vendor": "x" * 100})
    before = sys.getrefcount(frame), sys.getrefcount(other)
    kept = decode(frame, v1.ContentBlock), decode(other, v1.ContentBlock)
    assert (sys.getrefcount(frame), sys.getrefcount(other)) == before
    assert [type(value) for value in kept] == [UnknownVariant, v1.TextContent]


def test_what_is_kept_is_on_one_line() -> None:
    read = decode(b'{"type":"text","text":"t","vendor":{\n "a":\r\n [1,\n 2]}}', v1.ContentBlock)
    unknown = decode(b'{\n"type":"new",\n"text":"a\\nb"}', v1.ContentBlock)
    assert encode(read) == b'{"vendor":{"a":[1,2]},"type":"text","text":"t"}'
    assert encode(unknown) == b'{"type":"new","text":"a\\nb"}'


def test_a_refusal_never_repeats_what_was_sent() -> None:
    secret = "s3cr3t"
    messages = [
        {"type": secret, "text": 1, "x": 2},
        {"type": "text", "text": {secret: secret}},
        {"type": "text", secret: 1},
        {"type": {secret: 1}},
        {"type": "resource", "resource": {secret: secret}},
        {"sessionUpdate": "current_mode_update", "currentModeId": [secret]},
        {"stopReason": secret},
        {
            "mode": "form",
            "message": "m",
            "sessionId": "s",
            "requestedSchema": {"properties": {secret: {"type": "string", "minLength": secret}}},
        },
    ]
    kinds = [v1.ContentBlock, v1.SessionUpdate, v1.PromptResponse, v1.CreateElicitationRequest, v2.SessionUpdate]
    heard = [refusal(kind, message) for kind in kinds for message in messages if not accepts(kind, message)]
    assert len(heard) > len(kinds)
    assert [said for said in heard if secret in repr(said)] == []


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (b'{"type":"text","text":"\xff"}', PARSE_ERROR),
        (b'{"type":"text","text":"t","vendor":"\xff"}', PARSE_ERROR),
        (b'{"type":"new","vendor":"\xff"}', PARSE_ERROR),
        (b'{"type":"text","text":"\\ud800"}', PARSE_ERROR),
        (b'{"type":"text","text":NaN}', PARSE_ERROR),
        (b"null", INVALID_PARAMS),
        (b"[]", INVALID_PARAMS),
        (b"1" * 5000, INVALID_PARAMS),
        (b'{"type":"text","text":1e999}', INVALID_PARAMS),
        (b'{"type":"text","text":' + b"9" * 5000 + b"}", INVALID_PARAMS),
        (b"[" * 100_000, INVALID_PARAMS),
        (b'{"type":"text","text":"t","_meta":' + b'{"a":' * 100_000, INVALID_PARAMS),
        (b'{"type":"new","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", INVALID_PARAMS),
    ],
    ids=lambda given: str(given[:30]) if isinstance(given, bytes) else None,  # some have a hundred thousand bytes
)
def test_odd_input_is_a_mistake_of_the_peer(data: bytes, code: int) -> None:
    with pytest.raises(PeerMistake) as mistake:
        decode(data, v1.ContentBlock)
    assert mistake.value.code == code


def test_a_flood_of_unknown_and_invalid_things_is_refused_early() -> None:
    fields = {f"k{number}": 1 for number in range(lenient.SLOW_READS + 1)}
    flood = (INVALID_PARAMS, "Invalid params: too much that is unknown or invalid", None)
    assert refusal(v1.ContentBlock, {"type": "text", "text": "t", **fields}) == flood
    assert refusal(v1.Plan, {"entries": [1] * (lenient.SLOW_READS + 1)}) == flood


@given(st.binary(max_size=64) | st.text(max_size=64).map(str.encode))
def test_any_bytes_only_ever_raise_a_mistake_of_the_peer(data: bytes) -> None:
    for kind in (v1.SessionNotification, v1.ContentBlock, v2.SessionUpdate, v2.CreateElicitationRequest):
        try:
            encode(decode(data, kind))
        except PeerMistake:
            pass


@given(st.data())
def test_a_damaged_message_is_read_or_refused(data: st.DataObject) -> None:
    message = text({"sessionId": "s", "update": {**TEXT_UPDATE, "_meta": {"a": [1, None, "ü"]}, "vendor": {"b": 2.5}}})
    start = data.draw(st.integers(0, len(message)))
    end = data.draw(st.integers(start, len(message)))
    damaged = message[:start] + data.draw(st.binary(max_size=4) | st.just(b"")) + message[end:]
    try:
        read = decode(damaged, v1.SessionNotification)
    except PeerMistake:
        return
    assert decode(encode(read), v1.SessionNotification) == read


def test_what_was_kept_is_compared_by_meaning() -> None:
    one = RawExtras({"a": Raw(b'{"x": 1, "y": [2.0]}')})
    assert one == RawExtras({"a": Raw(b'{"y":[2],"x":1}')})
    assert one != RawExtras({"a": Raw(b'{"y":[2],"x":true}')})
    assert one != RawExtras({"b": Raw(b'{"y":[2],"x":1}')})
    assert UnknownVariant("t", Raw(b"[1]")) == UnknownVariant("t", Raw(b"[ 1 ]"))
    assert UnknownVariant("t", Raw(b"[1]")) != UnknownVariant("u", Raw(b"[1]"))
    assert (one == 1, UnknownVariant("t", Raw(b"1")) == 1) == (False, False)
    assert hash(one) == hash(RawExtras({"a": Raw(b"0")}))


def test_what_was_kept_is_shown_without_its_content() -> None:
    assert repr(RawExtras({"b": Raw(b"1"), "a": Raw(b"2")})) == "Extras(a, b)"
    assert repr(UnknownVariant("video", Raw(b'{"type":"video"}'))) == "Unknown('video')"


def test_what_is_no_wire_value_is_not_encoded() -> None:
    with pytest.raises(TypeError):
        encode(object())


def test_params_inside_an_envelope_are_read_without_copying_them_first() -> None:
    envelope = msgspec.json.decode(b'{"params": {"sessionId":"s","prompt":[]} }', type=dict[str, Raw])
    assert decode(envelope["params"], v1.PromptRequest) == v1.PromptRequest(session_id="s", prompt=())


def text(message: Any) -> bytes:
    return json.dumps(message).encode()


def again(kind: Any, message: Any) -> Any:
    return json.loads(encode(decode(text(message), kind)))


def accepts(kind: Any, message: Any) -> bool:
    try:
        decode(text(message), kind)
    except PeerMistake:
        return False
    return True


def refusal(kind: Any, message: Any) -> tuple[int, str, object]:
    with pytest.raises(PeerMistake) as mistake:
        decode(text(message), kind)
    return mistake.value.code, mistake.value.message, mistake.value.data
