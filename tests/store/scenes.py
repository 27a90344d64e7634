"""What the tests of the store share: engines, entries, and short ways to write and read a log."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from dragoman.store.contract import Log, Record, SessionMeta, SessionPage, Store, StoreFailed
from dragoman.store.entries import Entry, EventEntry, NoteEntry, TextEntry
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.events import AnyEvent, Idle
from tests.support.needs import need
from tests.support.postgres import DEBIAN_15, empty_database


class Place(Protocol):
    """Somewhere to keep sessions: each call opens a store there."""

    def __call__(self, *, clock: Callable[[], float] = time.time) -> Store: ...


@contextmanager
def sqlite_place(folder: Path) -> Iterator[Place]:
    """A folder."""
    yield partial(SqliteStore, folder)


@contextmanager
def postgres_place(folder: Path) -> Iterator[Place]:
    """A database on a real server."""
    with empty_database() as url:
        yield partial(PostgresStore, url)


@contextmanager
def postgres_15_place(folder: Path) -> Iterator[Place]:
    """A database on the oldest release that we promise."""
    need(str(DEBIAN_15 / "postgres"))
    with empty_database(DEBIAN_15) as url:
        yield partial(PostgresStore, url)


ENGINES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "sqlite": sqlite_place,
    "postgres": postgres_place,
}
# Beside them in the slow lane.
OLDER_ENGINES = {"postgres-15": postgres_15_place}

ROOT = Path(__file__).resolve().parent.parent.parent
IDLE: AnyEvent = Idle(stop_reason="end_turn")


def said(text: str, message: str = "m1") -> TextEntry:
    return TextEntry("agent_message_chunk", message, text)


def note(number: int) -> NoteEntry:
    return NoteEntry("number", number)


def meta(session_id: str, cwd: str = "/work", title: str = "") -> SessionMeta:
    return SessionMeta(session_id, cwd, title=title)


async def write(log: Log, *entries: Entry) -> None:
    """Append and wait; a failure is raised."""
    log.append(entries, lambda error: None)
    await log.flush()


async def tried(log: Log, *entries: Entry) -> StoreFailed | None:
    """Append and wait for the outcome."""
    done: asyncio.Future[StoreFailed | None] = asyncio.get_running_loop().create_future()
    log.append(entries, done.set_result)
    return await done


async def everything(batches: AsyncIterable[Sequence[Record]]) -> list[Record]:
    return [record async for batch in batches for record in batch]


async def entries_of(batches: AsyncIterable[Sequence[Record]]) -> list[Entry]:
    return [record.entry for record in await everything(batches)]


async def numbers_in(batches: AsyncIterable[Sequence[Record]]) -> list[object]:
    return [each.value for each in await entries_of(batches) if isinstance(each, NoteEntry) and each.kind == "number"]


def ids(page: SessionPage | Iterable[SessionMeta]) -> list[str]:
    return [each.id for each in (page.sessions if isinstance(page, SessionPage) else page)]


async def listed(store: Store, **filters: str) -> list[str]:
    """The ids of all pages."""
    found: list[str] = []
    page = await store.list(**filters)  # type: ignore[arg-type]
    found += ids(page)
    while page.cursor is not None:
        page = await store.list(cursor=page.cursor, **filters)  # type: ignore[arg-type]
        found += ids(page)
    return found


def child(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """A process that runs an async `main(folder, ...)`; it talks by lines."""
    imports = f"import asyncio, sys\nfrom tests.support.store_processes import {program}\n"
    source = f"{imports}asyncio.run({program}(*sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )


def finished(process: "subprocess.Popen[str]") -> list[str]:
    """The lines a child wrote until it ended."""
    with process:
        try:
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    return output.splitlines()


EVERY_KIND: list[Entry] = [said("Hello"), EventEntry(IDLE), note(1)]


def run(command: Sequence[str]) -> list[str]:
    """The lines of a program that finds our packages."""
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    return finished(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment))


def died(process: "subprocess.Popen[str]") -> None:
    """Wait until a process has ended, and leave it as the zombie it is."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
