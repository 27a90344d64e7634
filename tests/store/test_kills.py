"""Kill -9 at every write, and journals torn at every byte. What was acknowledged is there, as it was."""

import shutil
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from dragoman.store.contract import SessionMissing, Store
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import child, entries_of, finished, listed, note, numbers_in, run, said, write
from tests.support.needs import need

TRUTH = [entry for number in range(45) for entry in (note(number), said("x" * 300, f"m{number}"))]


# A page in a journal, with its head.
FRAME = 4096 + 24


async def check(folder: Path, lines: Iterable[str]) -> None:
    """What a fresh store reads agrees with what was acknowledged."""
    await check_store(SqliteStore(folder), lines)
    # Nothing half made stays behind where it could be taken for something.
    assert {file.name for file in folder.glob("*.session")} <= {"a.session", "b.session", "c.session"}


async def check_store(store: Store, lines: Iterable[str]) -> None:
    """What is there agrees with what the scripted sessions were told; closes the store."""
    told = set(lines)
    there = await listed(store)
    acknowledged = [int(line.split()[1]) for line in told if line.startswith("wrote ")]
    assert "created a" not in told or "a" in there
    assert "forked b" not in told or "b" in there
    assert "deleted c" not in told or "c" not in there
    assert not ({"created c"} <= told and "deleting c" not in told) or "c" in there
    if "a" in there:
        log = await store.open("a")
        assert log.salvaged is None
        found = await entries_of(log.read())
        assert found == TRUTH[: len(found)]
        assert len(found) >= 2 * (max(acknowledged, default=-1) + 1)
        assert "titled a" not in told or log.meta.title == "Title"
        await write(log, note(99))
        assert await entries_of(log.read()) == [*found, note(99)]
    if "b" in there:
        log = await store.open("b")
        found = await entries_of(log.read())
        assert found in (TRUTH, [*TRUTH, note(45)])
        assert "written b" not in told or len(found) == len(TRUTH) + 1
    for name in {"a", "b", "c"} - set(there):
        with pytest.raises(SessionMissing):
            await store.read_meta(name)
    await store.close()


def killed_at(folder: Path, number: int) -> list[str] | None:
    """What was acknowledged before the n-th call. None: the script ended before it."""
    process = child("be_killed_at", folder, number)
    lines = finished(process)
    assert process.returncode in (0, -signal.SIGKILL)
    assert (process.returncode == 0) == ("closed" in lines)
    return None if process.returncode == 0 else lines


@pytest.mark.requirement("E1")
async def test_a_kill_at_some_writes_loses_nothing(tmp_path: Path) -> None:
    for number in (3, 61, 149, 202, 240, 280):
        lines = killed_at(tmp_path / str(number), number)
        assert lines is not None
        await check(tmp_path / str(number), lines)


@pytest.mark.requirement("E1")
@pytest.mark.slow
async def test_a_kill_at_every_write_loses_nothing(tmp_path: Path) -> None:
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        lines = killed_at(folder, number)
        if lines is None:
            break
        if folder.exists():
            await check(folder, lines)
            shutil.rmtree(folder)
    assert number > 280


@pytest.mark.requirement("E1")
@pytest.mark.slow
async def test_a_kill_at_every_system_call_that_writes_loses_nothing(tmp_path: Path) -> None:
    """The same one level below: strace kills at the n-th call of the kernel."""
    strace = need("strace")
    source = (
        "import asyncio, sys\nfrom tests.support.store_processes import scripted\nasyncio.run(scripted(sys.argv[1]))"
    )
    for call in ("pwrite64", "fsync,fdatasync", "ftruncate", "unlink", "link,rename"):
        for number in range(1, 2_000, 1 if call != "pwrite64" else 3):
            folder = tmp_path / f"{call}{number}"
            # Counted in each thread by itself; all the writing is done by one.
            inject = [
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                f"trace={call}",
                "-e",
                f"inject={call}:signal=KILL:when={number}",
            ]
            command = [strace, *inject, sys.executable, "-c", source, str(folder)]
            lines = run(command)
            if folder.exists():
                await check(folder, lines)
            if "closed" in lines:
                break
            shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.requirement("E1")
@pytest.mark.slow
async def test_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    for turn in range(40):
        process = child("stream_for_ever", tmp_path / str(turn))
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1 + turn * 7)]
        process.kill()
        lines += finished(process)
        store = SqliteStore(tmp_path / str(turn))
        found = await numbers_in((await store.open("a")).read())
        assert found == list(range(len(found)))
        assert len(found) > int(lines[-1])
        await store.close()


# -- torn journals ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def journal(tmp_path: Path) -> Path:
    """A session of a killed process, most of it still in its journal."""
    folder = tmp_path / "killed"
    finished(child("write_numbers_and_die", folder, "12"))
    assert (folder / "a.session-wal").stat().st_size > 8_000
    return folder


async def read_back(folder: Path) -> list[object]:
    store = SqliteStore(folder)
    log = await store.open("a")
    found = await numbers_in(log.read())
    await write(log, note(1_000))
    assert await numbers_in(log.read()) == [*found, 1_000]
    await store.close()
    return found


async def torn(journal: Path, folder: Path, sizes: Iterable[int]) -> None:
    last = -1
    for size in sizes:
        shutil.copytree(journal, folder)
        with (folder / "a.session-wal").open("r+b") as file:
            file.truncate(size)
        found = await read_back(folder)
        assert found == list(range(len(found)))
        assert len(found) >= last
        last = len(found)
        shutil.rmtree(folder)
    assert last == 12


@pytest.mark.requirement("E2")
async def test_a_torn_journal_loses_its_end_only(journal: Path, tmp_path: Path) -> None:
    size = (journal / "a.session-wal").stat().st_size
    frames = range(32, size, FRAME)
    edges = sorted({0, 1, 31, 32, 33, size - 1, size, *(f + d for f in frames for d in (-1, 0, 1, 24, 2000))})
    await torn(journal, tmp_path / "torn", [each for each in edges[::3] if each < size] + [size])


@pytest.mark.requirement("E2")
@pytest.mark.slow
async def test_a_journal_torn_at_every_byte_of_its_last_commit_loses_that_only(journal: Path, tmp_path: Path) -> None:
    """And at every byte of the head of every frame before it."""
    size = (journal / "a.session-wal").stat().st_size
    heads = {start + byte for start in range(32, size, FRAME) for byte in range(25)}
    await torn(journal, tmp_path / "torn", sorted({*range(33), *heads, *range(size - 2 * FRAME, size + 1)}))


@pytest.mark.requirement("E2")
async def test_a_hole_in_a_journal_loses_what_is_behind_it_only(journal: Path, tmp_path: Path) -> None:
    """A write before the last never reached the disk."""
    whole = (journal / "a.session-wal").read_bytes()
    for start in range(32, len(whole), 3 * FRAME):
        folder = tmp_path / str(start)
        shutil.copytree(journal, folder)
        (folder / "a.session-wal").write_bytes(whole[:start] + bytes(4096) + whole[start + 4096 :])
        found = await read_back(folder)
        assert found == list(range(len(found)))


async def test_a_lost_end_is_reported_when_the_list_knew_of_it(journal: Path) -> None:
    (journal / "a.session-wal").unlink()
    store = SqliteStore(journal)
    log = await store.open("a")
    assert log.salvaged == "the end of the log is lost"
    await log.release()
    assert (await store.open("a")).salvaged is None
    await store.close()


async def test_unflushed_entries_reach_the_disk_when_the_program_ends(tmp_path: Path) -> None:
    """Without a close: a program that just ends, and one whose loop was closed early."""
    for turn in range(2):
        assert finished(child("end_without_closing", tmp_path / str(turn))) == ["appended"]
        store = SqliteStore(tmp_path / str(turn))
        assert await numbers_in((await store.open("a")).read()) == list(range(5_000))
        await store.close()
