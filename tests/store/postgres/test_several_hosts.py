"""An address that names a primary and its standbys: the one that takes writes is found, whatever the others do."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.hosts import hosts_of
from dragoman.store.postgres.store import PostgresStore
from tests.store.scenes import listed, meta, note, write
from tests.support.postgres import USER, empty_database, shared_server


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a host that takes connections and says nothing, as one does whose machine hangs."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


async def test_a_host_that_does_not_answer_keeps_none_from_being_found(silent: int) -> None:
    with empty_database():
        folder = shared_server().folder
        store = PostgresStore(f"postgresql://{USER}@/shared?host=127.0.0.1,{folder}&port={silent},5432")
        async with asyncio.timeout(5):  # long before the other one is given up
            await write(await store.create(meta("a")), note(1))
            assert await listed(store) == ["a"]
            await store.close()


async def test_a_standby_is_not_written_to() -> None:
    with empty_database() as url:
        shared_server().execute("ALTER DATABASE shared SET default_transaction_read_only = on")
        try:
            store = PostgresStore(f"{url},{shared_server().folder}")
            with pytest.raises(StoreFailed, match="none of the database's hosts takes writes"):
                await store.list()
            await store.close()
        finally:
            shared_server().execute("ALTER DATABASE shared RESET default_transaction_read_only")


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://u@db.example/d", []),
        ("postgresql:///d?host=/run/pg", []),
        ("postgresql://u:p@one,two:6432/d", [("one", 5432), ("two", 6432)]),
        ("postgres://[::1]:1,[fe80::2]/d", [("::1", 1), ("fe80::2", 5432)]),
        ("postgresql://u@/d?host=/run/pg,two&port=7,8", [("/run/pg", 7), ("two", 8)]),
        ("postgresql:///d?host=one,two&port=7", [("one", 7), ("two", 7)]),
    ],
)
def test_the_hosts_of_an_address_are_known(url: str, hosts: list[tuple[str, int]]) -> None:
    assert hosts_of(url) == hosts
