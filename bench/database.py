"""`python -m bench.database`: a fenced commit of the session store in PostgreSQL beside a bare COPY, with a verdict.

On the server of the development wheel, with fsync, both in turn in one run. The bare loop copies groups as large as
ours were into a table with the same columns and key: no fence, no end of a log, no callback for each entry.

Exit status: 0 the promise is met, 1 it is missed.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Final

import asyncpg

from bench.lines import Line, told
from dragoman.store.contract import SessionMeta, StoreFailed
from dragoman.store.entries import NoteEntry, encode_entry
from dragoman.store.postgres.group_commit import GroupCommit, LogPart
from dragoman.store.postgres.log import PostgresLog
from dragoman.store.postgres.store import PostgresStore
from tests.support.postgres import running_server

ENTRIES: Final = 100_000
REPETITIONS: Final = 5
LEAST_SHARE: Final = 0.5
# Sessions, entries of each that wait for the database, and the share that is promised: for sessions that stream. Each
# session of a group costs a changed row, which the bare loop has not, so small pieces of many have a smaller share.
LOADS: Final = {
    "10 sessions, 100 entries under way": (10, 100, LEAST_SHARE),
    "20 sessions, 10 entries under way": (20, 10, None),
    "200 sessions that wait for each entry": (200, 1, None),
}
_ENTRY: Final = NoteEntry("piece", "the quick brown fox jumps over the lazy dog " * 2)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.database", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the entries")
    return told(lines(ENTRIES // (10 if parser.parse_args(arguments).quick else 1)))


def lines(entries: int) -> Iterator[Line]:
    with running_server(fsync="on") as server:
        url = server.create("bench")
        for load, (sessions, waiting, least) in LOADS.items():
            ours: list[float] = []
            bare: list[float] = []
            sizes: list[int] = []
            for _ in range(REPETITIONS):
                with counted_groups() as groups:
                    ours.append(asyncio.run(stream(url, entries, sessions, waiting)))
                sizes.append(round(sum(groups) / len(groups)))
                bare.append(asyncio.run(copy(url, entries, sizes[-1])))
            yield Line(f"{load}: entries in a group", median(sizes), "")
            yield Line(f"{load}: fenced commit", median(ours) / 1000, "k entries/s")
            yield Line(f"{load}: bare COPY", median(bare) / 1000, "k entries/s")
            share = median(one / other for one, other in zip(ours, bare, strict=True))
            yield Line(f"{load}: share of the bare COPY", share, "", least=least)


@contextmanager
def counted_groups() -> Iterator[list[int]]:
    """How many entries each group of the writer has, in the block."""
    groups: list[int] = []
    append = GroupCommit._append

    async def counting(writer: GroupCommit, parts: Sequence[LogPart]) -> dict[str, StoreFailed]:
        groups.append(sum(len(part.rows) for part in parts))
        return await append(writer, parts)

    GroupCommit._append = counting  # type: ignore[method-assign, assignment]
    try:
        yield groups
    finally:
        GroupCommit._append = append  # type: ignore[method-assign]


async def stream(url: str, entries: int, sessions: int, waiting: int) -> float:
    """Entries a second through the store."""
    store = PostgresStore(url)
    names = [f"s{time.monotonic_ns()}-{number}" for number in range(sessions)]
    logs = [await store.create(SessionMeta(name, "/work")) for name in names]
    began = time.perf_counter()
    await asyncio.gather(*(append(log, entries // sessions, waiting) for log in logs))
    spent = time.perf_counter() - began
    for name in names:
        await store.delete(name)
    await store.close()
    return entries / spent


async def append(log: PostgresLog, count: int, waiting: int) -> None:
    room = asyncio.Semaphore(waiting)

    def committed(error: StoreFailed | None) -> None:
        assert error is None
        room.release()

    for _ in range(count):
        await room.acquire()
        log.append((_ENTRY,), committed)
    await log.flush()


async def copy(url: str, entries: int, group: int) -> float:
    """Entries a second by COPY alone."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "DROP TABLE IF EXISTS bare; CREATE TABLE bare"
        " (session text NOT NULL, sequence bigint NOT NULL, kind text NOT NULL, body bytea NOT NULL,"
        " PRIMARY KEY (session, sequence))"
    )
    kind, body = encode_entry(_ENTRY)
    began = time.perf_counter()
    for first in range(0, entries, group):
        rows = [("a", number, kind, body) for number in range(first, min(first + group, entries))]
        await connection.copy_records_to_table("bare", records=rows)
    spent = time.perf_counter() - began
    await connection.close()
    return entries / spent


if __name__ == "__main__":
    raise SystemExit(main())
