"""`until` waits for a fact, and `settled` for everything that this loop will do by itself."""

import asyncio
import os
import threading

import pytest

from tests.support import waiting
from tests.support.waiting import settled, until, wait_until

pytestmark = pytest.mark.anyio


async def test_settled_waits_for_every_callback_that_another_makes() -> None:
    loop = asyncio.get_running_loop()
    left = 5_000
    counted: list[int] = []

    def again() -> None:
        counted.append(1)
        if len(counted) < left:
            loop.call_soon(again)

    loop.call_soon(again)
    await settled()
    assert len(counted) == left


async def test_settled_waits_for_tasks_and_for_a_descriptor_that_has_news() -> None:
    loop = asyncio.get_running_loop()
    reader, writer = os.pipe()
    read: list[bytes] = []

    async def write_later() -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        os.write(writer, b"x")

    loop.add_reader(reader, lambda: read.append(os.read(reader, 1)))
    writing = asyncio.ensure_future(write_later())
    await settled()
    assert (writing.done(), read) == (True, [b"x"])
    loop.remove_reader(reader)
    os.close(reader)
    os.close(writer)


async def test_settled_waits_for_a_timer_that_is_due_and_for_no_later_one() -> None:
    loop = asyncio.get_running_loop()
    fired: list[str] = []
    loop.call_at(loop.time() - 1, fired.append, "due")
    later = loop.call_later(1000, fired.append, "later")
    await settled()
    assert fired == ["due"]
    later.cancel()


async def test_a_loop_that_never_rests_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SECONDS", 0.01)

    async def spin() -> None:
        while True:  # noqa: ASYNC110  # to be busy is the point
            await asyncio.sleep(0)

    spinning = asyncio.ensure_future(spin())
    with pytest.raises(AssertionError, match="never came to rest"):
        await settled()
    spinning.cancel()


async def test_until_returns_when_a_thread_has_made_it_true() -> None:
    done: list[int] = []
    threading.Timer(0.05, done.append, [1]).start()
    await until(lambda: done)
    assert done == [1]


async def test_what_never_happens_is_a_failure_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SECONDS", 0.01)
    with pytest.raises(AssertionError, match="never happened: the moon"):
        await until(lambda: False, "the moon")
    with pytest.raises(AssertionError, match="never happened: the sun"):
        wait_until(lambda: False, "the sun", seconds=0.01)
