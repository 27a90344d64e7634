"""The list of sessions, in pages that stay what they are while sessions move.

A page is cut from the list as it was when the paging began. Every move of a session is numbered, and the place that it
left is remembered for a while; so the place that a session had at that moment can still be told. The row `about`
counts the moves, and has the latest activity of any session, so that every later one is later also where clocks differ.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.store.contract import ArchiveFilter, BadCursor, SessionMeta, SessionPage, StoreFailed
from dragoman.store.cursor import Cursor, decode_cursor, encode_cursor, filter_mark
from dragoman.surrogates import replace_lone_surrogates

if TYPE_CHECKING:
    from asyncpg import Record

    from dragoman.store.postgres.database import AnyConnection

PAGE_SIZE: Final = 50
# Moves remembered: a paging that lasts longer than so many has to begin anew.
CHANGES: Final = 10_000
COLUMNS: Final = "id, cwd, directories, created, title, activity, archived"
_NEWEST: Final = 2**62
# The lock of this one row is held until the transaction ends: numbers are given in the order of commits, so a paging
# that has seen a number has seen all before it.
_COUNT: Final = """
    UPDATE dragoman.about SET newest = greatest($1, newest + 1), changes = changes + 1 RETURNING newest, changes
"""
_COUNT_MOVE: Final = "UPDATE dragoman.about SET changes = changes + 1 RETURNING changes"
_LEAVE: Final = """
    INSERT INTO dragoman.place_left SELECT $2, changed, id, activity, archived FROM dragoman.session WHERE id = $1
"""
_FORGET: Final = "DELETE FROM dragoman.place_left WHERE number <= $1"
_UNMOVED: Final = f"""
    SELECT activity AS place, {COLUMNS} FROM dragoman.session
    WHERE archived = $1 AND (activity, id) < ($2, $3) AND changed <= $4 AND $5::text[] IS NULL
    ORDER BY activity DESC, id DESC LIMIT $6
"""
# Each folder by itself, in the order of its index: otherwise a folder with few sessions is sought among all of them.
_UNMOVED_IN_FOLDERS: Final = f"""
    SELECT found.* FROM unnest($5::text[]) AS folder (name) CROSS JOIN LATERAL (
        SELECT activity AS place, {COLUMNS} FROM dragoman.session
        WHERE cwd = folder.name AND archived = $1 AND (activity, id) < ($2, $3) AND changed <= $4
        ORDER BY activity DESC, id DESC LIMIT $6
    ) AS found
"""
# A session that was archived after the paging began is no longer wanted where archived ones are not.
_MOVED: Final = f"""
    SELECT place_left.activity AS place, {", ".join(f"session.{name}" for name in COLUMNS.split(", "))}
    FROM dragoman.place_left JOIN dragoman.session USING (id)
    WHERE place_left.archived = $1 AND (place_left.activity, place_left.id) < ($2, $3)
    AND place_left.number > $4 AND place_left.previous <= $4
    AND ($5::text[] IS NULL OR cwd = ANY($5)) AND ($7::boolean IS NULL OR session.archived = $7)
    ORDER BY place_left.activity DESC, place_left.id DESC LIMIT $6
"""


def meta_of(row: "Record") -> SessionMeta:
    """Return the metadata in a row."""
    id, cwd, directories, created, title, activity, archived = (row[name] for name in COLUMNS.split(", "))
    return SessionMeta(id, cwd, tuple(msgspec.json.decode(directories)), title, created, activity, archived)


def columns_of(meta: SessionMeta) -> tuple[object, ...]:
    """Return the metadata as a row. Raise `StoreFailed` for a folder that no text of the database can name."""
    if "\0" in "".join((meta.cwd, *meta.directories)):
        raise StoreFailed("a folder has a null character in its name")
    folders = msgspec.json.encode(list(meta.directories)).decode()
    return meta.id, meta.cwd, folders, meta.created, storable_title(meta.title), meta.activity, meta.archived


def storable_title(title: str) -> str:
    """Return a title as the database can have it: it knows neither null nor halves of characters."""
    return replace_lone_surrogates(title).replace("\0", "\ufffd")


async def count_activity(connection: "AnyConnection", now: int) -> tuple[int, int]:
    """Return the time of an activity, later than any before, and the number of the move that it makes."""
    (row,) = await connection.fetch(_COUNT, now)
    return row["newest"], row["changes"]


# A restored session may be older than the newest, or, from a machine whose clock is ahead, younger than now.
async def count_restored(connection: "AnyConnection", activity: int) -> int:
    """Return the number of the move of a session that was active then: later ones are later than it is."""
    query = "UPDATE dragoman.about SET newest = greatest($1::bigint, newest), changes = changes + 1 RETURNING changes"
    return int(await connection.fetchval(query, activity))


async def count_move(connection: "AnyConnection") -> int:
    """Return the number of a move."""
    return int(await connection.fetchval(_COUNT_MOVE))


async def leave_place(connection: "AnyConnection", session_id: str, number: int) -> None:
    """Remember the place of a session, which it is about to leave with this move."""
    await connection.execute(_LEAVE, session_id, number)
    # Now and then: forgetting costs more than remembering.
    if number % 100 == 0:
        await connection.execute(_FORGET, number - CHANGES)


async def page(
    connection: "AnyConnection", folders: Sequence[str], cursor: str | None, archived: ArchiveFilter
) -> SessionPage:
    """Return the page behind a cursor, or the first one. In a transaction that sees one moment. Raise `BadCursor`."""
    place = await _check(connection, None if cursor is None else decode_cursor(cursor), folders, archived)
    # Two queries for each state: sessions that have not moved since the paging began, and those that have, where they
    # were. Together they are the list of that moment, which no index has.
    found: list[tuple[int, SessionMeta]] = []
    wanted = None if archived == "include" else archived == "only"
    for state in {"exclude": (False,), "only": (True,), "include": (False, True)}[archived]:
        # A folder once, also where it is named twice.
        names = list(dict.fromkeys(folders)) or None
        here = (state, place.activity, place.id, place.change, names, PAGE_SIZE + 1)
        rows = await connection.fetch(_UNMOVED if names is None else _UNMOVED_IN_FOLDERS, *here)
        rows += await connection.fetch(_MOVED, *here, wanted)
        found.extend((row["place"], meta_of(row)) for row in rows)
    found.sort(key=lambda each: (each[0], each[1].id), reverse=True)
    # One more than a page was asked for: whether there is another page is known without asking again.
    shown = [meta for _, meta in found[:PAGE_SIZE]]
    if len(found) <= PAGE_SIZE:
        return SessionPage(shown, None)
    activity, last = found[PAGE_SIZE - 1]
    return SessionPage(shown, encode_cursor(place._replace(activity=activity, id=last.id)))


async def _check(
    connection: "AnyConnection", place: Cursor | None, folders: Sequence[str], archived: ArchiveFilter
) -> Cursor:
    """Return the place, or the beginning without one; raise `BadCursor` for one of another list, or too old a one."""
    (about,) = await connection.fetch("SELECT generation, changes FROM dragoman.about")
    mark = filter_mark(folders, archived)
    if place is None:
        return Cursor(about["generation"], mark, about["changes"], _NEWEST, "")
    if (place.generation, place.filter) != (about["generation"], mark):
        raise BadCursor("the cursor does not belong to this list")
    # Older moves are forgotten. A number from the future is a cursor of a database that was restored from a backup.
    if not about["changes"] - CHANGES <= place.change <= about["changes"]:
        raise BadCursor("the list has changed too much; begin again")
    return place
