"""A file that is cut, flipped, or not a file. Its readable beginning is kept; everything else is unharmed."""

import asyncio
import os
import random
import shutil
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.store import files, rows
from dragoman.store.contract import SessionDamaged, SessionHeld, SessionMeta, SessionMissing, StoreFailed
from dragoman.store.entries import Entry, EventEntry
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import IDLE, entries_of, listed, meta, note, numbers_in, said, tried, write

TRUTH: list[Entry] = [
    entry
    for number in range(300)
    for entry in (note(number), said(f"text {number} " * 9, f"m{number}"), EventEntry(IDLE))
]
PAGE = 4096


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long session "a", and "b" beside it: to be copied."""
    folder = tmp_path_factory.mktemp("unharmed")

    async def make() -> None:
        store = SqliteStore(folder)
        await write(await store.create(meta("a", title="A")), *TRUTH)
        await write(await store.create(meta("b")), note(1))
        await store.close()

    asyncio.run(make())
    assert (folder / "a.session").stat().st_size >= 20 * PAGE
    return folder


@pytest.fixture
async def folder(unharmed: Path, tmp_path: Path) -> Path:
    """A copy with a list of its own: the one that came with it tells of another folder."""
    folder = Path(shutil.copytree(unharmed, tmp_path / "sessions"))
    store = SqliteStore(folder)
    assert await listed(store) == ["b", "a"]
    await store.close()
    return folder


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(folder)
    yield store
    await store.close()


async def check_others(store: SqliteStore) -> None:
    log = await store.open("b")
    await write(log, note(2))
    assert await numbers_in(log.read()) == [1, 2]
    await log.release()


async def opened_or_damaged(store: SqliteStore) -> tuple[list[Entry], str | None] | None:
    """What is left of "a", and what was reported. None: nothing, and that was told: at the latest by the first read."""
    try:
        log = await store.open("a")
    except SessionDamaged:
        return None
    except StoreFailed as error:
        if str(error) == "the session was written by another release":
            return None  # one of the bits says so
        raise
    try:
        found = await entries_of(log.read())
    except SessionDamaged:
        await log.release()
        return None
    assert found == TRUTH[: len(found)]
    assert log.meta.id == "a"
    assert log.meta.cwd == "/work"
    await write(log, note(1_000))
    assert await entries_of(log.read()) == [*found, note(1_000)]
    await log.release()
    return found, log.salvaged


@pytest.mark.requirement("E4")
async def test_a_cut_file_keeps_its_beginning(store: SqliteStore, folder: Path) -> None:
    file = folder / "a.session"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[: size - 5 * PAGE])
    outcome = await opened_or_damaged(store)
    assert outcome is not None
    found, report = outcome
    assert 500 < len(found) < 900
    assert report == f"the session's file was damaged; the log is kept up to entry {len(found)}, the rest is lost"
    assert (folder / "a.session.damaged").stat().st_size == size - 5 * PAGE
    assert stat.S_IMODE((folder / "a.session.damaged").stat().st_mode) == 0o600
    assert (await store.open("a")).salvaged is None
    await check_others(store)
    assert await listed(store) == ["b", "a"]


@pytest.mark.requirement("E4")
async def test_nothing_is_silently_lost_wherever_a_file_is_cut(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "a.session").read_bytes()
    for size in [0, 1, 50, 100, 4_000, PAGE, PAGE + 1, 2 * PAGE, 3 * PAGE, 10_000, *range(4 * PAGE, len(whole), 9_999)]:
        copy = tmp_path / str(size)
        shutil.copytree(folder, copy)
        (copy / "a.session").write_bytes(whole[:size])
        store = SqliteStore(copy)
        outcome = await opened_or_damaged(store)
        if outcome is not None:
            found, report = outcome
            assert len(found) < len(TRUTH)
            assert report is not None
        await check_others(store)
        await store.close()


@pytest.mark.requirement("E4")
@pytest.mark.parametrize("seed", range(2))
async def test_flipped_bits_invent_nothing(folder: Path, tmp_path: Path, seed: int) -> None:
    await flip(folder, tmp_path, seed, 9)


@pytest.mark.requirement("E4")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
async def test_many_flipped_bits_invent_nothing(folder: Path, tmp_path: Path, seed: int) -> None:
    await flip(folder, tmp_path, seed, 50)


async def flip(folder: Path, tmp_path: Path, seed: int, times: int) -> None:
    chance = random.Random(seed)
    whole = (folder / "a.session").read_bytes()
    for turn in range(times):
        copy = tmp_path / str(turn)
        shutil.copytree(folder, copy)
        flipped = bytearray(whole)
        for _ in range(chance.choice([1, 1, 1, 50])):
            # The first pages are read most and are hit least.
            place = chance.randrange(len(whole) if turn % 3 else 3 * PAGE)
            flipped[place] ^= 1 << chance.randrange(8)
        (copy / "a.session").write_bytes(flipped)
        store = SqliteStore(copy)
        outcome = await opened_or_damaged(store)
        assert outcome is None or len(outcome[0]) == len(TRUTH) or outcome[1] is not None
        await check_others(store)
        assert "b" in await listed(store)
        await store.close()
        shutil.rmtree(copy)


async def test_what_a_session_is_can_be_restored_from_the_list(store: SqliteStore, folder: Path) -> None:
    """The bit is in the cwd, which nothing but a checksum can notice."""
    file = folder / "a.session"
    file.write_bytes(file.read_bytes().replace(b"/work", b"/wosk", 1))
    assert (await store.read_meta("a")).cwd == "/work"
    outcome = await opened_or_damaged(store)
    assert outcome == (TRUTH, "the session's file was damaged; the log is whole")
    assert (await store.read_meta("a"))[:4] == ("a", "/work", (), "A")


async def test_a_file_of_another_session_is_not_taken_for_this_one(store: SqliteStore, folder: Path) -> None:
    shutil.copy(folder / "b.session", folder / "a.session")
    shutil.copy(folder / "b.session", folder / "z.session")
    with pytest.raises(SessionDamaged):
        await store.read_meta("z")
    for name in ("a", "z"):
        with pytest.raises(SessionDamaged):
            await store.open(name)


async def test_garbage_is_told_and_stays_where_it_is(store: SqliteStore, folder: Path) -> None:
    garbage = os.urandom(50_000)
    (folder / "a.session").write_bytes(garbage)
    for _ in range(2):
        with pytest.raises(SessionDamaged):
            await store.open("a")
    assert (folder / "a.session").read_bytes() == garbage
    with pytest.raises(SessionDamaged):
        await entries_of(store.read("a"))
    with pytest.raises(SessionDamaged):
        await store.fork("a", meta("c"))
    with pytest.raises(SessionMissing):
        await store.read_meta("c")
    await check_others(store)
    assert await store.delete("a") is True
    assert await listed(store) == ["b"]


async def test_a_log_is_read_up_to_the_damage_without_holding_it(store: SqliteStore, folder: Path) -> None:
    file = folder / "a.session"
    file.write_bytes(file.read_bytes().replace(b"text 200 ", b"tixt 200 ", 1))
    found: list[Entry] = []

    async def read() -> None:
        async for records in store.read("a"):
            found.extend(record.entry for record in records)

    with pytest.raises(SessionDamaged):
        await read()
    assert found == TRUTH[: len(found)]
    assert len(found) > 500
    with pytest.raises(SessionDamaged):
        await store.fork("a", meta("c"))
    assert await listed(store) == ["b", "a"]


async def test_a_log_that_is_opened_and_read_is_checked_once(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []
    checksum = rows._checksum

    def counted(sequence: int, kind: str, body: bytes) -> int:
        checked.append(sequence)
        return checksum(sequence, kind, body)

    monkeypatch.setattr(rows, "_checksum", counted)
    log = await store.open("a")
    assert checked == []
    assert await entries_of(log.read()) == TRUTH
    assert checked == [*range(1, len(TRUTH) + 1)]
    await write(log, note(1_000))
    assert checked[len(TRUTH) :] == [len(TRUTH) + 1]


def spoil(folder: Path, number: int) -> None:
    """Change a letter of the text of message `number`, which nothing but a checksum can notice."""
    file = folder / "a.session"
    whole = file.read_bytes()
    assert whole.count(b"text %d " % number) == 9
    file.write_bytes(whole.replace(b"text %d " % number, b"tixt %d " % number, 1))


REPORT = "the session's file was damaged; the log is kept up to entry 601, the rest is lost"


async def test_damage_is_found_by_the_first_read_and_the_lease_is_kept(store: SqliteStore, folder: Path) -> None:
    spoil(folder, 200)
    log = await store.open("a")
    reports = [log.salvaged]
    assert await entries_of(log.read()) == TRUTH[:601]
    assert [*reports, log.salvaged] == [None, REPORT]
    other = SqliteStore(folder)
    with pytest.raises(SessionHeld):
        await other.open("a")
    await write(log, note(1_000))
    assert await entries_of(log.read()) == [*TRUTH[:601], note(1_000)]
    await log.release()
    again = await other.open("a")
    assert await entries_of(again.read()) == [*TRUTH[:601], note(1_000)]
    assert again.salvaged is None
    await other.close()


async def test_damage_that_a_reader_of_the_store_meets_is_reported_by_the_open_log(
    store: SqliteStore, folder: Path
) -> None:
    spoil(folder, 200)
    log = await store.open("a")
    assert await entries_of(store.read("a")) == TRUTH[:601]
    assert log.salvaged == REPORT


async def test_damage_is_reported_although_the_reader_stops_before_it(store: SqliteStore, folder: Path) -> None:
    """The next batch is read ahead, so the log is repaired when the reader has seen the batch before the damage."""
    spoil(folder, 200)
    log = await store.open("a")
    async for records in log.read():
        if records[-1].sequence > files.BATCH:
            break
    await store.length("a")  # behind what was read ahead
    assert log.salvaged == REPORT


async def test_an_entry_that_is_promised_is_not_put_behind_damage(store: SqliteStore, folder: Path) -> None:
    """It would be cut off with the damage by the next one that reads the log."""
    spoil(folder, 200)
    log = await store.open("a")
    assert await tried(log, note(1_000)) is None
    assert log.salvaged == REPORT
    await store.close()
    after = SqliteStore(folder)
    log = await after.open("a")
    assert await entries_of(log.read()) == [*TRUTH[:601], note(1_000)]
    assert log.salvaged is None
    await after.close()


async def test_an_entry_of_another_release_is_not_cut_off(store: SqliteStore, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "a.session")) as file:
        last = len(TRUTH) + 1
        row = (last, "hologram", b"{}", rows._checksum(last, "hologram", b"{}"))
        file.execute("INSERT INTO log VALUES (?, ?, ?, ?)", row)
        file.commit()
    for _ in range(2):
        log = await store.open("a")
        with pytest.raises(SessionDamaged):
            await entries_of(log.read())
        assert log.salvaged is None
        await log.release()
    assert await store.length("a") == last


async def test_what_a_check_raises_leaves_the_session_free(store: SqliteStore, folder: Path) -> None:
    seen: list[str] = []

    def check(meta: SessionMeta) -> None:
        seen.append(meta.cwd)
        if meta.cwd == "/work":
            raise KeyError("not here")

    with pytest.raises(KeyError):
        await store.open("a", check)
    assert seen == ["/work"]
    other = SqliteStore(folder)
    await (await other.open("a", lambda meta: seen.append(meta.id))).release()
    assert seen == ["/work", "a"]
    await other.close()


async def test_a_damaged_session_that_another_holds_is_left_alone(store: SqliteStore, folder: Path) -> None:
    log = await store.open("a")
    file = folder / "a.session"
    with file.open("r+b") as damaged:
        damaged.seek(10 * PAGE)
        damaged.write(bytes(PAGE))
    other = SqliteStore(folder)
    with pytest.raises(SessionHeld):
        await other.open("a")
    await other.close()
    assert log.salvaged is None


async def test_a_file_taken_away_under_us_is_noticed_at_once(store: SqliteStore, folder: Path) -> None:
    log = await store.open("a")
    assert await tried(log, note(1)) is None
    (folder / "a.session").unlink()
    assert isinstance(await tried(log, note(2)), SessionMissing)
    (folder / "a.session-wal").unlink()
    shutil.copy(folder / "b.session", folder / "a.session")
    assert isinstance(await tried(log, note(3)), StoreFailed)
    await check_others(store)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_link(path: Path) -> None:
    path.symlink_to(path.parent / "b.session")


def a_dangling_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "nowhere")


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.requirement("E4")
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("thing", [a_folder, a_fifo, a_link, a_dangling_link, a_device])
async def test_what_is_no_file_is_never_followed(
    store: SqliteStore, folder: Path, thing: Callable[[Path], None], suffix: str
) -> None:
    before = (folder / "b.session").read_bytes()
    path = folder / f"a.session{suffix}"
    path.unlink(missing_ok=True)
    thing(path)
    for work in (store.open("a"), store.change("a", title="x"), store.fork("a", meta("c"))):
        with pytest.raises(SessionDamaged):
            await work
    with pytest.raises(SessionDamaged):
        await entries_of(store.read("a"))
    assert (folder / "b.session").read_bytes() == before
    assert not (folder.parent / "nowhere").exists()
    with pytest.raises(StoreFailed):
        await store.create(meta("a"))
    assert await listed(store) == ["b", "a"]
    await check_others(store)
    if thing is a_folder:
        with pytest.raises(SessionDamaged):
            await store.delete("a")
    else:
        assert await store.delete("a") is True
        assert await listed(store) == ["b"]


async def test_a_killed_repair_can_be_done_again(store: SqliteStore, folder: Path) -> None:
    """What a repair that was killed may leave: a file half made, a damaged file set aside before."""
    file = folder / "a.session"
    file.write_bytes(file.read_bytes()[: 10 * PAGE])
    (folder / "a.session.new").write_bytes(b"half")
    (folder / "a.session.damaged").write_bytes(b"old")
    outcome = await opened_or_damaged(store)
    assert outcome is not None and outcome[1] is not None
    assert not (folder / "a.session.new").exists()
    assert await store.delete("a") is True
    assert [each.name for each in folder.glob("a.*")] == []
