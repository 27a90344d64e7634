"""Following, releasing and closing logs; cursors and entries that are not ours."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.store.contract import BadCursor, StoreFailed
from dragoman.store.cursor import Cursor, decode_cursor, encode_cursor
from dragoman.store.entries import decode_extras
from dragoman.store.rows import meta_in
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.word import Extras
from tests.store.scenes import meta, note, write


async def test_two_follow_one_log(sqlite_store: SqliteStore) -> None:
    log = await sqlite_store.create(meta("sess_1"))

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
    await sqlite_store.length("sess_1")  # behind the first reads of both
    await write(log, note(2))
    assert await asyncio.gather(*followers) == [[1, 2], [1, 2]]


async def test_a_log_that_ends_while_it_is_released_is_released_once(sqlite_store: SqliteStore) -> None:
    log = await sqlite_store.create(meta("sess_1"))
    await asyncio.gather(log.release(), log.release())
    await log.release()
    await (await sqlite_store.open("sess_1")).release()


async def test_a_session_whose_opening_was_cancelled_is_released(sqlite_store: SqliteStore) -> None:
    await (await sqlite_store.create(meta("sess_1"))).release()
    for name in ("sess_1", "sess_none"):
        opening = asyncio.ensure_future(sqlite_store.open(name))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
    while sqlite_store._opening:
        await sqlite_store.ids()
    assert (await sqlite_store.open("sess_1")).meta.id == "sess_1"


async def test_a_store_is_closed_twice(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    log = await store.create(meta("sess_1"))
    await store.close()
    await store.close()
    with pytest.raises(StoreFailed):
        await log.touch()
    again = SqliteStore(tmp_path)
    assert (await again.open("sess_1")).meta.id == "sess_1"  # the first close gave its lease back
    await again.close()


@pytest.mark.parametrize(("change", "activity"), [(-1, 0), (0, -1), (2**63, 0), (0, 2**63)])
def test_a_cursor_beyond_what_a_list_can_have_is_none_of_ours(change: int, activity: int) -> None:
    assert decode_cursor(encode_cursor(Cursor("g", "f", 0, 0, "x"))) == Cursor("g", "f", 0, 0, "x")
    with pytest.raises(BadCursor):
        decode_cursor(encode_cursor(Cursor("g", "f", change, activity, "x")))


def test_extras_in_a_log_are_objects() -> None:
    assert decode_extras(Extras, {"a": 1}) == Extras({"a": 1})
    assert decode_extras(object, 1) == 1
    with pytest.raises(ValueError, match="Extras has no place in a log"):
        decode_extras(Extras, [1])


async def test_a_session_of_another_release_is_not_read(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    await (await sqlite_store.create(meta("sess_1"))).release()
    with closing(sqlite3.connect(tmp_path / "sessions" / "sess_1.session")) as file:
        file.execute("UPDATE session SET format = format + 1")
        with pytest.raises(StoreFailed, match="written by another release"):
            meta_in(file)
