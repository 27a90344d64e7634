"""Programs that tests run as other processes. Each prints a line when it has come so far."""

import asyncio
import os
import resource
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from dragoman.store.contract import Log, SessionHeld, Store, StoreFailed
from dragoman.store.entries import NoteEntry
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import listed, meta, note, numbers_in, said, tried, write


async def create(folder: str, *names: str) -> None:
    store = SqliteStore(folder)
    for name in names:
        await store.create(meta(name))
        print(name, flush=True)
    await store.close()


async def write_and_die(folder: str, name: str) -> None:
    log = await SqliteStore(folder).open(name)
    await write(log, note(1))
    os.kill(os.getpid(), signal.SIGKILL)


async def hold(folder: str, name: str) -> None:
    """Hold a session until a line comes, or for ever."""
    store = SqliteStore(folder)
    try:
        log = await store.open(name)
    except SessionHeld:
        print("held elsewhere", flush=True)
    else:
        print("held", flush=True)
        sys.stdin.readline()
        print("taken over" if await tried(log, note(1)) else "written", flush=True)
    await store.close()


async def hold_and_start_a_sleeper(folder: str, name: str) -> None:
    await SqliteStore(folder).open(name)
    sleeper = await asyncio.create_subprocess_exec("sleep", "60", stdout=asyncio.subprocess.DEVNULL)
    print(sleeper.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


async def write_and_die_anew(folder: str) -> None:
    await write(await SqliteStore(folder).create(meta(f"p{os.getpid()}")), note(1))
    os.kill(os.getpid(), signal.SIGKILL)


# -- kills -----------------------------------------------------------------------------------------------------------


class CountedConnection(sqlite3.Connection):
    """Every call counts; the process is killed before or after the n-th."""

    left = 0

    @classmethod
    def count(cls) -> None:
        CountedConnection.left -= 1
        if CountedConnection.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self.count()
        try:
            return super().execute(*arguments)
        finally:
            self.count()

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self.count()
        try:
            return super().executemany(*arguments)
        finally:
            self.count()

    def close(self) -> None:
        self.count()
        super().close()
        self.count()


async def be_killed_at(folder: str, number: str) -> None:
    """The scripted session, killed at the n-th call to SQLite, link, unlink or rename."""
    die_at(int(number))
    await scripted(folder)


def die_at(number: int) -> None:
    """From now on every call to SQLite, link, unlink, rename and open counts, and the n-th is the last."""
    CountedConnection.left = number
    connect = sqlite3.connect
    sqlite3.connect = partial(connect, factory=CountedConnection)  # type: ignore[assignment]
    for name in ("link", "unlink", "rename", "open"):
        setattr(os, name, counted(getattr(os, name)))


def counted(call: Callable[..., Any]) -> Callable[..., Any]:
    def counting(*arguments: Any, **more: Any) -> Any:
        CountedConnection.count()
        result = call(*arguments, **more)
        CountedConnection.count()
        return result

    return counting


async def scripted(folder: str) -> None:
    await live(SqliteStore(folder))


async def live(store: Store) -> None:
    """A life of sessions. Each line says what was acknowledged: what is on a line must be there after a kill."""
    log = await store.create(meta("a"))
    print("created a", flush=True)
    written = 0
    for size in (1, 3, 1, 40):
        for number in range(written, written + size):
            log.append((note(number), said("x" * 300, f"m{number}")), partial(acknowledge, number))
        await log.flush()
        written += size
    await log.change(title="Title")
    print("titled a", flush=True)
    await log.touch()
    copy = await store.fork("a", meta("b"))
    print("forked b", flush=True)
    await write(copy, note(written))
    print("written b", flush=True)
    await copy.release()
    print("released b", flush=True)
    again = await store.open("b")
    await again.release()
    await store.list()
    await store.create(meta("c"))
    print("created c", flush=True)
    print("deleting c", flush=True)
    await store.delete("c")
    print("deleted c", flush=True)
    await store.close()
    print("closed", flush=True)


def acknowledge(number: int, error: StoreFailed | None) -> None:
    assert error is None
    print("wrote", number, flush=True)


async def stream_for_ever(folder: str) -> None:
    await stream(SqliteStore(folder))


async def stream(store: Store) -> None:
    """Append numbers for ever; each is printed when it is committed."""
    log = await store.create(meta("a"))
    number = 0
    while True:
        log.append((note(number),), partial(acknowledge_number, number))
        number += 1
        if number % 50 == 0:
            await log.flush()


def acknowledge_number(number: int, error: StoreFailed | None) -> None:
    assert error is None
    print(number, flush=True)


async def write_numbers_and_die(folder: str, count: str) -> None:
    log = await SqliteStore(folder).create(meta("a"))
    for number in range(int(count)):
        await write(log, note(number))
    await log.touch()
    os.kill(os.getpid(), signal.SIGKILL)


async def end_without_closing(folder: str) -> None:
    log = await SqliteStore(folder).create(meta("a"))
    for number in range(5_000):
        log.append((note(number),), lambda error: None)
    print("appended", flush=True)


# -- limits and rights -----------------------------------------------------------------------------------------------


async def be_limited(folder: str, what: str) -> None:
    """Files may not grow, or no more of them be opened; then they may."""
    store = SqliteStore(folder)
    log = await store.create(meta("a"))
    await write(log, note(1))
    await (await store.create(meta("b"))).release()
    limit = getattr(resource, f"RLIMIT_{what}")
    soft, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (5 if what == "NOFILE" else 40_000, hard))
    failure = await tried(log, NoteEntry("large", "x" * 100_000)) if what == "FSIZE" else await refusal(store.open("b"))
    print("failed" if failure is not None else "went through", flush=True)
    resource.setrlimit(limit, (soft, hard))
    assert await tried(log, note(2)) is None
    assert await numbers_in(log.read()) == [1, 2]
    await store.open("b")
    print("worked again", flush=True)
    await store.close()


async def refusal(work: Awaitable[object]) -> StoreFailed | None:
    try:
        await work
    except StoreFailed as error:
        return error
    return None


async def be_refused(folder: str) -> None:
    """Modes that forbid, seen by a user whom they stop."""
    if os.getuid() == 0:
        # First once with everything, so that nothing has to be imported as a user who may not read it.
        with tempfile.TemporaryDirectory() as trial:
            await create(trial)
            await (store := SqliteStore(trial)).create(meta("a"))
            await listed(store)
            await store.close()
        os.setgid(65534)
        os.setuid(65534)
    place = Path(folder)
    store = SqliteStore(place)
    for name in ("a", "b"):
        log = await store.create(meta(name))
        await write(log, note(1))
        await log.release()
    other = await store.open("b")
    place.chmod(0o500)
    await tell("folder: create", store.create(meta("c")))
    await tell("folder: open", store.open("a"))
    await unharmed("folder", other)
    place.chmod(0o700)
    (place / "a.session").chmod(0o400)
    await tell("file: open", store.open("a"))
    await tell("file: change", store.change("a", title="x"))
    await unharmed("file", other)
    (place / "a.session").chmod(0)
    await tell("unreadable: read_meta", store.read_meta("a"))
    await unharmed("unreadable", other)
    (place / "a.session").chmod(0o600)
    await write(await store.open("a"), note(2))
    await store.create(meta("c"))
    assert await listed(store) == ["c", "b", "a"]
    print("worked again", flush=True)
    await store.close()


async def tell(what: str, work: Awaitable[object]) -> None:
    failure = await refusal(work)
    assert failure is None or "/" not in str(failure)
    print(what, "went through" if failure is None else "StoreFailed", flush=True)


async def unharmed(when: str, log: Log) -> None:
    assert await tried(log, note(1)) is None
    print(f"{when}: others unharmed", flush=True)


async def live_and_tell(folder: str) -> None:
    store = SqliteStore(folder)
    log = None
    for name in ("a", "b"):
        try:
            log = await store.create(meta(name))
            print("created", name, flush=True)
        except StoreFailed:
            print("failed", flush=True)
    if log is not None and log.meta.id == "b":
        for number in range(6):
            print("kept" if await tried(log, note(number)) is None else "failed", number, flush=True)
    await refusal(store.list())
    await refusal(store.change("a", title="x"))
    await store.close()
    print("end", flush=True)


async def hold_in_postgres(url: str, lease: str) -> None:
    """Hold a session in a database and append to it until that fails."""
    from dragoman.store.postgres.store import PostgresStore

    store = PostgresStore(url, lease_seconds=float(lease))
    log = await store.create(meta("a"))
    number = 0
    while await tried(log, note(number)) is None:
        if number == 0:
            print("held", flush=True)
        number += 1
    print("lost", flush=True)


async def stream_to_postgres(url: str) -> None:
    """Append to a database for ever; a number that is printed is committed."""
    from dragoman.store.postgres.store import PostgresStore

    await stream(PostgresStore(url))


async def be_killed_at_statement(url: str, number: str) -> None:
    """The scripted session, killed before or after a statement: the n-th of these moments."""
    import asyncpg

    from dragoman.store.postgres.store import PostgresStore

    left = int(number)

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counting(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted_call(*arguments: Any, **more: Any) -> Any:
            count()
            result = await call(*arguments, **more)
            count()
            return result

        return counted_call

    for name in ("execute", "fetch", "fetchrow", "fetchval"):
        setattr(asyncpg.Connection, name, counting(getattr(asyncpg.Connection, name)))
    await live(PostgresStore(url))
