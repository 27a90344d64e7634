"""A disk that fails is no damage, and nothing is salvaged from it."""

import sqlite3

import pytest

from dragoman.store import salvage
from dragoman.store.connections import is_damage, store_errors
from dragoman.store.contract import StoreFailed


class FailingDisk:
    """A connection to a file on a disk that fails."""

    def execute(self, *_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error


def test_nothing_is_salvaged_from_a_disk_that_fails() -> None:
    with pytest.raises(sqlite3.OperationalError):
        salvage._meta(FailingDisk(), lambda holder: False)  # type: ignore[arg-type]
    with pytest.raises(sqlite3.OperationalError):
        salvage._readable(FailingDisk())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "damage"),
    [
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), True),
        (sqlite3.OperationalError("Could not decode to UTF-8"), True),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), False),
        (sqlite3.Error("anything"), False),
    ],
)
def test_pythons_own_complaints_are_told_apart(error: Exception, damage: bool) -> None:
    assert is_damage(error) is damage


def test_what_cannot_be_a_row_is_told_plainly() -> None:
    with pytest.raises(StoreFailed, match="that cannot be stored"), store_errors():
        raise OverflowError
