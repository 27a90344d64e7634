"""The list of sessions as tables: the place each has, the places they had, and what the list does not know yet.

Works on an open database, in its caller's transaction. Which file that is, and what to do when it is lost, is not known
here.

A page is cut from the list as it was when the paging began. Every change of a session's place is numbered and
remembered for a while, so the place a session had at that moment can still be told: a session that exists throughout
is listed once, wherever it has moved to.

What the list does not know yet is pending: a session is marked before its file is made, changed or taken away, and
unmarked when the list has it. If the process dies in between, the next one that asks for a page looks at the file.
"""

from collections.abc import Callable, Sequence
from sqlite3 import Connection
from typing import Final

from dragoman.store.contract import ArchiveFilter, BadCursor, SessionMeta
from dragoman.store.cursor import Cursor, filter_mark
from dragoman.store.rows import COLUMNS, columns_of, meta_of

PAGE_SIZE: Final = 50
# Changes remembered: a paging that lasts longer than so many has to begin anew.
CHANGES: Final = 10_000
FORMAT: Final = 1
_SCHEMA: Final = """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, cwd TEXT NOT NULL, directories TEXT NOT NULL, created INTEGER NOT NULL,
        title TEXT NOT NULL, activity INTEGER NOT NULL, archived INTEGER NOT NULL, changed INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX by_activity ON sessions (archived, activity DESC, id DESC, changed);
    CREATE INDEX by_cwd ON sessions (cwd, archived, activity DESC, id DESC, changed);
    -- The place a session left with a change, and the number of the change that had brought it there.
    CREATE TABLE left (
        number INTEGER PRIMARY KEY, previous INTEGER NOT NULL,
        id TEXT NOT NULL, cwd TEXT NOT NULL, activity INTEGER NOT NULL, archived INTEGER NOT NULL
    );
    CREATE INDEX left_place ON left (archived, activity DESC, id DESC, previous, cwd);
    CREATE TABLE pending (id TEXT PRIMARY KEY, holder TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX by_holder ON pending (holder);
    CREATE TABLE about (
        one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL, generation TEXT NOT NULL,
        file INTEGER NOT NULL, boot TEXT NOT NULL, changes INTEGER NOT NULL, newest INTEGER NOT NULL
    );
"""
_UNMOVED: Final = (
    f"SELECT activity, {COLUMNS} FROM sessions WHERE {{folder}} archived = ? AND (activity, id) < (?, ?) "
    "AND changed <= ? ORDER BY activity DESC, id DESC LIMIT ?"
)
# A session that was archived after the paging began is no longer wanted where archived ones are not.
_MOVED: Final = (
    f"SELECT left.activity, {', '.join(f'sessions.{name}' for name in COLUMNS.split(', '))} "
    "FROM left INDEXED BY left_place CROSS JOIN sessions ON sessions.id = left.id "
    "WHERE left.archived = ? AND (left.activity, left.id) < (?, ?) AND left.number > ? AND left.previous <= ? "
    "{folder} {filter} ORDER BY left.activity DESC, left.id DESC LIMIT ?"
)
# The holders of pending sessions, without a look at each of what may be ten thousand.
_HOLDERS: Final = (
    "WITH RECURSIVE found (holder) AS (SELECT min(holder) FROM pending UNION ALL "
    "SELECT (SELECT min(holder) FROM pending WHERE holder > found.holder) FROM found WHERE found.holder IS NOT NULL) "
    "SELECT holder FROM found WHERE holder IS NOT NULL"
)
# The holder of sessions that could not be looked at when the list was made; so many are tried again with each page.
_UNHELD: Final = ""
_TRIED_AGAIN: Final = 20


def create(file: Connection, generation: str, inode: int, boot: str) -> None:
    """Make the tables of an empty list, with the file they are in (`inode`) and the start of the machine (`boot`)."""
    for statement in _SCHEMA.split(";"):
        file.execute(statement)
    about = (1, FORMAT, generation, inode, boot, 0, 0)
    file.execute("INSERT INTO about VALUES (?, ?, ?, ?, ?, ?, ?)", about)


# -- sessions --------------------------------------------------------------------------------------------------------


def read_meta(file: Connection, session_id: str) -> SessionMeta | None:
    """Return what the list has of a session; None: nothing."""
    row = file.execute(f"SELECT {COLUMNS} FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else meta_of(row)


def all_ids(file: Connection) -> set[str]:
    """Return the ids of all sessions in the list."""
    return {session_id for (session_id,) in file.execute("SELECT id FROM sessions")}


def newest_activity(file: Connection) -> int:
    """Return the latest activity of any session."""
    (found,) = file.execute("SELECT newest FROM about").fetchone()
    return int(found)


def put(file: Connection, meta: SessionMeta) -> None:
    """Add a session, or replace what the list has of it; number the change if its place is another one."""
    row = file.execute("SELECT cwd, activity, archived, changed FROM sessions WHERE id = ?", (meta.id,)).fetchone()
    # Only a change of place gets a number; a new title changes what is shown, and is shown in a paging that has begun.
    if row is None or row[1:3] != (meta.activity, int(meta.archived)):
        number = _next_change(file)
        if row is not None:
            cwd, activity, archived, changed = row
            place = (number, changed, meta.id, cwd, activity, archived)
            file.execute("INSERT INTO left VALUES (?, ?, ?, ?, ?, ?)", place)
    else:
        # It has not moved, so a cursor that was given before still finds it where it was.
        number = row[3]
    file.execute(
        f"INSERT OR REPLACE INTO sessions ({COLUMNS}, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*columns_of(meta), number),
    )
    file.execute("UPDATE about SET newest = max(newest, ?)", (meta.activity,))
    unmark(file, meta.id)


def drop(file: Connection, session_id: str) -> None:
    """Remove a session from the list."""
    file.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    unmark(file, session_id)


def _next_change(file: Connection) -> int:
    (number,) = file.execute("SELECT changes + 1 FROM about").fetchone()
    file.execute("UPDATE about SET changes = ?", (number,))
    file.execute("DELETE FROM left WHERE number <= ?", (number - CHANGES,))
    return int(number)


# -- pages -----------------------------------------------------------------------------------------------------------


def page(
    file: Connection, place: Cursor | None, folders: Sequence[str], archived: ArchiveFilter
) -> tuple[list[SessionMeta], Cursor | None]:
    """Return the sessions behind a place, in the order of the moment when the paging began, and the next place.

    Those of these folders; of all folders, if there are none.
    """
    place = _check_place(file, place, folders, archived)
    marks = ", ".join("?" * len(folders))
    unmoved = _UNMOVED.format(folder=f"cwd IN ({marks}) AND" if folders else "")
    moved = _MOVED.format(
        folder=f"AND left.cwd IN ({marks})" if folders else "",
        filter="" if archived == "include" else f"AND sessions.archived = {int(archived == 'only')}",
    )
    found: list[tuple[int, SessionMeta]] = []
    for then in {"exclude": (0,), "only": (1,), "include": (0, 1)}[archived]:
        here = (then, place.activity, place.id, place.change)
        rows = file.execute(unmoved, (*folders, *here, PAGE_SIZE + 1)).fetchall()
        rows += file.execute(moved, (*here, place.change, *folders, PAGE_SIZE + 1)).fetchall()
        found.extend((activity, meta_of(columns)) for activity, *columns in rows)
    # Two queries for each state, of those that have not moved since the paging began and of those that have; together
    # they are the list of that moment, which no single index has.
    found.sort(key=lambda each: (each[0], each[1].id), reverse=True)
    shown = [meta for _, meta in found[:PAGE_SIZE]]
    if len(found) <= PAGE_SIZE:
        return shown, None
    activity, last = found[PAGE_SIZE - 1]
    return shown, place._replace(activity=activity, id=last.id)


def _check_place(file: Connection, place: Cursor | None, folders: Sequence[str], archived: ArchiveFilter) -> Cursor:
    """Return the place, or the beginning without one; raise `BadCursor` for one of another list, or too old a one."""
    generation, changes = file.execute("SELECT generation, changes FROM about").fetchone()
    mark = filter_mark(folders, archived)
    if place is None:
        return Cursor(generation, mark, changes, 2**62, "")
    if (place.generation, place.filter) != (generation, mark):
        raise BadCursor("the cursor does not belong to this list")
    # Older moves are deleted, so the list of that moment cannot be told any more. A number from the future is a cursor
    # of a list that was restored from a backup.
    if not changes - CHANGES <= place.change <= changes:
        raise BadCursor("the list has changed too much; begin again")
    return place


# -- what is pending -------------------------------------------------------------------------------------------------


def mark(file: Connection, session_id: str, holder: str = _UNHELD) -> None:
    """Mark a session as pending: `holder` is about to change its file, or, without one, it could not be read."""
    file.execute("INSERT OR REPLACE INTO pending VALUES (?, ?)", (session_id, holder))


def unmark(file: Connection, session_id: str) -> None:
    """Unmark a session: the list has what its file has."""
    file.execute("DELETE FROM pending WHERE id = ?", (session_id,))


def orphaned_ids(file: Connection, lives: Callable[[str], bool]) -> list[str]:
    """Return the pending sessions whose holder has died."""
    found: list[str] = []
    for (holder,) in file.execute(_HOLDERS).fetchall():
        if not lives(holder):
            count = _TRIED_AGAIN if holder == _UNHELD else -1
            rows = file.execute("SELECT id FROM pending WHERE holder = ? LIMIT ?", (holder, count))
            found.extend(session_id for (session_id,) in rows)
    return found
