"""What `transports.contract` promises, held against every transport in `pairs.PAIRS`."""

import asyncio
import os
import threading
import time

import pytest

from dragoman.errors import LinkClosed
from tests.support.waiting import settled, until

from .pairs import HALF_CLOSING_PEERS, PAIRS, OpenPair

pytestmark = pytest.mark.anyio

MESSAGE = b"".join(b"%d " % number for number in range(50_000))  # 289 KB, no two places alike


@pytest.fixture(params=PAIRS)
def open_pair(request: pytest.FixtureRequest) -> OpenPair:
    return PAIRS[request.param]


async def test_bytes_arrive_whole_and_in_order_both_ways_at_once(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        _, seen, _ = await asyncio.gather(pair.send(MESSAGE), pair.peer.read(len(MESSAGE)), pair.peer.write(MESSAGE))
        await until(lambda: len(pair.receiver.data) >= len(MESSAGE))
        assert seen == MESSAGE
        assert bytes(pair.receiver.data) == MESSAGE


async def test_torn_writes_arrive_whole(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        for at in range(0, 3000, 7):
            await pair.peer.write(MESSAGE[at : at + 7])
        await until(lambda: len(pair.receiver.data) >= 3003)
        assert bytes(pair.receiver.data) == MESSAGE[:3003]


async def test_a_full_pipe_takes_nothing_until_writable_and_writable_comes_once_when_there_is_room(
    open_pair: OpenPair,
) -> None:
    async with open_pair() as pair:
        taken = pair.clog()
        await settled()
        assert pair.receiver.rooms == 0
        assert pair.transport.write(b"more") == 0
        await pair.peer.read(taken)
        await until(lambda: pair.receiver.rooms)
        await settled()
        assert pair.receiver.rooms == 1
        assert pair.transport.write(b"more") == 4
        assert await pair.peer.read(4) == b"more"


async def test_a_peer_that_never_reads_does_not_hold_up_the_loop(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        pair.clog()
        before = time.monotonic()
        for _ in range(1000):
            assert pair.transport.write(MESSAGE) == 0
            await asyncio.sleep(0)
        assert time.monotonic() - before < 20
        await pair.peer.write(b"still heard")
        await until(lambda: pair.receiver.data == b"still heard")


async def test_nothing_is_received_while_reading_is_paused(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        await pair.peer.write(b"one")
        await until(lambda: pair.receiver.data == b"one")
        pair.transport.pause_reading()
        pair.transport.pause_reading()
        await pair.peer.write(b"two")
        await settled()
        assert pair.receiver.data == b"one"
        pair.transport.resume_reading()
        pair.transport.resume_reading()
        await until(lambda: pair.receiver.data == b"onetwo")


async def test_a_receiver_that_pauses_while_it_receives_gets_no_more(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        pair.transport.pause_reading()
        await pair.peer.write(MESSAGE[:90])
        await settled()
        pair.receiver.on_data = pair.transport.pause_reading
        pair.transport.resume_reading()
        await until(lambda: pair.receiver.pieces)
        await settled()
        assert len(pair.receiver.pieces) == 1


async def test_after_a_half_close_the_peer_sees_the_end_and_can_still_answer(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        await pair.send(b"the last question")
        pair.transport.close_writing()
        pair.transport.close_writing()
        assert pair.transport.write(b"not sent") == 8
        assert await pair.peer.read_to_end() == b"the last question"
        await pair.peer.write(b"the answer")
        await pair.peer.close_writing()
        await until(lambda: pair.receiver.losses)
        assert pair.receiver.data == b"the answer"
        assert pair.receiver.losses == [None]


async def test_what_arrived_before_the_end_is_received_before_it(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        pair.transport.pause_reading()
        await pair.peer.write(MESSAGE[:90])
        await pair.peer.close_writing()
        await settled()
        assert not pair.receiver.data
        pair.transport.resume_reading()
        await until(lambda: pair.receiver.losses)
        assert bytes(pair.receiver.data) == MESSAGE[:90]
        assert not pair.receiver.after_loss


@pytest.mark.parametrize("name", HALF_CLOSING_PEERS)
async def test_after_a_clean_end_answers_can_still_leave(name: str) -> None:
    async with PAIRS[name]() as pair:
        await pair.peer.close_writing()
        await until(lambda: pair.receiver.losses)
        assert pair.receiver.losses == [None]
        _, seen = await asyncio.gather(pair.send(MESSAGE), pair.peer.read(len(MESSAGE)))
        assert seen == MESSAGE


async def test_a_vanished_peer_is_one_loss_and_writing_to_it_is_harmless(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        await pair.peer.vanish()
        await until(lambda: pair.receiver.losses)
        for _ in range(3):
            assert pair.transport.write(MESSAGE) == len(MESSAGE)
            await settled()
        pair.transport.close_writing()
        await pair.transport.close()
        await settled()
        assert len(pair.receiver.losses) == 1
        assert pair.receiver.losses[0] is None or isinstance(pair.receiver.losses[0], LinkClosed)
        assert not pair.receiver.after_loss


async def test_who_only_writes_finds_out_that_the_peer_vanished(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        pair.transport.pause_reading()
        await pair.peer.vanish()

        def write_and_look() -> bool:
            losses = len(pair.receiver.losses)
            assert pair.transport.write(b"anybody there?") == 14
            assert len(pair.receiver.losses) == losses, "no call back from inside write"
            return bool(pair.receiver.losses)

        await until(write_and_look, "the loss")
        assert isinstance(pair.receiver.losses[0], LinkClosed)


async def test_who_waits_for_room_is_woken_when_the_peer_vanishes(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        pair.transport.pause_reading()
        pair.clog()
        await pair.peer.vanish()
        await until(lambda: pair.receiver.rooms or pair.receiver.losses)
        assert pair.transport.write(b"more") == 4
        await until(lambda: pair.receiver.losses)


async def test_close_is_quick_and_idempotent_and_says_so_once(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        pair.clog()
        before = time.monotonic()
        await asyncio.gather(pair.transport.close(), pair.transport.close())
        await pair.transport.close()
        assert time.monotonic() - before < 20
        assert pair.receiver.losses == [None]
        rooms = pair.receiver.rooms
        assert pair.transport.write(b"more") == 4
        pair.transport.pause_reading()
        pair.transport.resume_reading()
        pair.transport.close_writing()
        await settled()
        assert pair.receiver.losses == [None]
        assert pair.receiver.rooms == rooms


async def test_the_peer_of_a_closed_transport_sees_the_end(open_pair: OpenPair) -> None:
    async with open_pair() as pair:
        await pair.send(b"goodbye")
        seen, _ = await asyncio.gather(pair.peer.read_to_end(), pair.transport.close())
        assert seen == b"goodbye"


async def test_nothing_is_left_behind(open_pair: OpenPair) -> None:
    async with open_pair():  # whatever is made once and kept, such as the loop's executor
        pass
    descriptors, threads = _descriptors(), threading.active_count()
    async with open_pair() as pair:
        pair.clog()
        await pair.peer.write(b"unread")
    await until(lambda: _descriptors() == descriptors, "all descriptors closed")
    await until(lambda: threading.active_count() <= threads, "all threads gone")


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
