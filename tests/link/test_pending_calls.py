"""How many calls may be under way at a time: a bound that loses no place and lets no call overtake."""

import asyncio

import pytest

from dragoman.link.pending_calls import InFlightLimit
from tests.support.waiting import settled

pytestmark = pytest.mark.anyio


async def test_a_caller_beyond_the_limit_waits_and_is_served_in_order() -> None:
    slots = InFlightLimit(2)
    assert [slots.acquire(), slots.acquire(), slots.acquire(), slots.free] == [True, True, False, False]
    served: list[int] = []
    waiting = [asyncio.ensure_future(_serve(slots, number, served)) for number in range(3)]
    await settled()
    assert served == []
    slots.release()
    assert not slots.acquire()  # it belongs to the first in line, who has not run yet
    await settled()
    assert served == [0]
    slots.release()
    slots.release()
    await asyncio.gather(*waiting)
    assert (served, slots.free) == ([0, 1, 2], False)
    slots.release()
    assert slots.acquire()


@pytest.mark.parametrize("given_back", [False, True], ids=["in line", "just served"])
async def test_a_cancelled_waiter_takes_no_slot_along(given_back: bool) -> None:
    slots = InFlightLimit(1)
    assert slots.acquire()
    served: list[int] = []
    leaves, stays = (asyncio.ensure_future(_serve(slots, number, served)) for number in range(2))
    await settled()
    if given_back:
        slots.release()
    leaves.cancel()
    await settled()
    if not given_back:
        slots.release()
    await stays
    assert (served, leaves.cancelled(), slots.free) == ([1], True, False)
    slots.release()
    assert slots.free


async def _serve(slots: InFlightLimit, number: int, served: list[int]) -> None:
    await slots.wait()
    served.append(number)
