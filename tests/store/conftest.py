"""The engines that every test of the contract runs against."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dragoman.store.contract import Store
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import ENGINES, OLDER_ENGINES, Place


@pytest.fixture(params=[*ENGINES, *(pytest.param(name, marks=pytest.mark.slow) for name in OLDER_ENGINES)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Somewhere to keep sessions, and a way to open a store there: once, twice, again."""
    with {**ENGINES, **OLDER_ENGINES}[request.param](tmp_path / "sessions") as place:
        yield place


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    store = place()
    yield store
    await store.close()


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An empty store, for tests about this engine alone."""
    store = SqliteStore(tmp_path / "sessions")
    yield store
    await store.close()
