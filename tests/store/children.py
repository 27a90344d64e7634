"""Programs that tests run as other processes. Each prints a line when it has come so far."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from dragoman.store.contract import SessionHeld, StoreFailed
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import meta, note, said, tried, write


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
    CountedConnection.left = int(number)
    connect = sqlite3.connect
    sqlite3.connect = partial(connect, factory=CountedConnection)  # type: ignore[assignment]
    for name in ("link", "unlink", "rename", "open"):
        setattr(os, name, counted(getattr(os, name)))
    await scripted(folder)


def counted(call: Callable[..., Any]) -> Callable[..., Any]:
    def counting(*arguments: Any, **more: Any) -> Any:
        CountedConnection.count()
        result = call(*arguments, **more)
        CountedConnection.count()
        return result

    return counting


async def scripted(folder: str) -> None:
    """A life of sessions. Each line says what was acknowledged: what is on a line must be there after a kill."""
    store = SqliteStore(folder)
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
    log = await SqliteStore(folder).create(meta("a"))
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
