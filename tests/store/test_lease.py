"""A session has one writer, whatever processes do, and a dead one holds nothing."""

import os
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.store.contract import SessionHeld
from dragoman.store.locks import Holder
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import child, died, finished, meta, note, numbers_in, tried, write
from tests.support.store_holder import holding


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path)
    await (await store.create(meta("a"))).release()
    yield store
    await store.close()


@pytest.mark.requirement("E5")
async def test_what_another_process_holds_can_be_looked_at_and_not_taken(store: SqliteStore, tmp_path: Path) -> None:
    process = holding(tmp_path, "a")
    for work in (store.open("a"), store.change("a", title="x"), store.delete("a")):
        with pytest.raises(SessionHeld):
            await work
    assert (await store.read_meta("a")).title == ""
    assert await numbers_in(store.read("a")) == []
    process.communicate("\n", timeout=30)
    assert await numbers_in((await store.open("a")).read()) == [1]


@pytest.mark.requirement("E5")
async def test_what_we_hold_another_process_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    log = await store.open("a")
    assert finished(child("hold", tmp_path, "a")) == ["held elsewhere"]
    await write(log, note(1))


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("reaped", [True, False])
async def test_a_killed_holder_holds_nothing(store: SqliteStore, tmp_path: Path, reaped: bool) -> None:
    """Not even as a zombie that was not waited for."""
    process = holding(tmp_path, "a")
    process.send_signal(signal.SIGKILL)
    died(process)
    if reaped:
        process.communicate(timeout=30)
    await store.open("a")
    process.communicate(timeout=30)


async def test_a_stopped_holder_still_holds(store: SqliteStore, tmp_path: Path) -> None:
    process = holding(tmp_path, "a")
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(SessionHeld):
        await store.open("a")
    process.kill()
    process.communicate(timeout=30)


@pytest.mark.requirement("E5")
async def test_a_holder_that_was_taken_over_notices(store: SqliteStore, tmp_path: Path) -> None:
    """Only violence can do that: here the holders' folder is emptied, as by a careless clean-up."""
    log = await store.open("a")
    await write(log, note(1))
    other = SqliteStore(tmp_path)
    for file in (tmp_path / "holders").iterdir():
        file.unlink()
    taken = await other.open("a")
    await write(taken, note(2))
    assert isinstance(await tried(log, note(3)), SessionHeld)
    await log.release()
    await write(taken, note(4))
    assert await numbers_in(taken.read()) == [1, 2, 4]
    await other.close()


async def test_a_lease_under_an_invalid_name_has_no_holder(store: SqliteStore, tmp_path: Path) -> None:
    holder = Holder(tmp_path / "holders")
    for name in [None, 7, "", "..", "/etc/passwd", "../index", "0" * 32, "a" * 300]:
        assert not holder.lives(name)


async def test_a_child_of_ours_does_not_inherit_the_lease(store: SqliteStore, tmp_path: Path) -> None:
    process = child("hold_and_start_a_sleeper", tmp_path, "a")
    assert process.stdout is not None
    sleeper = int(process.stdout.readline())
    process.communicate(timeout=30)
    try:
        await store.open("a")
    finally:
        os.kill(sleeper, signal.SIGKILL)


async def test_holders_leave_nothing_behind_for_long(tmp_path: Path) -> None:
    for _ in range(3):
        finished(child("write_and_die_anew", tmp_path))
    store = SqliteStore(tmp_path)
    await store.create(meta("z"))
    (ours,) = (tmp_path / "holders").iterdir()
    assert stat.S_IMODE(ours.stat().st_mode) == 0o600
    await store.close()
    assert list((tmp_path / "holders").iterdir()) == []


async def test_two_holders_that_begin_at_once_do_not_take_each_others_names(tmp_path: Path) -> None:
    holders = [Holder(tmp_path / "holders") for _ in range(20)]
    names = {holder.name for holder in holders}
    assert len(names) == 20
    assert all(other.lives(name) for other in holders for name in names)
    for holder in holders:
        holder.end()
    assert not any(holders[0].lives(name) for name in names)
