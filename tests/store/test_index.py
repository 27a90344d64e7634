"""The list can be thrown away, broken or left behind: it is made again from the sessions' own files."""

import os
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.store import index, listing
from dragoman.store.contract import BadCursor, StoreFailed
from dragoman.store.index import Index
from dragoman.store.listing import CHANGES
from dragoman.store.locks import Holder
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import child, finished, ids, listed, meta, note, tried

NAMES = ["c", "b", "a"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A store with three sessions."""
    store = SqliteStore(tmp_path / "sessions")
    for name in reversed(NAMES):
        await (await store.create(meta(name, title=f"Title {name}"))).release()
    yield store
    await store.close()


def index_file(folder: Path) -> Path:
    (found,) = (each for each in (folder / "sessions" / "index").glob("*.db") if not each.is_dir())
    return found


def deleted(folder: Path) -> None:
    index_file(folder).unlink()


def folder_deleted(folder: Path) -> None:
    shutil.rmtree(folder / "sessions" / "index")


def emptied(folder: Path) -> None:
    index_file(folder).write_bytes(b"")


def garbage(folder: Path) -> None:
    for file in (folder / "sessions" / "index").iterdir():
        file.write_bytes(os.urandom(9_000))


def cut_short(folder: Path) -> None:
    index_file(folder).write_bytes(index_file(folder).read_bytes()[:6_000])


def a_folder(folder: Path) -> None:
    file = index_file(folder)
    file.unlink()
    file.mkdir()
    (file / "something").touch()


def a_fifo(folder: Path) -> None:
    file = index_file(folder)
    file.unlink()
    os.mkfifo(file)


def a_link(folder: Path) -> None:
    file = index_file(folder)
    (folder / "elsewhere").write_text("precious")
    file.unlink()
    file.symlink_to(folder / "elsewhere")


def a_file_for_the_folder(folder: Path) -> None:
    if (folder / "sessions" / "index").is_dir():
        folder_deleted(folder)
    (folder / "sessions" / "index").write_text("?")


def another_database(folder: Path) -> None:
    file = index_file(folder)
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE about (x)")
    other.close()


def table_lost(folder: Path) -> None:
    with sqlite3.connect(index_file(folder)) as file:
        file.execute("DROP TABLE IF EXISTS left")
    file.close()


BREAKAGES = [
    *(deleted, folder_deleted, emptied, garbage, cut_short, a_folder, a_fifo, a_link),
    *(a_file_for_the_folder, another_database, table_lost),
]


@pytest.mark.parametrize("breakage", BREAKAGES)
@pytest.mark.parametrize("while_open", [True, False])
async def test_a_broken_list_is_made_again(
    store: SqliteStore, tmp_path: Path, breakage: Callable[[Path], None], while_open: bool
) -> None:
    if not while_open:
        await store.close()
        store = SqliteStore(tmp_path / "sessions")
    breakage(tmp_path)
    page = await store.list()
    assert [(each.id, each.title) for each in page.sessions] == [(name, f"Title {name}") for name in NAMES]
    await store.create(meta("d"))
    assert await listed(store) == ["d", *NAMES]
    await store.close()
    if (tmp_path / "elsewhere").exists():
        assert (tmp_path / "elsewhere").read_text() == "precious"


@pytest.mark.parametrize("breakage", BREAKAGES)
async def test_sessions_are_made_and_written_while_the_list_is_broken(
    store: SqliteStore, tmp_path: Path, breakage: Callable[[Path], None]
) -> None:
    log = await store.open("a")
    breakage(tmp_path)
    assert await tried(log, note(1)) is None
    breakage(tmp_path)
    await log.touch()
    breakage(tmp_path)
    await store.create(meta("d"))
    assert await listed(store) == ["d", "a", "c", "b"]


async def test_an_old_copy_of_the_list_is_not_believed(store: SqliteStore, tmp_path: Path) -> None:
    await store.close()
    file = index_file(tmp_path)
    shutil.copy(file, tmp_path / "copy")
    store = SqliteStore(tmp_path / "sessions")
    await store.create(meta("d"))
    await store.close()
    (tmp_path / "copy").rename(file)
    store = SqliteStore(tmp_path / "sessions")
    assert await listed(store) == ["d", *NAMES]
    await store.close()


async def test_the_cursor_of_a_list_that_was_made_again_is_refused(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE_SIZE", 2)
    cursor = (await store.list()).cursor
    assert ids(await store.list(cursor=cursor)) == ["a"]
    deleted(tmp_path)
    with pytest.raises(BadCursor):
        await store.list(cursor=cursor)


async def test_another_process_that_makes_the_list_again_loses_nothing_of_ours(
    store: SqliteStore, tmp_path: Path
) -> None:
    other = SqliteStore(tmp_path / "sessions")
    await other.list()
    deleted(tmp_path)
    await other.create(meta("d"))
    await store.create(meta("e"))
    await other.create(meta("f"))
    assert await listed(store) == await listed(other) == ["f", "e", "d", *NAMES]
    await other.close()
    await store.create(meta("g"))
    assert await listed(store) == ["g", "f", "e", "d", *NAMES]
    assert len(list((tmp_path / "sessions" / "index").glob("*.db"))) == 1


async def test_sessions_of_other_processes_appear(store: SqliteStore, tmp_path: Path) -> None:
    assert finished(child("create", tmp_path / "sessions", "x", "y")) == ["x", "y"]
    assert await listed(store) == ["y", "x", *NAMES]


async def test_a_killed_process_leaves_the_list_right(store: SqliteStore, tmp_path: Path) -> None:
    """It wrote to "a" and never told the list."""
    assert await listed(store) == NAMES
    process = child("write_and_die", tmp_path / "sessions", "a")
    finished(process)
    assert await listed(store) == ["a", "c", "b"]


async def test_a_session_taken_away_by_hand_is_not_listed(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "sessions" / "b.session").unlink()
    assert await listed(store) == ["c", "a"]


async def test_a_session_brought_by_hand_is_listed_when_it_was_opened(store: SqliteStore, tmp_path: Path) -> None:
    there = SqliteStore(tmp_path / "there")
    await there.create(meta("z"))
    await there.close()
    shutil.copy(tmp_path / "there" / "z.session", tmp_path / "sessions")
    await (await store.open("z")).release()
    assert await listed(store) == ["z", *NAMES]


async def test_a_new_start_of_the_machine_compares_the_list_with_the_files(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.close()
    shutil.copy(tmp_path / "sessions" / "a.session", tmp_path / "sessions" / "junk.session")
    (tmp_path / "sessions" / "c.session").rename(tmp_path / "kept")
    monkeypatch.setattr(index, "_boot", lambda: "another")
    store = SqliteStore(tmp_path / "sessions")
    assert await listed(store) == ["b", "a"]
    await store.close()
    (tmp_path / "kept").rename(tmp_path / "sessions" / "c.session")
    monkeypatch.setattr(index, "_boot", lambda: "a third")
    store = SqliteStore(tmp_path / "sessions")
    assert await listed(store) == NAMES
    await store.close()


async def test_one_bad_file_does_not_keep_the_list_from_being_made(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "sessions" / "b.session").write_bytes(b"garbage" * 1000)
    deleted(tmp_path)
    assert await listed(store) == ["c", "a"]


async def test_a_session_out_of_reach_is_listed_when_it_can_be_reached_again(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = store._engine._files.read_meta

    def failing(session_id: str) -> object:
        if session_id == "b":
            raise StoreFailed("the disk failed")
        return look(session_id)

    deleted(tmp_path)
    monkeypatch.setattr(store._engine._files, "read_meta", failing)
    assert await listed(store) == ["c", "a"]
    monkeypatch.undo()
    assert await listed(store) == NAMES


# -- a hundred thousand ----------------------------------------------------------------------------------------------


class NoFiles:
    """Sessions without files: the list alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ids(self) -> list[str]:
        return []

    def read_meta(self, session_id: str) -> object:
        raise AssertionError(session_id)

    def exists(self, session_id: str) -> bool:
        return True


class LongList(NamedTuple):
    """Sessions 1 to `length`; every `step`-th of them will move, until as many have as we remember."""

    found: Index
    file: sqlite3.Connection
    length: int
    step: int


@pytest.fixture(scope="module", params=[(30_000, 3), pytest.param((100_000, 9), marks=pytest.mark.slow)], ids=str)
def long_list(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> LongList:
    length, step = request.param
    folder = tmp_path_factory.mktemp("list")
    found = Index(folder / "index", NoFiles(folder), Holder(folder / "holders"))  # type: ignore[arg-type]
    found.mark("x")
    assert found._file is not None
    rows = ((f"s{n:06}", f"/{n % 100}", "[]", n, "", n, n % 10 == 0, 0) for n in range(1, length + 1))
    found._file.execute("BEGIN")
    found._file.executemany("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    found._file.execute("UPDATE about SET newest = ?", (length,))
    found._file.execute("COMMIT")
    return LongList(found, found._file, length, step)


def test_a_page_of_a_long_list_is_found_by_its_index(long_list: LongList) -> None:
    seen: list[str] = []
    long_list.file.set_trace_callback(seen.append)
    long_list.found.page(("/7",), None, "include")
    long_list.found.page((), None, "exclude")
    long_list.file.set_trace_callback(None)
    queries = [query for query in seen if query.startswith(("SELECT", "WITH"))]
    plans = [row[3] for query in queries for row in long_list.file.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert any("by_activity (archived=? AND (activity,id)<(?,?))" in plan for plan in plans), plans
    assert any("by_cwd (cwd=? AND archived=? AND (activity,id)<(?,?))" in plan for plan in plans), plans
    assert any("left_place (archived=? AND (activity,id)<(?,?))" in plan for plan in plans), plans
    # Nothing is sorted, and nothing is scanned but the single row of `about` and the few that were just found.
    assert not [plan for plan in plans if "TEMP B-TREE" in plan], plans
    scans = {plan for plan in plans if plan.startswith("SCAN")}
    assert scans <= {"SCAN about", "SCAN found", "SCAN CONSTANT ROW"}, plans


def test_a_page_stays_cheap_when_ten_thousand_have_moved(long_list: LongList) -> None:
    found, file, length, step = long_list
    first = found.page(("/7",), None, "exclude")
    moved = range(step, CHANGES * step + 1, step)
    moves = ((n // step, 0, f"s{n:06}", f"/{n % 100}", n, n % 10 == 0) for n in moved)
    file.execute("BEGIN")
    file.executemany("INSERT INTO left VALUES (?, ?, ?, ?, ?, ?)", moves)
    file.execute(
        "UPDATE sessions SET changed = created / :step, activity = :length + created / :step "
        "WHERE created % :step = 0 AND created / :step <= :changes",
        {"step": step, "length": length, "changes": CHANGES},
    )
    file.execute("UPDATE about SET changes = ?", (CHANGES,))
    file.execute("COMMIT")
    # The best of several: what the work costs, not what else the machine does.
    for cursor in (first.cursor, None):
        spent = []
        for _ in range(10):
            began = time.process_time()
            page = found.page(("/7",), cursor, "exclude")
            spent.append(time.process_time() - began)
        assert len(page.sessions) == 50
        assert min(spent) < 0.01, spent
    everything = list(first.sessions)
    cursor = first.cursor
    while cursor is not None:
        page = found.page(("/7",), cursor, "exclude")
        everything += page.sessions
        cursor = page.cursor
    assert sorted(ids(everything)) == [f"s{n:06}" for n in range(7, length + 1, 100) if n % 10]


# -- progress --------------------------------------------------------------------------------------------------------


async def test_a_caller_that_waits_for_the_list_is_told_how_far_it_is(store: SqliteStore, tmp_path: Path) -> None:
    await store.close()
    folder_deleted(tmp_path)
    told: list[tuple[int, int]] = []
    again = SqliteStore(tmp_path / "sessions", progress=lambda done, total: told.append((done, total)))
    assert await listed(again) == NAMES
    assert told == [(0, 3), (1, 3), (2, 3)]
    assert await listed(again) == NAMES
    assert len(told) == 3
    await again.close()


async def test_making_the_list_can_be_stopped_and_leaves_no_half_of_it(store: SqliteStore, tmp_path: Path) -> None:
    await store.close()
    folder_deleted(tmp_path)

    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    again = SqliteStore(tmp_path / "sessions", progress=stop)
    with pytest.raises(KeyboardInterrupt):
        await again.list()
    await again.close()
    assert list((tmp_path / "sessions" / "index").iterdir()) == []
    other = SqliteStore(tmp_path / "sessions")
    assert await listed(other) == NAMES
    await other.close()
