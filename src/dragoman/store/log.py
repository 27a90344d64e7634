"""One session's log while we hold it: entries come in from the loop, and are committed in the writer thread.

A batch is waiting (in the queue, which the loop fills), committing (the thread has taken everything that waited and
writes it in one transaction), or done (`committed` was called in the loop). A kill loses what waits, and of what is
committing all or nothing.

A log has no holes: when a commit fails, what waits behind it fails too, until the failure was delivered in the loop.
Only then can the caller know, and only what it appends knowing it is tried again.

`Writer` is one thread that does everything with the disk, in order, so that no two threads ever share a connection.

Everything that waits in a log is committed by one job: a lone entry immediately, a flood in large groups. Callbacks are
delivered to the loop when no job waits, or after a moment: a loop that is woken for each of fifty commits does little
else, and keeps us from the next.

`log_batches` is how the log of every engine is read.

The thread is not started, running, or stopped. It is stopped by `stop`, after every job that was put before; `put`
returns False from then on. A kill loses the jobs that wait; what they would have promised was not promised yet.
"""

import asyncio
import atexit
import queue
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dragoman.store.contract import Committed, Record, SessionMeta, StoreFailed
from dragoman.store.entries import Batch, Entry, TextEntry, UnwritableEntry, join_texts

if TYPE_CHECKING:
    from dragoman.store.sqlite import StoreEngine

T = TypeVar("T")
Job = Callable[[], None]

# Callbacks wait at most this long while there is more to do. A chunk's way to a client may take ten times that.
_DELIVER_SECONDS: Final = 0.002
# A program that ends without closing its store waits this long for what it has appended.
_EXIT_SECONDS: Final = 2.0
# Pieces of a message are read as one entry up to about this; a longer message comes in several.
PIECE_CHARACTERS: Final = 1024 * 1024


class Writer:
    """The thread. Started at the first use, ended by `stop`."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        # Held for starting, ending, and putting: nothing is put behind the end.
        self._lock: Final = threading.Lock()
        self._stopped = False
        # The thread's own: callbacks that were not delivered yet, and since when.
        self._callbacks: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}
        self._since = 0.0

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else "not started" if self._thread is None else "running"
        return f"<Writer {state} jobs={self._jobs.qsize()}>"

    def put(self, job: Job) -> bool:
        """Run `job` in the thread, after everything put before. It must not raise. False: the writer has stopped."""
        with self._lock:
            if self._stopped:
                return False
            if self._thread is None:
                # A daemon, so that a store that was never closed does not keep a program from ending.
                self._thread = threading.Thread(target=self._work, name="dragoman-store", daemon=True)
                self._thread.start()
                atexit.register(self._exit)
            self._jobs.put(job)
            return True

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in the thread, and wait for its result. What it raises is raised here."""
        # Cancelling the caller does not stop the work: half a change would be worse than a whole one.
        return await asyncio.shield(self.submit(work))

    def submit(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run `work` in the thread, behind everything that was put before this call; return its future."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            try:
                result = work()
            except BaseException as error:  # it is raised again where it is waited for
                self.call_in_loop(loop, partial(_fail, done, error))
            else:
                self.call_in_loop(loop, partial(_give, done, result))

        if not self.put(job):
            raise StoreFailed("the session store is closed")
        # A failure that is not waited for, because the caller was cancelled, logs no traceback.
        done.add_done_callback(retrieve_exception)
        return done

    def call_in_loop(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        """Have `call` called in a loop, soon and in order. Called in the thread; `call` must not raise."""
        if not self._callbacks:
            self._since = time.monotonic()
        self._callbacks.setdefault(loop, []).append(call)

    async def stop(self) -> None:
        """Wait until every job that was put is done, then stop the thread. Idempotent."""
        with self._lock:
            # Without a thread there is nothing to wait for; with one, it sets `_stopped` itself when it has done the
            # last job.
            thread = self._thread
            self._stopped = self._stopped or thread is None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(None, thread.join)
            atexit.unregister(self._exit)

    def _exit(self) -> None:
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(_EXIT_SECONDS)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job()
            if self._callbacks and time.monotonic() - self._since > _DELIVER_SECONDS:
                self._deliver()
        # Under the lock: a caller that learns that we have stopped gets all callbacks of earlier jobs before that.
        with self._lock:
            self._stopped = True
            while not self._jobs.empty():
                job = self._jobs.get()
                if job is not None:
                    job()
            self._deliver()

    def _next(self) -> Job | None:
        try:
            return self._jobs.get_nowait()
        except queue.Empty:
            self._deliver()
            return self._jobs.get()

    def _deliver(self) -> None:
        callbacks, self._callbacks = self._callbacks, {}
        for loop, calls in callbacks.items():
            try:
                loop.call_soon_threadsafe(_call_all, calls)
            except RuntimeError:
                pass  # the loop is closed, and every task that waited for this with it


def _call_all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def retrieve_exception(done: "asyncio.Future[Any]") -> None:
    """Mark the exception of a future as retrieved: asyncio would report one that no caller has waited for."""
    if not done.cancelled():
        done.exception()


def _give(done: "asyncio.Future[T]", result: T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: "asyncio.Future[T]", error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)


_Batch = tuple[Sequence[Entry], Committed]


class SqliteLog:
    """The log of a session whose lease is ours. The contract is `Log`; methods below say in which thread they run."""

    def __init__(self, engine: "StoreEngine", meta: SessionMeta, salvaged: str | None) -> None:
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
        async for records in self._engine.read(self.meta.id, after):
            yield records

    async def tail(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        while not self._ended:
            # Before reading: what is committed while we read wakes us again.
            if self._grown is None:
                self._grown = self._loop.create_future()
            grown = self._grown
            async for records in self._engine.read(self.meta.id, after):
                after = records[-1].sequence
                yield records
            await asyncio.shield(grown)

    async def change(self, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        self.meta = await self._engine.run(lambda: self._engine.change(self.meta.id, title, archived))
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
        # Every commit that was put before this is done before it, and its callback delivered.
        await self._engine.run(self._finish)

    def end(self) -> None:
        """Accept nothing more. What is appended all the same fails, after what was appended before."""
        self._ended = True
        self._engine.remove_log(self)
        self._wake()

    # -- in the writer thread ----------------------------------------------------------------------------------------

    def _commit(self) -> None:
        """Commit everything that waits, in one transaction."""
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

    def _wake(self) -> None:
        grown, self._grown = self._grown, None
        if grown is not None and not grown.done():
            grown.set_result(None)


def _because(failure: StoreFailed, cause: Exception) -> StoreFailed:
    failure.__cause__ = cause
    return failure


# -- reading, for every engine -------------------------------------------------------------------------------------


async def log_batches(
    read: Callable[[int], Awaitable[Batch]], after: int, *, joined: bool = True
) -> AsyncIterator[Sequence[Record]]:
    """Yield what `read` returns behind a sequence number, batch by batch; `joined`: the pieces of one message as one.

    What belongs together is not torn by the end of a batch. `read` begins when it is called: the next batch is read
    while the caller works on this one.
    """
    held_back: list[Record] = []
    batch = await read(after)
    while True:
        ahead = None
        if not batch.is_last and batch.records:
            # Called now: what the caller asks of the store next comes behind it, also if the caller stops here.
            ahead = read(batch.records[-1].sequence)
        records = _joined_records([*held_back, *batch.records]) if joined else list(batch.records)
        # The last message may go on in the next batch.
        may_go_on = joined and ahead is not None and bool(records) and _may_go_on(records[-1].entry)
        held_back = records[-1:] if may_go_on else []
        records = records[: len(records) - len(held_back)]
        if records:
            yield records
        if ahead is None:
            return
        batch = await ahead


def _joined_records(records: Sequence[Record]) -> list[Record]:
    """Return the records with neighbouring pieces of one message made one, under the number of the last."""
    result: list[Record] = []
    run: list[Record] = []
    for record in records:
        if run and not _continues(run[-1].entry, record.entry):
            result.append(_one(run))
            run = []
        run.append(record)
    if run:
        result.append(_one(run))
    return result


def _continues(one: Entry, other: Entry) -> bool:
    return (
        type(one) is TextEntry
        and type(other) is TextEntry
        and (one.kind, one.message_id) == (other.kind, other.message_id)
    )


def _may_go_on(entry: Entry) -> bool:
    return type(entry) is TextEntry and len(entry.text) < PIECE_CHARACTERS


def _one(run: Sequence[Record]) -> Record:
    if len(run) == 1:
        return run[0]
    (entry,) = join_texts(record.entry for record in run)
    return Record(run[-1].sequence, entry)
