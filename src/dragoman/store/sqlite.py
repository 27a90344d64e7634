"""The embedded store: one SQLite file a session, an index that can be thrown away, one writer thread.

`SqliteStore` and `SqliteLog` are used in an event loop; everything that touches the disk happens in the writer thread
(`writer`), in the order in which it was put. `StoreEngine` is what both share, in two parts: for the loop, for the
thread.

What a kill leaves behind is decided by three orders. A session's file is whole before it has its name (`files.create`).
An entry is committed before `committed` is called. The list is marked before a file changes and put right after it
(`listing`), so a list that a kill has left behind knows which sessions to look at again.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from dragoman.errors import UsageError
from dragoman.store.contract import (
    ArchiveFilter,
    Check,
    Record,
    SessionDamaged,
    SessionHeld,
    SessionMeta,
    SessionMissing,
    SessionOpenHere,
    SessionPage,
    StoreFailed,
)
from dragoman.store.entries import Batch, Entry, UnwritableEntry
from dragoman.store.files import SessionFiles
from dragoman.store.index import Index, no_progress
from dragoman.store.locks import HOLDERS, Holder
from dragoman.store.log import SqliteLog, Writer, log_batches

T = TypeVar("T")
_OPEN_HERE: Final = "the session is open in this process already"
# What all stores of this process have open: the process (a fork has the set too), the folder and the session. The
# leases say who may write; this says where a session is open, when a lease was refused.
_open_here: Final[set[tuple[int, str, str]]] = set()
# The metadata of a session whose lease was acquired, and what was lost of its log before; None: nothing.
_Acquired = tuple[SessionMeta, str | None]


class SqliteStore:
    """Sessions in a folder, for `Agent(store=SqliteStore(folder))`; a `store.contract.Store`.

    Everything that touches the disk happens in a writer thread, and the methods wait for it. They raise `StoreFailed`
    if the disk does not do its part, `SessionMissing` for an id that is not there, and `SessionHeld`, or
    `SessionOpenHere` in this process, for a session that is open elsewhere.
    """

    def __init__(
        self,
        folder: "str | os.PathLike[str]",
        *,
        clock: Callable[[], float] = time.time,
        progress: Callable[[int, int], None] = no_progress,
        on_delete: Callable[[str], object] = lambda session_id: None,
    ) -> None:
        """Keep sessions in `folder`, which is made when the first is written.

        `clock` returns the seconds since 1970; `progress` is called with done and total, while the list of sessions is
        made anew; `on_delete` with the id of each session that was deleted, in the writer thread. Raise `UsageError` if
        `folder` is no path.
        """
        _check_folder(folder)
        self._engine = StoreEngine(Path(folder), clock, progress)
        self._on_delete = on_delete
        # Sessions that are being opened, which are not to be opened twice.
        self._opening: set[str] = set()

    def __repr__(self) -> str:
        return f"<SqliteStore {self._engine!r} opening={len(self._opening)}>"

    async def create(self, meta: SessionMeta) -> SqliteLog:
        """Make a new session and acquire its lease; wait until it is on disk."""
        return await self._open_log(meta.id, lambda: self._engine.create(meta, None))

    async def open(self, session_id: str, check: Check | None = None) -> SqliteLog:
        """Acquire the lease of a stored session, and wait for that.

        `check` is called with the metadata before the lease is acquired, in the writer thread; what it raises is raised
        here, and nothing has changed. The log is verified by its first `read`. Raise `SessionDamaged` if nothing of it
        can be read.
        """
        return await self._open_log(session_id, lambda: self._engine.acquire(session_id, check))

    async def read_meta(self, session_id: str) -> SessionMeta:
        """Return the title, folder and times of a session, without its lease. Wait for the disk."""
        return await self._engine.run(lambda: self._engine.read_meta(session_id))

    async def ids(self, prefix: str = "") -> Sequence[str]:
        """Return the ids of all sessions that begin with `prefix`, sorted. Wait for the disk."""
        return await self._engine.run(lambda: self._engine.ids(prefix))

    async def look(self, session_id: str) -> SessionMeta:
        """Wait for `read_meta`, whose former name this is; emit a `DeprecationWarning`."""
        _warn_of_former_name("look", "read_meta")
        return await self.read_meta(session_id)

    async def names(self, prefix: str = "") -> Sequence[str]:
        """Wait for `ids`, whose former name this is; emit a `DeprecationWarning`."""
        _warn_of_former_name("names", "ids")
        return await self.ids(prefix)

    async def length(self, session_id: str) -> int:
        """Return the sequence number of a session's last entry; 0 if it has none. Wait for the disk."""
        return await self._engine.run(lambda: self._engine.length(session_id))

    def read(self, session_id: str, after: int = 0, *, joined: bool = True) -> AsyncIterator[Sequence[Record]]:
        """Yield the records of the session `session_id` behind the number `after`, in batches, without its lease.

        Pieces of one message come as one record, unless `joined` is false.
        """
        return self._engine.read(session_id, after, joined=joined)

    async def list(
        self,
        *,
        cwd: str | None = None,
        related: Sequence[str] = (),
        cursor: str | None = None,
        archived: ArchiveFilter = "exclude",
    ) -> SessionPage:
        """Return a page of sessions, newest first, and wait for the disk. One that exists all the while is listed once.

        `cwd` lists those of one folder and of those `related` to it, `cursor` is that of the page before, `archived`
        says whether archived ones are left out, listed too, or alone.
        """
        folders = () if cwd is None else (cwd, *related)
        return await self._engine.run(lambda: self._engine.page(folders, cursor, archived))

    async def fork(self, source: str, meta: SessionMeta, last: int | None = None) -> SqliteLog:
        """Copy the log of the session `source` into a new one, and acquire its lease. Wait for the disk.

        `meta` describes the new session. `last` is the sequence number of the last entry that is copied; None: all are.
        """
        return await self._open_log(meta.id, lambda: self._engine.create(meta, source, last))

    async def restore(self, meta: SessionMeta, entries: Sequence[Entry]) -> None:
        """Write a whole session as `meta` describes it, with its `entries`, and hold nothing. Wait for the disk.

        All of it is there then, or nothing. Raise `StoreFailed` if there is a session with this id.
        """
        await self._engine.run(lambda: self._engine.restore(meta, entries))

    async def change(self, session_id: str, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        """Change the `title` of the session `session_id`, or whether it is `archived`. Wait for the disk."""
        changing = self._engine.run(lambda: self._engine.change(session_id, title, archived))
        return await self._engine.raise_if_open_here(session_id, changing)

    async def delete(self, session_id: str) -> bool:
        """Delete a session for good, and wait for that. Return whether there was one."""
        deleting = self._engine.run(lambda: self._delete(session_id))
        there = await self._engine.raise_if_open_here(session_id, deleting)
        # The file is gone, and its lease with it: what is appended to a log of ours from now on fails.
        log = self._engine.logs.get(session_id)
        if log is not None:
            log.end()
        return there

    def _delete(self, session_id: str) -> bool:
        there = self._engine.delete(session_id)
        self._on_delete(session_id)
        return there

    async def close(self) -> None:
        """Release every lease, wait until all entries are on disk, and stop the writer thread."""
        # Logs first: their commits were put before this and are done before the files are closed. Leases need no
        # release: they end with the holder's lock, which `StoreEngine.close` gives up.
        for log in list(self._engine.logs.values()):
            try:
                await log.finish()
            except StoreFailed:
                pass  # the `committed` callback of each lost entry got the error
        try:
            await self._engine.run(self._engine.close)
        except StoreFailed:
            pass  # closed before
        await self._engine.stop()

    async def _open_log(self, session_id: str, take: Callable[[], _Acquired]) -> SqliteLog:
        # Decided here and not by the lease: the holder is the whole store, so to the file both of our own requests
        # look the same.
        if session_id in self._engine.logs or session_id in self._opening:
            raise SessionOpenHere(_OPEN_HERE)
        self._opening.add(session_id)
        # States from here on: being acquired in the thread; acquired and ours; or refused. A caller that is cancelled
        # leaves only the first, in which the thread cannot be stopped.
        taking = asyncio.ensure_future(self._engine.run(take))
        try:
            meta, salvaged = await self._engine.raise_if_open_here(session_id, asyncio.shield(taking))
        except asyncio.CancelledError:
            # The cancelled caller gets no log to release: release the lease as soon as it is acquired.
            taking.add_done_callback(lambda _: self._release_late(session_id, taking))
            raise
        finally:
            if taking.done():
                self._opening.discard(session_id)
        log = SqliteLog(self._engine, meta, salvaged)
        self._engine.add_log(log)
        return log

    def _release_late(self, session_id: str, taking: "asyncio.Future[_Acquired]") -> None:
        self._opening.discard(session_id)
        if not taking.cancelled() and taking.exception() is None:
            self._engine.put(lambda: self._engine.try_release(session_id))


def _warn_of_former_name(former: str, now: str) -> None:
    import warnings

    warnings.warn(f"SqliteStore.{former} is called SqliteStore.{now} now", DeprecationWarning, stacklevel=3)


class StoreEngine(Writer):
    """Files and index behind a store and its logs, and the thread that alone works on them."""

    def __init__(self, folder: Path, clock: Callable[[], float], progress: Callable[[int, int], None]) -> None:
        super().__init__()
        self.logs: dict[str, SqliteLog] = {}
        self._folder = os.path.realpath(folder)
        self._clock = clock
        self._holder = Holder(folder / HOLDERS)
        self._files = SessionFiles(folder, self._holder)
        self._index = Index(folder / "index", self._files, self._holder, progress)
        self._latest = 0

    def __repr__(self) -> str:
        return f"<StoreEngine logs={len(self.logs)} {super().__repr__()}>"

    # -- in the loop -------------------------------------------------------------------------------------------------

    def add_log(self, log: SqliteLog) -> None:
        self.logs[log.meta.id] = log
        _open_here.add(self._place(log.meta.id))

    def remove_log(self, log: SqliteLog) -> None:
        if self.logs.get(log.meta.id) is log:
            del self.logs[log.meta.id]
            _open_here.discard(self._place(log.meta.id))

    async def raise_if_open_here(self, session_id: str, work: Awaitable[T]) -> T:
        """Wait for `work`; a lease that another store of this process has is a `SessionOpenHere`."""
        try:
            return await work
        except SessionHeld as held:
            if self._place(session_id) in _open_here:
                raise SessionOpenHere(_OPEN_HERE) from held
            raise

    def _place(self, session_id: str) -> tuple[int, str, str]:
        return os.getpid(), self._folder, session_id

    def read(self, session_id: str, after: int = 0, *, joined: bool = True) -> AsyncIterator[Sequence[Record]]:
        """Yield the log in batches; they are read in the writer thread, while the caller works on the one before."""
        return log_batches(lambda behind: self.submit(partial(self._read, session_id, behind)), after, joined=joined)

    # -- in the writer thread ----------------------------------------------------------------------------------------

    def create(self, meta: SessionMeta, source: str | None, last: int | None = None) -> _Acquired:
        self._files.check_name(meta.id)
        if source is not None:
            self._files.read_meta(source)
        # Marked before the file is there. A kill between the two leaves a mark without a file, which the next page
        # removes.
        now = self._now(self._index.mark(meta.id))
        meta = meta._replace(created=meta.created or now, activity=now)
        self._files.create(meta, source, last)
        try:
            self._index.put(meta)
        except BaseException:
            self._files.remove(meta.id)
            raise
        return meta, None

    def restore(self, meta: SessionMeta, entries: Sequence[Entry]) -> None:
        self._files.check_name(meta.id)
        self._index.mark(meta.id)
        # Nothing is undone where the list fails: the session is whole, marked, and looked at for the next page.
        try:
            self._files.restore(meta, entries)
        except UnwritableEntry as error:
            raise StoreFailed("an entry cannot be written down") from error
        self._index.put(meta)

    def acquire(self, session_id: str, check: Check | None) -> _Acquired:
        remembered = self._indexed_meta(session_id)
        meta, lost = self._files.acquire(session_id, remembered, check)
        # The list may be behind: another process has written and was killed before it could tell.
        if meta != remembered:
            self._put_into_index(meta)
        return meta, lost

    def read_meta(self, session_id: str) -> SessionMeta:
        try:
            return self._files.read_meta(session_id)
        except SessionDamaged:
            remembered = self._indexed_meta(session_id)
            if remembered is None:
                raise
            return remembered

    def ids(self, prefix: str) -> Sequence[str]:
        return sorted(name for name in self._files.ids() if name.startswith(prefix))

    def length(self, session_id: str) -> int:
        return self._files.length(session_id)

    def page(self, folders: Sequence[str], cursor: str | None, archived: ArchiveFilter) -> SessionPage:
        return self._index.page(folders, cursor, archived)

    def _read(self, session_id: str, after: int) -> Batch:
        """Read a batch; the log that is open here learns of a repair, whether the reader looks at this batch or not."""
        batch = self._files.read(session_id, after)
        log = self.logs.get(session_id)
        if batch.lost is not None and log is not None:
            log.salvaged = batch.lost
        return batch

    def append(self, session_id: str, entries: Sequence[Entry], *, first: bool) -> str | None:
        """Add entries; return what was found to be lost of the log before, or None.

        `first`: the first append since the list was brought up to date, so the session is marked as pending there.
        """
        newest = 0
        if first:
            try:
                newest = self._index.mark(session_id)
            except StoreFailed:
                pass  # the log is what counts; the list learns of it with the next `update_index`
        return self._files.append(session_id, entries, self._now(newest))

    def update_index(self, session_id: str) -> SessionMeta:
        meta = self._files.read_meta(session_id)
        self._index.put(meta)
        return meta

    def release(self, session_id: str) -> None:
        self._files.release(session_id)

    def try_release(self, session_id: str) -> None:
        try:
            self.release(session_id)
        except StoreFailed:
            pass  # the lease ends with this process

    def delete(self, session_id: str) -> bool:
        try:
            self._files.check_free(session_id)
        except SessionMissing:
            return False
        except SessionDamaged:
            pass  # it goes all the same
        self._index.mark(session_id)
        # Mark, remove, drop: a kill in between leaves a marked session without a file, which the next page drops.
        there = self._files.remove(session_id)
        self._index.drop(session_id)
        return there

    def close(self) -> None:
        self._files.close()
        self._index.close()
        # Last: a process that finds our name unlocked may acquire our sessions.
        self._holder.end()

    def change(self, session_id: str, title: str | None, archived: bool | None) -> SessionMeta:
        self._files.check_free(session_id)
        self._index.mark(session_id)
        # The check before has no lock; `change` looks at the lease again inside of its transaction. It only keeps the
        # list from being marked for a session that cannot be changed.
        meta = self._files.change(session_id, title, archived)
        self._index.put(meta)
        return meta

    # The log is what counts: it can be read and written while the list cannot.

    def _indexed_meta(self, session_id: str) -> SessionMeta | None:
        self._files.check_name(session_id)
        try:
            return self._index.read_meta(session_id)
        except StoreFailed:
            return None

    def _put_into_index(self, meta: SessionMeta) -> None:
        try:
            self._index.put(meta)
        except StoreFailed:
            pass

    def _now(self, newest: int) -> int:
        """Return the time in microseconds, later than any activity before, even when the clock goes back."""
        self._latest = max(int(self._clock() * 1_000_000), self._latest + 1, newest + 1)
        return self._latest


def _check_folder(folder: object) -> None:
    if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
        raise UsageError(f"a store is a folder, not {folder!r}: write `SqliteStore('sessions')`")
