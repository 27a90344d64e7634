"""A compaction is what its events have told: absent leaves alone, null clears, a value replaces, a chunk appends."""

from msgspec import UNSET

from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import CompactionSummaryChunk, CompactionUpdate
from dragoman.vocabulary.state import CompactionState, is_compacting
from dragoman.vocabulary.word import Extras

BEGUN, ENDED = CompactionUpdate("s", "in_progress"), CompactionUpdate("s", "completed")


def chunk(text: str) -> CompactionSummaryChunk:
    return CompactionSummaryChunk("s", Text(text))


def state_of(*events: CompactionUpdate | CompactionSummaryChunk) -> CompactionUpdate:
    state = CompactionState("s")
    for event in events:
        state.apply(event)
    return state.value


def test_a_status_leaves_the_summary_that_chunks_have_told() -> None:
    assert state_of(BEGUN, chunk("one"), chunk("two"), ENDED) == CompactionUpdate(
        "s", "completed", [Text("one"), Text("two")]
    )


def test_a_chunk_of_an_unknown_compaction_creates_one_in_progress() -> None:
    assert state_of(chunk("one")) == CompactionUpdate("s", "in_progress", [Text("one")])


def test_a_summary_replaces_the_chunks_before_it_and_later_chunks_append() -> None:
    whole = CompactionUpdate("s", "in_progress", [Text("whole")])
    assert state_of(chunk("draft"), whole, chunk("more")).summary == [Text("whole"), Text("more")]


def test_null_and_an_empty_list_clear_the_summary() -> None:
    for cleared in (CompactionUpdate("s", "completed", None), CompactionUpdate("s", "completed", [])):
        assert state_of(chunk("draft"), cleared) == CompactionUpdate("s", "completed", UNSET)


def test_an_error_stays_until_it_is_cleared() -> None:
    failed = CompactionUpdate("s", "in_progress", error="no room")
    assert state_of(failed, CompactionUpdate("s", "failed")).error == "no room"
    assert state_of(failed, CompactionUpdate("s", "completed", error=None)).error is UNSET


def test_meta_and_unknown_fields_merge_by_key_and_null_removes_one() -> None:
    first = CompactionUpdate("s", "in_progress", meta={"a": 1, "b": 2}, extras=Extras({"x": 1, "y": 2}))
    second = CompactionUpdate("s", "completed", meta={"b": None, "c": 3}, extras=Extras({"y": None}))
    told = state_of(first, second)
    assert (told.meta, told.extras) == ({"a": 1, "c": 3}, Extras({"x": 1}))
    assert state_of(first, CompactionUpdate("s", "completed", meta=None)).meta is UNSET


def test_the_meta_of_a_chunk_is_not_the_compactions() -> None:
    assert state_of(CompactionSummaryChunk("s", Text("one"), meta={"a": 1})).meta is UNSET


def test_a_state_shows_its_status_and_counts() -> None:
    state = CompactionState("s")
    state.apply(chunk("one"))
    assert repr(state) == "<CompactionState 's' in_progress blocks=1>"
    assert is_compacting(state.value)
