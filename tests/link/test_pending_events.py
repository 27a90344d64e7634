"""Events of sessions that are not open yet: held within bounds, and dropped past them."""

import asyncio

from dragoman.link.pending_events import PendingEvents
from dragoman.vocabulary.events import AnyEvent, Running, SessionInfoChanged

FIRST: AnyEvent = Running()
SECOND: AnyEvent = SessionInfoChanged(title="two")


async def test_events_of_a_session_are_taken_in_order_and_once() -> None:
    pending = PendingEvents(max_bytes=100)
    pending.hold("a", FIRST, 10)
    pending.hold("b", SECOND, 20)
    pending.hold("a", SECOND, 30)
    assert pending.peek("a") == [FIRST, SECOND]
    assert [(held.event, held.size) for held in pending.take("a")] == [(FIRST, 10), (SECOND, 30)]
    assert pending.take("a") == []
    assert repr(pending) == "<PendingEvents sessions=1 events=1 bytes=20>"
    pending.clear()
    assert (pending.sessions, pending.size, pending.has_dropped) == (0, 0, False)


async def test_an_event_past_a_bound_is_dropped_and_reported() -> None:
    dropped: list[str] = []
    pending = PendingEvents(max_bytes=100, max_each=2, max_sessions=2, on_drop=lambda: dropped.append("one"))
    pending.hold("a", FIRST, 10)
    pending.hold("a", FIRST, 10)
    assert not pending.has_dropped
    pending.hold("a", FIRST, 10)  # one more of this session
    pending.hold("b", FIRST, 80)
    pending.hold("b", FIRST, 1)  # more bytes
    pending.take("b")
    pending.hold("b", FIRST, 1)
    pending.hold("c", FIRST, 1)  # one more session
    assert (len(dropped), pending.has_dropped, pending.size) == (3, True, 21)


async def test_an_event_whose_session_is_never_opened_is_dropped_in_time() -> None:
    dropped: list[float] = []
    loop = asyncio.get_running_loop()
    everything = loop.create_future()

    def on_drop() -> None:
        dropped.append(loop.time())
        if len(dropped) == 2:
            everything.set_result(None)

    pending = PendingEvents(max_bytes=100, seconds=0.02, on_drop=on_drop)
    began = loop.time()
    pending.hold("a", FIRST, 1)
    pending.hold("b", FIRST, 1)
    pending.hold("c", FIRST, 1)
    pending.take("c")
    await asyncio.wait_for(everything, 5)
    assert all(at - began >= 0.02 for at in dropped)
    assert (pending.sessions, pending.size) == (0, 0)
