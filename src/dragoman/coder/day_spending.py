"""What all sessions of this user have cost today, on disk: a line for each day in a small database of our data folder.

Several processes add at the same time, and any of them may be killed: SQLite's transactions make each addition whole or
not there. The file is the user's alone (0600). Days that are long over are deleted, so it stays small. A day is one of
the local calendar. Calls block for a moment, and at most `_BUSY_SECONDS` while other processes add.

What this cannot do: hold back a user who deletes the file.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from typing import Final

_DAYS: Final = 90
_BUSY_SECONDS: Final = 5.0
_ADD: Final = (
    "INSERT INTO spent (day, dollars) VALUES (?, ?) "
    "ON CONFLICT (day) DO UPDATE SET dollars = dollars + excluded.dollars"
)


class DaySpendingFailed(Exception):
    """The total of the day cannot be read or written; the text names the file and what to do."""


class DaySpending:
    """The total of today. Threads may share it; the file is opened with the first call."""

    def __init__(self, file: str, today: Callable[[], date] = date.today) -> None:
        self._file = file
        self._today = today
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None

    def __repr__(self) -> str:
        return f"<DaySpending {'closed' if self._database is None else 'open'}>"

    def add(self, amount: float) -> None:
        """Add dollars to today's total; on disk when this returns. Blocks. Raises `DaySpendingFailed`."""
        today = self._today()
        oldest = (today - timedelta(days=_DAYS)).isoformat()
        self._run(_ADD, (today.isoformat(), amount), ("DELETE FROM spent WHERE day < ?", (oldest,)))

    def total(self) -> float:
        """Return today's total in dollars. Blocks. Raises `DaySpendingFailed`."""
        found = self._run("SELECT dollars FROM spent WHERE day = ?", (self._today().isoformat(),))
        return float(found[0]) if found else 0.0

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            self._close()

    def _run(
        self, statement: str, values: tuple[object, ...], *more: tuple[str, tuple[object, ...]]
    ) -> tuple[float] | None:
        """Run statements in one transaction, and return the first row of the first."""
        with self._lock:
            try:
                database = self._database = self._database or self._open()
                with database:
                    row: tuple[float] | None = database.execute(statement, values).fetchone()
                    for other, its_values in more:
                        database.execute(other, its_values)
                return row
            except (sqlite3.Error, OSError) as error:
                self._close()
                raise DaySpendingFailed(
                    f"what was spent today cannot be read or written ({_reason(error)}): make {self._file} a file of "
                    "yours, or move it away"
                ) from None

    def _open(self) -> sqlite3.Connection:
        os.makedirs(os.path.dirname(self._file), mode=0o700, exist_ok=True)
        # SQLite gives the files beside it the same rights.
        with suppress(FileExistsError):
            os.close(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(self._file, timeout=_BUSY_SECONDS, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            with database:
                database.execute("CREATE TABLE IF NOT EXISTS spent (day TEXT PRIMARY KEY, dollars REAL NOT NULL)")
        except BaseException:
            database.close()
            raise
        return database

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with suppress(sqlite3.Error):
                database.close()


def _reason(error: Exception) -> str:
    return (error.strerror or "no reason given").lower() if isinstance(error, OSError) else str(error)
