"""What is kept of one stream, for readers that come back to it."""

import pytest

from dragoman.gateway.budget import ByteBudget
from dragoman.gateway.replay_buffer import BURST_BYTES, TOO_SLOW, ReplayBuffer, StreamReader

pytestmark = pytest.mark.anyio
FRAME = b"x" * 936  # with what a message costs beside its bytes, a thousand


def filled(count: int, limit: int) -> ReplayBuffer:
    buffer = ReplayBuffer(lambda: None, limit=limit)
    for _ in range(count):
        buffer.append(FRAME)
    return buffer


def take_all(buffer: ReplayBuffer, reader: StreamReader) -> tuple[int, int]:
    """How many messages a reader gets, and how many it misses."""
    got = missed = 0
    while buffer.has_after(reader.after):
        batch = buffer.next_batch(reader)
        got += len(batch.messages)
        missed += batch.missed
    return got, missed


async def test_who_comes_back_to_a_full_window_is_not_ended_by_what_is_said_meanwhile() -> None:
    buffer = filled(1300, limit=1_000_000)
    reader = buffer.read(None)
    buffer.append(FRAME)  # one more has to go, which it did not have yet
    assert reader.code == 0
    first = buffer.next_batch(reader)
    assert (first.missed, first.messages[0].number) == (301, 302)
    for _ in range(1000):
        buffer.append(FRAME)
    assert reader.code == 0
    got, missed = take_all(buffer, reader)
    assert len(first.messages) + got + first.missed + missed == buffer.last == 2301
    assert missed > 0


async def test_a_reader_that_keeps_up_is_given_one_message_however_many_are_kept() -> None:
    buffer = filled(900, limit=1_000_000)
    reader = buffer.read(buffer.last)
    for number in range(901, 905):
        buffer.append(FRAME)
        batch = buffer.next_batch(reader)
        assert (batch.missed, [message.number for message in batch.messages]) == (0, [number])
    again = buffer.read(1)
    assert [message.number for message in buffer.next_batch(again).messages][:3] == [2, 3, 4]


async def test_who_has_caught_up_and_falls_behind_again_is_ended() -> None:
    buffer = filled(1300, limit=1_000_000)
    reader = buffer.read(None)
    take_all(buffer, reader)
    for _ in range(1001):
        buffer.append(FRAME)
    assert reader.code == TOO_SLOW


async def test_a_small_window_holds_one_burst_for_a_client_that_reads_it() -> None:
    """Many streams share what a connection may hold; what an agent says in one breath is not too much for any."""
    buffer = filled(0, limit=64_000)
    reader = buffer.read(None)
    for _ in range(BURST_BYTES // 1000):
        buffer.append(FRAME)
    assert reader.code == 0
    assert take_all(buffer, reader) == (BURST_BYTES // 1000, 0)
    buffer.append(FRAME)
    assert buffer.size <= 64_000
    for _ in range(BURST_BYTES // 1000 + 1):
        buffer.append(FRAME)
    assert reader.code == TOO_SLOW


async def test_streams_that_hold_too_much_together_keep_an_equal_share() -> None:
    held = ByteBudget(1_000_000)
    buffers = [ReplayBuffer(lambda: None, budget=held) for _ in range(10)]
    for buffer in buffers[:2]:
        for _ in range(500):
            buffer.append(FRAME)
    assert held.used == 1_000_000
    for buffer in buffers[2:]:
        for _ in range(500):
            buffer.append(FRAME)
        assert buffer.size <= 100_000
    assert held.used == sum(buffer.size for buffer in buffers) <= 2_000_000
    buffers[0].append(FRAME)  # a client that sends lets go
    assert buffers[0].size <= 100_000
    reader = buffers[0].read(None)
    assert take_all(buffers[0], reader) == (100, 401)
    for buffer in buffers:
        buffer.release()
        buffer.release()
    assert held.used == 0


async def test_a_client_that_reads_is_not_ended_by_what_others_hold() -> None:
    held = ByteBudget(10_000)
    full = ReplayBuffer(lambda: None, budget=held)
    for _ in range(11):
        full.append(FRAME)
    read = ReplayBuffer(lambda: None, budget=held)
    reader = read.read(None)
    for _ in range(60):
        read.append(FRAME)
    assert reader.code == 0
    assert take_all(read, reader) == (60, 0)


async def test_a_window_in_the_place_of_another_goes_on_counting() -> None:
    buffer = filled(3, limit=1_000_000)
    again = ReplayBuffer(lambda: None, position=buffer.position)
    again.append(FRAME)
    batch = again.next_batch(again.read(None))
    assert (batch.missed, [message.number for message in batch.messages]) == (3, [4])
