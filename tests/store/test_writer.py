"""The writer thread: what it is given is done once, in order, also at its end."""

import asyncio
import threading
import time
from functools import partial

import pytest

from dragoman.store.contract import StoreFailed
from dragoman.store.log import Writer


async def test_a_writer_that_never_wrote_stops_at_once_and_for_good() -> None:
    writer = Writer()
    await writer.stop()
    assert not writer.put(lambda: None)
    with pytest.raises(StoreFailed, match="closed"):
        await writer.run(lambda: None)


async def test_what_is_put_while_the_writer_ends_is_done() -> None:
    writer, done = Writer(), list[str]()
    inside, go_on = threading.Event(), threading.Event()

    def long() -> None:
        inside.set()
        go_on.wait(20)

    writer.put(long)
    inside.wait(20)
    writer._jobs.put(None)  # as `stop` does
    assert writer.put(lambda: done.append("late"))
    writer._jobs.put(None)  # a second one that stops it
    go_on.set()
    await writer.stop()
    assert done == ["late"]


def test_a_program_that_forgets_to_close_ends_the_thread_at_its_exit() -> None:
    writer, done = Writer(), list[str]()
    writer.put(lambda: done.append("written"))
    writer._exit()
    assert done == ["written"]
    assert writer._thread is not None
    assert not writer._thread.is_alive()
    Writer()._exit()  # one that never began


async def test_a_loop_that_is_gone_is_told_nothing_and_others_are() -> None:
    gone = asyncio.new_event_loop()
    gone.close()
    writer, told = Writer(), asyncio.Event()
    here = asyncio.get_running_loop()

    def job() -> None:
        writer.call_in_loop(gone, lambda: pytest.fail("nobody is there"))
        writer.call_in_loop(here, told.set)

    writer.put(job)
    async with asyncio.timeout(30):
        await told.wait()
    await writer.stop()


async def test_what_is_done_is_told_in_order_and_before_all_is_done() -> None:
    """A thread that is never idle tells all the same, after a moment."""
    writer, go_on = Writer(), threading.Event()
    heard: list[int] = []
    here = asyncio.get_running_loop()
    first = asyncio.Event()

    def done(number: int) -> None:
        heard.append(number)
        first.set()

    def job(number: int) -> None:
        writer.call_in_loop(here, lambda: done(number))
        if number == 2:
            time.sleep(0.01)  # longer than any caller is kept waiting
        if number == 3:
            go_on.wait(10)

    for number in range(1, 5):
        writer.put(partial(job, number))
    async with asyncio.timeout(30):
        await first.wait()
    assert heard == [1, 2]
    go_on.set()
    await writer.stop()
    await asyncio.sleep(0)
    assert heard == [1, 2, 3, 4]


async def test_a_caller_that_goes_away_hears_neither_result_nor_failure() -> None:
    writer = Writer()
    for work in (lambda: 1, lambda: 1 / 0):
        go_on = threading.Event()
        writer.put(lambda go_on=go_on: go_on.wait(20) and None)  # type: ignore[misc]
        waiting = asyncio.ensure_future(writer.run(work))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go_on.set()
    await writer.stop()
