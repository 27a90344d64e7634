"""Work on one session that overlaps: each of two has an outcome that could be if they had come one after the other."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from dragoman.store.contract import SessionHeld, StoreFailed
from dragoman.store.entries import NoteEntry
from dragoman.store.postgres.node_lease import LeaseState
from dragoman.store.postgres.store import PostgresStore
from tests.store.scenes import ids, listed, meta, note, numbers_in, tried, write
from tests.support.postgres import empty_database, shared_server
from tests.support.waiting import until


@pytest.fixture
def url() -> Iterator[str]:
    with empty_database() as url:
        yield url


@asynccontextmanager
async def held(url: str, statement: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """Hold what a statement locks, for the block."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("BEGIN")
        await connection.execute(statement)
        yield connection
        await connection.execute("ROLLBACK")
    finally:
        await connection.close()


def question(query: str) -> str:
    return shared_server().execute(query, "shared")


async def until_blocked(count: int) -> None:
    """Wait until so many statements wait for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'shared'"
    await until(lambda: question(query) == str(count))


async def test_a_session_that_is_opened_while_it_is_released_stays_open(url: str) -> None:
    store = PostgresStore(url)
    log = await store.create(meta("a"))
    await write(log, note(1))
    # What tells the list comes before what gives the session back, and waits; opening needs neither.
    async with held(url, "SELECT 1 FROM dragoman.about FOR UPDATE"):
        releasing = asyncio.create_task(log.release())
        await until_blocked(1)
        opening = asyncio.create_task(store.open("a"))
        await until(lambda: question("SELECT fence FROM dragoman.session") == "2")
    await releasing
    opened = await opening
    await write(opened, note(2))
    other = PostgresStore(url)
    with pytest.raises(SessionHeld):
        await other.open("a")
    assert await numbers_in(other.read("a")) == [1, 2]
    await other.close()
    await store.close()


async def test_a_store_that_is_closed_while_it_opens_a_session_holds_nothing(url: str) -> None:
    store, other = PostgresStore(url), PostgresStore(url)
    await (await store.create(meta("a"))).release()
    async with held(url, "SELECT 1 FROM dragoman.session FOR UPDATE"):
        opening = asyncio.create_task(store.open("a"))
        await until_blocked(1)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
    await closing
    with pytest.raises(StoreFailed, match="closed"):
        await opening
    await write(await other.open("a"), note(1))
    await other.close()


async def test_a_fork_has_every_entry_also_if_its_source_is_deleted_meanwhile(url: str) -> None:
    store, other = PostgresStore(url), PostgresStore(url)
    log = await store.create(meta("a"))
    await write(log, *map(note, range(5)))
    await log.release()
    async with held(url, "LOCK TABLE dragoman.entry IN EXCLUSIVE MODE"):
        forking = asyncio.create_task(store.fork("a", meta("b")))
        await until_blocked(1)
        deleting = asyncio.create_task(other.delete("a"))
        await until_blocked(2)
    assert await deleting is True
    assert await numbers_in((await forking).read()) == list(range(5))
    assert await listed(store) == ["b"]
    await store.close()
    await other.close()


@pytest.mark.parametrize("how", ["fork", "restore"])
async def test_the_copy_of_a_log_keeps_no_other_session_from_being_made(url: str, how: str) -> None:
    store = PostgresStore(url)
    await write(await store.create(meta("a")), note(1))
    async with held(url, "LOCK TABLE dragoman.entry IN EXCLUSIVE MODE"):
        copying = asyncio.create_task(
            store.fork("a", meta("b")) if how == "fork" else store.restore(meta("b"), [note(1)])
        )
        await until_blocked(1)
        await store.create(meta("c"))
        assert not copying.done()
    await copying
    assert await numbers_in(store.read("b")) == [1]
    await store.close()


async def test_a_lease_is_renewed_while_every_shared_connection_waits(url: str) -> None:
    states: list[LeaseState] = []
    store = PostgresStore(url, node="one", lease_seconds=1.5, on_lease=states.append)
    await store.create(meta("a"))
    async with held(url, "SELECT 1 FROM dragoman.about FOR UPDATE"):
        creating = [asyncio.create_task(store.create(meta(f"s{number}"))) for number in range(8)]
        await until_blocked(4)
        ends: set[str] = set()
        async with asyncio.timeout(20):
            while len(ends) < 4:
                ends.add(await asyncio.to_thread(question, "SELECT expires FROM dragoman.node"))
    await asyncio.gather(*creating, return_exceptions=True)
    assert LeaseState.LOST not in states
    await store.close()


@pytest.mark.parametrize("kind", ["nu\0ll", "half \ud800"])
async def test_an_entry_that_the_database_cannot_have_fails_alone(url: str, kind: str) -> None:
    store = PostgresStore(url)
    logs = [await store.create(meta(name)) for name in "abc"]
    # In one group.
    outcomes = await asyncio.gather(
        tried(logs[0], note(1)), tried(logs[1], NoteEntry(kind, 1)), tried(logs[2], note(1))
    )
    assert [outcome is None for outcome in outcomes] == [True, False, True]
    await write(logs[1], note(2))
    assert await numbers_in(logs[1].read()) == [2]
    await store.close()


async def test_a_mistake_in_an_entry_fails_that_and_the_writer_goes_on(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(entry: object) -> None:
        raise LookupError("a mistake")

    store = PostgresStore(url)
    log = await store.create(meta("a"))
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.store.postgres.log.encode_entry", fails)
        assert isinstance(await tried(log, note(1)), StoreFailed)
    await write(log, note(2))
    assert await numbers_in(log.read()) == [2]
    await store.close()


async def test_a_killed_node_whose_clock_is_behind_leaves_its_session_as_the_latest(url: str) -> None:
    behind, other = PostgresStore(url, node="one", clock=lambda: 1.0), PostgresStore(url)
    log = await behind.create(meta("a"))
    await other.create(meta("b"))
    await write(log, note(1))
    question("UPDATE dragoman.node SET expires = '-infinity' WHERE id = 'one'")
    await other.open("a")
    assert ids(await other.list()) == ["a", "b"]
    await other.close()
    await behind.close()


async def test_a_session_whose_giving_back_failed_is_given_back_later(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = PostgresStore(url), PostgresStore(url)
    log = await store.create(meta("a"))
    transaction = store._database.transaction
    with monkeypatch.context() as patch:
        patch.setattr(store._database, "transaction", Away)
        with pytest.raises(StoreFailed):
            await log.release()
    assert store._database.transaction == transaction
    await until(lambda: question("SELECT owner IS NULL FROM dragoman.session") == "t")
    await other.open("a")
    await other.close()
    await store.close()


class Away:
    """A transaction with a database that is away."""

    async def __aenter__(self) -> None:
        raise StoreFailed("the database is away")

    async def __aexit__(self, *_: object) -> None: ...
