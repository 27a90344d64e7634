"""The short way of a text chunk is the long way, only shorter."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.dialects.codec.text_chunks import text_chunk
from dragoman.dialects.contract import Dialect, SessionEvent
from dragoman.errors import PeerMistake
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.requests import NewSession, PromptRequest
from dragoman.wire.jsonrpc import JsonRpcPeer, Notification
from tests.dialects.joined_dialects import client_of

KINDS = ["agent_thought_chunk", "user_message_chunk", "session_info_update", "_chunk", "x_chunk", "state_update"]
TEXTS = st.text(max_size=6) | st.sampled_from(["\ud800", "\x00", '"', "\\", "é", "_chunk"])
ODD: Any = st.sampled_from([None, 1, "", "m1", [], {}, {"a": 1}, {"fields": {}}, True])
# One thing that is not as in the common frame: where, under which name, and what.
ELSEWHERE: list[tuple[list[str], list[str], Any]] = [
    ([], ["x", "id", "method2"], ODD),
    (["params"], ["x", "_meta", "session_id", "extras"], ODD),
    (["params"], ["sessionId"], st.sampled_from(["s", "t", "", 1, None])),
    (["params", "update"], ["x", "_meta", "extras", "outer", "meta", "messageId", "message_id"], ODD),
    (["params", "update"], ["sessionUpdate"], st.sampled_from(KINDS)),
    (["params", "update"], ["content"], ODD),
    (["params", "update", "content"], ["x", "_meta", "extras", "annotations", "meta"], ODD),
    (["params", "update", "content"], ["type"], st.sampled_from(["image", "Text", "", None])),
    (["params", "update", "content"], ["text"], TEXTS),
]
SPOILS = [b"}", b"{", b",", b'"', b" ", b"\xff", b'"a":1,', b"]"]
ENDS = [b',"id":1}', b',"params":{}}', b" }", b"}}", b',"method":"_x"}', b"]", b" ", b"", b"x"]


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """The common frame, and frames that differ from it in one thing or two."""
    update: dict[str, Any] = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": draw(TEXTS)}}
    if draw(st.booleans()):
        update["messageId"] = draw(st.sampled_from(["m", "m2", ""]))
    frame: Any = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
    for where, names, values in draw(st.lists(st.sampled_from(ELSEWHERE), max_size=2)):
        place = frame
        for step in where:
            place = place[step] if isinstance(place, dict) and isinstance(place.get(step), dict) else {}
        place[draw(st.sampled_from(names))] = deepcopy(draw(values))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :")]))
    text = json.dumps(frame, separators=separators, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    match draw(st.sampled_from(["whole", "whole", "spoiled inside", "spoiled at its end"])):
        case "spoiled inside":
            at = draw(st.integers(0, len(text)))
            return text[:at] + draw(st.sampled_from(SPOILS)) + text[at:]
        case "spoiled at its end":
            return text[:-1] + draw(st.sampled_from(ENDS))
        case _:
            return text


def the_long_way(dialect: Dialect, frame: bytes) -> list[SessionEvent] | None:
    """As a link does it; None: no event, whatever else it is."""
    match JsonRpcPeer[None](answers_noise=False).receive(frame):
        case Notification(method, found) if method == "session/update":
            try:
                return [told for told in dialect.decode_notification(method, found) if isinstance(told, SessionEvent)]
            except PeerMistake:
                return None
        case _:
            return None


def ready(version: int, *, answering: bool = True) -> Dialect:
    """A client in the middle of a conversation, before or after the agent has begun to answer."""
    client = client_of(version)
    client.decode_reply(NewSession("/"), Raw(b'{"sessionId":"s"}'))
    client.encode_request(PromptRequest("s", [Text("hi")]))
    if answering:
        update = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "a"}}
        client.decode_notification("session/update", Raw(json.dumps({"sessionId": "s", "update": update}).encode()))
    return client


@pytest.mark.requirement("L6")
@pytest.mark.parametrize("version", [1, 2])
@given(story=st.lists(frames(), min_size=1, max_size=6), answering=st.booleans())
def test_a_frame_that_takes_the_short_way_gives_what_the_long_way_gives(
    version: int, story: list[bytes], answering: bool
) -> None:
    short, long = ready(version, answering=answering), ready(version, answering=answering)
    for frame in story:
        told = short.decode_text_update(frame)
        expected = the_long_way(long, frame)
        if told is not None:
            assert expected == [SessionEvent(*told)]
        else:
            # Refused, it takes the long way, and nothing was changed by having tried.
            assert the_long_way(short, frame) == expected


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("version", [1, 2])
def test_the_common_frame_takes_the_short_way(version: int, separators: tuple[str, str]) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "a"}}
    envelope = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
    frame = json.dumps(envelope, separators=separators).encode()
    assert ready(version).decode_text_update(frame) == ("s", events.AgentMessageChunk(Text("a"), "m"))


COMMON = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
    b'"agent_message_chunk","messageId":"m","content":{"type":"text","text":"a"}}}}'
)


@pytest.mark.parametrize("end", [end for end in ENDS if end != b" }"])  # a blank before the brace is no other end
def test_a_frame_with_another_end_does_not_take_the_short_way(end: bytes) -> None:
    assert text_chunk(COMMON) is not None
    assert text_chunk(COMMON[:-1] + end) is None


def test_the_echo_of_a_prompt_does_not_take_the_short_way() -> None:
    echo = COMMON.replace(b"agent_message_chunk", b"user_message_chunk")
    client = ready(1, answering=False)
    assert client.decode_text_update(echo) is None
    assert the_long_way(client, echo) == []


@pytest.mark.parametrize("name", ["extras", "outer", "meta"])
def test_a_peer_cannot_fill_a_field_by_naming_one_after_it(name: str) -> None:
    frame = (
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
        b'"agent_message_chunk","messageId":"m","content":{"type":"text","text":"a"},"%b":{"fields":{}}}}}'
        % name.encode()
    )
    assert text_chunk(frame) is None


def test_a_long_chunk_takes_the_long_way() -> None:
    update = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "a" * 9000}}
    frame = json.dumps(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}},
        separators=(",", ":"),
    ).encode()
    assert text_chunk(frame) is None
    assert the_long_way(ready(2), frame) == [SessionEvent("s", events.AgentMessageChunk(Text("a" * 9000), "m"))]
