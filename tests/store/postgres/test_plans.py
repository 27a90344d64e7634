"""How the database finds what is asked: by its indexes, also among many sessions that have nothing to do with it."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from dragoman.store.postgres import group_commit, listing, ownership
from dragoman.store.postgres.store import PostgresStore
from tests.store.scenes import ids
from tests.support.postgres import new_database

SESSIONS = 20_000
# One of a thousand is in a folder of its own.
FILL = f"""
    INSERT INTO dragoman.session
    SELECT 's' || number, CASE number % 1000 WHEN 7 THEN '/few' ELSE '/many' END, '[]', number, '', number, false, 0,
    NULL, NULL, 1, 3, 0 FROM generate_series(1, {SESSIONS}) AS number;
    INSERT INTO dragoman.entry
    SELECT 's' || number, sequence, 'note:number', '1' FROM generate_series(1, {SESSIONS}) AS number,
    generate_series(1, 3) AS sequence;
    UPDATE dragoman.about SET newest = {SESSIONS};
    ANALYZE;
"""


@pytest.fixture
async def url() -> AsyncIterator[str]:
    with new_database() as url:
        store = PostgresStore(url)
        await store.list()
        await store.close()
        connection = await asyncpg.connect(url)
        await connection.execute(FILL)
        await connection.close()
        yield url


async def test_no_question_reads_all_sessions_or_all_entries(url: str) -> None:
    statements: dict[str, tuple[str, tuple[object, ...]]] = {
        "list": (listing._UNMOVED, (False, 2**62, "", 0, None, 51)),
        "next page": (listing._UNMOVED, (False, 10_000, "s1", 0, None, 51)),
        "folder": (listing._UNMOVED_IN_FOLDERS, (False, 2**62, "", 0, ["/few", "/many", "/none"], 51)),
        "moved": (listing._MOVED, (False, 2**62, "", 0, ["/few"], 51, None)),
        "look": (ownership._LOOK, ("s77",)),
        "read": (ownership._READ, ("s77", 1)),
        "copy": (ownership._COPY, ("s77", "new", 3)),
        "append": (
            group_commit._APPEND,
            ("one", 1, 1, ["s77"], [1], [3], [4], ["s77"], [4], ["note:number"], [b"1"]),
        ),
        "outcome": (group_commit._ENDS, (["s77"], [1])),
    }
    connection = await asyncpg.connect(url)
    for what, (statement, values) in statements.items():
        # As it is planned when it was run often enough, without a look at the values.
        for mode in ("force_custom_plan", "force_generic_plan"):
            await connection.execute(f"SET plan_cache_mode = {mode}")
            plan = [row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *values)]
            read_whole = [line for line in plan if "Seq Scan on" in line and "on place_left" not in line]
            # The fence: the few rows of nodes.
            assert [line for line in read_whole if "on node" not in line] == [], (what, mode, "\n".join(plan))
            # Not among all sessions in their order, either.
            assert ("session_by_cwd" in "".join(plan)) == (what == "folder")
    await connection.close()


async def test_a_folder_with_few_sessions_is_listed_in_their_order(url: str) -> None:
    store = PostgresStore(url)
    page = await store.list(cwd="/few", related=["/none", "/few"])
    assert ids(page) == [f"s{number}" for number in range(SESSIONS - 993, 0, -1000)]
    await store.close()
