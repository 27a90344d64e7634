"""The embedded engine: one SQLite file a session, an index that can be thrown away, one writer thread."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from dragoman.store.contract import (
    ArchiveFilter,
    Committed,
    Page,
    Record,
    SessionHeld,
    SessionMeta,
    StoreFailed,
)
from dragoman.store.entries import Entry
from dragoman.store.files import Files
from dragoman.store.holder import new_holder
from dragoman.store.index import Index
from dragoman.store.writer import Writer, in_loop

# Entries read at a time: enough to be quick, few enough that writers do not wait.
BATCH: Final = 500
# How long a tail waits before it looks again for what another process has written.
_POLL_SECONDS: Final = 0.2


class SqliteStore:
    """Sessions in a folder. Every change of it happens in the writer thread."""

    def __init__(self, folder: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = Path(folder)
        self._clock = clock
        self._writer = Writer()
        self._files = Files(self._folder, new_holder())
        self._index = Index(self._folder / "index.db", self._every_session)
        self._logs: dict[str, SqliteLog] = {}
        self._latest = 0

    async def create(self, meta: SessionMeta) -> "SqliteLog":
        return await self._adopt(lambda: self._create(meta))

    async def open(self, session_id: str) -> "SqliteLog":
        if session_id in self._logs:
            raise SessionHeld("the session is open here")
        return await self._adopt(lambda: self._files.hold(session_id))

    async def look(self, session_id: str) -> SessionMeta:
        return await self._writer.run(lambda: self._files.look(session_id))

    async def read(self, session_id: str, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        while records := await self._writer.run(lambda: self._files.read(session_id, after, BATCH)):
            yield records
            after = records[-1].sequence

    async def list(
        self, *, cwd: str | None = None, cursor: str | None = None, archived: ArchiveFilter = "exclude"
    ) -> Page:
        return await self._writer.run(lambda: self._index.page(cwd, cursor, archived))

    async def fork(self, source: str, meta: SessionMeta) -> "SqliteLog":
        return await self._adopt(lambda: self._fork(source, meta))

    async def change(self, session_id: str, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        return await self._writer.run(lambda: self._change(session_id, title, archived))

    async def delete(self, session_id: str) -> bool:
        log = self._logs.pop(session_id, None)
        if log is not None:
            log.released = True
        return await self._writer.run(lambda: self._delete(session_id))

    async def close(self) -> None:
        for log in list(self._logs.values()):
            try:
                await log.release()
            except StoreFailed:
                pass  # the lease ends with this process
        await self._writer.run(self._close)
        await self._writer.stop()

    # -- in the writer thread ----------------------------------------------------------------------------------------

    def _create(self, meta: SessionMeta) -> SessionMeta:
        now = self._now()
        meta = meta._replace(created=meta.created or now, activity=now)
        self._files.create(meta)
        self._index.put(meta)
        return meta

    def _fork(self, source: str, meta: SessionMeta) -> SessionMeta:
        now = self._now()
        meta = meta._replace(created=now, activity=now)
        self._files.fork(source, meta)
        self._index.put(meta)
        return meta

    def _change(self, session_id: str, title: str | None, archived: bool | None) -> SessionMeta:
        if self._files.held_elsewhere(session_id):
            raise SessionHeld("another process has the session open")
        meta = self._files.change(session_id, title, archived)
        self._index.put(meta)
        return meta

    def _delete(self, session_id: str) -> bool:
        try:
            if self._files.held_elsewhere(session_id):
                raise SessionHeld("another process has the session open")
        except SessionHeld:
            raise
        except StoreFailed:
            pass  # missing or damaged: it goes all the same
        there = self._files.remove(session_id)
        self._index.drop(session_id)
        return there

    def _touch(self, session_id: str) -> SessionMeta:
        meta = self._files.look(session_id)
        self._index.put(meta)
        return meta

    def _close(self) -> None:
        self._files.close()
        self._index.close()

    def _every_session(self) -> Iterator[SessionMeta]:
        for name in self._files.names():
            try:
                yield self._files.look(name)
            except StoreFailed:
                continue  # a bad file harms one session

    def _now(self) -> int:
        """Microseconds, and later than any activity before, even when the clock goes back."""
        if not self._latest:
            self._latest = self._index.newest()
        self._latest = max(int(self._clock() * 1_000_000), self._latest + 1)
        return self._latest

    # -- logs --------------------------------------------------------------------------------------------------------

    async def _adopt(self, take: Callable[[], SessionMeta]) -> "SqliteLog":
        meta = await self._writer.run(take)
        log = self._logs[meta.id] = SqliteLog(self, meta)
        return log


class SqliteLog:
    """One session's log, held by us."""

    def __init__(self, store: SqliteStore, meta: SessionMeta) -> None:
        self.meta = meta
        self.released = False
        self._store = store
        self._loop = asyncio.get_running_loop()
        # Filled in the loop, emptied in the writer thread; a deque is safe to use from both.
        self._waiting: deque[tuple[Sequence[Entry], Committed]] = deque()
        self._scheduled = False
        self._grown: list[asyncio.Future[None]] = []

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        self._waiting.append((entries, committed))
        if not self._scheduled:
            self._scheduled = True
            self._store._writer.put(self._commit)

    async def flush(self) -> None:
        done: asyncio.Future[None] = self._loop.create_future()

        def committed(error: StoreFailed | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        self.append((), committed)
        await done

    async def read(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        await self.flush()
        async for records in self._store.read(self.meta.id, after):
            yield records

    async def tail(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        while True:
            grown: asyncio.Future[None] = self._loop.create_future()
            self._grown.append(grown)
            async for records in self.read(after):
                after = records[-1].sequence
                yield records
            await asyncio.wait([grown], timeout=_POLL_SECONDS)

    async def change(self, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        self.meta = await self._store.change(self.meta.id, title=title, archived=archived)
        return self.meta

    async def touch(self) -> None:
        self.meta = await self._store._writer.run(lambda: self._store._touch(self.meta.id))

    async def release(self) -> None:
        if self.released:
            return
        await self.flush()
        await self.touch()
        self.released = True
        self._store._logs.pop(self.meta.id, None)
        await self._store._writer.run(lambda: self._store._files.release(self.meta.id))

    def _commit(self) -> None:
        """In the writer thread: everything that waits, in one transaction."""
        # Lowered before looking: whoever adds after the look raises it again and puts another job.
        self._scheduled = False
        waiting: list[tuple[Sequence[Entry], Committed]] = []
        while self._waiting:
            waiting.append(self._waiting.popleft())
        entries = [entry for batch, _ in waiting for entry in batch]
        error: StoreFailed | None = None
        try:
            if entries:
                self._store._files.append(self.meta.id, entries, self._store._now())
        except StoreFailed as failure:
            error = failure
        in_loop(self._loop, self._committed, waiting, error)

    def _committed(self, waiting: list[tuple[Sequence[Entry], Committed]], error: StoreFailed | None) -> None:
        grown, self._grown = self._grown, []
        for waiter in grown:
            if not waiter.done():
                waiter.set_result(None)
        for _, committed in waiting:
            committed(error)
