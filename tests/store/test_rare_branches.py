"""Ways through the store that need a rare world: no links, no time, another process in the wrong moment."""

import asyncio
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from dragoman.store import connections, files, locks, salvage
from dragoman.store.contract import BadCursor, SessionDamaged, SessionHeld, StoreFailed
from dragoman.store.cursors import Cursor, read_cursor, written_cursor
from dragoman.store.entries import decode_extras
from dragoman.store.failures import is_damage, told_plainly
from dragoman.store.files import SessionFiles
from dragoman.store.locks import Holder, locked
from dragoman.store.rows import meta_in
from dragoman.store.sqlite import SqliteStore
from dragoman.store.writer import Writer
from dragoman.vocabulary.word import Extras
from tests.store.scenes import meta, note, numbers_in, write


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "sessions")
    yield store
    await store.close()


# -- files ---------------------------------------------------------------------------------------------------------


def without_links(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_a_file_system_without_links_takes_nobodys_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", without_links)
    new, there = tmp_path / "new", tmp_path / "there"
    new.write_text("new")
    there.write_text("old")
    with pytest.raises(PermissionError):
        connections.put_in_place(new, there)
    assert there.read_text() == "old"
    connections.put_in_place(new, tmp_path / "free")
    assert (tmp_path / "free").read_text() == "new"


async def test_a_session_is_made_and_salvaged_without_links(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", without_links)
    log = await store.create(meta("sess_1"))
    await write(log, note(1))
    await log.release()
    damage_metadata(tmp_path / "sessions" / "sess_1.session")
    log = await store.open("sess_1")
    assert log.salvaged == "the session's file was damaged; the log is whole"
    assert await numbers_in(log.read()) == [1]


def damage_metadata(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE session SET checksum = checksum + 1")
        file.commit()


async def test_a_session_without_its_row_is_damaged(tmp_path: Path, store: SqliteStore) -> None:
    await (await store.create(meta("sess_1"))).release()
    with closing(sqlite3.connect(tmp_path / "sessions" / "sess_1.session")) as file:
        assert meta_in(file).id == "sess_1"
        file.execute("DELETE FROM session")
        with pytest.raises(SessionDamaged):
            meta_in(file)


def test_a_file_that_may_not_be_written_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may do everything
    with pytest.raises(PermissionError):
        connections.connect(tmp_path / "x")


def test_a_connection_that_cannot_be_closed_is_left_alone() -> None:
    file = sqlite3.connect(":memory:")
    threading_error: list[BaseException] = []

    def close_elsewhere() -> None:
        try:
            connections.close(file)
        except BaseException as error:
            threading_error.append(error)

    thread = threading.Thread(target=close_elsewhere)
    thread.start()
    thread.join()
    file.close()
    assert threading_error == []


async def test_no_more_files_stay_open_than_so_many(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_OPEN_FILES", 2)
    logs = [await store.create(meta(f"sess_{number}")) for number in range(4)]
    for log in logs:
        await write(log, note(1))
    assert len(store._keeper._files._open) == 2
    assert [await numbers_in(log.read()) for log in logs] == [[1]] * 4


async def test_a_session_of_another_store_is_not_changed(tmp_path: Path, store: SqliteStore) -> None:
    other = SqliteStore(tmp_path / "sessions")
    await other.create(meta("sess_1"))
    with pytest.raises(SessionHeld):
        await store.change("sess_1", title="mine")
    await other.close()
    assert (await store.change("sess_1", title="mine")).title == "mine"


def test_a_session_that_somebody_opens_while_we_look_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = Holder(tmp_path / "holders")
    kept = SessionFiles(tmp_path / "sessions", holder)
    kept.create(meta("sess_1", title="here"))
    kept.release("sess_1")
    kept.close()
    looks = [True, False]
    monkeypatch.setattr(files, "is_at_rest", lambda path: looks.pop(0))
    assert kept.look("sess_1").title == "here"
    assert looks == []
    holder.end()


def test_a_file_that_may_not_be_taken_away_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = SessionFiles(tmp_path, Holder(tmp_path / "holders"))
    (tmp_path / "sess_1.session").touch()
    monkeypatch.setattr(os, "unlink", without_links)
    with pytest.raises(StoreFailed, match="Operation not permitted"):
        kept.remove("sess_1")


# -- salvage: a disk that fails is no damage -----------------------------------------------------------------------


class FailingDisk:
    """A connection to a file on a disk that fails."""

    def execute(self, *_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error


def test_nothing_is_salvaged_from_a_disk_that_fails() -> None:
    with pytest.raises(sqlite3.OperationalError):
        salvage._meta(FailingDisk(), lambda holder: False)  # type: ignore[arg-type]
    with pytest.raises(sqlite3.OperationalError):
        salvage._readable(FailingDisk())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "damage"),
    [
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), True),
        (sqlite3.OperationalError("Could not decode to UTF-8"), True),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), False),
        (sqlite3.Error("anything"), False),
    ],
)
def test_pythons_own_complaints_are_told_apart(error: Exception, damage: bool) -> None:
    assert is_damage(error) is damage


def test_what_cannot_be_a_row_is_told_plainly() -> None:
    with pytest.raises(StoreFailed, match="that cannot be stored"), told_plainly():
        raise OverflowError


# -- locks ---------------------------------------------------------------------------------------------------------


def test_who_waits_too_long_for_the_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.0)
    busy = pytest.raises(StoreFailed, match="keeps the session store busy")
    with locked(tmp_path, alone=True), busy, locked(tmp_path, alone=False):
        raise AssertionError


def test_who_waits_gets_the_folder_when_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        os.close(other)

    monkeypatch.setattr(time, "sleep", pause)
    with locked(tmp_path, alone=True):
        assert len(waited) == 1


def test_a_name_that_is_cleaned_away_too_early_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same, asked = locks.same_file, []

    def first_gone(path: Path, identity: os.stat_result) -> bool:
        asked.append(path)
        if len(asked) == 1:
            path.unlink()
        return same(path, identity)

    monkeypatch.setattr(locks, "same_file", first_gone)
    holder = Holder(tmp_path)
    assert holder.name == asked[1].name
    assert len(asked) == 2
    assert os.listdir(tmp_path) == [holder.name]
    holder.end()


def test_a_name_that_another_looks_at_just_now_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, tries = fcntl.flock, []

    def first_busy(fd: int, kind: int) -> None:
        tries.append(fd)
        if len(tries) == 1:
            raise BlockingIOError
        lock(fd, kind)

    monkeypatch.setattr(fcntl, "flock", first_busy)
    holder = Holder(tmp_path)
    assert holder.name
    assert len(tries) == 2
    holder.end()


# -- the writer ----------------------------------------------------------------------------------------------------


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
        writer.tell(gone, lambda: pytest.fail("nobody is there"))
        writer.tell(here, told.set)

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
        writer.tell(here, lambda: done(number))
        if number == 2:
            time.sleep(0.01)  # longer than anybody is kept waiting
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


# -- logs ----------------------------------------------------------------------------------------------------------


async def test_two_follow_one_log(store: SqliteStore) -> None:
    log = await store.create(meta("sess_1"))

    async def first_numbers() -> list[object]:
        found: list[object] = []
        async for records in log.tail():
            found += [record.entry.value for record in records]  # type: ignore[union-attr]
            if len(found) == 2:
                break
        return found

    await write(log, note(1))
    followers = [asyncio.ensure_future(first_numbers()) for _ in range(2)]
    await asyncio.sleep(0)  # both have begun
    await store.length("sess_1")  # behind the first reads of both
    await write(log, note(2))
    assert await asyncio.gather(*followers) == [[1, 2], [1, 2]]


async def test_a_log_that_ends_while_it_is_released_is_released_once(store: SqliteStore) -> None:
    log = await store.create(meta("sess_1"))
    await asyncio.gather(log.release(), log.release())
    await log.release()
    await (await store.open("sess_1")).release()


async def test_a_session_that_nobody_waits_for_any_more_is_let_go(store: SqliteStore) -> None:
    await (await store.create(meta("sess_1"))).release()
    for name in ("sess_1", "sess_none"):
        opening = asyncio.ensure_future(store.open(name))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
    while store._opening:
        await store.names()
    assert (await store.open("sess_1")).meta.id == "sess_1"


async def test_a_store_is_closed_twice(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.create(meta("sess_1"))
    await store.close()
    await store.close()


# -- small things --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "activity"), [(-1, 0), (0, -1), (2**63, 0), (0, 2**63)])
def test_a_cursor_beyond_what_a_list_can_have_is_none_of_ours(change: int, activity: int) -> None:
    assert read_cursor(written_cursor(Cursor("g", "f", 0, 0, "x"))) == Cursor("g", "f", 0, 0, "x")
    with pytest.raises(BadCursor):
        read_cursor(written_cursor(Cursor("g", "f", change, activity, "x")))


def test_extras_in_a_log_are_objects() -> None:
    assert decode_extras(Extras, {"a": 1}) == Extras({"a": 1})
    assert decode_extras(object, 1) == 1
    with pytest.raises(ValueError, match="Extras has no place in a log"):
        decode_extras(Extras, [1])


async def test_a_session_of_another_release_is_not_read(tmp_path: Path, store: SqliteStore) -> None:
    await (await store.create(meta("sess_1"))).release()
    with closing(sqlite3.connect(tmp_path / "sessions" / "sess_1.session")) as file:
        file.execute("UPDATE session SET format = format + 1")
        with pytest.raises(StoreFailed, match="written by another release"):
            meta_in(file)
