"""One SQLite file a session: its log, what the list shows of it, and who holds it. Used only from the writer thread."""

import os
import re
import sqlite3
import stat
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from dragoman.store.contract import (
    Record,
    SessionDamaged,
    SessionHeld,
    SessionMeta,
    SessionMissing,
    StoreFailed,
)
from dragoman.store.entries import Entry, UnreadableEntry, joined, read, written
from dragoman.store.holder import is_alive

# Names we give; anything else was never a session here, and is not asked of the file system.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
# Connections kept open: sessions that are busy, not sessions that exist. Each costs three descriptors.
_OPEN_FILES: Final = 32
_SCHEMA: Final = """
    CREATE TABLE session (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        format INTEGER NOT NULL, id TEXT NOT NULL, cwd TEXT NOT NULL, directories TEXT NOT NULL, title TEXT NOT NULL,
        created INTEGER NOT NULL, activity INTEGER NOT NULL, archived INTEGER NOT NULL, holder TEXT
    );
    CREATE TABLE log (sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL);
"""
_FORMAT: Final = 1
_BUSY_SECONDS: Final = 5.0
_COLUMNS: Final = "id, cwd, directories, title, created, activity, archived"
# Primary result codes of SQLite that mean the file is not what it should be.
_DAMAGE: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH}
)


@contextmanager
def told_plainly() -> Iterator[None]:
    """SQLite's and the system's errors as the store's own, without their paths."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGE or (not code and isinstance(error, sqlite3.DatabaseError)):
            raise SessionDamaged("the session's file is damaged") from error
        raise StoreFailed(_reasons.get(code, "the session store failed")) from error
    except OSError as error:
        raise StoreFailed(f"the session store failed: {error.strerror or 'input or output error'}") from error


_reasons: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the session store is read-only",
    sqlite3.SQLITE_CANTOPEN: "the session's file cannot be opened",
    sqlite3.SQLITE_PERM: "the session's file may not be opened",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_BUSY: "the session's file is busy",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
}


class Files:
    """The folder of sessions."""

    def __init__(self, folder: Path, holder: str) -> None:
        self.folder: Final = folder
        self._holder = holder
        self._open: OrderedDict[str, sqlite3.Connection] = OrderedDict()

    # -- whole sessions ----------------------------------------------------------------------------------------------

    def create(self, meta: SessionMeta) -> None:
        """A new file, ours."""
        path = self._path(meta.id)
        with told_plainly():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made by us and by nobody before us: not a link to somewhere else.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        try:
            with told_plainly():
                file = self._connect(path)
                file.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
                values = (1, _FORMAT, *columns_of(meta), self._holder)
                file.execute(f"INSERT INTO session VALUES ({', '.join('?' * len(values))})", values)
        except BaseException:
            self.remove(meta.id)
            raise
        self._keep(meta.id, file)

    def fork(self, source: str, meta: SessionMeta) -> None:
        """A copy of a log, consistent even while the source is written to."""
        self.look(source)
        self.create(meta)
        try:
            with told_plainly(), closing(self._connect(self._path(source))) as original:
                copy = self._file(meta.id)
                copy.execute("BEGIN IMMEDIATE")
                try:
                    rows = original.execute("SELECT sequence, kind, body FROM log ORDER BY sequence")
                    copy.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
                    copy.execute("COMMIT")
                except BaseException:
                    copy.execute("ROLLBACK")
                    raise
        except BaseException:
            self.remove(meta.id)
            raise

    def remove(self, session_id: str) -> bool:
        """Take a file away, with its journal. False: there was none."""
        self.forget(session_id)
        path = self._path(session_id)
        there = False
        with told_plainly():
            for suffix in ("", "-wal", "-shm"):
                try:
                    os.unlink(f"{path}{suffix}")
                    there = there or not suffix
                except FileNotFoundError:
                    pass
                except IsADirectoryError:
                    raise SessionDamaged("a folder stands where the session's file should be") from None
        return there

    def names(self) -> Iterator[str]:
        """Every session there is."""
        try:
            with os.scandir(self.folder) as found:
                for entry in found:
                    name, dot, suffix = entry.name.rpartition(".")
                    if dot and suffix == "session" and _NAME.fullmatch(name):
                        yield name
        except FileNotFoundError:
            return

    # -- one session -------------------------------------------------------------------------------------------------

    def look(self, session_id: str) -> SessionMeta:
        """What is known of a session."""
        with told_plainly():
            return self._meta(self._file(session_id))

    def hold(self, session_id: str) -> SessionMeta:
        """Take the lease, if nobody alive has it."""
        file = self._file(session_id)
        with told_plainly(), _transaction(file):
            (holder,) = _one(file, "SELECT holder FROM session")
            if holder is not None and holder != self._holder and is_alive(holder):
                raise SessionHeld("another process has the session open")
            file.execute("UPDATE session SET holder = ?", (self._holder,))
        return self.look(session_id)

    def release(self, session_id: str) -> None:
        """Give the lease back, if it is ours."""
        with told_plainly():
            self._file(session_id).execute("UPDATE session SET holder = NULL WHERE holder = ?", (self._holder,))
        self.forget(session_id)

    def held_elsewhere(self, session_id: str) -> bool:
        """Whether another living process has the session open."""
        with told_plainly():
            (holder,) = _one(self._file(session_id), "SELECT holder FROM session")
        return holder is not None and holder != self._holder and is_alive(holder)

    def append(self, session_id: str, entries: Iterable[Entry], activity: int) -> None:
        """Add entries in one transaction. The lease must still be ours."""
        rows = [written(entry) for entry in joined(entries)]
        with told_plainly():
            file = self._file(session_id)
            with _transaction(file):
                moved = file.execute(
                    "UPDATE session SET activity = max(activity, ?) WHERE holder = ?", (activity, self._holder)
                )
                if moved.rowcount != 1:
                    raise SessionHeld("the session was taken over by another process")
                file.executemany("INSERT INTO log (kind, body) VALUES (?, ?)", rows)

    def read(self, session_id: str, after: int, count: int) -> Sequence[Record]:
        """The next entries behind a sequence number. An entry nobody can read ends the log there."""
        with told_plainly():
            rows = self._file(session_id).execute(
                "SELECT sequence, kind, body FROM log WHERE sequence > ? ORDER BY sequence LIMIT ?", (after, count)
            )
            try:
                return [Record(sequence, read(kind, body)) for sequence, kind, body in rows]
            except UnreadableEntry as error:
                raise SessionDamaged("the session's log has an entry that cannot be read") from error

    def change(self, session_id: str, title: str | None, archived: bool | None) -> SessionMeta:
        """Change what the list shows."""
        with told_plainly():
            file = self._file(session_id)
            with _transaction(file):
                if title is not None:
                    file.execute("UPDATE session SET title = ?", (title,))
                if archived is not None:
                    file.execute("UPDATE session SET archived = ?", (archived,))
            return self._meta(file)

    # -- connections -------------------------------------------------------------------------------------------------

    def forget(self, session_id: str) -> None:
        """Close a file that is not needed for now."""
        file = self._open.pop(session_id, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        """Close everything."""
        for session_id in list(self._open):
            self.forget(session_id)

    def _file(self, session_id: str) -> sqlite3.Connection:
        file = self._open.get(session_id)
        if file is not None:
            self._open.move_to_end(session_id)
            return file
        path = self._path(session_id)
        with told_plainly():
            try:
                kind = os.lstat(path).st_mode
            except FileNotFoundError:
                raise SessionMissing("there is no such session") from None
            # Neither a link, which could lead anywhere, nor a FIFO, which would hold us up for ever.
            if not stat.S_ISREG(kind):
                raise SessionDamaged("something else stands where the session's file should be")
            file = self._connect(path)
            try:
                (format_,) = _one(file, "SELECT format FROM session")
            except BaseException:
                file.close()
                raise
        if format_ != _FORMAT:
            file.close()
            raise SessionDamaged("the session was written by a newer release")
        self._keep(session_id, file)
        return file

    def _keep(self, session_id: str, file: sqlite3.Connection) -> None:
        self._open[session_id] = file
        while len(self._open) > _OPEN_FILES:
            self._open.popitem(last=False)[1].close()

    def _connect(self, path: Path) -> sqlite3.Connection:
        # By URI with mode=rw: SQLite never makes a file here. Transactions are ours to begin.
        uri = f"{path.absolute().as_uri()}?mode=rw"
        file = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False)
        try:
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            file.close()
            raise
        return file

    def _path(self, session_id: str) -> Path:
        if _NAME.fullmatch(session_id) is None:
            raise SessionMissing("there is no such session")
        return self.folder / f"{session_id}.session"

    def _meta(self, file: sqlite3.Connection) -> SessionMeta:
        return meta_of(_one(file, f"SELECT {_COLUMNS} FROM session"))


def meta_of(row: Sequence[object]) -> SessionMeta:
    """The metadata in a row."""
    id, cwd, directories, title, created, activity, archived = row
    return msgspec.convert(
        [id, cwd, msgspec.json.decode(str(directories)), title, created, activity, bool(archived)], SessionMeta
    )


def columns_of(meta: SessionMeta) -> tuple[object, ...]:
    """The metadata as a row."""
    directories = msgspec.json.encode(list(meta.directories)).decode()
    return meta.id, meta.cwd, directories, meta.title, meta.created, meta.activity, int(meta.archived)


def _one(file: sqlite3.Connection, query: str) -> tuple[object, ...] | Sequence[object]:
    row = file.execute(query).fetchone()
    if row is None:
        raise SessionDamaged("the session's file is damaged")
    return row  # type: ignore[no-any-return]


@contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        # After a full disk SQLite may have rolled back by itself.
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise
