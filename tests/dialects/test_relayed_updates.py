"""An update that passes as it came means what it means decoded, has each key once, and is remembered."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.codec.relayed_updates import RelayedUpdate
from dragoman.dialects.contract import Dialect
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AnyEvent, Idle, ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.tools import ContentItem
from dragoman.wire.jsonrpc import JsonRpcPeer, Notification
from tests.dialects.joined_dialects import agent_of, client_with
from tests.dialects.test_relayed_text import has_a_key_twice
from tests.dialects.test_text_chunks import SPOILS, ready, the_long_way

CONTENT = [{"type": "content", "content": {"type": "text", "text": "done é\n"}}]
CALL: dict[str, Any] = {
    "sessionUpdate": "tool_call_update",
    "toolCallId": "c1",
    "title": "Run",
    "status": "in_progress",
    "content": CONTENT,
    "rawInput": {"command": "ls", "deep": {"a": [1, {"b": None}]}},
    "locations": [{"path": "/a", "line": 3}],
}
PLAN_1 = {"sessionUpdate": "plan", "entries": [{"content": "one", "priority": "low", "status": "pending"}]}
OF_VERSION: dict[int, list[dict[str, Any]]] = {
    1: [CALL, {**CALL, "sessionUpdate": "tool_call"}, PLAN_1],
    2: [
        CALL,
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c1", "content": CONTENT[0]},
        {"sessionUpdate": "plan_removed", "planId": "p"},
        {"sessionUpdate": "agent_message", "messageId": "m9", "content": [{"type": "text", "text": "x"}]},
        {
            "sessionUpdate": "agent_message_chunk",
            "messageId": "m",
            "content": {"type": "text", "text": "x", "_meta": {}},
        },
        {"sessionUpdate": "terminal_update", "terminalId": "t", "command": "ls"},
    ],
}
# Those must be known to a relay, in whatever form they come.
KNOWN_TO_RELAYS = [
    {"sessionUpdate": "state_update", "state": "running"},
    {"sessionUpdate": "current_mode_update", "currentModeId": "ask"},
    {"sessionUpdate": "config_option_update", "configOptions": []},
    {"sessionUpdate": "available_commands_update", "availableCommands": []},
    {"sessionUpdate": "usage_update", "used": 1, "size": 2},
    {"sessionUpdate": "session_info_update", "title": "t"},
    {"sessionUpdate": "user_message_chunk", "messageId": "u", "content": {"type": "text", "text": "x"}},
]
ODD_VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, 1.5, "x", [], {}, {"a": 1}, "in_progress", "completed", "s"]
)
PLACES = [("params",), ("params", "update"), ("params", "update", "rawInput"), ()]
NAMES = ["sessionId", "session_id", "status", "title", "_meta", "content", "toolCallId", "id", "x", "sessionUpdate"]
AGAIN = ['"sessionId":"t",', '"sessionUpdate":"plan",', '"toolCallId":"c2",', '"command":"rm",', '"a":1,', '"text":"",']


def framed(update: object, **more: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update, **more}}


@st.composite
def updates(draw: st.DrawFn, version: int) -> bytes:
    """An update that a relay need not know, or one that differs from it in a thing or two."""
    frame = framed(deepcopy(draw(st.sampled_from([*OF_VERSION[version], *KNOWN_TO_RELAYS]))))
    for where in draw(st.lists(st.sampled_from(PLACES), max_size=2)):
        place: Any = frame
        for step in where:
            place = place.get(step, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict):
            place[draw(st.sampled_from(NAMES))] = deepcopy(draw(ODD_VALUES))
    separators = draw(st.sampled_from([(",", ":"), (",", ":"), (", ", ": ")]))
    text = json.dumps(frame, separators=separators, ensure_ascii=draw(st.booleans()))
    match draw(st.sampled_from(["whole", "whole", "a key again", "spoiled"])):
        case "a key again":
            opened = [at + 1 for at, letter in enumerate(text) if letter == "{"]
            at = draw(st.sampled_from(opened))
            return (text[:at] + draw(st.sampled_from(AGAIN)) + text[at:]).encode()
        case "spoiled":
            data = text.encode()
            at = draw(st.integers(0, len(data)))
            return data[:at] + draw(st.sampled_from(SPOILS)) + data[at:]
        case _:
            return text.encode()


def relayed(dialect: Dialect, frame: bytes) -> RelayedUpdate | None:
    """As a link does it."""
    match JsonRpcPeer[None](answers_noise=False).receive(frame):
        case Notification("session/update", params):
            return dialect.relayed_update(params)
        case _:
            return None


def compact(update: object) -> bytes:
    return json.dumps(framed(update), separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.requirement("K21")
@pytest.mark.parametrize("version", [1, 2])
@given(data=st.data(), answering=st.booleans())
def test_an_update_that_is_relayed_is_what_the_long_way_gives_and_has_no_key_twice(
    version: int, data: st.DataObject, answering: bool
) -> None:
    short, long = ready(version, answering=answering), ready(version, answering=answering)
    for frame in data.draw(st.lists(updates(version), min_size=1, max_size=6)):
        found = relayed(short, frame)
        expected = the_long_way(long, frame)
        if found is None:
            the_long_way(short, frame)  # as a link goes on
            continue
        assert expected is not None
        assert [tuple(told) for told in expected] == [(found.session_id, found.event())]
        sent = found.frame("ours é")
        assert json.loads(sent)["params"]["sessionId"] == "ours é"
        assert not has_a_key_twice(sent)
        assert the_long_way(ready(version), found.frame(found.session_id)) == expected
    # What comes behind them is decoded to the same: the ids of messages too, which are made here where they have none.
    behind = compact({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""}})
    assert the_long_way(short, behind) == the_long_way(long, behind)


@pytest.mark.requirement("K21")
@pytest.mark.parametrize(
    ("version", "update"), [(version, update) for version, known in OF_VERSION.items() for update in known]
)
def test_what_only_its_reader_needs_is_relayed_byte_by_byte(version: int, update: dict[str, Any]) -> None:
    found = relayed(ready(version), compact(update))
    assert found is not None
    assert found.frame("s") == compact(update)
    with_meta = json.dumps(framed(update, _meta={"traceparent": "00"}), separators=(",", ":"), ensure_ascii=False)
    again = relayed(ready(version), with_meta.encode())
    assert again is not None
    assert json.loads(again.frame("s")) == json.loads(with_meta)


@pytest.mark.requirement("K21")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("update", KNOWN_TO_RELAYS)
def test_what_a_relay_has_to_know_is_decoded(version: int, update: dict[str, Any]) -> None:
    assert relayed(ready(version), compact(update)) is None


@pytest.mark.requirement("K21")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("place", "again"),
    [
        ('"params":{', '"sessionId":"t",'),
        ('"params":{', r'"session\u0049d":"t",'),
        ('"update":{', '"sessionUpdate":"plan",'),
        ('"update":{', '"toolCallId":"other",'),
        ('"rawInput":{', '"command":"rm",'),
        ('"b":null', ',"b":null'),
        ('"params":{', '"update":{},'),
    ],
)
def test_a_key_twice_is_not_relayed_at_any_depth(version: int, place: str, again: str) -> None:
    text = compact(CALL).decode()
    odd = text.replace(place, place + again, 1)
    assert odd != text
    assert relayed(ready(version), odd.encode()) is None
    # Neither where the bytes that it takes are saved elsewhere, by shorter ways to write a number, or by spaces.
    assert relayed(ready(version), odd.replace('"line":3', '"line":3,"x":[1e9,1e9,1e9,1e9]').encode()) is None


def test_what_a_session_does_not_know_or_replays_is_decoded_in_version_1() -> None:
    assert relayed(ready(1), compact(CALL).replace(b'"sessionId":"s"', b'"sessionId":"t"')) is None


# -- what a client of version 1 was sent as it came ------------------------------------------------------------------


def told(call_id: str = "c1", **more: object) -> bytes:
    return compact({"sessionUpdate": "tool_call_update", "toolCallId": call_id, **more})


def sent(*frames: bytes, relay: bool) -> Dialect:
    """The agent's side of version 1, after a client was sent these: as they came, or encoded."""
    dialect, decoder = agent_of(1, client_with()), ready(1)
    for frame in frames:
        update = relayed(decoder, frame)
        assert update is not None
        event = update.event()
        assert event is not None
        if relay:
            dialect.note_relayed("s", update)
        else:
            dialect.encode_event("s", event)
    return dialect


LATER: list[list[AnyEvent]] = [
    [ToolCallUpdate("c1", status="completed")],
    [ToolCallContentChunk("c1", ContentItem(Text("more")))],
    [ToolCallUpdate("c2", title="New")],
    [Idle("end_turn"), ToolCallUpdate("c1", status="failed")],
    [Idle("end_turn"), ToolCallContentChunk("c1", ContentItem(Text("more")))],
]


@pytest.mark.requirement("K21")
@pytest.mark.parametrize("last", ["in_progress", "completed"])
@pytest.mark.parametrize("later", LATER)
def test_what_is_encoded_behind_relayed_calls_is_what_it_would_be_behind_encoded_ones(
    last: str, later: list[AnyEvent]
) -> None:
    frames = [told(title="Run", content=CONTENT), told("c0", title="Other", status="completed"), told(status=last)]
    relaying, encoding = sent(*frames, relay=True), sent(*frames, relay=False)
    for event in later:
        assert relaying.encode_event("s", event) == encoding.encode_event("s", event)


def test_relayed_calls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.dialects.v1 import relayed_calls

    monkeypatch.setattr(relayed_calls, "_UPDATES", 3)
    frames = [told(f"c{number}", title="Run", status="completed") for number in range(20)]
    dialect = sent(*frames, relay=True)
    assert "sessions=0" in repr(dialect._relayed)  # type: ignore[attr-defined]
    (update,) = dialect.encode_event("s", ToolCallUpdate("c0", title="Again"))
    assert b'"tool_call_update"' in update.params  # type: ignore[union-attr]
