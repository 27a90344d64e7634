"""What SQLite and the system complain about, in the store's own words: what is wrong, never where."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dragoman.store.contract import SessionDamaged, StoreFailed

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
    """Whether the file is not what we have written, as opposed to out of reach."""
    if isinstance(error, UnicodeDecodeError):
        return True
    # The low byte is the primary code; the rest tells more than we need.
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        # Python's own complaint: text that is no text. A connection used wrongly is our mistake, not the file's.
        return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError)
    return int(code) & 0xFF in _DAMAGE


@contextmanager
def told_plainly() -> Iterator[None]:
    """Failures inside become `StoreFailed`, or `SessionDamaged`."""
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
