"""Kill -9 of a process that writes to a database, at every statement and at any moment: nothing told is lost."""

import asyncio
import random
import signal
from pathlib import Path

import pytest

from dragoman.store.postgres.store import PostgresStore
from tests.store.scenes import child, finished, numbers_in
from tests.store.test_kills import check_store
from tests.support.postgres import empty_database, shared_server


def expire(release: Path | None) -> None:
    """Let the leases of all nodes end now: a killed one holds its sessions for fifteen seconds."""
    shared_server(release).execute("UPDATE dragoman.node SET expires = '-infinity'", "shared")


async def killed_at(release: Path | None, url: str, number: int) -> bool:
    """Have the scripted sessions killed at a moment, and check what is there; False: they ended before it."""
    process = child("be_killed_at_statement", url, number)
    lines = await asyncio.to_thread(finished, process)
    assert process.returncode in (0, -signal.SIGKILL)
    assert (process.returncode == 0) == ("closed" in lines)
    if lines:
        expire(release)
        await check_store(PostgresStore(url), lines)
    return process.returncode != 0


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("number", [27, 52, 88])
async def test_a_kill_at_some_statements_loses_nothing(release: Path | None, number: int) -> None:
    with empty_database(release) as url:
        assert await killed_at(release, url, number)


@pytest.mark.requirement("E1")
@pytest.mark.slow
async def test_a_kill_at_every_statement_loses_nothing(release: Path | None) -> None:
    number = 1
    while True:
        with empty_database(release) as url:
            if not await killed_at(release, url, number):
                break
        number += 1
    assert number > 120


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("kills", [2, pytest.param(150, marks=pytest.mark.slow)])
async def test_kills_at_random_moments_lose_nothing(release: Path | None, kills: int) -> None:
    moments = random.Random(kills)
    for _ in range(kills):
        with empty_database(release) as url:
            process = child("stream_to_postgres", url)
            assert process.stdout is not None
            read = process.stdout.readline
            lines = [await asyncio.to_thread(read) for _ in range(moments.randrange(1, 400))]
            process.kill()
            lines += await asyncio.to_thread(finished, process)
            expire(release)
            store = PostgresStore(url)
            found = await numbers_in((await store.open("a")).read())
            assert found == list(range(len(found)))
            # The first line of the rest, and the last, may be pieces of one.
            assert len(found) > max((int(line) for line in lines[:-1] if line.strip()), default=-1)
            await store.close()
