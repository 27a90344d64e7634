"""A version 1 replay as version 2 wants it: whole messages, the current state before the answer, ids that last."""

import json
from typing import Any

import pytest
from msgspec import Raw

from dragoman.dialects.contract import Dialect, SessionEvent
from dragoman.dialects.handshake.initialize import JUNE
from dragoman.dialects.v1.replay import WHOLE_CHARACTERS
from dragoman.errors import WireError
from dragoman.vocabulary import events, requests, services
from dragoman.vocabulary.content import Image, Text
from tests.dialects import vendor_agents
from tests.dialects.joined_dialects import client_of, hear

REPLAY = requests.ResumeSession("s", "/", replay_from=requests.ReplayFromStart())
RESUME = requests.ResumeSession("s", "/")
IDLE = events.Idle()
_ERROR = WireError(-32603, "no")


def piece(kind: str, text: str, message_id: str | None = None, **more: Any) -> dict[str, Any]:
    named = {} if message_id is None else {"messageId": message_id}
    return {"sessionUpdate": f"{kind}_chunk", "content": {"type": "text", "text": text}, **named, **more}


def replayed(client: Dialect, *updates: dict[str, Any]) -> list[events.AnyEvent]:
    """Everything that is told before the answer to a load in which the agent sends these."""
    client.encode_request(REPLAY)
    told = [event for update in updates for event in hear(client, {"sessionId": "s", "update": update})]
    return [*told, *(one.event for one in client.decode_reply(REPLAY, Raw(b"{}")).events)]


def test_the_chunks_of_a_message_are_told_as_the_whole_message() -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Run"}
    told = replayed(
        client_of(1),
        *(piece("user_message", "h", "u"), piece("user_message", "i", "u")),
        *(piece("agent_thought", "hm", "t"), piece("agent_message", "He", "m"), piece("agent_message", "llo", "m")),
        *(call, piece("agent_message", "!", "n")),
    )
    assert told == [
        events.UserMessage("u", [Text("hi")]),
        events.AgentThought("t", [Text("hm")]),
        events.AgentMessage("m", [Text("Hello")]),
        events.ToolCallUpdate("c", title="Run"),
        events.AgentMessage("n", [Text("!")]),
        IDLE,
    ]


def test_what_comes_for_a_message_that_was_told_is_appended_to_it() -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Run"}
    told = replayed(client_of(1), piece("agent_message", "a", "m"), call, piece("agent_message", "b", "m"))
    assert [told[0], told[2]] == [events.AgentMessage("m", [Text("a")]), events.AgentMessageChunk(Text("b"), "m")]


def test_a_thought_and_a_message_of_one_id_are_both_told_whole() -> None:
    pieces = [piece("agent_thought", "hm", "m"), piece("agent_message", "a", "m"), piece("agent_message", "b", "m")]
    assert replayed(client_of(1), *pieces) == [
        events.AgentThought("m", [Text("hm")]),
        events.AgentMessage("m", [Text("ab")]),
        IDLE,
    ]


@pytest.mark.parametrize("message_id", ["m", None])
def test_the_rest_of_a_long_message_takes_the_short_way(message_id: str | None) -> None:
    client = client_of(1)
    client.encode_request(REPLAY)

    def at_once(text: str) -> tuple[str, events.AnyEvent] | None:
        assert client.decode_text_update is not None
        params = {"sessionId": "s", "update": piece("agent_message", text, message_id)}
        return client.decode_text_update(
            json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode()
        )

    assert at_once("a") is None  # it is gathered, which only the long way does
    long = "x" * (WHOLE_CHARACTERS + 1)
    (whole,) = hear(client, {"sessionId": "s", "update": piece("agent_message", long, message_id)})
    assert isinstance(whole, events.AgentMessage)
    assert at_once("b") == ("s", events.AgentMessageChunk(Text("b"), whole.message_id))


def test_a_long_message_is_told_in_pieces_behind_its_beginning() -> None:
    long = "x" * (WHOLE_CHARACTERS // 2 + 1)
    told = replayed(client_of(1), *[piece("agent_message", long, "m")] * 4)
    rest = events.AgentMessageChunk(Text(long), "m")
    assert told == [events.AgentMessage("m", [Text(long * 2)]), rest, rest, IDLE]


def test_what_a_chunk_carries_beside_its_text_is_kept() -> None:
    told = replayed(client_of(1), piece("agent_message", "a", "m"), piece("agent_message", "b", "m", _meta={"k": 1}))
    assert told == [
        events.AgentMessage("m", [Text("a")]),
        events.AgentMessageChunk(Text("b"), "m", meta={"k": 1}),
        IDLE,
    ]
    (opening, *_) = replayed(client_of(1), piece("agent_message", "b", "m", _meta={"k": 1}))
    assert opening == events.AgentMessage("m", [])


def test_content_that_is_no_text_stands_where_it_stood() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    told = replayed(
        client_of(1), piece("user_message", "see", "u"), {**piece("user_message", "", "u"), "content": image}
    )
    assert told == [events.UserMessage("u", [Text("see"), Image("AA==", "image/png")]), IDLE]


def test_messages_without_ids_have_the_same_ones_at_every_replay() -> None:
    client = client_of(1)
    story = [piece("user_message", "a"), piece("agent_message", "b"), piece("user_message", "c")]
    first = replayed(client, *story)
    assert [event.message_id for event in first[:-1]] == ["replayed-1", "replayed-2", "replayed-3"]  # type: ignore[union-attr]
    assert replayed(client, *story) == first
    assert replayed(client_of(1), *story) == first


def test_after_the_answer_chunks_are_chunks_again() -> None:
    client = client_of(1)
    replayed(client, piece("agent_message", "a"))
    (chunk,) = hear(client, {"sessionId": "s", "update": piece("agent_message", "b")})
    assert chunk == events.AgentMessageChunk(Text("b"), "dragoman-1")


@pytest.mark.parametrize("request_", [REPLAY, RESUME])
def test_the_state_is_told_before_the_answer_with_and_without_a_replay(request_: requests.ResumeSession) -> None:
    client = client_of(1)
    client.encode_request(request_)
    assert client.decode_reply(request_, Raw(b"{}")).events == [SessionEvent("s", IDLE)]


def test_a_session_that_works_says_so_when_it_is_resumed() -> None:
    client = client_of(1)
    question = services.RequestPermission("s", "May I?", [])
    client.encode_request(requests.PromptRequest("s", [Text("go")]))
    client.encode_request(RESUME)
    assert client.decode_reply(RESUME, Raw(b"{}")).events == [SessionEvent("s", events.Running())]
    client.events_at_request(question)
    client.encode_request(RESUME)
    assert client.decode_reply(RESUME, Raw(b"{}")).events == [SessionEvent("s", events.RequiresAction())]


def test_a_turn_goes_on_when_the_last_of_its_questions_is_answered() -> None:
    client = client_of(1)
    one, two = services.RequestPermission("s", "One?", []), services.RequestPermission("s", "Two?", [])
    client.encode_request(requests.PromptRequest("s", [Text("go")]))
    told = [
        client.events_at_request(one),
        client.events_at_request(two),
        client.events_at_reply(one),
        client.events_at_reply(two),
    ]
    states: list[events.AnyEvent] = [
        events.RequiresAction(),
        events.RequiresAction(),
        events.RequiresAction(),
        events.Running(),
    ]
    assert told == [[SessionEvent("s", state)] for state in states]


def test_a_load_that_fails_leaves_nothing_of_its_replay() -> None:
    client = client_of(1)
    client.encode_request(REPLAY)
    assert hear(client, {"sessionId": "s", "update": piece("agent_message", "a", "m")}) == []
    assert client.decode_failure(REPLAY, _ERROR) is None
    client.encode_request(RESUME)
    assert client.decode_reply(RESUME, Raw(b"{}")).events == [SessionEvent("s", IDLE)]


def test_the_june_draft_s_whole_messages_and_chunks_are_one_replay() -> None:
    whole = {"sessionUpdate": "user_message", "messageId": "u", "content": [{"type": "text", "text": "hi"}]}
    told = replayed(
        vendor_agents.client_of(JUNE), piece("agent_message", "a", "m"), whole, piece("user_message", "!", "u")
    )
    assert told == [
        events.AgentMessage("m", [Text("a")]),
        events.UserMessage("u", [Text("hi")]),
        events.UserMessageChunk(Text("!"), "u"),
        IDLE,
    ]
