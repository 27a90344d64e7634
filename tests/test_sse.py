"""A stream is cut into events, wherever it was cut before."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import LinkClosed
from dragoman.sse import EventReader, ServerEvent

STREAM = (
    b": a comment\r\nevent: one\r\ndata: first\r\n\r\n"
    b"data:second\ndata: line\nid: 7\nretry: 10\n\n"
    b"event: without data\n\n"
    b"data\ndata: third\n\r\n"
    b"data: never ended\n"
)
EVENTS = [ServerEvent("", b"first"), ServerEvent("7", b"second\nline"), ServerEvent("7", b"\nthird")]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_the_same_events_come_however_the_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    reader = EventReader()
    chunks = [STREAM[begin:end] for begin, end in pairwise(places)]
    assert [event for chunk in chunks for event in reader.feed(chunk)] == EVENTS


def test_an_event_is_there_with_its_last_byte() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a") == []
    assert reader.feed(b"\n") == []
    assert reader.feed(b"\n") == [ServerEvent("", b"a")]


@pytest.mark.parametrize("endless", [b"x", b"data: x\n", b"data:\n"], ids=["line", "event", "event of empty lines"])
def test_what_has_no_end_is_refused(endless: bytes) -> None:
    reader = EventReader(limit=1_000)

    def feed() -> None:
        for _ in range(1_001):
            assert reader.feed(endless) == []

    with pytest.raises(LinkClosed):
        feed()


def test_many_small_events_are_no_large_one() -> None:
    reader = EventReader(limit=100)
    assert sum(len(reader.feed(b"data: x\n\n")) for _ in range(1_000)) == 1_000
