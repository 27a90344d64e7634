"""The list of sessions as tables: what is pending, and for how long."""

import sqlite3
from collections.abc import Callable, Iterator

import pytest

from dragoman.store import listing
from tests.store.scenes import meta


@pytest.fixture
def file() -> Iterator[sqlite3.Connection]:
    file = sqlite3.connect(":memory:")
    listing.create(file, "generation", 1, "boot")
    yield file
    file.close()


@pytest.mark.parametrize(
    "settled",
    [
        lambda file: listing.put(file, meta("of the dead")),
        lambda file: listing.drop(file, "of the dead"),
        lambda file: listing.unmark(file, "of the dead"),
    ],
    ids=["put", "drop", "unmark"],
)
def test_a_session_is_pending_until_the_list_has_it(
    file: sqlite3.Connection, settled: Callable[[sqlite3.Connection], None]
) -> None:
    listing.mark(file, "of the dead", "dead")
    listing.mark(file, "of the living", "living")
    assert listing.orphaned_ids(file, lambda holder: holder == "living") == ["of the dead"]
    settled(file)
    assert listing.orphaned_ids(file, lambda holder: holder == "living") == []


def test_what_could_not_be_looked_at_is_tried_again_a_few_at_a_time(file: sqlite3.Connection) -> None:
    names = [f"{number:02}" for number in range(30)]
    for name in names:
        listing.mark(file, name)
    assert listing.orphaned_ids(file, bool) == names[:20]
