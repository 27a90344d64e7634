"""`python -m bench.store`: what the session store costs beside bare SQLite, with a verdict for each promise.

Exit status: 0 all promises are met, 1 one is missed.
"""

import argparse
import asyncio
import gc
import os
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

from bench.lines import Line, told
from dragoman.store.contract import SessionMeta, StoreFailed
from dragoman.store.entries import TextEntry
from dragoman.store.index import Index
from dragoman.store.locks import Holder
from dragoman.store.sqlite import SqliteStore

EVENTS: Final = 100_000
WAITING: Final = 1024
"""Entries that wait for the disk before the speaker does: what the agent's journal allows."""
LONE: Final = 2_000
SESSIONS: Final = 100_000
HELD: Final = 10_000
REPETITIONS: Final = 5
PAGES: Final = 200
LINKS: Final = 30_000
"""Names for one file: ext4 allows 65,000."""

EVENT_MICROSECONDS: Final = 15.0
PAGE_MILLISECONDS: Final = 5.0
IDLE_KIB: Final = 64.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.store", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    share = 10 if parser.parse_args(arguments).quick else 1
    return told(lines(share))


def lines(share: int) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        yield from streaming(Path(folder), EVENTS // share)
        yield from listing(Path(folder) / "many", SESSIONS // share)
        yield from holding(Path(folder) / "held", HELD // share)


# -- streaming -------------------------------------------------------------------------------------------------------


def streaming(folder: Path, count: int) -> Iterator[Line]:
    """All in turn within each repetition, so that a busy machine is busy for all."""
    contenders: dict[str, Callable[[Path], float]] = {
        f"store, {count:,} pieces streamed": lambda place: asyncio.run(stream(place, count)),
        "bare sqlite3, one insert each, a commit for all": lambda place: insert(place, count, count),
        "bare sqlite3, one insert each, a commit for 100": lambda place: insert(place, count, 100),
        "bare sqlite3, one insert and one commit each": lambda place: insert(place, LONE, 1),
        "store, each piece awaited": lambda place: asyncio.run(stream_lone(place, LONE)),
    }
    spent: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(REPETITIONS):
        for name, run in contenders.items():
            place = folder / f"{turn}-{len(spent[name])}-{abs(hash(name))}"
            place.mkdir()
            spent[name].append(run(place) * 1e6)
    for number, (name, each) in enumerate(spent.items()):
        yield Line(f"CPU an event: {name}", median(each), "us", EVENT_MICROSECONDS if number == 0 else None)


async def stream(folder: Path, count: int) -> float:
    """CPU seconds an event, both threads together."""
    store = SqliteStore(folder)
    log = await store.create(SessionMeta("a", "/work"))
    done = 0
    room = asyncio.Event()

    def committed(error: StoreFailed | None) -> None:
        nonlocal done
        assert error is None
        done += 1
        room.set()

    began = time.process_time()
    for number in range(count):
        log.append((TextEntry("agent_message_chunk", "m1", "the quick "),), committed)
        while number - done >= WAITING:
            room.clear()
            await room.wait()
    await log.flush()
    spent = time.process_time() - began
    await store.close()
    return spent / count


async def stream_lone(folder: Path, count: int) -> float:
    store = SqliteStore(folder)
    log = await store.create(SessionMeta("a", "/work"))
    began = time.process_time()
    for _ in range(count):
        log.append((TextEntry("agent_message_chunk", "m1", "the quick "),), lambda error: None)
        await log.flush()
    spent = time.process_time() - began
    await store.close()
    return spent / count


def insert(folder: Path, count: int, together: int) -> float:
    file = sqlite3.connect(folder / "bare.db", isolation_level=None)
    file.execute("PRAGMA journal_mode = WAL")
    file.execute("PRAGMA synchronous = NORMAL")
    file.execute("CREATE TABLE log (sequence INTEGER PRIMARY KEY, kind TEXT, body BLOB)")
    began = time.process_time()
    for first in range(0, count, together):
        file.execute("BEGIN IMMEDIATE")
        for _ in range(first, min(first + together, count)):
            file.execute("INSERT INTO log (kind, body) VALUES (?, ?)", ("agent_message_chunk", b'["m1","the quick "]'))
        file.execute("COMMIT")
    spent = time.process_time() - began
    file.close()
    return spent / count


# -- listing ---------------------------------------------------------------------------------------------------------


class Names:
    """Sessions whose files are names for one and the same: enough for a list."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self._count = count

    def ids(self) -> Iterator[str]:
        source = self.folder / "source"
        for number in range(self._count):
            if number % LINKS == 0:
                source = self.folder / f"source{number}"
                source.touch()
            os.link(source, self.folder / f"s{number:06}.session")
            yield f"s{number:06}"

    def read_meta(self, session_id: str) -> SessionMeta:
        number = int(session_id[1:])
        return SessionMeta(session_id, f"/project/{number % 500}", (), f"Session {number}", number + 1, number + 1)

    def exists(self, session_id: str) -> bool:
        return True


def listing(folder: Path, count: int) -> Iterator[Line]:
    folder.mkdir()
    index = Index(folder / "index", Names(folder, count), Holder(folder / "holders"))  # type: ignore[arg-type]  # enough
    index.read_meta("s000000")  # makes it
    index.close()
    cold = []
    for _ in range(REPETITIONS):
        cold.append(asyncio.run(pages(folder, 1)))
    yield Line(f"first page of {count:,} sessions, in a fresh store", median(cold), "ms", PAGE_MILLISECONDS)
    yield Line(f"a page of {count:,} sessions", asyncio.run(pages(folder, PAGES)), "ms", PAGE_MILLISECONDS)
    folder_pages = asyncio.run(pages(folder, PAGES // 4, "/project/7"))
    yield Line(f"a page of one cwd of {count:,} sessions", folder_pages, "ms", PAGE_MILLISECONDS)


async def pages(folder: Path, count: int, cwd: str | None = None) -> float:
    """Milliseconds a page, the median of some, followed by their cursors."""
    store = SqliteStore(folder)
    spent, cursor = [], None
    for _ in range(count):
        began = time.perf_counter()
        page = await store.list(cursor=cursor, cwd=cwd)
        spent.append((time.perf_counter() - began) * 1e3)
        cursor = page.cursor
    await store.close()
    return median(spent)


# -- holding ---------------------------------------------------------------------------------------------------------


def holding(folder: Path, count: int) -> Iterator[Line]:
    memory, files, create = asyncio.run(hold(folder, count))
    yield Line(f"resident memory of an idle session, {count:,} held", memory, "KiB", IDLE_KIB)
    yield Line("descriptors used meanwhile", files, "")
    yield Line("to create one", create, "ms")


async def hold(folder: Path, count: int) -> tuple[float, float, float]:
    store = SqliteStore(folder)
    for number in range(100):
        await store.create(SessionMeta(f"w{number}", "/work"))
    gc.collect()
    before = resident()
    began = time.perf_counter()
    logs = [await store.create(SessionMeta(f"s{number}", "/work")) for number in range(count)]
    create = (time.perf_counter() - began) * 1e3 / count
    for log in logs[:: count // 200]:
        log.append((TextEntry("agent_message_chunk", "m1", "the quick "),), lambda error: None)
        await log.flush()
    gc.collect()
    used, files = (resident() - before) / count / 1024, len(os.listdir("/proc/self/fd"))
    await store.close()
    return used, files, create


def resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(main())
