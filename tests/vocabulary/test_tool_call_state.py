"""A tool call is what its events have told: absent leaves alone, null clears, a value replaces, a chunk appends."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from dragoman.vocabulary import tool_call_state
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.tool_call_state import INCOMPLETE, ToolCallState, incomplete
from dragoman.vocabulary.tools import ContentItem, Diff, Location, UnknownItem
from dragoman.vocabulary.word import Extras

ONE, TWO = ContentItem(Text("one")), Diff.of("/w/a", "x", "y")
FIELDS = ("name", "title", "kind", "status", "content", "locations", "raw_input", "raw_output")


def state_of(*events: ToolCallUpdate | ToolCallContentChunk) -> ToolCallUpdate:
    state = ToolCallState("c", bounded=True)
    for event in events:
        state.apply(event)
    return state.value


def test_a_chunk_appends_to_what_an_update_has_set() -> None:
    told = state_of(ToolCallUpdate("c", kind="edit", content=[ONE]), ToolCallContentChunk("c", TWO))
    assert told == ToolCallUpdate("c", kind="edit", content=[ONE, TWO])


def test_a_chunk_of_an_unknown_call_creates_it() -> None:
    assert state_of(ToolCallContentChunk("c", TWO)) == ToolCallUpdate("c", content=[TWO])


def test_a_list_replaces_the_chunks_before_it_and_null_clears_them() -> None:
    assert state_of(ToolCallContentChunk("c", ONE), ToolCallUpdate("c", content=[TWO])).content == [TWO]
    assert state_of(ToolCallContentChunk("c", ONE), ToolCallUpdate("c", content=None)).content is UNSET
    cleared = (ToolCallUpdate("c", content=None), ToolCallContentChunk("c", TWO))
    assert state_of(ToolCallContentChunk("c", ONE), *cleared).content == [TWO]


def test_a_value_that_was_read_does_not_grow_afterwards() -> None:
    state = ToolCallState("c")
    state.apply(ToolCallContentChunk("c", ONE))
    before = state.value
    state.apply(ToolCallContentChunk("c", TWO))
    assert (before.content, state.value.content) == ([ONE], [ONE, TWO])


def test_what_does_not_fit_is_marked_and_a_new_list_takes_the_mark_away(monkeypatch: Any) -> None:
    monkeypatch.setattr(tool_call_state, "CONTENT_ITEMS", 2)
    chunks = [ToolCallContentChunk("c", ONE)] * 3
    assert state_of(*chunks).content == [ONE, ONE, UnknownItem(INCOMPLETE, {})]
    assert state_of(*chunks, ToolCallUpdate("c", content=[TWO])).content == [TWO]
    monkeypatch.setattr(tool_call_state, "CONTENT_CHARACTERS", 10)
    assert state_of(ToolCallContentChunk("c", ContentItem(Text("x" * 11)))).content == [incomplete()]


def test_parts_that_could_not_be_read_are_marked_until_the_content_is_told_again() -> None:
    unread = ToolCallUpdate("c", content=[ONE], extras=Extras({"content": [1]}))
    assert state_of(unread).content == [ONE, incomplete()]
    assert state_of(unread, ToolCallUpdate("c", title="t")).content == [ONE, incomplete()]
    assert state_of(unread, ToolCallUpdate("c", content=[TWO])).content == [TWO]
    assert state_of(ToolCallUpdate("c", extras=Extras({"locations": 1}))).content == [incomplete()]
    assert state_of(ToolCallUpdate("c", extras=Extras({"other": 1}))).content is UNSET


def test_locations_that_could_not_be_read_are_marked_until_locations_are_sent_again() -> None:
    unread = ToolCallUpdate("c", extras=Extras({"locations": 1}))
    assert state_of(unread, ToolCallUpdate("c", content=[TWO])).content == [TWO, incomplete()]
    assert state_of(unread, ToolCallUpdate("c", content=None)).content == [incomplete()]
    assert state_of(unread, ToolCallUpdate("c", content=[TWO], locations=[])).content == [TWO]
    half = ToolCallUpdate("c", locations=[], extras=Extras({"locations": 1}))
    assert state_of(half, ToolCallUpdate("c", content=[TWO])).content == [TWO, incomplete()]


PATCHES = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.sampled_from([UNSET, None, "a", "b"]) for name in ("name", "title", "kind", "status")},
        "content": st.sampled_from([UNSET, None, [], [ONE], [ONE, TWO]]),
        "locations": st.sampled_from([UNSET, None, [], [Location("/w/a")]]),
        "raw_input": st.sampled_from([UNSET, None, {}, {"a": 1}]),
        "raw_output": st.sampled_from([UNSET, None, "x"]),
    },
)


@given(st.lists(PATCHES))
def test_every_field_is_its_last_value_and_cleared_is_as_if_never_named(patches: list[dict[str, Any]]) -> None:
    told = state_of(*(ToolCallUpdate("c", **patch) for patch in patches))
    for name in FIELDS:
        values = [value for patch in patches if (value := patch.get(name, UNSET)) is not UNSET]
        last = values[-1] if values else UNSET
        assert getattr(told, name) == (UNSET if last is None else last)
