"""The list of sessions: newest first, in pages, stable while sessions change. Used only from the writer thread.

It can be thrown away: everything in it also stands in the sessions' own files, and it is made again from them when it
is lost or wrong.

A page is cut from the list as it was when the paging began. Every change of a session's place is numbered and
remembered for a while, so the place a session had at that moment can still be told: a session that exists throughout
is listed once, wherever it has moved to.
"""

import base64
import binascii
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from dragoman.store.contract import ArchiveFilter, BadCursor, Page, SessionMeta, StoreFailed
from dragoman.store.files import columns_of, meta_of, told_plainly

PAGE_SIZE: Final = 50
# Moves remembered: a paging that lasts longer than so many changes has to begin anew.
MOVES: Final = 10_000
_BUSY_SECONDS: Final = 5.0
_FORMAT: Final = 1
_SCHEMA: Final = """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, cwd TEXT NOT NULL, directories TEXT NOT NULL, title TEXT NOT NULL,
        created INTEGER NOT NULL, activity INTEGER NOT NULL, archived INTEGER NOT NULL, born INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX by_activity ON sessions (archived, activity DESC, id DESC);
    CREATE INDEX by_cwd ON sessions (cwd, archived, activity DESC, id DESC);
    CREATE TABLE moves (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, activity INTEGER NOT NULL, archived INTEGER NOT NULL
    );
    CREATE TABLE about (one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL, generation TEXT NOT NULL);
"""
_COLUMNS: Final = "id, cwd, directories, title, created, activity, archived"


class _Cursor(NamedTuple):
    """Where a page ended, and what the list was like when the paging began."""

    generation: str
    change: int
    activity: int
    id: str
    cwd: str | None
    archived: str


class Index:
    """The list, in a file of its own beside the sessions."""

    def __init__(self, path: Path, every_session: Callable[[], Iterable[SessionMeta]]) -> None:
        self._path = path
        self._every_session = every_session
        self._file: sqlite3.Connection | None = None
        self._generation = ""

    def put(self, meta: SessionMeta) -> None:
        """Add a session, or tell what has changed of it."""
        with told_plainly():
            file = self._opened()
            file.execute("BEGIN IMMEDIATE")
            try:
                self._move(file, meta.id)
                (born,) = file.execute("SELECT coalesce(max(number), 0) FROM moves").fetchone()
                file.execute(
                    f"INSERT INTO sessions ({_COLUMNS}, born) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
                    "ON CONFLICT (id) DO UPDATE SET title = excluded.title, activity = excluded.activity, "
                    "archived = excluded.archived, directories = excluded.directories",
                    (*columns_of(meta), born + 1),
                )
                file.execute("COMMIT")
            except BaseException:
                if file.in_transaction:
                    file.execute("ROLLBACK")
                raise

    def drop(self, session_id: str) -> None:
        """A session is gone."""
        with told_plainly():
            self._opened().execute("DELETE FROM sessions WHERE id = ?", (session_id,))

    def newest(self) -> int:
        """The latest activity of any session."""
        with told_plainly():
            (latest,) = self._opened().execute("SELECT coalesce(max(activity), 0) FROM sessions").fetchone()
        return int(latest)

    def page(self, cwd: str | None, cursor: str | None, archived: ArchiveFilter) -> Page:
        """The next page."""
        with told_plainly():
            file = self._opened()
            place = self._begin(file, cwd, archived) if cursor is None else self._place(file, cursor, cwd, archived)
            found = self._unmoved(file, place) + self._moved(file, place)
            found.sort(key=lambda meta: (meta.activity, meta.id), reverse=True)
            shown = found[:PAGE_SIZE]
            if len(found) <= PAGE_SIZE:
                return Page([self._today(file, meta) for meta in shown], None)
            last = shown[-1]
            after = place._replace(activity=last.activity, id=last.id)
            return Page([self._today(file, meta) for meta in shown], _written(after))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    # -- pages -------------------------------------------------------------------------------------------------------

    def _begin(self, file: sqlite3.Connection, cwd: str | None, archived: str) -> _Cursor:
        (change,) = file.execute("SELECT coalesce(max(number), 0) FROM moves").fetchone()
        return _Cursor(self._generation, change, 2**62, "\x7f", cwd, archived)

    def _place(self, file: sqlite3.Connection, cursor: str, cwd: str | None, archived: str) -> _Cursor:
        place = _read(cursor)
        (oldest,) = file.execute("SELECT coalesce(min(number), 0) FROM moves").fetchone()
        if place.generation != self._generation or (place.cwd, place.archived) != (cwd, archived):
            raise BadCursor("the cursor does not belong to this list")
        if oldest > place.change + 1:
            raise BadCursor("the list has changed too much; begin again")
        return place

    def _unmoved(self, file: sqlite3.Connection, place: _Cursor) -> list[SessionMeta]:
        """Sessions that stand where they stood when the paging began."""
        found: list[SessionMeta] = []
        for archived in _wanted(place.archived):
            in_folder = "" if place.cwd is None else "cwd = ? AND "
            folder = () if place.cwd is None else (place.cwd,)
            rows = file.execute(
                f"SELECT {_COLUMNS} FROM sessions WHERE {in_folder}archived = ? AND (activity, id) < (?, ?) "
                "AND born <= ? AND id NOT IN (SELECT id FROM moves WHERE number > ?) "
                "ORDER BY activity DESC, id DESC LIMIT ?",
                (*folder, archived, place.activity, place.id, place.change + 1, place.change, PAGE_SIZE + 1),
            )
            found.extend(meta_of(row) for row in rows)
        return found

    def _moved(self, file: sqlite3.Connection, place: _Cursor) -> list[SessionMeta]:
        """Sessions that have moved since: by the place they had then."""
        rows = file.execute(
            f"SELECT {', '.join('s.' + name for name in _COLUMNS.split(', '))}, m.activity, m.archived "
            "FROM (SELECT id, min(number) AS first FROM moves WHERE number > ? GROUP BY id) AS f "
            "JOIN moves AS m ON m.number = f.first JOIN sessions AS s ON s.id = f.id WHERE s.born <= ?",
            (place.change, place.change + 1),
        )
        wanted = _wanted(place.archived)
        found = []
        for *row, activity, archived in rows:
            meta = meta_of(row)
            then = meta._replace(activity=activity, archived=bool(archived))
            in_folder = place.cwd is None or then.cwd == place.cwd
            if in_folder and int(archived) in wanted and (activity, then.id) < (place.activity, place.id):
                found.append(then)
        return found

    def _today(self, file: sqlite3.Connection, meta: SessionMeta) -> SessionMeta:
        row = file.execute(f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", (meta.id,)).fetchone()
        return meta if row is None else meta_of(row)

    def _move(self, file: sqlite3.Connection, session_id: str) -> None:
        """Remember the place a session is about to leave."""
        row = file.execute("SELECT activity, archived FROM sessions WHERE id = ?", (session_id,)).fetchone()
        if row is not None:
            moved = file.execute("INSERT INTO moves (id, activity, archived) VALUES (?, ?, ?)", (session_id, *row))
            file.execute("DELETE FROM moves WHERE number <= ?", ((moved.lastrowid or 0) - MOVES,))

    # -- the file ----------------------------------------------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection:
        if self._file is not None and not self._path.exists():
            self.close()  # somebody has thrown it away
        if self._file is None:
            try:
                self._file = self._open()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError) and "unable to open" in str(error):
                    raise
                self._file = self._anew()
        return self._file

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = sqlite3.connect(self._path, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False)
        try:
            os.chmod(self._path, 0o600)
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute("BEGIN IMMEDIATE")
            try:
                if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone():
                    self._fill(file)
                format_, self._generation = file.execute("SELECT format, generation FROM about").fetchone()
                file.execute("COMMIT")
            except BaseException:
                if file.in_transaction:
                    file.execute("ROLLBACK")
                raise
            if format_ != _FORMAT:
                raise sqlite3.DatabaseError("another format")
        except BaseException:
            file.close()
            raise
        return file

    def _fill(self, file: sqlite3.Connection) -> None:
        """Make the list from the sessions' own files."""
        for statement in _SCHEMA.split(";"):
            file.execute(statement)
        file.execute("INSERT INTO about VALUES (1, ?, ?)", (_FORMAT, os.urandom(8).hex()))
        rows = ((*columns_of(meta), 0) for meta in self._every_session())
        file.executemany(f"INSERT OR REPLACE INTO sessions ({_COLUMNS}, born) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def _anew(self) -> sqlite3.Connection:
        for suffix in ("", "-wal", "-shm"):
            try:
                os.unlink(f"{self._path}{suffix}")
            except FileNotFoundError:
                pass
        return self._open()


def _wanted(archived: str) -> tuple[int, ...]:
    return {"exclude": (0,), "only": (1,)}.get(archived, (0, 1))


def _written(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(list(cursor))).decode("ascii").rstrip("=")


def _read(cursor: str) -> _Cursor:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return msgspec.convert(msgspec.json.decode(text), _Cursor)
    except (ValueError, binascii.Error, RecursionError) as error:
        raise BadCursor("that is no cursor of ours") from error


__all__ = ["Index", "StoreFailed"]
