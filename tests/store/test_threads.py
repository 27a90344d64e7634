"""The hand-over between the loop and the writer thread: whatever the interleaving, nothing is lost or doubled."""

import asyncio
import random
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest

from dragoman.store.contract import StoreFailed
from dragoman.store.entries import Entry, NoteEntry
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import entries_of, meta, note, numbers_in, tried

T = TypeVar("T")


@pytest.fixture
def nervous() -> Iterator[None]:
    """Threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def heard(called: list[T], what: T, error: StoreFailed | None) -> None:
    assert error is None
    called.append(what)


@pytest.mark.usefixtures("nervous")
async def test_many_tasks_on_many_logs_lose_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    logs = [await store.create(meta(f"s{n}")) for n in range(8)]
    called: list[list[int]] = [[] for _ in logs]
    chance = random.Random(1)

    async def speak(which: int) -> None:
        for number in range(1_500):
            logs[which].append((note(number),), partial(heard, called[which], number))
            if chance.random() < 0.3:
                await asyncio.sleep(0)
        await logs[which].flush()

    await asyncio.gather(*map(speak, range(len(logs))))
    for log, numbers in zip(logs, called, strict=True):
        assert numbers == list(range(1_500))
        assert await numbers_in(log.read()) == list(range(1_500))
    await store.close()


@pytest.mark.usefixtures("nervous")
async def test_appends_from_other_threads_lose_nothing(tmp_path: Path) -> None:
    """No caller should, but a deque and a flag hold all the same."""
    store = SqliteStore(tmp_path)
    log = await store.create(meta("a"))
    called: list[tuple[int, int]] = []

    def speak(which: int) -> None:
        for number in range(1_000):
            log.append((NoteEntry("by", [which, number]),), partial(heard, called, (which, number)))

    threads = [threading.Thread(target=speak, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    await log.flush()
    assert sorted(called) == [(which, number) for which in range(4) for number in range(1_000)]
    found = [entry.value for entry in await entries_of(log.read()) if isinstance(entry, NoteEntry)]
    assert [tuple(each) for each in found if isinstance(each, list)] == called
    await store.close()


@pytest.mark.usefixtures("nervous")
async def test_failures_in_a_flood_leave_no_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a journal does it: after a failure was told, it goes on behind the last entry that was kept."""
    store = SqliteStore(tmp_path)
    log = await store.create(meta("a"))
    append, commits, chance = store._engine._files.append, count(), random.Random(2)

    def sometimes(session_id: str, entries: Sequence[Entry], activity: int) -> None:
        if next(commits) % 3 == 2:
            raise StoreFailed("the disk failed")
        append(session_id, entries, activity)

    monkeypatch.setattr(store._engine._files, "append", sometimes)
    kept: list[int] = []
    failures = 0
    next_number = 0

    def told(number: int, error: StoreFailed | None) -> None:
        nonlocal failures, next_number
        if error is None:
            kept.append(number)
        else:
            failures += 1
            next_number = len(kept)

    for _ in range(20_000):
        log.append((note(next_number),), partial(told, next_number))
        next_number += 1
        # Long bursts: the writer commits several times before the loop hears of the first.
        if chance.random() < 0.002:
            await tried(log)
    monkeypatch.undo()
    await tried(log)
    assert failures
    assert kept == list(range(len(kept)))
    assert await numbers_in(log.read()) == kept
    await store.close()


@pytest.mark.usefixtures("nervous")
async def test_closing_in_the_middle_tells_every_append_its_outcome(tmp_path: Path) -> None:
    for turns in (0, 5, 15, 30, 45):
        await close_after(tmp_path / str(turns), turns)


async def close_after(folder: Path, turns: int) -> None:
    store = SqliteStore(folder)
    log = await store.create(meta("a"))
    outcomes: list[tuple[int, bool]] = []

    def told(number: int, error: StoreFailed | None) -> None:
        outcomes.append((number, error is None))

    async def speak() -> int:
        for number in range(5_000):
            log.append((note(number),), partial(told, number))
            if number % 10 == 0:
                await asyncio.sleep(0)
        return 5_000

    speaking = asyncio.create_task(speak())
    for _ in range(turns):
        await asyncio.sleep(0)
    await store.close()
    total = await speaking
    await asyncio.sleep(0)
    assert [number for number, _ in outcomes] == list(range(total))
    kept = [number for number, is_kept in outcomes if is_kept]
    assert kept == list(range(len(kept)))
    again = SqliteStore(folder)
    assert await numbers_in((await again.open("a")).read()) == kept
    await again.close()


def test_a_loop_that_is_gone_harms_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SqliteStore(tmp_path)

    async def begin() -> None:
        log = await store.create(meta("a"))
        for number in range(2_000):
            log.append((note(number),), lambda error: None)
        abandoned = asyncio.create_task(store.list())
        await asyncio.sleep(0)
        assert not abandoned.done()

    async def end() -> None:
        assert await numbers_in(store.read("a")) == list(range(2_000))
        await store.close()

    asyncio.run(begin())
    asyncio.run(end())
    assert caplog.records == []


async def test_a_caller_that_is_cancelled_stops_no_work(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    log = await store.create(meta("a"))
    changing = asyncio.create_task(log.change(title="New"))
    await asyncio.sleep(0)
    changing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await changing
    assert (await store.read_meta("a")).title == "New"
    waiting = asyncio.create_task(log.flush())
    await asyncio.sleep(0)
    waiting.cancel()
    assert await tried(log, note(1)) is None
    await store.close()
