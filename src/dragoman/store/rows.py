"""How a session stands in its file: the tables, and rows that can tell when they are not what was written.

SQLite notices a broken page, not a flipped bit in a text; so every entry, and what never changes about a session,
carries a checksum. Entries are numbered from 1 without a gap, so a missing one is noticed as well.
"""

import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from dragoman.store.connections import connect_to_build
from dragoman.store.contract import Record, SessionDamaged, SessionMeta, StoreFailed
from dragoman.store.entries import Entry, UnreadableEntry, decode_entry, encode_entry

FORMAT: Final = 1
COLUMNS: Final = "id, cwd, directories, created, title, activity, archived"
# What comes before the bytes of text in a row: about this much is read beside each entry.
_ROW_BYTES: Final = 64
# The largest number that SQLite has.
_LARGEST: Final = 2**63 - 1
_SCHEMA: Final = """
    CREATE TABLE session (
        one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL,
        id TEXT NOT NULL, cwd TEXT NOT NULL, directories TEXT NOT NULL, created INTEGER NOT NULL,
        title TEXT NOT NULL, activity INTEGER NOT NULL, archived INTEGER NOT NULL,
        checksum INTEGER NOT NULL, holder TEXT
    );
    CREATE TABLE log (
        sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL
    );
"""
Row = tuple[int, str, bytes, int]


class BadRow(Exception):
    """A row that is not what was written."""


class UndecodableEntry(SessionDamaged):
    """An entry whose checksum is right and whose content is unknown: another release has written it.

    There is nothing to repair: cutting the log off there would lose what the other release can read.
    """


# -- the session -----------------------------------------------------------------------------------------------------


def build(path: Path, meta: SessionMeta, holder: str | None, rows: Iterable[Row] = (), *, lasting: bool) -> None:
    """Write a whole session into a new file. `lasting`: to the disk itself, not only on its way there."""
    with closing(connect_to_build(path)) as file:
        with transaction(file):
            # Not `executescript`, which would commit the transaction it is in.
            for statement in _SCHEMA.split(";"):
                file.execute(statement)
            columns = columns_of(meta)
            values = (1, FORMAT, *columns, _meta_checksum(columns), holder)
            file.execute(f"INSERT INTO session VALUES ({', '.join('?' * len(values))})", values)
            file.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows)
        file.execute("PRAGMA journal_mode = WAL")
    # A copy must survive a power cut before its source may be deleted; a new session without entries has nothing to
    # lose.
    if lasting:
        with open(path, "rb") as written_file:
            os.fsync(written_file.fileno())


def meta_in(file: sqlite3.Connection) -> SessionMeta:
    """Return the metadata of the session in a file, whichever session that is."""
    return meta_and_holder(file)[0]


def meta_and_holder(file: sqlite3.Connection) -> tuple[SessionMeta, object]:
    """Return the metadata of the session in a file, and the name of the holder of its lease, or None."""
    row = file.execute(f"SELECT holder, format, checksum, {COLUMNS} FROM session").fetchone()
    if row is None:
        raise SessionDamaged("the session's file is damaged")
    holder, format_, checksum, *columns = row
    if format_ != FORMAT:
        raise StoreFailed("the session was written by another release")
    meta = meta_of(columns)
    if checksum != _meta_checksum(columns):
        raise SessionDamaged("the session's file is damaged")
    return meta, holder


def meta_of(columns: Sequence[object]) -> SessionMeta:
    """Return the metadata in a row; raise `SessionDamaged` if there is none."""
    id, cwd, directories, created, title, activity, archived = columns
    try:
        folders = msgspec.json.decode(str(directories))
        return msgspec.convert([id, cwd, folders, title, created, activity, bool(archived)], SessionMeta)
    except ValueError as error:
        raise SessionDamaged("the session's file is damaged") from error


def columns_of(meta: SessionMeta) -> tuple[object, ...]:
    """Return the metadata as a row."""
    folders = msgspec.json.encode(list(meta.directories)).decode()
    return meta.id, meta.cwd, folders, meta.created, meta.title, meta.activity, int(meta.archived)


def _meta_checksum(columns: Sequence[object]) -> int:
    # Id, cwd, directories and creation stay; the rest changes under us.
    return zlib.crc32(repr(tuple(columns[:4])).encode())


# -- the log ---------------------------------------------------------------------------------------------------------


def add(file: sqlite3.Connection, last: int, entries: Iterable[Entry]) -> None:
    """Write entries behind the last one. Inside a transaction."""
    file.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows_of(entries, last))


def rows_of(entries: Iterable[Entry], last: int = 0) -> Iterator[Row]:
    """Yield entries as rows behind the last one."""
    return (_row(last + offset, entry) for offset, entry in enumerate(entries, 1))


def add_lone(file: sqlite3.Connection, sequence: int, entry: Entry, holder: str) -> bool:
    """Write one entry in a transaction of its own. Return False, and write nothing, if `holder` has lost the lease."""
    values = (*_row(sequence, entry), holder)
    return file.execute("INSERT INTO log SELECT ?, ?, ?, ? FROM session WHERE holder = ?", values).rowcount == 1


def last_in(file: sqlite3.Connection) -> int:
    """Return the number of the last entry."""
    (last,) = file.execute("SELECT coalesce(max(sequence), 0) FROM log").fetchone()
    return int(last)


def rows_behind(file: sqlite3.Connection, after: int, last: int | None = None) -> Iterator[Row]:
    """Yield the checked rows behind a sequence number, up to `last`.

    Raise `BadRow`, or SQLite's error, where they end early.
    """
    for row in file.execute(
        "SELECT sequence, kind, body, checksum FROM log WHERE sequence > ? AND sequence <= ? ORDER BY sequence",
        (after, _LARGEST if last is None else last),
    ):
        sequence, kind, body, checksum = row
        after += 1
        # Types too: SQLite stores any type in any column, and a flipped bit in the record header changes it.
        if sequence != after or type(kind) is not str or type(body) is not bytes:
            raise BadRow
        if checksum != _checksum(sequence, kind, body):
            raise BadRow
        yield row


def records_behind(file: sqlite3.Connection, after: int, count: int, size: int) -> tuple[list[Record], bool]:
    """Return the next entries, up to a count and about a size, at least one if there is one; and whether they are all.

    Raise `SessionDamaged` if the very next entry is bad, `UndecodableEntry` if it is not known to this release.
    """
    records: list[Record] = []
    try:
        for sequence, kind, body, _ in rows_behind(file, after):
            records.append(Record(sequence, decode_entry(kind, body)))
            size -= len(body) + _ROW_BYTES
            if len(records) == count or size <= 0:
                return records, False
    except BadRow as error:
        if not records:
            raise SessionDamaged("the session's log has an entry that cannot be read") from error
        return records, False  # the next read begins at the bad one
    except UnreadableEntry as error:
        if not records:
            raise UndecodableEntry("the session's log has an entry that cannot be read") from error
        return records, False
    return records, True


def _row(sequence: int, entry: Entry) -> Row:
    kind, body = encode_entry(entry)
    return sequence, kind, body, _checksum(sequence, kind, body)


# The number and the kind are covered as well: a row that was moved or relabelled is as bad as a changed one.
def _checksum(sequence: int, kind: str, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(f"{sequence} {kind}".encode()))


# -- transactions ----------------------------------------------------------------------------------------------------


@contextmanager
def transaction(file: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Run the block in a transaction: all of it is committed, or nothing."""
    file.execute(f"BEGIN {kind}")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        try:
            # After a full disk SQLite may have rolled back by itself.
            if file.in_transaction:
                file.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # what went wrong first is raised
        raise
