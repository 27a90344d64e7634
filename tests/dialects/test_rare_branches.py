"""Ways through the dialects that ordinary messages do not take: odd spellings, torn values, words a version lacks."""

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from dragoman import limits
from dragoman.dialects.codec import permissions
from dragoman.dialects.codec.elicitations import mended_form
from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import NotificationMessage
from dragoman.dialects.tolerance import updates as tolerance
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v2 import routes
from dragoman.dialects.v2_june import agent as v2_june
from dragoman.dialects.v2_june import old_names
from dragoman.dialects.vendors.named import named
from dragoman.errors import PeerMistake, UsageError, WireError
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult
from dragoman.vocabulary.hello import AgentCapabilities, AgentHello, ClientHello
from dragoman.vocabulary.word import Extras
from dragoman.wire import types as wire
from dragoman.wire import v1 as wire_v1
from tests.dialects import seeds
from tests.dialects.schemas import text
from tests.dialects.speech import CLIENT, agent_of, client_of


def raw(value: Any) -> Raw:
    return Raw(text(value))


def read(value: Raw | bytes | None) -> Any:
    return None if value is None else json.loads(bytes(value))


# -- updates as some agents write them -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params", [{"update": 1}, {"update": {"content": 1}}, {"update": {"sessionUpdate": "dance"}}, [1], {}]
)
def test_an_update_that_means_nothing_is_left_as_it_is(params: Any) -> None:
    assert tolerance.corrected_update(raw(params)) is None


def test_params_that_are_no_json_mean_nothing() -> None:
    assert tolerance.corrected_update(Raw(b'{"update": ')) is None
    assert tolerance.corrected_permission(Raw(b"[" * 100_000)) is None


def test_an_update_without_its_wrapper_is_wrapped() -> None:
    bare = {"sessionId": "s", "_meta": {"a": 1}, "sessionUpdate": "tool_call", "toolCallId": "c", "error": "no"}
    assert read(tolerance.corrected_update(raw(bare))) == {
        "sessionId": "s",
        "_meta": {"a": 1},
        "update": {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "c",
            "status": "failed",
            "rawOutput": {"error": "no"},
        },
    }


def test_odd_fields_of_a_call_are_taken_for_what_they_mean() -> None:
    plain_call = tools_call()
    assert tolerance.corrected_call(plain_call) is plain_call
    unknown = tools_call(extras=Extras({"colour": "red"}))
    assert tolerance.corrected_call(unknown) is unknown
    odd: dict[str, object] = {
        "toolName": "grep",
        "input": {"a": 1},
        "output": "found",
        "error": "broken",
        "colour": "red",
    }
    heard = tolerance.corrected_call(tools_call(extras=Extras(odd)))
    assert (heard.title, heard.raw_input, heard.raw_output, heard.status) == ("grep", {"a": 1}, "found", "failed")
    assert heard.extras == Extras({"colour": "red"})
    said = tolerance.corrected_call(
        tools_call(title="Find", raw_input=1, raw_output=2, extras=Extras({**odd, "error": 1}))
    )
    assert (said.title, said.raw_input, said.raw_output, said.status) == ("Find", 1, 2, UNSET)
    failed = tolerance.corrected_call(tools_call(raw_output=2, extras=Extras({"error": "broken"})))
    assert (failed.raw_output, failed.status, failed.extras) == (2, "failed", UNSET)
    assert tolerance.corrected_call(tools_call(extras=Extras({"error": "broken"}))).raw_output == {"error": "broken"}


def tools_call(**fields: Any) -> events.ToolCallUpdate:
    return events.ToolCallUpdate("c", **fields)


def test_a_permission_gets_the_id_it_lacks() -> None:
    assert tolerance.corrected_permission(raw({"toolCall": None})) is None
    named = read(tolerance.corrected_permission(raw({"toolCall": {"toolName": "rm"}})))
    assert named == {"toolCall": {"title": "rm", "toolCallId": "permission: rm"}}
    kept = read(tolerance.corrected_permission(raw({"toolCall": {"toolCallId": "c", "input": 1}})))
    assert kept == {"toolCall": {"toolCallId": "c", "rawInput": 1}}


# -- the draft before the draft ------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", ['{"sessionId": "s"}', '{"id": ', '["id"]'])
def test_what_has_none_of_the_old_names_is_left_as_it_is(message: str) -> None:
    assert old_names.modern(Raw(message.encode())) == Raw(message.encode())


def test_old_names_are_made_todays() -> None:
    update = {
        "plan": {"id": "p"},
        "availableCommands": [7, {"name": "a", "input": {"hint": "what"}}, {"name": "b", "input": {"type": "x"}}],
        "configOptions": [7, {"id": "mode", "options": [7, {"group": "g"}]}],
        "content": {"type": "diff", "path": "/a", "newText": "x\n"},
    }
    said = read(old_names.modern(raw({"update": update})))["update"]
    assert said["plan"] == {"planId": "p"}
    assert said["availableCommands"] == [
        7,
        {"type": "command", "name": "a", "input": {"type": "text", "hint": "what"}},
        {"type": "command", "name": "b", "input": {"type": "x"}},
    ]
    assert said["configOptions"] == [7, {"configId": "mode", "options": [7, {"groupId": "g"}]}]
    assert said["content"]["changes"][0]["path"] == "/a"


@pytest.mark.parametrize(
    "item",
    [
        7,
        {"type": "text", "newText": "x"},
        {"type": "diff", "changes": [], "newText": "x"},
        {"type": "diff", "path": 1, "newText": "x"},
        {"type": "diff", "path": "/a", "newText": 1},
        {"type": "diff", "path": "/a", "newText": "x", "oldText": 1},
    ],
)
def test_what_is_no_old_diff_is_no_new_one(item: Any) -> None:
    message = {"update": {"content": [item], "id": ""}}
    assert read(old_names.modern(raw(message))) == message


@pytest.mark.parametrize(("title", "said"), [("Write", "Write"), (None, "Permission needed")])
def test_an_old_question_is_about_its_call(title: str | None, said: str) -> None:
    question = read(old_names.modern(raw({"toolCall": {"toolCallId": "c", "title": title}, "options": []})))
    assert (question["title"], question["options"]) == (said, [])
    assert question["subject"]["toolCall"]["toolCallId"] == "c"


# -- version 1 -----------------------------------------------------------------------------------------------------


def test_a_diff_that_cannot_be_told_as_texts_is_told_in_words() -> None:
    unknown = tools.UnknownChange("teleport", {})
    moved = tools.FileChange("move", "/b", old_path="/a")
    (said,) = v1.encode_diff(tools.Diff([unknown, moved, tools.FileChange("delete", "/c")]))
    assert said.content.text == "teleport\nmove: /a -> /b\ndelete: /c"


@pytest.mark.parametrize(("code", "said"), [(0, 0), (255, 255), (-9, None), (2**40, None)])
def test_an_exit_code_that_version_1_cannot_have_is_none(code: int, said: int | None) -> None:
    assert v1.sane_exit(wire_v1.TerminalExitStatus(exit_code=code)).exit_code == said


@pytest.mark.parametrize(
    ("wired", "ours"),
    [({"id": "a", "x": 1}, {"configId": "a", "x": 1}), ({"configId": "a", "id": "b"}, {"configId": "a", "id": "b"})],
)
def test_an_option_of_an_unknown_type_keeps_its_id(wired: dict[str, object], ours: dict[str, object]) -> None:
    heard = v1._decode_unknown_option("slider", wired)
    assert heard == options.UnknownOption("slider", ours)
    assert read(v1._encode_unknown_option(heard).raw) == wired


def test_a_client_of_version_1_hears_notes_that_are_no_updates() -> None:
    client = client_of(1)
    assert client.decode_notification("_vendor/note", raw({"a": 1})) == [ExtensionNote("_vendor/note", {"a": 1})]
    with pytest.raises(PeerMistake):
        client.decode_notification("session/update", raw({"sessionId": "s", "update": {"sessionUpdate": "tool_call"}}))


# -- version 2 and the June draft ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (events.Running(), {"state": "running"}),
        (events.RequiresAction(), {"state": "requires_action"}),
        (events.Idle(stop_reason="end_turn"), {"state": "idle", "stopReason": "end_turn"}),
        (events.UnknownState("dreaming", {"depth": 2}), {"state": "dreaming", "depth": 2}),
    ],
)
def test_version_2_tells_every_state(state: Any, said: dict[str, object]) -> None:
    found = read(wire.encode(routes._encode_status(requests.SessionStatus("open", state))))
    assert found["state"].items() >= said.items()


def test_a_permission_without_options_is_none_in_version_2() -> None:
    asking = services.RequestPermission("s", "May I?", [])
    with pytest.raises(PeerMistake):
        routes._encode_permission(asking)


def test_a_client_of_version_2_hears_notes_that_are_no_updates() -> None:
    assert client_of(2).decode_notification("_vendor/note", Raw(b"")) == [ExtensionNote("_vendor/note")]


def test_an_agent_of_the_june_draft_without_sessions_and_name_says_so() -> None:
    said = read(v2_june.encode_agent(AgentHello(None, AgentCapabilities(sessions=False)), CLIENT))
    assert said == {"protocolVersion": 2, "capabilities": {"auth": {}}, "authMethods": []}


def test_an_agent_that_answers_the_june_draft_with_version_1_is_heard_as_that() -> None:
    assert v2_june.decode_agent(raw({"protocolVersion": 1})).version == 1


def test_a_client_of_the_june_draft_hears_what_is_no_update_as_version_1_does() -> None:
    client = seeds.client_of("v2-june")
    assert client.decode_notification("_vendor/note", raw(1)) == [ExtensionNote("_vendor/note", 1)]
    with pytest.raises(PeerMistake):
        client.decode_notification("session/update", raw({"update": {"sessionUpdate": "agent_message"}}))


# -- what every dialect does alike ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_a_client_tells_nothing_and_an_agent_hears_no_update(version: int) -> None:
    with pytest.raises(UsageError):
        client_of(version).encode_event("s", events.Running())
    with pytest.raises(UsageError):
        client_of(version).text_frame("s", "agent_message_chunk", "m")
    assert agent_of(version).decode_text_update(b"{}") is None
    assert agent_of(2).decode_cancel(1) is None


@pytest.mark.parametrize("version", [1, 2])
def test_notes_are_said_in_the_versions_words_or_not_at_all(version: int) -> None:
    client = client_of(version)
    assert client.encode_notification(ExtensionNote("_a/b", {"c": 1})) == [NotificationMessage("_a/b", b'{"c":1}')]
    assert client.encode_notification(ExtensionNote("_a/b")) == [NotificationMessage("_a/b", b"")]
    assert agent_of(version).encode_notification(requests.CancelTurn("s")) == []
    (said,) = client.encode_notification(requests.CancelTurn("s"))
    assert isinstance(said, NotificationMessage)
    assert (said.method, read(said.params)) == ("session/cancel", {"sessionId": "s"})


def test_a_list_beyond_the_bound_is_refused() -> None:
    block = wire_v1.TextContent(text="")
    with pytest.raises(PeerMistake, match="a list of more than"):
        v1.CODEC.decode((block,) * (limits.LIST_ITEMS + 1))


def test_an_unknown_variant_is_refused_where_nothing_unknown_may_stand() -> None:
    with pytest.raises(PeerMistake, match="an unknown variant"):
        v1.CODEC.decode(wire.UnknownVariant("dance", Raw(b"{}")))


def test_a_word_that_a_dialect_lacks_is_our_own_mistake() -> None:
    class Stranger(wire.Wire, frozen=True):
        pass

    with pytest.raises(LookupError, match="no word for Stranger"):
        v1.CODEC.decode(Stranger())
    with pytest.raises(LookupError, match="cannot say Running"):
        v1.CODEC.encode(events.Running())


def test_a_value_out_of_range_is_the_peers_mistake() -> None:
    with pytest.raises(PeerMistake, match="out of range"):
        plain(Raw(b"[" * 100_000))


@pytest.mark.parametrize("schema", [{"properties": 7}, {"properties": None}])
def test_a_form_whose_fields_are_no_object_is_left_to_the_schema(schema: dict[str, object]) -> None:
    assert mended_form(schema, None)["properties"] == schema["properties"]


def test_an_answer_to_a_permission_that_cannot_be_read_is_none() -> None:
    assert permissions._loosely(Raw(b'{"outcome": ')) is None


# -- the dialects of seeds -----------------------------------------------------------------------------------------


def test_an_agent_of_simse_hears_only_answers_that_are_some() -> None:
    agent = seeds.agent_of("simse")
    assert agent.decode_notification("session/update", raw({"sessionId": "s"})) == []
    assert agent.decode_notification("_simse/permission", Raw(b"7")) == []
    assert agent.decode_notification("_vendor/note", raw(1)) == [ExtensionNote("_vendor/note", 1)]
    assert agent.encode_request(Extension("_vendor/ask", {"a": 1})).method == "_vendor/ask"


def test_a_client_of_simse_hears_other_notes_as_everybody_does() -> None:
    client = seeds.client_of("simse")
    assert client.decode_notification("_vendor/note", raw(1)) == [ExtensionNote("_vendor/note", 1)]
    unasked = {"sessionId": "s", "type": "request_permission"}
    assert client.decode_notification("session/update", raw(unasked)) == []
    foreign = Extension("_vendor/ask", {})
    (answered,) = client.encode_reply(1, foreign, ExtensionResult({"b": 2}))
    assert not isinstance(answered, NotificationMessage)
    (failed,) = client.encode_failure(1, foreign, WireError(-32601, "no"))
    assert not isinstance(failed, NotificationMessage)


@pytest.mark.parametrize("name", ["iac-code", "elephant", "agentao", "simse"])
def test_a_nameless_agent_of_a_seed_is_nameless(name: str) -> None:
    assert read(named(name).encode_agent(AgentHello(None), ClientHello())).get("agentInfo") is None
