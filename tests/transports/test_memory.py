"""The faults of `memory_pair`: each does what it says, the same way every time. The rest is in test_contract."""

import asyncio

import pytest

from dragoman.errors import LinkClosed, UsageError
from dragoman.transports.memory import Faults, MemoryTransport, memory_pair
from tests.support.waiting import settled, until

from .pairs import Recorder

pytestmark = pytest.mark.anyio


def started(capacity: int, to_right: Faults) -> tuple[MemoryTransport, Recorder, Recorder]:
    left, right = memory_pair(capacity, to_right=to_right)
    at_left, at_right = Recorder(), Recorder()
    left.start(at_left)
    right.start(at_right)
    return left, at_left, at_right


async def test_a_torn_stream_arrives_in_pieces_of_the_ordered_size() -> None:
    left, _, at_right = started(100, Faults(pieces=4))
    left.write(b"0123456789")
    await settled()
    assert (at_right.pieces, bytes(at_right.data)) == ([4, 4, 2], b"0123456789")


async def test_a_stream_is_torn_at_the_ordered_places_counted_from_its_beginning() -> None:
    left, _, at_right = started(100, Faults(torn_at=(3, 5, 12)))
    left.write(b"0123456789")
    await settled()
    left.write(b"abcdef")
    await settled()
    assert at_right.pieces == [3, 2, 5, 2, 4]


async def test_a_slow_stream_brings_the_ordered_number_of_bytes_each_turn() -> None:
    left, _, at_right = started(100, Faults(per_turn=10))
    left.write(bytes(35))
    arrived = []
    for _ in range(5):
        await asyncio.sleep(0)  # one turn of the loop, which is what the fault counts
        arrived.append(len(at_right.data))
    assert arrived == [10, 20, 30, 35, 35]


async def test_a_write_is_short_at_the_capacity() -> None:
    left, at_left, _ = started(10, Faults())
    assert left.write(bytes(15)) == 10
    assert left.write(bytes(5)) == 0
    await until(lambda: at_left.rooms == 1)
    assert left.write(bytes(5)) == 5


async def test_a_dropped_connection_delivers_the_ordered_bytes_and_is_lost_at_both_ends() -> None:
    left, at_left, at_right = started(100, Faults(dropped_after=4))
    assert left.write(b"0123456789") == 10
    await settled()
    assert bytes(at_right.data) == b"0123"
    assert [type(error) for error in at_left.losses + at_right.losses] == [LinkClosed, LinkClosed]
    assert left.write(b"more") == 4


async def test_a_connection_dropped_after_nothing_delivers_nothing() -> None:
    left, at_left, at_right = started(100, Faults(dropped_after=0))
    await settled()
    assert not at_left.losses
    left.write(b"0")
    await settled()
    assert not at_right.data
    assert len(at_left.losses) == len(at_right.losses) == 1


@pytest.mark.parametrize("faults", [Faults(pieces=0), Faults(per_turn=0)])
async def test_sizes_of_nothing_are_refused(faults: Faults) -> None:
    with pytest.raises(UsageError):
        memory_pair(10, to_left=faults)
    with pytest.raises(UsageError):
        memory_pair(0)
