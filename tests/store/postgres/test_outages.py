"""A database that goes away loses nothing that was told, and doubles nothing."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from dragoman.store.contract import StoreFailed
from dragoman.store.postgres import database
from dragoman.store.postgres import store as store_module
from dragoman.store.postgres.store import PostgresStore
from tests.store.scenes import listed, meta, note, numbers_in, tried, write
from tests.support.postgres import PostgresServer, empty_database, shared_server


@pytest.fixture
def server(release: Path | None) -> Iterator[PostgresServer]:
    """The server, which the test may stop and kill."""
    server = shared_server(release)
    try:
        yield server
    finally:
        server.restore()


@pytest.fixture
def url() -> Iterator[str]:
    with empty_database() as url:
        yield url


async def test_what_is_appended_while_the_database_is_away_is_there_afterwards(server: PostgresServer) -> None:
    store = PostgresStore(server.create("away"))
    log = await store.create(meta("a"))
    await write(log, note(0))
    server.stop()
    outcomes = [asyncio.ensure_future(tried(log, note(number))) for number in range(1, 5)]
    with pytest.raises(StoreFailed):
        await store.list()
    assert [outcome.done() for outcome in outcomes] == [False] * 4
    server.start()
    assert await asyncio.gather(*outcomes) == [None] * 4
    assert await numbers_in(log.read()) == [0, 1, 2, 3, 4]
    await store.close()


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.slow)])
async def test_a_database_that_is_killed_again_and_again_keeps_every_entry_once(
    server: PostgresServer, kills: int
) -> None:
    store = PostgresStore(server.create(f"killed_{kills}"))
    logs = [await store.create(meta(name)) for name in "abc"]
    moments = random.Random(kills)
    appended: list[asyncio.Future[StoreFailed | None]] = []
    for _ in range(kills):
        is_killed = asyncio.Event()

        async def append_until_killed(is_killed: asyncio.Event = is_killed) -> None:
            while not is_killed.is_set():
                number = len(appended) // len(logs)
                appended.extend(asyncio.ensure_future(tried(log, note(number))) for log in logs)
                await appended[-1 - moments.randrange(3)]

        appending = asyncio.create_task(append_until_killed())
        # Some moment of the load, which no fact tells.
        await asyncio.sleep(moments.random() * 0.05)
        await asyncio.to_thread(server.kill)
        is_killed.set()
        await asyncio.to_thread(server.start)
        await appending
    assert set(await asyncio.gather(*appended)) == {None}
    for log in logs:
        assert await numbers_in(log.read()) == list(range(len(appended) // len(logs)))
    await store.close()


async def test_a_database_that_stays_away_fails_what_waits_when_the_lease_is_lost(server: PostgresServer) -> None:
    store = PostgresStore(server.create("gone"), lease_seconds=1.5)
    log = await store.create(meta("a"))
    server.stop()
    assert isinstance(await asyncio.wait_for(tried(log, note(1)), 30), StoreFailed)
    assert isinstance(await tried(log, note(2)), StoreFailed)
    server.start()
    await store.close()


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "not written"])
async def test_an_append_whose_answer_got_lost_is_there_once(
    url: str, is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(url)
    log = await store.create(meta("a"))
    await write(log, note(1))
    fetch = asyncpg.Connection.fetch
    lost: list[bool] = []

    async def losing(connection: "asyncpg.Connection[asyncpg.Record]", query: str, *values: object) -> object:
        if "moved AS" not in query or lost:
            return await fetch(connection, query, *values)
        lost.append(True)
        if is_written:
            await fetch(connection, query, *values)
        connection.terminate()
        raise asyncpg.ConnectionDoesNotExistError("gone")

    monkeypatch.setattr(asyncpg.Connection, "fetch", losing)
    await write(log, note(2))
    await write(log, note(3))
    assert lost == [True]
    assert await numbers_in(log.read()) == [1, 2, 3]
    await store.close()


async def test_a_database_that_does_not_answer_fails_what_waits_when_the_lease_is_lost(server: PostgresServer) -> None:
    """As behind a network that swallows everything: nothing is refused, and no answer comes."""
    store = PostgresStore(server.create("silent"), lease_seconds=1.5)
    log = await store.create(meta("a"))
    await write(log, note(1))
    with server.paused():
        async with asyncio.timeout(5):
            assert isinstance(await tried(log, note(2)), StoreFailed)
    await store.close()


async def test_a_store_is_closed_in_time_while_the_database_does_not_answer(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (database, store_module):
        monkeypatch.setattr(module, "_CLOSE_SECONDS", 0.5)
    store = PostgresStore(server.create("closing"), lease_seconds=1.5)
    logs = [await store.create(meta(f"s{number}")) for number in range(20)]
    for log in logs:
        await write(log, note(1))
    with server.paused():
        outcomes = [asyncio.ensure_future(tried(log, note(2))) for log in logs]
        async with asyncio.timeout(5):
            await store.close()
        assert [isinstance(outcome.result(), StoreFailed) for outcome in outcomes] == [True] * 20
        for log in logs:
            assert isinstance(await tried(log, note(3)), StoreFailed)


async def test_an_address_without_a_server_is_a_sentence(tmp_path: object) -> None:
    store = PostgresStore("postgresql://dragoman:hunter2@127.0.0.1:1/sessions")
    with pytest.raises(StoreFailed, match="the database cannot be reached") as failure:
        await listed(store)
    assert "hunter2" not in repr(store) + str(failure.value)
    await store.close()
