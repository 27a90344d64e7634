"""Who may write: nodes with leases, of which the database and no clock decides."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest

from dragoman.store.contract import SessionHeld, StoreFailed
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.log import PostgresLog
from dragoman.store.postgres.node_lease import LeaseState, NodeLease, NodeRuns
from dragoman.store.postgres.store import PostgresStore
from tests.store.scenes import child, meta, note, numbers_in, tried, write
from tests.support.postgres import empty_database, shared_server
from tests.support.waiting import until

LEASE = 1.5


@pytest.fixture
def url() -> Iterator[str]:
    with empty_database() as url:
        yield url


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    yield database
    await database.close()


@pytest.fixture
def holding(url: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds the session `a` and writes to it."""
    with child("hold_in_postgres", url, LEASE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def expire(node: str) -> None:
    """Let the lease of a node end now, as if it had not been renewed for long."""
    shared_server().execute(f"UPDATE dragoman.node SET expires = '-infinity' WHERE id = '{node}'", "shared")


async def opened(store: PostgresStore) -> PostgresLog:
    """Open the session when it is free."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await store.open("a")
            except SessionHeld:
                await asyncio.sleep(0)


async def test_one_process_at_a_time_is_a_node(database: Database) -> None:
    first, second = NodeLease(database, "a"), NodeLease(database, "a")
    await first.acquire()
    with pytest.raises(NodeRuns, match="node a is running"):
        await second.acquire()
    await first.release()
    await second.acquire()
    assert (first.incarnation, second.incarnation) == (1, 2)
    assert (first.state, second.state) == (LeaseState.LOST, LeaseState.HELD)
    await second.release()


async def test_a_lease_is_renewed_while_its_process_lives(database: Database) -> None:
    states: list[LeaseState] = []
    lease = NodeLease(database, "a", seconds=0.9, on_change=states.append)
    await lease.acquire()
    ends: set[str] = set()
    async with asyncio.timeout(20):
        while len(ends) < 4:
            # In a thread: the lease is renewed by this loop.
            found = await asyncio.to_thread(shared_server().execute, "SELECT expires FROM dragoman.node", "shared")
            ends.add(found)
    assert lease.state is LeaseState.HELD
    await lease.release()


async def test_a_lease_that_is_not_renewed_is_late_and_then_lost(database: Database, url: str) -> None:
    states: list[LeaseState] = []
    lost = asyncio.Event()

    def on_change(state: LeaseState) -> None:
        states.append(state)
        if state is LeaseState.LOST:
            lost.set()

    lease = NodeLease(database, "a", seconds=LEASE, on_change=on_change)
    await lease.acquire()
    await database.close()
    await asyncio.wait_for(lost.wait(), 20)
    assert states == [LeaseState.HELD, LeaseState.LATE, LeaseState.LOST]


async def test_an_incarnation_that_was_counted_on_appends_nothing(url: str) -> None:
    one, other = PostgresStore(url, node="one"), PostgresStore(url, node="other")
    log = await one.create(meta("a"))
    await write(log, note(1))
    expire("one")
    taken = await other.open("a")
    assert isinstance(await tried(log, note(2)), StoreFailed)
    await write(taken, note(3))
    assert await numbers_in(other.read("a")) == [1, 3]
    await one.close()
    await other.close()


async def test_a_late_node_that_was_not_replaced_goes_on(url: str) -> None:
    store = PostgresStore(url, node="one")
    log = await store.create(meta("a"))
    expire("one")
    await write(log, note(1))
    assert await numbers_in(log.read()) == [1]
    await store.close()


async def test_an_append_that_has_begun_is_finished_before_a_session_is_taken(url: str) -> None:
    """The row of the node is locked by an append; who counts it on waits for that."""
    one, other = PostgresStore(url, node="one"), PostgresStore(url, node="other")
    log = await one.create(meta("a"))
    await write(log, note(1))
    expire("one")
    async with one._database.transaction() as connection:
        await connection.execute("SELECT 1 FROM dragoman.node WHERE id = 'one' FOR SHARE")
        taking = asyncio.create_task(other.open("a"))
        blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'shared'"
        await until(lambda: shared_server().execute(blocked) == "1")
        assert not taking.done()
    await taking
    await one.close()
    await other.close()


async def test_after_a_lost_lease_a_store_takes_sessions_with_a_new_one(url: str) -> None:
    states: list[LeaseState] = []
    store = PostgresStore(url, node="one", on_lease=states.append)
    log = await store.create(meta("a"))
    shared_server().execute("UPDATE dragoman.node SET incarnation = 7, expires = '-infinity'", "shared")
    assert isinstance(await tried(log, note(1)), StoreFailed)
    assert states == [LeaseState.HELD, LeaseState.LOST]
    again = await store.open("a")
    await write(again, note(2))
    assert await numbers_in(again.read()) == [2]
    await store.close()


async def test_a_killed_process_holds_its_sessions_until_its_lease_ends(
    url: str, holding: "subprocess.Popen[str]"
) -> None:
    process = holding
    assert process.stdout is not None
    store = PostgresStore(url)
    with pytest.raises(SessionHeld):
        await store.open("a")
    process.kill()
    process.wait()
    log = await opened(store)
    found = await numbers_in(log.read())
    assert found == list(range(len(found)))
    await store.close()


async def test_a_process_that_was_stopped_for_longer_than_its_lease_writes_nothing_more(
    url: str, holding: "subprocess.Popen[str]"
) -> None:
    process = holding
    assert process.stdout is not None
    os.kill(process.pid, signal.SIGSTOP)
    store = PostgresStore(url)
    log = await opened(store)
    before = await store.length("a")
    os.kill(process.pid, signal.SIGCONT)
    assert await asyncio.to_thread(partial(process.stdout.read)) == "lost\n"
    process.wait()
    assert await store.length("a") == before
    await write(log, note(1_000_000))
    await store.close()


async def test_a_process_that_has_lost_its_lease_by_its_clock_is_its_node_again_at_once(database: Database) -> None:
    lost, other = NodeLease(database, "a", seconds=600), NodeLease(database, "a")
    await lost.acquire()
    lost.lose()
    # Its row still counts, for what the others know.
    with pytest.raises(NodeRuns):
        await other.acquire()
    again = NodeLease(database, "a", seconds=600, previous=lost.incarnation)
    await again.acquire()
    assert again.incarnation == lost.incarnation + 1
    # Not by a memory of what another process has had since.
    with pytest.raises(NodeRuns):
        await NodeLease(database, "a", previous=lost.incarnation).acquire()
    await again.release()
