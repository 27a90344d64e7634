"""Opening SQLite files that are ours, making new ones, and turning the errors of SQLite into those of the store.

SQLite itself makes no file here and follows no link. An error of the store says what is wrong, never where: paths and
SQLite's own words stay inside.
"""

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dragoman.store.contract import SessionDamaged, SessionMissing, StoreFailed
from dragoman.store.locks import WAIT_SECONDS

# SQLITE_ERROR is a statement the file cannot answer: our statements are always the same, so its tables are not ours.
_DAMAGE: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
)
_WORDS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the session store is read-only",
    sqlite3.SQLITE_CANTOPEN: "the session's file cannot be opened",
    sqlite3.SQLITE_PERM: "the session's file may not be opened",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_BUSY: "the session's file is busy",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
}


# What reading a file may raise. Words of a damaged file stand in the error itself, and may be no text.
UNREADABLE: Final = (sqlite3.Error, UnicodeDecodeError)


def is_damage(error: Exception) -> bool:
    """Return whether an error means that the file is not what we have written, as opposed to out of reach."""
    if isinstance(error, UnicodeDecodeError):
        return True
    # The low byte is the primary code; the rest tells more than we need.
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        # Python's own complaint: text that is no text. A connection used wrongly is our mistake, not the file's.
        return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError)
    return int(code) & 0xFF in _DAMAGE


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn errors of SQLite and of the system inside the block into `StoreFailed` or `SessionDamaged`."""
    try:
        yield
    except UNREADABLE as error:
        if is_damage(error):
            raise SessionDamaged("the session's file is damaged") from error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise StoreFailed(_WORDS.get(code, "the session store failed")) from error
    except OSError as error:
        raise StoreFailed(f"the session store failed: {error.strerror or 'input or output error'}") from error
    except (UnicodeError, OverflowError) as error:
        raise StoreFailed("that cannot be stored") from error


# Pages SQLite keeps of each file, in KiB: a log is written at its end and read once, a large cache would be idle.
_CACHE_KIB: Final = 256
JOURNALS: Final = ("-wal", "-shm")


def connect(path: Path) -> sqlite3.Connection:
    """Open a file that exists. Transactions are ours to begin; a commit outlives the process, not a power cut."""
    # SQLite would open the file read-only, and leave journal files behind that no process can write to.
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return _connect(path, "mode=rw", ("PRAGMA synchronous = NORMAL", f"PRAGMA cache_size = -{_CACHE_KIB}"))


def connect_to_look(path: Path) -> sqlite3.Connection:
    """Open a file read-only, for one look and without journal files. No process may write to it meanwhile."""
    return _connect(path, "mode=ro&immutable=1", ())


def connect_to_salvage(path: Path) -> sqlite3.Connection:
    """Open a damaged file. Without the setting SQLite reads nothing of one that is shorter than it should be."""
    return _connect(path, "mode=rw", ("PRAGMA writable_schema = ON",))


def connect_to_build(path: Path) -> sqlite3.Connection:
    """Create and open an empty file, without durability: the caller must discard what a crash leaves of it.

    Raise `FileExistsError` if `path` exists.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    return _connect(path, "mode=rw", ("PRAGMA synchronous = OFF", "PRAGMA journal_mode = MEMORY"))


def close(file: sqlite3.Connection) -> None:
    """Close a file, whatever state it is in."""
    try:
        file.close()
    except sqlite3.Error:
        pass  # what was committed is on disk; what was not was never promised


def _connect(path: Path, mode: str, settings: tuple[str, ...]) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{mode}"
    file = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=WAIT_SECONDS, check_same_thread=False)
    try:
        for setting in settings:
            file.execute(setting)
    except BaseException:
        close(file)
        raise
    return file


def check_kind(path: Path) -> os.stat_result:
    """Neither a link, which could lead anywhere, nor a FIFO, which would hold us up for ever."""
    try:
        identity = os.lstat(path)
    except FileNotFoundError:
        raise SessionMissing("there is no such session") from None
    kinds = [identity.st_mode]
    for suffix in JOURNALS:
        try:
            kinds.append(os.lstat(f"{path}{suffix}").st_mode)
        except FileNotFoundError:
            pass
    if not all(map(stat.S_ISREG, kinds)):
        raise SessionDamaged("something else stands where the session's file should be")
    return identity


def is_at_rest(path: Path) -> bool:
    """Return whether everything is in the file itself and nothing in its journal."""
    return not os.path.lexists(f"{path}-wal")


def put_in_place(new: Path, path: Path) -> None:
    """Give a finished file the name `path`; raise `OSError` if that exists already."""
    # The store's own, beside `host.private_file`: SQLite writes the file, with journals beside it, and a store in
    # another engine has no use for a part of the machine.
    try:
        os.link(new, path)  # unlike a rename, this never replaces a file
    except FileExistsError:
        raise
    except OSError:
        # A file system without links. Names are random, so no other process creates this one between check and rename.
        if os.path.lexists(path):
            raise
        os.rename(new, path)


def unlink(path: Path | str) -> None:
    """Take a file away, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
