"""What is kept of one stream, for readers that come back to it."""

import pytest

from dragoman.gateway.window import BURST_BYTES, TOO_SLOW, Reader, Window

pytestmark = pytest.mark.anyio
FRAME = b"x" * 936  # with what a message costs beside its bytes, a thousand


def filled(count: int, limit: int) -> Window:
    window = Window(lambda: None, limit=limit)
    for _ in range(count):
        window.put(FRAME)
    return window


def take_all(window: Window, reader: Reader) -> tuple[int, int]:
    """How many messages a reader gets, and how many it misses."""
    got = missed = 0
    while window.has_after(reader.after):
        batch = window.take(reader)
        got += len(batch.messages)
        missed += batch.missed
    return got, missed


async def test_who_comes_back_to_a_full_window_is_not_ended_by_what_is_said_meanwhile() -> None:
    window = filled(1300, limit=1_000_000)
    reader = window.read(None)
    window.put(FRAME)  # one more has to go, which it did not have yet
    assert reader.code == 0
    first = window.take(reader)
    assert (first.missed, first.messages[0].number) == (301, 302)
    for _ in range(1000):
        window.put(FRAME)
    assert reader.code == 0
    got, missed = take_all(window, reader)
    assert len(first.messages) + got + first.missed + missed == window.last == 2301
    assert missed > 0


async def test_who_has_caught_up_and_falls_behind_again_is_ended() -> None:
    window = filled(1300, limit=1_000_000)
    reader = window.read(None)
    take_all(window, reader)
    for _ in range(1001):
        window.put(FRAME)
    assert reader.code == TOO_SLOW


async def test_a_small_window_holds_one_burst_for_whoever_reads_it() -> None:
    """Many streams share what a connection may hold; what an agent says in one breath is not too much for any."""
    window = filled(0, limit=64_000)
    reader = window.read(None)
    for _ in range(BURST_BYTES // 1000):
        window.put(FRAME)
    assert reader.code == 0
    assert take_all(window, reader) == (BURST_BYTES // 1000, 0)
    window.put(FRAME)
    assert window.size <= 64_000
    for _ in range(BURST_BYTES // 1000 + 1):
        window.put(FRAME)
    assert reader.code == TOO_SLOW
