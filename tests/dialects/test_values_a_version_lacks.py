"""Values that a version, a draft or every dialect lacks: encoded as the nearest, or refused."""

from typing import Any

import pytest
from msgspec import Raw

from dragoman import limits
from dragoman.dialects.codec import permissions
from dragoman.dialects.codec.elicitations import mended_form
from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import NotificationMessage
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v2 import routes
from dragoman.dialects.v2_june import agent as v2_june
from dragoman.dialects.vendors.named import load_dialect
from dragoman.dialects.vendors.simse import SimseAgentAdapter, SimseClientAdapter
from dragoman.dialects.vendors.wire_adapter import notification_frame
from dragoman.errors import PeerMistake, UsageError, WireError
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult
from dragoman.vocabulary.hello import AgentCapabilities, AgentHello, ClientHello
from dragoman.wire import types as wire
from dragoman.wire import v1 as wire_v1
from tests.dialects import vendor_agents
from tests.dialects.joined_dialects import CLIENT, agent_of, client_of
from tests.dialects.schemas import raw, read


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
    client = vendor_agents.client_of("v2-june")
    assert client.decode_notification("_vendor/note", raw(1)) == [ExtensionNote("_vendor/note", 1)]
    with pytest.raises(PeerMistake):
        client.decode_notification("session/update", raw({"update": {"sessionUpdate": "agent_message"}}))


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


def test_an_agent_of_simse_hears_only_answers_that_are_some() -> None:
    agent = vendor_agents.agent_of("simse")
    assert agent.decode_notification("session/update", raw({"sessionId": "s"})) == []
    answer = notification_frame("_simse/permission", Raw(b"7"))
    assert SimseAgentAdapter().receive(answer).deliver == [answer]  # no params of a message: the peer refuses it
    unknown = notification_frame("_simse/permission", {})
    assert SimseAgentAdapter().receive(unknown).deliver == []
    assert agent.decode_notification("_vendor/note", raw(1)) == [ExtensionNote("_vendor/note", 1)]
    assert agent.encode_request(Extension("_vendor/ask", {"a": 1})).method == "_vendor/ask"


def test_a_client_of_simse_receives_other_notifications_as_other_clients_do() -> None:
    client = vendor_agents.client_of("simse")
    assert client.decode_notification("_vendor/note", raw(1)) == [ExtensionNote("_vendor/note", 1)]
    unasked = notification_frame("session/update", {"sessionId": "s", "type": "request_permission"})
    assert SimseClientAdapter().receive(unasked).deliver == []
    foreign = Extension("_vendor/ask", {})
    (answered,) = client.encode_reply(1, foreign, ExtensionResult({"b": 2}))
    assert not isinstance(answered, NotificationMessage)
    (failed,) = client.encode_failure(1, foreign, WireError(-32601, "no"))
    assert not isinstance(failed, NotificationMessage)


@pytest.mark.parametrize("name", ["iac-code", "elephant", "agentao", "simse"])
def test_a_nameless_agent_of_a_vendor_is_nameless(name: str) -> None:
    assert read(load_dialect(name).encode_agent(AgentHello(None), ClientHello())).get("agentInfo") is None
