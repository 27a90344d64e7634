"""A frame whose text is passed on undecoded means what it means decoded, and nothing else is in it."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.dialects.codec.relayed_text import RelayedText, TextFrames
from dragoman.dialects.codec.text_chunks import text_chunk
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AgentThoughtChunk
from tests.dialects.test_text_chunks import COMMON, SPOILS, frames, ready, the_long_way

SPACED = json.dumps(json.loads(COMMON)).encode()


def learned(*proofs: bytes) -> TextFrames:
    """What is known after these frames were decoded, each of them twice."""
    known = TextFrames()
    for proof in proofs:
        for _ in range(2):
            params = text_chunk(proof)
            assert params is not None
            known.learn(proof, params.session_id, params.update)
    return known


def has_a_key_twice(frame: bytes) -> bool:
    twice: list[bool] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        twice.append(len(dict(pairs)) < len(pairs))

    json.loads(frame, object_pairs_hook=look)
    return any(twice)


@pytest.mark.requirement("K21")
@pytest.mark.parametrize("version", [1, 2])
@given(
    story=st.lists(frames() | st.sampled_from([COMMON, SPACED]), min_size=1, max_size=12),
    answering=st.booleans(),
)
@example(story=[COMMON, COMMON, COMMON.replace(b'"s"', b'"s","sessionId":"t"')], answering=True)
def test_a_frame_that_is_relayed_gives_what_the_long_way_gives(
    version: int, story: list[bytes], answering: bool
) -> None:
    short, long = ready(version, answering=answering), ready(version, answering=answering)
    known = TextFrames()
    for frame in story:
        expected = the_long_way(long, frame)
        found = known.find(frame)
        if found is not None:
            message = found.message
            if short.continues(message.session_id, message.kind, message.id):
                assert expected is not None
                assert [tuple(told) for told in expected] == [(message.session_id, found.event())]
                assert not has_a_key_twice(frame)
                continue
        told = short.decode_text_update(frame)
        if told is None:
            assert the_long_way(short, frame) == expected
        else:
            known.learn(frame, *told)  # type: ignore[arg-type]


@pytest.mark.parametrize("proof", [COMMON, SPACED], ids=["compact", "spaced"])
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.booleans())
def test_text_passes_as_it_came(proof: bytes, text: str, ascii: bool) -> None:
    written = json.dumps(text, ensure_ascii=ascii).encode()
    found = learned(proof).find(proof.replace(b'"a"', written))
    assert found is not None
    assert found.text == written
    assert found.event() == AgentMessageChunk(Text(text), "m")


@pytest.mark.requirement("K21")
@pytest.mark.parametrize("spoil", SPOILS)
@given(at=st.integers(0, len(COMMON)))
def test_a_frame_with_anything_more_in_it_is_not_relayed(spoil: bytes, at: int) -> None:
    spoiled = COMMON[:at] + spoil + COMMON[at:]
    found = learned(COMMON).find(spoiled)
    if found is not None:  # what was put in is text
        assert spoiled == COMMON.replace(b'"a"', found.text)
        assert json.loads(found.text).replace("a", "", 1) == spoil.decode()


TWICE = {
    "two session ids": (b'"sessionId":"s"', b'"sessionId":"t","sessionId":"s"'),
    "two session ids, the other way round": (b'"sessionId":"s"', b'"sessionId":"s","sessionId":"t"'),
    "an escaped second session id": (b'"sessionId":"s"', b'"session\\u0049d":"t","sessionId":"s"'),
    "two updates": (b'"update":', b'"update":{},"update":'),
    "two texts": (b'"text":"a"', b'"text":"a","text":"b"'),
    "two texts, the first one empty": (b'"text":"a"', b'"text":"","text":"b"'),
    "two kinds": (b'"type":"text"', b'"type":"image","type":"text"'),
    "two methods": (b'"params":', b'"method":"session/update","params":'),
    "two params": (b'"params":', b'"params":{},"params":'),
    "two message ids": (b'"messageId":"m"', b'"messageId":"n","messageId":"m"'),
}


@pytest.mark.requirement("K21")
@pytest.mark.parametrize("name", TWICE)
def test_a_frame_with_a_key_twice_proves_nothing_and_is_not_relayed(name: str) -> None:
    old, new = TWICE[name]
    odd = COMMON.replace(old, new)
    assert odd != COMMON
    known = learned(COMMON)
    assert known.find(COMMON) is not None
    assert known.find(odd) is None
    only_odd = TextFrames()
    for _ in range(3):
        only_odd.learn(odd, "s", AgentMessageChunk(Text("a"), "m"))
    assert only_odd.find(odd) is None
    assert repr(only_odd) == "<TextFrames known=0>"


@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'"\xff"', b'"a\tb"', b'"a""b"', b'"a', b'a"', b'"', b"1", b"", b'"\\x"']
)
def test_what_is_no_one_json_string_is_not_relayed(text: bytes) -> None:
    assert learned(COMMON).find(COMMON.replace(b'"a"', text)) is None


@pytest.mark.requirement("K21")
@pytest.mark.parametrize("end", [b"}}}]", b"}} }", b'}},"', b"}}}", b"}}}}}"])
def test_a_frame_with_another_end_is_not_relayed(end: bytes) -> None:
    known = learned(COMMON)
    assert COMMON.endswith(b"}}}}")
    assert known.find(COMMON[:-4] + end) is None


def test_a_frame_that_is_shorter_than_what_stands_around_the_text_is_not_relayed() -> None:
    known = learned(COMMON)
    head = COMMON[: COMMON.index(b'"a"')]
    assert [known.find(head + COMMON[len(COMMON) - count :]) for count in range(1, 5)] == [None] * 4


def test_a_long_text_takes_the_long_way() -> None:
    known = learned(COMMON)
    assert known.find(COMMON.replace(b'"a"', b'"%b"' % (b"a" * 7000))) is not None
    assert known.find(COMMON.replace(b'"a"', b'"%b"' % (b"a" * 9000))) is None


def test_messages_are_told_apart_by_session_kind_and_id() -> None:
    other_session = COMMON.replace(b'"s"', b'"t"')
    thought = COMMON.replace(b"agent_message", b"agent_thought")
    other_id = COMMON.replace(b'"m"', b'"n"')
    known = learned(COMMON, other_session, thought, other_id)
    found = [known.find(frame) for frame in (COMMON, other_session, thought, other_id)]
    assert [
        (piece.message.session_id, piece.message.kind, piece.message.id) for piece in found if piece is not None
    ] == [
        ("s", AgentMessageChunk, "m"),
        ("t", AgentMessageChunk, "m"),
        ("s", AgentThoughtChunk, "m"),
        ("s", AgentMessageChunk, "n"),
    ]


def test_the_words_of_the_user_are_not_relayed() -> None:
    assert learned(COMMON.replace(b"agent_message", b"user_message")).find(COMMON) is None
    echo = COMMON.replace(b"agent_message", b"user_message")
    assert learned(echo).find(echo) is None


def test_a_message_of_one_piece_proves_nothing() -> None:
    known = TextFrames()
    known.learn(COMMON, "s", AgentMessageChunk(Text("a"), "m"))
    assert known.find(COMMON) is None


def test_a_piece_knows_about_how_much_it_takes() -> None:
    piece = learned(COMMON).find(COMMON.replace(b'"a"', b'"%b"' % (b"a" * 1000)))
    assert isinstance(piece, RelayedText)
    assert 1000 < piece.size < 2000
    assert repr(piece.message) == "<TextMessage agent_message_chunk 'm'>"


def test_after_another_update_a_message_without_an_id_of_the_agents_is_a_new_one() -> None:
    without_id = COMMON.replace(b'"messageId":"m",', b"")
    client = ready(1)
    known = TextFrames()
    for _ in range(2):
        told = client.decode_text_update(without_id)
        assert told is not None
        known.learn(without_id, *told)  # type: ignore[arg-type]
    found = known.find(without_id)
    assert found is not None
    message = found.message
    assert client.continues(message.session_id, message.kind, message.id)
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Look"}
    frame = json.dumps(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": call}}
    ).encode()
    assert the_long_way(client, frame)
    assert not client.continues(message.session_id, message.kind, message.id)
    assert not client.continues("another session", message.kind, message.id)
