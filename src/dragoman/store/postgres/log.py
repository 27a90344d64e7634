"""One session's log in PostgreSQL while this node holds it.

What is appended waits here until the writer of the node takes it (`take_part`) and tells what became of it
(`on_written`). A log has no holes: when a commit fails, what waits behind it fails with it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from dragoman.store.contract import Committed, Record, SessionMeta, StoreFailed
from dragoman.store.entries import Entry, UnwritableEntry, encode_entry, join_texts
from dragoman.store.postgres.group_commit import GroupCommit, LogPart

if TYPE_CHECKING:
    from dragoman.store.postgres.store import PostgresStore

_Batch = tuple[Sequence[Entry], Committed]


class PostgresLog:
    """The log of a session that this node owns; the contract is `Log`."""

    def __init__(self, store: "PostgresStore", writer: GroupCommit, meta: SessionMeta, last: int, fence: int) -> None:
        self.meta = meta
        # The number of our ownership: a later one of the same node is not this log's.
        self.fence: Final = fence
        # The database repairs what a crash leaves behind, before it answers.
        self.salvaged: str | None = None
        self._store = store
        # That of the lease under which the session was taken; a later lease has another, which is not ours.
        self._writer = writer
        # The number of the last entry on disk. The writer compares it with the database's.
        self._last = last
        # States of a batch: waiting, then in the part that is being written; then its callback was called.
        self._waiting: deque[_Batch] = deque()
        self._writing: list[_Batch] = []
        # Why nothing is accepted any more; None: it is.
        self._refused: StoreFailed | None = None
        self._has_ended = False
        # Whether the list knows of everything in the log.
        self._is_listed = True
        self._grown: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        state = "ended" if self._has_ended else "open"
        return f"<PostgresLog {self.meta.id} {state} last={self._last} waiting={len(self._waiting)}>"

    @property
    def has_waiting(self) -> bool:
        """Whether there is something for the writer."""
        return bool(self._waiting)

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        if self._refused is not None and not (self._waiting or self._writing):
            # Not called at once: a caller must not get its callback before `append` has returned.
            asyncio.get_running_loop().call_soon(committed, self._refused)
            return
        self._waiting.append((entries, committed))
        self._writer.put(self)

    async def flush(self) -> None:
        if self._has_ended and not self._waiting and not self._writing:
            return
        # An append of nothing: it is done when everything before it is, and fails if that has failed.
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def committed(error: StoreFailed | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        self.append((), committed)
        await done

    async def read(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        if self._waiting or self._writing:
            await self.flush()
        async for records in self._store.read(self.meta.id, after):
            yield records

    async def tail(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        while not self._has_ended:
            # Before reading: what is committed while we read wakes us again.
            if self._grown is None:
                self._grown = asyncio.get_running_loop().create_future()
            grown = self._grown
            async for records in self._store.read(self.meta.id, after):
                after = records[-1].sequence
                yield records
            await asyncio.shield(grown)

    async def change(self, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        self.meta = await self._store.change(self.meta.id, title=title, archived=archived)
        return self.meta

    async def touch(self) -> None:
        self.meta = await self._store.touch(self.meta.id)
        self._is_listed = True

    async def release(self) -> None:
        if self._has_ended:
            return
        try:
            await self.flush()
        finally:
            # `end` may have been called while we waited: the session was deleted, or its store closed.
            if not self._has_ended:
                self.end()
                await self._store.release(self.meta.id, self.fence, was_active=not self._is_listed)

    async def finish(self) -> None:
        """Wait until everything is written, accept nothing more, and have the list know of it."""
        try:
            await self.flush()
        finally:
            # Ended before the list is told: nothing is appended behind what it is told.
            self.end()
            if not self._is_listed:
                await self.touch()

    def end(self) -> None:
        """Accept nothing more. What is appended all the same fails, after what was appended before."""
        self._has_ended = True
        self._refused = StoreFailed("the session is not open here any more")
        self._store.remove_log(self)
        self._wake()

    # -- for the writer ------------------------------------------------------------------------------------------------

    def take_part(self, size: int) -> LogPart | None:
        """Take what waits, up to about a size in bytes; None: nothing waits, or it cannot be written."""
        # At least one batch, also if it is larger than what there is room for.
        entries: list[Entry] = []
        while self._waiting and (size > 0 or not self._writing):
            batch = self._waiting.popleft()
            self._writing.append(batch)
            entries += batch[0]
            size -= sum(_size_of(entry) for entry in batch[0])
        # Ended after this was appended: deleted, or the lease is lost.
        if self._refused is not None and entries:
            self.fail(self._refused)
            return None
        if not self._writing:
            return None
        try:
            return LogPart(self, self._last, [encode_entry(entry) for entry in join_texts(entries)])
        except UnwritableEntry as error:
            failure = StoreFailed("an entry cannot be written down")
            failure.__cause__ = error
        except Exception as error:  # the writer serves every session; a mistake here must not end it
            failure = StoreFailed("the session store failed")
            failure.__cause__ = error
        self.fail(failure)
        return None

    def on_written(self, part: LogPart, failure: StoreFailed | None) -> None:
        """Note what became of a part."""
        # A part without rows is a flush; it grows nothing.
        if failure is None and part.rows:
            self._last = part.last
            self._is_listed = False
            self._wake()
        self._conclude(failure)

    def lose(self) -> None:
        """End because the database has another owner of the session, or another end of its log."""
        self._store.lose_log(self)

    def fail(self, failure: StoreFailed) -> None:
        """Note that nothing of what waits is written."""
        self._conclude(failure)

    def _conclude(self, failure: StoreFailed | None) -> None:
        """Call back for what was taken; behind a failure also for what waits."""
        # Emptied first: a callback may append, and flush.
        concluded, self._writing = self._writing, []
        if failure is not None:
            concluded += self._waiting
            self._waiting.clear()
        for _, committed in concluded:
            try:
                committed(failure)
            except Exception as mistake:  # one caller's mistake is not the next one's
                context: dict[str, Any] = {"message": "a callback of a session log failed", "exception": mistake}
                asyncio.get_running_loop().call_exception_handler(context)

    def _wake(self) -> None:
        grown, self._grown = self._grown, None
        if grown is not None and not grown.done():
            grown.set_result(None)


def _size_of(entry: Entry) -> int:
    """Return about how many bytes an entry of text has; the others are small, or alone."""
    text = getattr(entry, "text", "")
    return len(text) + 64
