"""The list of sessions: newest first, in pages, stable while sessions change. Used only from the writer thread.

It can be thrown away: everything in it also stands in the sessions' own files, and it is made again from them when it
is lost or wrong. Each time it gets a new name, because a process that still has the old one open takes away the
journal of that name when it closes it.

A page is cut from the list as it was when the paging began. Every change of a session's place is numbered and
remembered for a while, so the place a session had at that moment can still be told: a session that exists throughout
is listed once, wherever it has moved to.

What the list does not know yet is pending: a session is marked before its file is made, changed or taken away, and
unmarked when the list has it. If the process dies in between, the next one that asks for a page looks at the file.
"""

import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

from dragoman.store.connections import close, connect, connect_to_build, unlink
from dragoman.store.contract import (
    ArchiveFilter,
    BadCursor,
    Page,
    SessionDamaged,
    SessionMeta,
    SessionMissing,
    StoreFailed,
)
from dragoman.store.cursors import Cursor, filter_mark, read_cursor, written_cursor
from dragoman.store.failures import UNREADABLE, is_damage, told_plainly
from dragoman.store.files import make_folder
from dragoman.store.locks import Holder, locked, same_file
from dragoman.store.rows import COLUMNS, columns_of, meta_of, transaction

T = TypeVar("T")

PAGE_SIZE: Final = 50
# Changes remembered: a paging that lasts longer than so many has to begin anew.
CHANGES: Final = 10_000
_FORMAT: Final = 1
_NAME: Final = re.compile(r"[0-9a-f]{16}\.db")
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
# The holders of pending sessions, without a look at each of what may be ten thousand.
_HOLDERS: Final = (
    "WITH RECURSIVE found (holder) AS (SELECT min(holder) FROM pending UNION ALL "
    "SELECT (SELECT min(holder) FROM pending WHERE holder > found.holder) FROM found WHERE found.holder IS NOT NULL) "
    "SELECT holder FROM found WHERE holder IS NOT NULL"
)
# The holder of sessions that could not be looked at when the list was made; so many are tried again with each page.
_NOBODY: Final = ""
_TRIED_AGAIN: Final = 20
# A session that was archived after the paging began is no longer wanted where archived ones are not.
_MOVED: Final = (
    f"SELECT left.activity, {', '.join(f'sessions.{name}' for name in COLUMNS.split(', '))} "
    "FROM left INDEXED BY left_place CROSS JOIN sessions ON sessions.id = left.id "
    "WHERE left.archived = ? AND (left.activity, left.id) < (?, ?) AND left.number > ? AND left.previous <= ? "
    "{folder} {filter} ORDER BY left.activity DESC, left.id DESC LIMIT ?"
)


def no_progress(done: int, total: int) -> None:
    """For whoever does not want to know."""


class Sessions(Protocol):
    """The sessions' own files, which the list is made from."""

    @property
    def folder(self) -> Path: ...
    def names(self) -> Iterable[str]: ...
    def look(self, session_id: str) -> SessionMeta: ...
    def exists(self, session_id: str) -> bool: ...


class Index:
    """The list, in a folder of its own beside the sessions."""

    def __init__(
        self,
        folder: Path,
        sessions: Sessions,
        holder: Holder,
        progress: Callable[[int, int], None] = no_progress,
    ) -> None:
        self._folder = folder
        # Told how many sessions of how many were looked at while the list is made again. What it raises stops that.
        self._progress = progress
        self._sessions = sessions
        self._holder = holder
        self._file: sqlite3.Connection | None = None
        self._path = folder
        self._identity: os.stat_result | None = None
        self._generation = ""

    # -- changes -----------------------------------------------------------------------------------------------------

    def mark(self, session_id: str) -> int:
        """A session's file is about to change. The result is the latest activity of any session."""

        def work(file: sqlite3.Connection) -> int:
            file.execute("INSERT OR REPLACE INTO pending VALUES (?, ?)", (session_id, self._holder.name))
            (newest,) = file.execute("SELECT newest FROM about").fetchone()
            return int(newest)

        return self._write(work)

    def put(self, meta: SessionMeta) -> None:
        """Add a session, or tell what has changed of it."""
        self._write(lambda file: _put(file, meta))

    def drop(self, session_id: str) -> None:
        """A session is gone."""
        self._write(lambda file: _drop(file, session_id))

    # -- questions ---------------------------------------------------------------------------------------------------

    def look(self, session_id: str) -> SessionMeta | None:
        """What the list knows of a session."""

        def work(file: sqlite3.Connection) -> SessionMeta | None:
            row = file.execute(f"SELECT {COLUMNS} FROM sessions WHERE id = ?", (session_id,)).fetchone()
            return None if row is None else meta_of(row)

        return self._do(work)

    def page(self, cwd: str | None, cursor: str | None, archived: ArchiveFilter) -> Page:
        """The next page."""
        place = None if cursor is None else read_cursor(cursor)
        self._settle()

        def work(file: sqlite3.Connection) -> tuple[list[SessionMeta], Cursor | None]:
            with transaction(file, "DEFERRED"):
                return self._cut(file, self._place(file, place, cwd, archived), cwd, archived)

        found, next_place = self._do(work)
        shown = [meta for meta in found if self._sessions.exists(meta.id)]
        if len(shown) < len(found):
            for meta in found:
                if meta not in shown:
                    self.drop(meta.id)  # somebody took the file away by hand
        return Page(shown, None if next_place is None else written_cursor(next_place))

    def _place(self, file: sqlite3.Connection, place: Cursor | None, cwd: str | None, archived: str) -> Cursor:
        (changes,) = file.execute("SELECT changes FROM about").fetchone()
        mark = filter_mark(cwd, archived)
        if place is None:
            return Cursor(self._generation, mark, changes, 2**62, "")
        if (place.generation, place.filter) != (self._generation, mark):
            raise BadCursor("the cursor does not belong to this list")
        if not changes - CHANGES <= place.change <= changes:
            raise BadCursor("the list has changed too much; begin again")
        return place

    def _cut(
        self, file: sqlite3.Connection, place: Cursor, cwd: str | None, archived: ArchiveFilter
    ) -> tuple[list[SessionMeta], Cursor | None]:
        """The sessions behind a place, by the places they had when the paging began."""
        folder = () if cwd is None else (cwd,)
        unmoved = _UNMOVED.format(folder="" if cwd is None else "cwd = ? AND")
        moved = _MOVED.format(
            folder="" if cwd is None else "AND left.cwd = ?",
            filter="" if archived == "include" else f"AND sessions.archived = {int(archived == 'only')}",
        )
        found: list[tuple[int, SessionMeta]] = []
        for then in {"exclude": (0,), "only": (1,), "include": (0, 1)}[archived]:
            here = (then, place.activity, place.id, place.change)
            rows = file.execute(unmoved, (*folder, *here, PAGE_SIZE + 1)).fetchall()
            rows += file.execute(moved, (*here, place.change, *folder, PAGE_SIZE + 1)).fetchall()
            found.extend((activity, meta_of(columns)) for activity, *columns in rows)
        found.sort(key=lambda each: (each[0], each[1].id), reverse=True)
        shown = [meta for _, meta in found[:PAGE_SIZE]]
        if len(found) <= PAGE_SIZE:
            return shown, None
        activity, last = found[PAGE_SIZE - 1]
        return shown, place._replace(activity=activity, id=last.id)

    def _settle(self) -> None:
        """Look at the sessions that a process was busy with when it died."""

        def left_behind(file: sqlite3.Connection) -> list[str]:
            found: list[str] = []
            for (holder,) in file.execute(_HOLDERS).fetchall():
                if not self._holder.lives(holder):
                    count = _TRIED_AGAIN if holder == _NOBODY else -1
                    rows = file.execute("SELECT id FROM pending WHERE holder = ? LIMIT ?", (holder, count))
                    found.extend(session_id for (session_id,) in rows)
            return found

        for session_id in self._do(left_behind):
            try:
                self.put(self._sessions.look(session_id))
            except SessionMissing:
                self.drop(session_id)
            except SessionDamaged:
                # Whoever opens it needs to know what the list remembers of it.
                self._write(partial(_unmark, session_id=session_id))
            except StoreFailed:
                pass  # it stays pending

    # -- the file ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            close(file)

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def whole(file: sqlite3.Connection) -> T:
            with transaction(file):
                return work(file)

        return self._do(whole)

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Work with the list. When it turns out to be lost or wrong, it is made again and the work done with that."""
        try:
            with told_plainly():
                make_folder(self._sessions.folder)
                wrong = None
                try:
                    with self._current() as file:
                        if file is not None:
                            return work(file)
                except UNREADABLE as error:
                    wrong = self._path
                    self.close()
                    if not is_damage(error):
                        raise
                except SessionDamaged:
                    wrong = self._path
                self.close()
                self._make_again(wrong)
                with self._current() as file:
                    if file is not None:
                        return work(file)
        except SessionDamaged as error:
            raise StoreFailed("the list of sessions cannot be read") from error
        raise StoreFailed("the list of sessions cannot be made")

    @contextmanager
    def _current(self) -> Iterator[sqlite3.Connection | None]:
        """The list as it is now, while nobody makes it again. None: there is none, or it is wrong."""
        with locked(self._sessions.folder, alone=False):
            if self._identity is not None and not same_file(self._path, self._identity):
                self.close()  # somebody has made another, or thrown it away
            if self._file is None:
                path = self._newest()
                if path is not None:
                    self._open(path)
            yield self._file

    def _make_again(self, wrong: Path | None) -> None:
        with locked(self._sessions.folder, alone=True):
            newest = self._newest()
            if newest is not None and newest != wrong and self._open(newest):
                return  # another process was faster
            if not _is_folder(self._folder):
                self._folder.unlink(missing_ok=True)
                self._folder.mkdir(mode=0o700)
            last = 0 if newest is None else int(newest.stem, 16)
            path = self._folder / f"{max(time.time_ns(), last + 1):016x}.db"
            try:
                with closing(connect_to_build(path)) as file:
                    self._fill(file, os.lstat(path))
            except BaseException:
                unlink(path)
                raise
            for name in os.listdir(self._folder):
                if not name.startswith(path.name) and not os.path.isdir(self._folder / name):
                    unlink(self._folder / name)

    def _fill(self, file: sqlite3.Connection, identity: os.stat_result) -> None:
        with transaction(file):
            for statement in _SCHEMA.split(";"):
                file.execute(statement)
            about = (1, _FORMAT, os.urandom(8).hex(), identity.st_ino, _boot(), 0, 0)
            file.execute("INSERT INTO about VALUES (?, ?, ?, ?, ?, ?, ?)", about)
            names = list(self._sessions.names())
            for number, name in enumerate(names):
                self._progress(number, len(names))
                self._take_in(file, name)
        file.execute("PRAGMA journal_mode = WAL")

    def _newest(self) -> Path | None:
        if not _is_folder(self._folder):
            return None
        names = [name for name in os.listdir(self._folder) if _NAME.fullmatch(name)]
        return self._folder / max(names) if names else None

    def _open(self, path: Path) -> bool:
        """Open a list, if it is one, and the one that was made here."""
        self._path, self._identity = path, os.lstat(path)
        if not stat.S_ISREG(self._identity.st_mode):
            return False
        file = None
        try:
            file = connect(path)
            format_, self._generation, inode, boot = file.execute(
                "SELECT format, generation, file, boot FROM about"
            ).fetchone() or (None, "", None, "")
            # A copy, brought back from somewhere, tells of another time.
            if format_ == _FORMAT and inode == self._identity.st_ino:
                if boot != _boot():
                    self._compare(file)
                self._file, file = file, None
        except UNREADABLE as error:
            if not is_damage(error):
                raise
        finally:
            if file is not None:
                close(file)
        return self._file is not None

    def _compare(self, file: sqlite3.Connection) -> None:
        """Once after a start of the machine: it may have stopped before the last changes reached the disk."""
        with transaction(file):
            known = {session_id for (session_id,) in file.execute("SELECT id FROM sessions")}
            there = set(self._sessions.names())
            for session_id in known - there:
                _drop(file, session_id)
            for number, session_id in enumerate(new := there - known):
                self._progress(number, len(new))
                self._take_in(file, session_id)
            file.execute("UPDATE about SET boot = ?", (_boot(),))

    def _take_in(self, file: sqlite3.Connection, session_id: str) -> None:
        """A session the list does not know. A bad file harms one session."""
        try:
            _put(file, self._sessions.look(session_id))
        except (SessionMissing, SessionDamaged):
            pass
        except StoreFailed:
            file.execute("INSERT OR REPLACE INTO pending VALUES (?, ?)", (session_id, _NOBODY))


def _put(file: sqlite3.Connection, meta: SessionMeta) -> None:
    row = file.execute("SELECT cwd, activity, archived, changed FROM sessions WHERE id = ?", (meta.id,)).fetchone()
    if row is None or row[1:3] != (meta.activity, int(meta.archived)):
        number = _next_change(file)
        if row is not None:
            cwd, activity, archived, changed = row
            place = (number, changed, meta.id, cwd, activity, archived)
            file.execute("INSERT INTO left VALUES (?, ?, ?, ?, ?, ?)", place)
    else:
        number = row[3]
    file.execute(
        f"INSERT OR REPLACE INTO sessions ({COLUMNS}, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*columns_of(meta), number),
    )
    file.execute("UPDATE about SET newest = max(newest, ?)", (meta.activity,))
    _unmark(file, meta.id)


def _drop(file: sqlite3.Connection, session_id: str) -> None:
    file.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    _unmark(file, session_id)


def _unmark(file: sqlite3.Connection, session_id: str) -> None:
    file.execute("DELETE FROM pending WHERE id = ?", (session_id,))


def _next_change(file: sqlite3.Connection) -> int:
    (number,) = file.execute("SELECT changes + 1 FROM about").fetchone()
    file.execute("UPDATE about SET changes = ?", (number,))
    file.execute("DELETE FROM left WHERE number <= ?", (number - CHANGES,))
    return int(number)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _boot() -> str:
    """This start of the machine; constant where we cannot know."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
