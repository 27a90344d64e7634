"""The contract of a store. No SQL, path or row leaks through it, so a networked engine can stand beside SQLite.

A session is its log: entries in the order they happened, each with a sequence number that only grows. Only the
holder of a log's lease may write to it; a lease ends with its holder, also when that is killed.
`tests/store/test_contract.py` holds for every engine.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from dragoman.errors import WorldError
from dragoman.store.entries import Entry, Record

__all__ = ["Record"]  # a word of the contract, which stands beside the entries

# The errors are a tree of their own below `StoreFailed`: a caller that only wants to know whether it worked catches
# that one; what a client is told differs for each of them (`agent.journal.client_error`).
ArchiveFilter = Literal["exclude", "include", "only"]


class StoreFailed(WorldError):
    """The store cannot do it now: no space, no right, no disk. Nothing was half done; it may work later."""


class SessionMissing(StoreFailed):
    """There is no such session."""


class SessionHeld(StoreFailed):
    """The session is open already; unless it is a `SessionOpenHere`, another process has it open."""


class SessionOpenHere(SessionHeld):
    """A store of this process has the session open, or is opening it."""


class SessionDamaged(StoreFailed):
    """What was stored of the session cannot be read. Other sessions are unharmed."""


class BadCursor(StoreFailed):
    """A cursor we did not give, or gave too long ago."""


class SessionMeta(NamedTuple):
    """What is known of a session without reading its log. Times are microseconds since 1970.

    `home` is what its maker wishes: `shared`, if every node has its folder, or `node`, if only this one has; empty: as
    the store was told. Where a store is used by one machine it means nothing.
    """

    id: str
    cwd: str
    directories: tuple[str, ...] = ()
    title: str = ""
    created: int = 0
    activity: int = 0
    archived: bool = False
    home: str = ""


class SessionPage(NamedTuple):
    """Sessions, newest first, and where the next page begins."""

    sessions: Sequence[SessionMeta]
    cursor: str | None


Check = Callable[[SessionMeta], None]
# Called in the loop, once for each append, in order: None when the entries are on disk.
Committed = Callable[[StoreFailed | None], None]


class Log(Protocol):
    """One session's log, held by us."""

    meta: SessionMeta
    # What was lost of the log before we opened it, in a sentence for the user; None: nothing is known to be lost.
    # Damage is found by the first `read`, or by the first `append` if that comes before: then this is set.
    salvaged: str | None

    # Calls into a log may be made from its own event loop only; a log is not shared between loops.
    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        """Add entries. They are committed together with whatever else waits, in order; then `committed` is called.

        When a commit fails, everything that waits behind it fails as well: a log has no holes. What is appended after
        `committed` was called with the failure is tried again.
        """

    async def flush(self) -> None:
        """Wait until everything appended is on disk. Raise the `StoreFailed` of a commit that failed meanwhile."""

    def read(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        """Yield what the log has behind a sequence number, in batches. Pieces of one message come as one entry.

        The first time a part of the log is read it is verified. Where it is damaged the readable beginning is kept, the
        rest is cut off, `salvaged` is set, and the reading ends there. `SessionDamaged` if nothing can be read.
        """

    def tail(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        """Yield what `read` yields, then new entries as they are committed, until the log is released."""

    async def change(self, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        """Change what the list shows, and return the metadata after that."""

    async def touch(self) -> None:
        """Bring the list up to date: this session was active now."""

    async def release(self) -> None:
        """Release the lease. Everything appended is on disk then; a second call does nothing."""


class Store(Protocol):
    """Where sessions are stored. Every method waits for the disk and may raise `StoreFailed`."""

    async def create(self, meta: SessionMeta) -> Log:
        """Make a new session, held by us; it is on disk when this returns."""

    async def open(self, session_id: str, check: "Check | None" = None) -> Log:
        """Acquire the lease of a stored session. `SessionMissing`, `SessionHeld`, `SessionDamaged`.

        `check` is called with the metadata before the lease is acquired, perhaps in another thread; what it raises is
        raised, and nothing has changed. The log itself is not read yet: its first `read` verifies it.
        """

    async def read_meta(self, session_id: str) -> SessionMeta:
        """Return the metadata of a session, without holding it."""

    async def ids(self, prefix: str = "") -> Sequence[str]:
        """Return the sorted ids of all sessions that begin with `prefix`. Nothing but the ids is read."""

    async def length(self, session_id: str) -> int:
        """Return the sequence number of a session's last entry; 0: it has none."""

    def read(self, session_id: str, after: int = 0, *, joined: bool = True) -> AsyncIterator[Sequence[Record]]:
        """Yield a session's log in batches, without holding it. `SessionDamaged` where it cannot be read on.

        Pieces of one message come as one entry, unless `joined` is false: then as they were committed, each by itself.
        """

    async def list(
        self,
        *,
        cwd: str | None = None,
        related: Sequence[str] = (),
        cursor: str | None = None,
        archived: ArchiveFilter = "exclude",
    ) -> SessionPage:
        """Return a page of sessions: all, or those of a folder and of those `related` to it.

        One that exists throughout a paging is listed exactly once.
        """

    async def fork(self, source: str, meta: SessionMeta, last: int | None = None) -> Log:
        """Copy a session's log to a new session, held by us; `last`: up to the entry with this sequence number."""

    async def restore(self, meta: SessionMeta, entries: Sequence[Entry]) -> None:
        """Write a whole session as it is described, with its times, and hold nothing.

        All of it is on disk when this returns, or nothing. `StoreFailed` if there is a session with this id.
        """

    async def change(self, session_id: str, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        """Change title or archived flag of a session; raise `SessionHeld` if another store holds its lease."""

    async def delete(self, session_id: str) -> bool:
        """Delete a session for good. False: there was none."""

    async def close(self) -> None:
        """Release every lease and stop; what was appended is on disk then."""
