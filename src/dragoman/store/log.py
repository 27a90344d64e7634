"""One session's log while we hold it: entries come in from the loop, and are committed in the writer thread.

A batch is waiting (in the queue, which the loop fills), committing (the thread has taken everything that waited and
writes it in one transaction), or done (`committed` was called in the loop). A kill loses what waits, and of what is
committing all or nothing.

A log has no holes: when a commit fails, what waits behind it fails too, until the failure was delivered in the loop.
Only then can the caller know, and only what it appends knowing it is tried again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from dragoman.store.contract import Committed, Record, SessionMeta, StoreFailed
from dragoman.store.entries import Entry, UnwritableEntry

T = TypeVar("T")
_Batch = tuple[Sequence[Entry], Committed]


class LogEngine(Protocol):
    """What a log needs of its store. The writer thread calls `call_in_loop`, `append`, `update_index` and `release`."""

    def put(self, job: Callable[[], None]) -> bool: ...
    def call_in_loop(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None: ...
    async def run(self, work: Callable[[], T]) -> T: ...
    def append(self, session_id: str, entries: Sequence[Entry], *, first: bool) -> str | None: ...
    def update_index(self, session_id: str) -> SessionMeta: ...
    def release(self, session_id: str) -> None: ...
    def read(
        self, session_id: str, after: int = 0, on_repair: Callable[[str], None] | None = None
    ) -> AsyncIterator[Sequence[Record]]: ...
    async def change(self, session_id: str, *, title: str | None, archived: bool | None) -> SessionMeta: ...
    def remove_log(self, log: "SqliteLog") -> None: ...


class SqliteLog:
    """The log of a session whose lease is ours. The contract is `Log`; methods below say in which thread they run."""

    def __init__(self, engine: LogEngine, meta: SessionMeta, salvaged: str | None) -> None:
        self.meta = meta
        self.salvaged = salvaged
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        # Filled in the loop, emptied in the writer thread; a deque is safe to use from both.
        self._waiting: deque[_Batch] = deque()
        # Whether a `_commit` job is put and has not begun: one job commits everything that waits. Set in the loop,
        # reset in the thread; `_failing` is set in the thread, reset in the loop.
        self._scheduled = False
        self._failing = False
        # The writer thread's alone: whether the list knows of everything in the log, and whether it still is ours.
        self._is_indexed = True
        self._is_over = False
        # The loop's own view: nothing is read or released twice.
        self._ended = False
        self._appended = False  # nothing was appended yet, so there is nothing to wait for before a read
        self._grown: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        state = "ended" if self._ended else "failing" if self._failing else "open"
        return f"<SqliteLog {self.meta.id} {state} waiting={len(self._waiting)}>"

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        self._waiting.append((entries, committed))
        self._appended = True
        if not self._scheduled:
            self._scheduled = True
            if not self._engine.put(self._commit):
                self._scheduled = False
                # Not called at once: a caller must not get its callback before `append` has returned.
                self._loop.call_soon(self._committed, [], StoreFailed("the session store is closed"))

    async def flush(self) -> None:
        if self._ended:
            return
        # An append of nothing: it is done when everything before it is, and fails if that has failed.
        done: asyncio.Future[None] = self._loop.create_future()

        def committed(error: StoreFailed | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        self.append((), committed)
        await done

    async def read(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        if self._appended:
            await self.flush()
        async for records in self._engine.read(self.meta.id, after, self._on_repair):
            yield records

    async def tail(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        while not self._ended:
            # Before reading: what is committed while we read wakes us again.
            if self._grown is None:
                self._grown = self._loop.create_future()
            grown = self._grown
            async for records in self._engine.read(self.meta.id, after, self._on_repair):
                after = records[-1].sequence
                yield records
            await asyncio.shield(grown)

    async def change(self, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        self.meta = await self._engine.change(self.meta.id, title=title, archived=archived)
        return self.meta

    async def touch(self) -> None:
        self.meta = await self._engine.run(self._update_index)

    async def release(self) -> None:
        if self._ended:
            return
        try:
            await self.flush()
        finally:
            # `end` may have been called while we waited: the session was deleted, or its store closed.
            if not self._ended:
                self.end()
                await self._engine.run(self._release)

    async def finish(self) -> None:
        """Like `release`, but without releasing the lease: the holder ends now, and its leases end with it.

        May be called from another event loop than the log's own.
        """
        self.end()
        # Every commit that was put before this is done before it, and told.
        await self._engine.run(self._finish)

    def end(self) -> None:
        """Nothing is to come any more. What is appended all the same fails, after what was appended before."""
        self._ended = True
        self._engine.remove_log(self)
        self._wake()

    # -- in the writer thread ----------------------------------------------------------------------------------------

    def _commit(self) -> None:
        """Everything that waits, in one transaction."""
        # Reset before the queue is read: an `append` after that read sets it again and puts another job.
        self._scheduled = False
        if self._failing:
            return  # the loop has yet to tell; it takes what waits with it
        waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
        entries = [entry for batch, _ in waiting for entry in batch]
        error = self._append(entries) if entries else None
        if error is not None:
            self._failing = True
        if waiting:
            self._engine.call_in_loop(self._loop, partial(self._committed, waiting, error, bool(entries)))

    def _append(self, entries: Sequence[Entry]) -> StoreFailed | None:
        if self._is_over:
            return StoreFailed("the session is not open here any more")
        try:
            lost = self._engine.append(self.meta.id, entries, first=self._is_indexed)
            if lost is not None:
                self.salvaged = lost
            self._is_indexed = False
        except StoreFailed as error:
            return error
        except UnwritableEntry as error:
            return _because(StoreFailed("an entry cannot be written down"), error)
        except Exception as error:  # the thread serves every session; a mistake here must not end it
            return _because(StoreFailed("the session store failed"), error)
        return None

    def _update_index(self) -> SessionMeta:
        meta = self._engine.update_index(self.meta.id)
        self._is_indexed = True
        return meta

    def _finish(self) -> None:
        self._is_over = True
        try:
            if not self._is_indexed:
                self._update_index()
        except StoreFailed:
            pass  # the session stays marked, and is looked at for the next page

    def _release(self) -> None:
        self._finish()
        self._engine.release(self.meta.id)

    # -- in the loop -------------------------------------------------------------------------------------------------

    def _committed(self, waiting: list[_Batch], error: StoreFailed | None, grown: bool = False) -> None:
        if error is not None:
            # Batches appended before the loop knew of the failure fail with it. While `_failing` is set, the writer
            # thread leaves the queue alone.
            waiting += self._waiting
            self._waiting.clear()
            self._failing = False
        elif grown:
            self._wake()
        for _, committed in waiting:
            try:
                committed(error)
            except Exception as mistake:  # one caller's mistake is not the next one's
                context: dict[str, Any] = {"message": "a callback of a session log failed", "exception": mistake}
                self._loop.call_exception_handler(context)

    def _on_repair(self, lost: str) -> None:
        self.salvaged = lost

    def _wake(self) -> None:
        grown, self._grown = self._grown, None
        if grown is not None and not grown.done():
            grown.set_result(None)


def _because(failure: StoreFailed, cause: Exception) -> StoreFailed:
    failure.__cause__ = cause
    return failure
