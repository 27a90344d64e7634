"""The outbox: gathered, bounded, in order; and no producer starves."""

import asyncio
from collections.abc import Iterator

import pytest

from dragoman import limits
from dragoman.errors import LinkClosed
from dragoman.link.outbox import Outbox, TextStream
from tests.support.waiting import settled

pytestmark = pytest.mark.anyio


class Pipe:
    """A transport that takes as much as it is told to."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.room = room
        self.writes: list[bytes] = []

    def write(self, data: bytes | memoryview) -> int:
        taken = min(len(data), self.room)
        self.room -= taken
        if taken:
            self.writes.append(bytes(data[:taken]))
        return taken

    @property
    def written(self) -> bytes:
        return b"".join(self.writes)


def outbox(pipe: Pipe, limit: int = limits.OUTBOX_BYTES, **settings: object) -> Outbox:
    return Outbox(pipe, limit=limit, **settings)  # type: ignore[arg-type]  # it only writes


async def test_what_is_put_in_one_turn_of_the_loop_is_written_in_one_call() -> None:
    pipe = Pipe()
    box = outbox(pipe)
    for number in range(3):
        box.put(b"%d" % number)
    assert pipe.writes == []
    await settled()
    assert (pipe.writes, box.size) == ([b"0\n1\n2\n"], 0)


async def test_a_backlog_is_written_about_a_pipe_at_a_time() -> None:
    pipe = Pipe()
    box = outbox(pipe)
    for _ in range(10):
        box.put(bytes(limits.WRITE_BYTES // 2))
    box.flush()
    assert [len(write) for write in pipe.writes[:3]] == [limits.WRITE_BYTES + 2] * 3
    assert (len(pipe.written), box.size) == (10 * (limits.WRITE_BYTES // 2 + 1), 0)


async def test_what_the_transport_does_not_take_goes_first_when_there_is_room() -> None:
    pipe = Pipe(room=4)
    box = outbox(pipe)
    box.put(b"first")
    box.put(b"second")
    box.flush()
    assert pipe.written == b"firs"
    box.put(b"third")
    pipe.room = 100
    box.writable()
    assert (pipe.written, box.size) == (b"first\nsecond\nthird\n", 0)


async def put_when_room(box: Outbox, payload: bytes) -> None:
    admitted = box.enqueue(len(payload), (payload,))
    if admitted is not None:
        await admitted


async def test_a_producer_waits_while_the_outbox_is_full_and_goes_on_when_it_is_read() -> None:
    pipe = Pipe(room=0)
    box = outbox(pipe, limit=1000)
    produced = []

    async def produce() -> None:
        for number in range(100):
            await put_when_room(box, b"%099d" % number)
            produced.append(number)

    producer = asyncio.ensure_future(produce())
    await settled()
    assert len(produced) < 10 and box.size <= 1000
    pipe.room = 300
    box.writable()
    await settled()
    assert len(produced) < 13 and box.size <= 1000
    pipe.room = 1 << 30
    box.writable()
    await producer
    await box.wait_until_drained(1)
    assert pipe.written == b"".join(b"%099d\n" % number for number in range(100))


async def test_an_empty_outbox_takes_one_frame_of_any_size_and_a_full_one_makes_it_wait() -> None:
    pipe = Pipe(room=0)
    box = outbox(pipe, limit=1000)
    assert box.enqueue(50_000, (bytes(50_000),)) is None
    later = box.enqueue(50_000, (bytes(50_000),))
    assert later is not None
    await settled()
    assert not later.done()
    pipe.room = 1 << 30
    box.writable()
    await later
    assert box.size >= 50_000


async def test_a_large_frame_in_line_is_not_starved_by_small_ones() -> None:
    pipe = Pipe(room=0)
    box = outbox(pipe, limit=1000)
    box.put(bytes(900))
    large = box.enqueue(5000, (b"L" * 5000,))
    small = box.enqueue(10, (b"s" * 10,))
    assert large is not None and small is not None
    pipe.room = 500
    box.writable()
    await settled()
    assert (large.done(), small.done()) == (False, False)
    pipe.room = 1 << 30
    box.writable()
    await small
    await box.wait_until_drained(1)
    assert pipe.written == bytes(900) + b"\n" + b"L" * 5000 + b"\n" + b"s" * 10 + b"\n"


async def test_a_producer_that_leaves_the_line_is_not_waited_for() -> None:
    pipe = Pipe(room=0)
    box = outbox(pipe, limit=100)
    box.put(bytes(90))
    gone = box.enqueue(80, (b"gone",))
    stays = box.enqueue(1, (b"stays",))
    assert gone is not None and stays is not None
    gone.cancel()
    pipe.room = 1 << 30
    box.writable()
    await stays
    await box.wait_until_drained(1)
    assert pipe.written == bytes(90) + b"\nstays\n"


async def test_payloads_are_made_when_they_are_put() -> None:
    pipe = Pipe(room=0)
    box = outbox(pipe, limit=100)
    box.put(bytes(99))
    made = []

    def payloads() -> Iterator[bytes]:
        made.append(1)
        yield b"late"

    turn = box.enqueue(4, payloads())
    assert turn is not None
    await settled()
    assert made == []
    pipe.room = 1 << 30
    box.writable()
    await turn
    assert made == [1]


async def test_a_payload_that_cannot_be_made_fails_its_producer_and_no_other() -> None:
    pipe = Pipe(room=0)
    box = outbox(pipe, limit=100)
    box.put(bytes(99))

    def payloads() -> Iterator[bytes]:
        yield from (_fail() for _ in range(1))

    bad, good = box.enqueue(4, payloads()), box.enqueue(4, (b"good",))
    assert bad is not None and good is not None
    pipe.room = 1 << 30
    box.writable()
    await good
    with pytest.raises(ValueError, match="no"):
        await bad


async def test_a_busy_producer_lets_the_loop_turn_for_every_pipes_worth() -> None:
    pipe = Pipe()
    stream = TextStream(outbox(pipe), b"", b"")
    others = []
    ticking = True

    async def tick() -> None:
        while ticking:
            others.append(1)
            await asyncio.sleep(0)

    ticker = asyncio.ensure_future(tick())
    for _ in range(10 * limits.WRITE_BYTES // 1024):
        if stream.put("x" * 1000):
            await stream.wait_for_room()
    assert len(others) >= 9
    ticking = False
    await ticker


async def test_below_a_full_outbox_a_slow_peer_costs_no_turn_for_each_piece() -> None:
    box = outbox(Pipe(room=0))
    stream = TextStream(box, b"", b"")
    breaths = 0
    while box.size < limits.OUTBOX_BYTES // 2:
        if stream.put("x" * 1000):
            breaths += 1
            await stream.wait_for_room()
    assert breaths <= limits.OUTBOX_BYTES // 2 // limits.WRITE_BYTES + 1


async def test_half_of_a_surrogate_pair_becomes_a_replacement_character() -> None:
    pipe = Pipe()
    stream = TextStream(outbox(pipe), b"[", b"]")
    stream.put("a\ud83d")
    await settled()
    assert pipe.written == '["a�"]\n'.encode()


async def test_a_large_frame_is_written_without_a_copy_and_ends_its_line() -> None:
    pipe = Pipe()
    box = outbox(pipe)
    large = bytes(2 * limits.MIB)
    box.put(b"before")
    box.put(large)
    box.put(b"after")
    box.flush()
    assert pipe.writes[0] == b"before\n"
    assert pipe.written == b"before\n" + large + b"\nafter\n"
    assert box.size == 0


async def test_content_length_is_said_where_it_is_spoken() -> None:
    pipe = Pipe()
    box = outbox(pipe)
    box.style = "content-length"
    box.put(b"{}")
    box.flush()
    assert pipe.written == b"Content-Length: 2\r\n\r\n{}"


async def test_the_trace_sees_every_frame_that_leaves_and_none_that_does_not() -> None:
    seen: list[tuple[str, bytes]] = []
    pipe = Pipe(room=0)
    box = outbox(pipe, trace=lambda direction, frame: seen.append((direction, frame)))
    box.put(b"1")
    box.put(bytes(2 * limits.MIB))
    box.flush()
    assert seen == [("out", b"1")]
    pipe.room = 1 << 30
    box.writable()
    assert seen == [("out", b"1"), ("out", bytes(2 * limits.MIB))]
    box.put(b"never")
    box.close(LinkClosed("gone"))
    await settled()
    assert len(seen) == 2


async def test_closing_wakes_every_producer_with_the_reason_and_drops_what_waits() -> None:
    pipe = Pipe(room=0)
    box = outbox(pipe, limit=100)
    box.put(bytes(200))
    producers = [asyncio.ensure_future(put_when_room(box, b"x")) for _ in range(3)]
    draining = asyncio.ensure_future(box.wait_until_drained(60))
    await settled()
    gone = LinkClosed("gone")
    box.close(gone)
    assert await asyncio.gather(*producers, return_exceptions=True) == [gone] * 3
    await draining
    assert box.size == 0
    box.put(b"dropped")
    stream = TextStream(box, b"", b"")
    assert stream.put("nobody")
    with pytest.raises(LinkClosed):
        await stream.wait_for_room()
    assert pipe.writes == []


async def test_draining_waits_no_longer_than_it_is_told() -> None:
    box = outbox(Pipe(room=0))
    box.put(b"x")
    await box.wait_until_drained(0.01)
    assert box.size > 0


def _fail() -> bytes:
    raise ValueError("no")
