"""Store files on odd file systems: without links, without rights, with others looking."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.store import connections, files
from dragoman.store.contract import SessionDamaged, SessionHeld, StoreFailed
from dragoman.store.files import SessionFiles
from dragoman.store.locks import Holder
from dragoman.store.rows import meta_in
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import meta, note, numbers_in, write


def without_links(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_a_file_system_without_links_replaces_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    tmp_path: Path, sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", without_links)
    log = await sqlite_store.create(meta("sess_1"))
    await write(log, note(1))
    await log.release()
    damage_metadata(tmp_path / "sessions" / "sess_1.session")
    log = await sqlite_store.open("sess_1")
    assert log.salvaged == "the session's file was damaged; the log is whole"
    assert await numbers_in(log.read()) == [1]


def damage_metadata(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE session SET checksum = checksum + 1")
        file.commit()


async def test_a_session_without_its_row_is_damaged(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    await (await sqlite_store.create(meta("sess_1"))).release()
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


async def test_no_more_files_stay_open_than_so_many(sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_OPEN_FILES", 2)
    logs = [await sqlite_store.create(meta(f"sess_{number}")) for number in range(4)]
    for log in logs:
        await write(log, note(1))
    assert len(sqlite_store._engine._files._open) == 2
    assert [await numbers_in(log.read()) for log in logs] == [[1]] * 4


async def test_a_session_of_another_store_is_not_changed(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    other = SqliteStore(tmp_path / "sessions")
    await other.create(meta("sess_1"))
    with pytest.raises(SessionHeld):
        await sqlite_store.change("sess_1", title="mine")
    await other.close()
    assert (await sqlite_store.change("sess_1", title="mine")).title == "mine"


def test_a_session_that_another_process_opens_meanwhile_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = Holder(tmp_path / "holders")
    kept = SessionFiles(tmp_path / "sessions", holder)
    kept.create(meta("sess_1", title="here"))
    kept.release("sess_1")
    kept.close()
    looks = [True, False]
    monkeypatch.setattr(files, "is_at_rest", lambda path: looks.pop(0))
    assert kept.read_meta("sess_1").title == "here"
    assert looks == []
    holder.end()


def test_a_file_that_may_not_be_taken_away_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = SessionFiles(tmp_path, Holder(tmp_path / "holders"))
    (tmp_path / "sess_1.session").touch()
    monkeypatch.setattr(os, "unlink", without_links)
    with pytest.raises(StoreFailed, match="Operation not permitted"):
        kept.remove("sess_1")
