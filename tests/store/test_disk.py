"""A disk that is full, failing, or not ours to write to: a coded failure, nothing harmed, and it works again."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dragoman.store.contract import SessionMissing, StoreFailed
from dragoman.store.entries import NoteEntry
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import child, finished, listed, meta, note, numbers_in, run, tried, write
from tests.support.needs import need

LARGE = NoteEntry("large", "x" * 300_000)


# -- a real disk that is full ----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of two mebibytes."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("this test needs the right to mount a tmpfs")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path, leave: int = 0) -> None:
    """Use up the space, but for some."""
    with (disk / "ballast").open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass  # there is no space left
        file.truncate(file.tell() - leave)


@pytest.mark.requirement("E3")
async def test_a_full_disk_is_told_and_forgotten_when_there_is_room(small_disk: Path) -> None:
    store = SqliteStore(small_disk / "sessions")
    a, b = await store.create(meta("a")), await store.create(meta("b"))
    await write(a, note(1))
    await write(b, note(1))
    fill(small_disk)
    for _ in range(3):
        failure = await tried(a, note(2), LARGE)
        assert failure is not None and str(failure) == "the disk is full"
    fill(small_disk)
    with pytest.raises(StoreFailed, match=r"full|No space|input or output"):
        await store.create(meta("c"))
    assert await numbers_in(a.read()) == [1]
    assert await numbers_in(store.read("b")) == [1]
    assert await listed(store) == ["b", "a"]
    (small_disk / "ballast").unlink()
    assert await tried(a, note(3)) is None
    assert await tried(b, note(3)) is None
    await store.create(meta("c"))
    assert await numbers_in(a.read()) == await numbers_in(b.read()) == [1, 3]
    assert await listed(store) == ["c", "b", "a"]
    await store.close()


PAGES_LEFT = [pytest.param(pages, marks=() if pages % 13 == 0 else pytest.mark.slow) for pages in range(80)]


@pytest.mark.requirement("E3")
@pytest.mark.parametrize("pages", PAGES_LEFT)
async def test_a_disk_with_little_room_keeps_what_was_acknowledged(small_disk: Path, pages: int) -> None:
    store = SqliteStore(small_disk / "sessions")
    log = await store.create(meta("a"))
    fill(small_disk, pages * 4096)
    kept = [number for number in range(60) if await tried(log, note(number), NoteEntry("some", "x" * 5_000)) is None]
    assert len(kept) < 60
    try:
        await store.create(meta("b"))
    except StoreFailed:
        with pytest.raises(SessionMissing):
            await store.read_meta("b")
    await store.close()
    store = SqliteStore(small_disk / "sessions")
    (small_disk / "ballast").unlink()
    log = await store.open("a")
    assert log.salvaged is None
    assert await numbers_in(log.read()) == kept
    await write(log, note(99))
    assert (await listed(store))[-1] == "a"
    await store.close()


@pytest.mark.requirement("E3")
def test_a_file_that_may_not_grow_is_told(tmp_path: Path) -> None:
    """RLIMIT_FSIZE: the same without the right to mount."""
    assert finished(child("be_limited", tmp_path, "FSIZE")) == ["failed", "worked again"]


def test_a_process_without_descriptors_is_told(tmp_path: Path) -> None:
    assert finished(child("be_limited", tmp_path, "NOFILE")) == ["failed", "worked again"]


# -- a folder that is not ours ---------------------------------------------------------------------------------------


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


@pytest.mark.requirement("E3")
def test_a_folder_or_file_that_may_not_be_written_is_told(open_folder: Path) -> None:
    """As a user who is not root: modes do not stop root."""
    lines = finished(child("be_refused", open_folder / "sessions"))
    assert lines == [
        "folder: create StoreFailed",
        "folder: open StoreFailed",
        "folder: others unharmed",
        "file: open StoreFailed",
        "file: change StoreFailed",
        "file: others unharmed",
        "unreadable: read_meta StoreFailed",
        "unreadable: others unharmed",
        "worked again",
    ]


# -- a disk that fails -----------------------------------------------------------------------------------------------


class Failing(sqlite3.Connection):
    """The calls in the plan fail before they do anything."""

    plan: ClassVar[range] = range(0)
    code: ClassVar[int] = 0
    calls: ClassVar[int] = 0

    def fail(self) -> None:
        Failing.calls += 1
        if Failing.calls in Failing.plan:
            error = sqlite3.OperationalError("at /secret/path")
            error.sqlite_errorcode = Failing.code
            raise error

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self.fail()
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self.fail()
        return super().executemany(*arguments)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> type[Failing]:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Failing))
    Failing.calls, Failing.plan = 0, range(0)
    return Failing


async def live(store: SqliteStore) -> tuple[list[int], list[str], list[StoreFailed]]:
    """A short life in which anything may fail: the numbers that were kept, the sessions created, the failures."""
    kept: list[int] = []
    created: list[str] = []
    failures: list[StoreFailed] = []
    log = None
    for name in ("a", "b"):
        try:
            log = await store.create(meta(name))
            created.append(name)
        except StoreFailed as error:
            failures.append(error)
    for number in range(4):
        failure = None if log is None else await tried(log, note(number))
        if failure is not None:
            failures.append(failure)
        elif log is not None:
            kept.append(number)
    for work in (store.change("b", title="New"), store.list(), store.read_meta("a")):
        try:
            await work
        except StoreFailed as error:
            failures.append(error)
    return kept, created, failures


CODES = [
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
]


# How many calls fail one after the other: one, a few, all from there on.
LENGTHS = [1, 3, 10_000]


@pytest.mark.requirement("E3")
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("length", LENGTHS)
async def test_any_failure_is_told_and_harms_nothing(
    tmp_path: Path, failing: type[Failing], code: int, length: int
) -> None:
    # Each code and length fails at calls of its own, so that together they fail at most of the calls of a life.
    for first in range(1 + 3 * CODES.index(code) + 29 * LENGTHS.index(length), 140, 29 * len(LENGTHS)):
        folder = tmp_path / str(first)
        store = SqliteStore(folder)
        failing.calls, failing.plan, failing.code = 0, range(first, first + length), code
        kept, created, failures = await live(store)
        assert all("/" not in str(error) for error in failures)
        # A single failure to tell the list is made good later.
        assert failures or length == 1 or failing.calls < first
        failing.plan = range(0)
        # The same store goes on as if nothing had been.
        there = await listed(store)
        assert set(created) <= set(there) <= {"a", "b"}
        if "b" in created:
            assert await numbers_in(store.read("b")) == kept
        extra = await store.create(meta("extra"))
        assert await tried(extra, note(1)) is None
        await store.close()
        store = SqliteStore(folder)
        assert await listed(store) == ["extra", *there]
        await store.close()


@pytest.mark.requirement("E3")
@pytest.mark.slow
async def test_any_failure_at_any_call_is_told_and_harms_nothing(tmp_path: Path, failing: type[Failing]) -> None:
    for length in (1, 2, 5, 10_000):
        for first in range(1, 200):
            folder = tmp_path / f"{length}-{first}"
            store = SqliteStore(folder)
            failing.calls, failing.plan, failing.code = 0, range(first, first + length), sqlite3.SQLITE_IOERR
            kept, created, failures = await live(store)
            assert failures or length < 3 or failing.calls < first
            failing.plan = range(0)
            assert set(created) <= set(await listed(store)) <= {"a", "b"}
            if "b" in created:
                assert await numbers_in(store.read("b")) == kept
            await store.close()
            shutil.rmtree(folder)


@pytest.mark.requirement("E3")
@pytest.mark.slow
@pytest.mark.parametrize(
    "calls", ["pwrite64", "fsync,fdatasync", "openat", "ftruncate,fallocate", "unlink,link,rename"]
)
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EACCES", "EINTR"])
async def test_any_failing_system_call_is_told_and_harms_nothing(tmp_path: Path, calls: str, error: str) -> None:
    """The kernel itself refuses, once or for ever from the n-th call on."""
    strace = need("strace")
    source = (
        "import asyncio, sys\nfrom tests.support.store_processes import live_and_tell as f\nasyncio.run(f(sys.argv[1]))"
    )
    # Who is interrupted tries again; for ever would be for ever.
    for ever in ("",) if error == "EINTR" else ("", "+"):
        for number in (*range(1, 12), 15, 20, 30, 45):
            folder = tmp_path / f"{calls}{number}{ever}"
            # Only from the marker on: the interpreter's own files are opened before.
            inject = [
                "-e",
                f"trace={calls}",
                "-P",
                str(folder),
                "-e",
                f"inject={calls}:error={error}:when={number}{ever}",
            ]
            if "openat" not in calls:
                del inject[2:4]
            command = [strace, "-f", "-qq", "-o", "/dev/null", *inject, sys.executable, "-c", source, str(folder)]
            lines = run(command)
            assert lines[-1] == "end"
            kept = [int(line.split()[1]) for line in lines if line.startswith("kept")]
            store = SqliteStore(folder)
            there = await listed(store)
            assert {line.split()[1] for line in lines if line.startswith("created")} <= set(there)
            if kept:
                found = await numbers_in((await store.open("b")).read())
                # What was refused may have come through all the same, when the refusal itself was the failure.
                assert [number for number in found if number in kept] == kept
                assert found == sorted(set(map(int, map(str, found))))
            await store.close()
            shutil.rmtree(folder)


async def test_no_failure_ends_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a mistake of our own."""
    store = SqliteStore(tmp_path)
    log = await store.create(meta("a"))

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(store._engine._files, "append", broken)
        failure = await tried(log, note(1))
        assert failure is not None and str(failure) == "the session store failed"
        patch.setattr(store._engine._files, "read_meta", broken)
        with pytest.raises(ZeroDivisionError):
            await store.read_meta("a")
    assert await tried(log, note(2)) is None
    assert await asyncio.wait_for(numbers_in(log.read()), 30) == [2]
    await store.close()
