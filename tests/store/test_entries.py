"""Entries come out of a log as they went in."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.store.entries import (
    Entry,
    EventEntry,
    NoteEntry,
    TextEntry,
    UnreadableEntry,
    UnwritableEntry,
    decode_entry,
    encode_entry,
    event_of,
    events_of,
    join_texts,
)
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    AgentMessage,
    AgentMessageChunk,
    AnyEvent,
    Failure,
    Idle,
    ToolCallUpdate,
    UnknownEvent,
    UserMessageChunk,
)
from dragoman.vocabulary.word import Extras

KINDS = ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
SAID = st.builds(TextEntry, st.sampled_from(KINDS), st.sampled_from(["", "m1", "m2"]), TEXTS)
NOTED = st.builds(NoteEntry, TEXTS, PLAIN)

EVENTS: list[AnyEvent] = [
    UserMessageChunk(Text("hi"), message_id="m"),
    AgentMessage("m", content=None),
    AgentMessage(
        "m", content=[Text("hi", meta={"a": 1}, extras=Extras({"new": [1, {"x": None}]}))], outer=Extras({"o": 1})
    ),
    ToolCallUpdate("t", title=None, raw_input={"a": [1, None]}, raw_output=None, status="failed"),
    Idle(stop_reason="error", error=Failure(-32603, "no", data={"reason": "server"}), meta=None),
    UnknownEvent("later", fields={"deep": {"x": [1]}}),
]


@given(SAID | NOTED)
def test_pieces_and_notes_survive(entry: Entry) -> None:
    assert decode_entry(*encode_entry(entry)) == entry


@pytest.mark.parametrize("event", EVENTS)
def test_events_survive(event: AnyEvent) -> None:
    assert decode_entry(*encode_entry(EventEntry(event))) == EventEntry(event)


@given(st.lists(SAID | NOTED))
def test_joining_keeps_every_text_in_order(entries: list[Entry]) -> None:
    result = join_texts(entries)
    assert [e for e in result if isinstance(e, NoteEntry)] == [e for e in entries if isinstance(e, NoteEntry)]
    for kind in KINDS:
        for message in ("", "m1", "m2"):
            assert text_of(result, kind, message) == text_of(entries, kind, message)
    neighbours = pairwise(result)
    assert not [pair for pair in neighbours if isinstance(pair[0], TextEntry) and pair[0][:2] == pair[1][:2]]
    assert join_texts(result) == result


def text_of(entries: list[Entry], kind: str, message: str) -> str:
    return "".join(e.text for e in entries if isinstance(e, TextEntry) and e[:2] == (kind, message))


@given(
    st.text(max_size=20) | st.sampled_from(["event", "note:x", *KINDS]), st.binary() | st.sampled_from([b"[" * 5000])
)
def test_rubbish_is_unreadable_and_nothing_else(kind: str, body: bytes) -> None:
    try:
        entry = decode_entry(kind, body)
    except UnreadableEntry:
        return
    assert msgspec.json.decode(body) == msgspec.json.decode(encode_entry(entry)[1])


@pytest.mark.parametrize("value", [object(), {1j: 2}, "\ud800", [[object()]]])
def test_what_has_no_place_in_a_log_is_unwritable(value: object) -> None:
    with pytest.raises(UnwritableEntry):
        encode_entry(NoteEntry("x", value))


def test_events_are_told_from_entries() -> None:
    chunk = AgentMessageChunk(Text("a"), message_id="m")
    entries: list[Entry] = [TextEntry("agent_message_chunk", "m", "a"), NoteEntry("x", 1), EventEntry(EVENTS[0])]
    assert events_of(entries) == [chunk, EVENTS[0]]
    assert event_of(NoteEntry("x", 1)) is None
