"""Sessions that are held and idle cost little, however many they are."""

import gc
import os
import tracemalloc
from pathlib import Path

import pytest

from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import listed, meta, note, numbers_in, write


async def hold_many(folder: Path, count: int) -> None:
    store = SqliteStore(folder)
    await store.create(meta("first"))
    before = len(os.listdir("/proc/self/fd"))
    gc.collect()
    tracemalloc.start()
    logs = [await store.create(meta(f"s{number}")) for number in range(count)]
    for log in logs[::10]:
        await write(log, note(1))
    gc.collect()
    # What other threads and lazy imports of the test run take is not ours.
    ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/dragoman/*")])
    used = sum(statistic.size for statistic in ours.statistics("filename"))
    tracemalloc.stop()
    assert used / count < 4 * 1024
    # A hundred files, each with its journal and its shared memory, and a few of our own.
    assert len(os.listdir("/proc/self/fd")) - before < 310
    assert len(await listed(store)) == count + 1
    for log in logs[:: max(1, count // 50)]:
        await write(log, note(2))
    assert await numbers_in(logs[0].read()) == [1, 2]
    await store.close()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.requirement("C12")
async def test_many_held_sessions_cost_little(tmp_path: Path) -> None:
    await hold_many(tmp_path, 150)


@pytest.mark.requirement("C12")
@pytest.mark.slow
async def test_ten_thousand_held_sessions_cost_little(tmp_path: Path) -> None:
    await hold_many(tmp_path, 10_000)
