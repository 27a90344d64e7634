"""The tables are made once and whole, and an earlier release's are read."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from dragoman.store.contract import StoreFailed
from dragoman.store.entries import TextEntry
from dragoman.store.postgres import schema
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.store import PostgresStore
from tests.store.scenes import entries_of, listed, meta, note, numbers_in, write
from tests.support.postgres import new_database, shared_server
from tests.support.waiting import until

# What each version of the tables has, with sessions in them, as SQL.
DUMPS = sorted((Path(__file__).parent / "earlier_tables").glob("*.sql"))


@pytest.fixture
async def connection() -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
    """A connection to a database without tables."""
    with new_database() as url:
        connection = await asyncpg.connect(url)
        yield connection
        await connection.close()


def name_of(connection: Any) -> str:
    return str(connection._params.database)


def url_of(connection: "asyncpg.Connection[asyncpg.Record]") -> str:
    return shared_server().url(name_of(connection))


async def has_tables(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    return await connection.fetchval("SELECT to_regnamespace('dragoman')") is not None


async def test_a_database_of_a_later_release_is_not_opened(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    await schema.migrate(connection)
    await connection.execute("UPDATE dragoman.about SET version = version + 1")
    store = PostgresStore(url_of(connection))
    for work in (store.list(), store.create(meta("a"))):
        with pytest.raises(StoreFailed, match="was made by a later release of Dragoman; update this one"):
            await work
    await store.close()


async def test_processes_that_begin_at_once_make_the_tables_once(
    connection: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    # Whatever the database's own default is: who waits must see what the first one has made.
    await connection.execute(
        f"ALTER DATABASE \"{name_of(connection)}\" SET default_transaction_isolation = 'repeatable read'"
    )
    databases = [Database(url_of(connection)) for _ in range(5)]

    async def begin(database: Database) -> int:
        async with database.transaction() as own:
            return int(await own.fetchval("SELECT version FROM dragoman.about"))

    assert await asyncio.gather(*map(begin, databases)) == [len(schema.MIGRATIONS)] * 5
    for database in databases:
        await database.close()


async def test_a_migration_that_is_killed_leaves_nothing(
    connection: "asyncpg.Connection[asyncpg.Record]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its end, when everything is made and nothing is committed."""
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "SELECT pg_sleep(600)"))
        database = Database(url_of(connection))
        opening = asyncio.ensure_future(database.connect())
        sleeping = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
        database_name = name_of(connection)
        await until(lambda: shared_server().execute(sleeping, database_name))
        await connection.execute(f"SELECT pg_terminate_backend(pid) FROM ({sleeping}) AS found")
        with pytest.raises(StoreFailed):
            await opening
        await database.close()
    assert not await has_tables(connection)
    await schema.migrate(connection)
    assert await has_tables(connection)


async def test_a_new_migration_is_whole_or_not_there(
    connection: "asyncpg.Connection[asyncpg.Record]", monkeypatch: pytest.MonkeyPatch
) -> None:
    await schema.migrate(connection)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE dragoman.one (); SELECT 1 / 0"))
    with pytest.raises(asyncpg.DivisionByZeroError):
        await schema.migrate(connection)
    assert await connection.fetchval("SELECT to_regclass('dragoman.one')") is None
    assert await connection.fetchval("SELECT version FROM dragoman.about") == len(schema.MIGRATIONS) - 1
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:-1], "CREATE TABLE dragoman.one ()"))
    await schema.migrate(connection)
    assert await connection.fetchval("SELECT version FROM dragoman.about") == len(schema.MIGRATIONS)


def test_every_version_of_the_tables_has_a_dump() -> None:
    assert [path.stem for path in DUMPS] == [f"version_{number}" for number in range(1, len(schema.MIGRATIONS) + 1)]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
async def test_tables_of_an_earlier_version_are_read_and_go_on(
    connection: "asyncpg.Connection[asyncpg.Record]", dump: Path
) -> None:
    await connection.execute(dump.read_text())
    store = PostgresStore(url_of(connection))
    assert await listed(store) == ["named", "killed"]
    assert await listed(store, archived="only") == ["archived"]
    named = await store.read_meta("named")
    assert (named.cwd, named.directories, named.title) == ("/work", ("/more",), "A title")
    assert await entries_of(store.read("named")) == [TextEntry("agent_message_chunk", "m1", "Hello, world"), note(2)]
    # Its node was killed, and told nothing to the list.
    log = await store.open("killed")
    assert await numbers_in(log.read()) == [1, 2, 3]
    await write(log, note(4))
    assert await numbers_in(log.read()) == [1, 2, 3, 4]
    await store.close()
