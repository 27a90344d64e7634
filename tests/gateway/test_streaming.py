"""What a stream writes, and when: in the step that brings it, where the socket takes it at once."""

import asyncio
from collections.abc import Awaitable

import pytest

from dragoman.gateway.replay_buffer import GOING_AWAY, ReplayBuffer, StreamReader
from dragoman.gateway.resuming import PLAIN
from dragoman.gateway.streaming import Event, begin, stream_events
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


class Socket:
    """What was written; while it is full, a write waits."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.waiting = 0
        self.has_room = asyncio.Event()
        self.has_room.set()
        self.is_broken = False

    async def send(self, event: Event) -> None:
        if not self.has_room.is_set():
            self.waiting += 1
            await self.has_room.wait()
        if self.is_broken:
            raise OSError("the socket is gone")
        if event["type"] == "http.response.body":
            self.written.append(event["body"])

    async def receive(self) -> Event:
        await asyncio.Event().wait()
        raise AssertionError

    def numbers(self) -> list[list[int]]:
        """The numbers of the messages of each write."""
        found = [[int(line[4:]) for line in body.split(b"\n") if line.startswith(b"id: ")] for body in self.written]
        return [numbers for numbers in found if numbers]


async def streaming(socket: Socket) -> tuple[ReplayBuffer, StreamReader, "asyncio.Task[None]"]:
    buffer = ReplayBuffer(lambda: None)
    reader = buffer.read(None)
    task = asyncio.create_task(stream_events(reader, PLAIN, socket.receive, socket.send))
    await until(lambda: reader._waiter is not None, "a reader that waits")
    return buffer, reader, task


def say(buffer: ReplayBuffer, count: int) -> None:
    for _ in range(count):
        buffer.append(b"{}", wake=False)
    buffer.flush()


async def ended(buffer: ReplayBuffer, task: "asyncio.Task[None]") -> None:
    buffer.close(GOING_AWAY)
    await task


async def test_what_one_read_brings_leaves_in_one_write_in_the_same_step() -> None:
    socket = Socket()
    buffer, _, task = await streaming(socket)
    say(buffer, 3)
    assert socket.numbers() == [[1, 2, 3]]
    say(buffer, 1)
    assert socket.numbers() == [[1, 2, 3], [4]]
    buffer.flush()  # there is nothing
    assert socket.numbers() == [[1, 2, 3], [4]]
    await ended(buffer, task)


async def test_a_write_that_has_to_wait_is_finished_before_the_next_one() -> None:
    socket = Socket()
    buffer, _, task = await streaming(socket)
    socket.has_room.clear()
    say(buffer, 1)
    say(buffer, 2)
    buffer.append(b"{}")
    await until(lambda: socket.waiting == 1)
    assert socket.numbers() == []
    socket.has_room.set()
    await until(lambda: sum(map(len, socket.numbers())) == 4)
    assert socket.numbers() == [[1], [2, 3, 4]]
    await ended(buffer, task)
    assert b": keep" not in b"".join(socket.written)


async def test_more_than_a_batch_leaves_in_order() -> None:
    socket = Socket()
    buffer, _, task = await streaming(socket)
    for _ in range(5):
        buffer.append(b'"%b"' % (b"x" * 40_000), wake=False)
    buffer.flush()
    assert socket.numbers() == [[1]]
    await until(lambda: sum(map(len, socket.numbers())) == 5)
    assert [number for numbers in socket.numbers() for number in numbers] == [1, 2, 3, 4, 5]
    await ended(buffer, task)


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_socket_that_is_gone_ends_the_stream_and_nothing_else(at_once: bool) -> None:
    socket = Socket()
    buffer, reader, task = await streaming(socket)
    socket.is_broken = True
    if not at_once:
        socket.has_room.clear()
    say(buffer, 1)
    socket.has_room.set()
    await task
    assert reader.code != 0
    assert buffer.reader is None
    say(buffer, 1)  # kept, for a reader that comes back
    assert buffer.last == 2


async def test_a_stream_that_is_ended_while_a_write_hangs_ends() -> None:
    socket = Socket()
    buffer, _, task = await streaming(socket)
    socket.has_room.clear()
    say(buffer, 1)
    await until(lambda: socket.waiting == 1)
    buffer.close(GOING_AWAY)
    await task
    assert socket.numbers() == []


async def test_work_that_needs_no_waiting_is_done_when_it_is_begun() -> None:
    done: list[int] = []

    async def work(steps: int) -> None:
        for step in range(steps):
            done.append(step)
            await asyncio.sleep(0)
        done.append(-1)

    assert begin(work(0)) is None
    assert done == [-1]
    rest = begin(work(3))
    assert done == [-1, 0]
    assert rest is not None
    await rest
    assert done == [-1, 0, 1, 2, -1]


async def test_work_that_is_cancelled_while_it_waits_is_told_so() -> None:
    ends: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    rest = begin(work())
    assert rest is not None

    async def waiting(what: Awaitable[None]) -> None:
        await what

    task = asyncio.create_task(waiting(rest))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ends == ["cancelled"]
