"""A pooler between us and the database, which lends a server for a session or for a transaction."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from dragoman.store.postgres.store import PostgresStore
from tests.store.scenes import listed, meta, note, numbers_in, write
from tests.support.needs import need
from tests.support.postgres import OTHER_USER, USER, empty_database, shared_server
from tests.support.waiting import wait_until


@pytest.fixture(params=["transaction", "session"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database behind a pooler in this mode."""
    program = need("pgbouncer")
    folder = shared_server().folder
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # In the server's folder: the pooler runs as the server's user, which may read nothing else of the tests.
    users, settings, log = folder / "users.txt", folder / "pooler.ini", folder / f"pooler-{port}.log"
    users.write_text(f'"{USER}" ""\n')
    lines = [
        *("[databases]", f"* = host={folder}", "[pgbouncer]", "listen_addr = 127.0.0.1", f"listen_port = {port}"),
        *("auth_type = trust", f"auth_file = {users}", f"pool_mode = {request.param}", "unix_socket_dir ="),
        f"logfile = {log}",
    ]
    settings.write_text("\n".join(lines) + "\n")
    for file in (users, settings):
        file.chmod(0o644)
    other = OTHER_USER if os.geteuid() == 0 else None
    with (
        empty_database(),
        subprocess.Popen(
            [program, "--quiet", str(settings)],
            stderr=subprocess.DEVNULL,
            user=other,
            group=other,
            extra_groups=None if other is None else [],
        ) as pooler,
    ):
        wait_until(lambda: listens(port), "the pooler listens")
        yield f"postgresql://{USER}@127.0.0.1:{port}/shared"
        pooler.kill()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_sessions_are_written_and_read_through_a_pooler(url: str) -> None:
    writing, reading = PostgresStore(url), PostgresStore(url)
    logs = [await writing.create(meta(f"s{number}")) for number in range(8)]
    await asyncio.gather(*(write(log, *map(note, range(20))) for log in logs))
    assert await listed(reading) == [f"s{number}" for number in reversed(range(8))]
    assert [await numbers_in(reading.read(f"s{number}")) for number in range(8)] == [list(range(20))] * 8
    await writing.close()
    log = await reading.open("s3")
    await write(log, note(20))
    assert await numbers_in(log.read()) == list(range(21))
    await reading.close()


async def test_what_a_killed_process_has_prepared_keeps_no_other_from_beginning(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both begin to count the names of their statements.
    monkeypatch.setattr("asyncpg.connection._uid", 0)
    other = await asyncpg.connect(url)
    await other.fetchval("SELECT pg_backend_pid()")
    other.terminate()
    monkeypatch.setattr("asyncpg.connection._uid", 0)
    store = PostgresStore(url)
    await write(await store.create(meta("a")), note(1))
    assert await listed(store) == ["a"]
    await store.close()
