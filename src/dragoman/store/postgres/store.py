"""The store in PostgreSQL: sessions that every node of a cluster can read, and one of them at a time can write.

A session is owned by a node in one incarnation (`node_lease`), or by none. Taking, giving back, changing and deleting
one are single statements or short transactions that compare what the row said a moment ago (its `fence`, which counts
its owners) with what it says now; so two that want the same session at once cannot both have it.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from dragoman.store.contract import (
    ArchiveFilter,
    Check,
    Record,
    SessionHeld,
    SessionMeta,
    SessionMissing,
    SessionOpenHere,
    SessionPage,
    StoreFailed,
)
from dragoman.store.entries import Batch, Entry, UnwritableEntry, encode_entry
from dragoman.store.log import log_batches, retrieve_exception
from dragoman.store.postgres import ownership
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.figures import StoreFigures
from dragoman.store.postgres.group_commit import GroupCommit
from dragoman.store.postgres.listing import count_activity, count_move, count_restored, page, storable_title
from dragoman.store.postgres.log import PostgresLog
from dragoman.store.postgres.node_lease import LEASE_SECONDS, LeaseState, NodeLease
from dragoman.store.postgres.ownership import SessionRow

if TYPE_CHECKING:
    from dragoman.store.postgres.database import AnyConnection

# Who has the folder of a session: every node of a cluster, or the one that made it.
Home = Literal["shared", "node"]
_OPEN_HERE: Final = "the session is open in this process already"
_CLOSED: Final = "the session store is closed"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
# How often a session is looked at again because its row has changed meanwhile.
_TRIES: Final = 10
# Pause between tries to give a session back while the database is away.
_PAUSE: Final = 1.0
# What closing may take beyond a lease, in which what waits is written or fails.
_CLOSE_SECONDS: Final = 5.0
# What all stores of this process have open: the process (a fork has the set too), the database and the session.
_open_here: Final[set[tuple[int, str, str]]] = set()


class _Taken(NamedTuple):
    """A session that is ours in the database: what a log of it needs."""

    meta: SessionMeta
    last: int
    fence: int
    writer: GroupCommit


class PostgresStore:
    """Sessions in a PostgreSQL database, for `Agent(store=PostgresStore("postgresql://…"))`; a `store.contract.Store`.

    Used in one event loop. Every method waits for the database and raises `StoreFailed` if that does not do its part,
    `SessionMissing` for an id that is not there, and `SessionHeld`, or `SessionOpenHere` in this process, for a session
    that is open elsewhere. A process that is killed holds its sessions until its lease ends.
    """

    def __init__(
        self,
        url: str,
        *,
        node: str = "",
        node_url: str = "",
        home: Home = "shared",
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
        on_delete: Callable[[str], object] = lambda session_id: None,
        on_lease: Callable[[LeaseState], None] = lambda state: None,
        on_renewal: Callable[[float, float], None] = lambda late_at, lost_at: None,
        on_takeover: Callable[[str], None] = lambda node: None,
        on_loss: Callable[[str], None] = lambda session_id: None,
    ) -> None:
        """Keep sessions in the database at `url`; its tables are made when it is first used.

        `node` names this process, `node_url` says where others reach it; without a name it is one for this process
        alone. `home` says who has the folders of new sessions that say nothing else: every node, or this one. `clock`
        returns the seconds since 1970. `on_delete` is called with the id of each session that was deleted here,
        `on_lease` with each state of the lease, `on_renewal` as `NodeLease` does, `on_takeover` with the name of an
        expired node from which sessions were taken, `on_loss` with the id of each open session that was taken from this
        one. Raise `UsageError` if `url` is no such address.
        """
        self._database = Database(url)
        self._place = (os.getpid(), url)
        self._node = node or f"process-{os.urandom(8).hex()}"
        self._node_url = node_url
        self._home: Final = home
        self.lease_seconds: Final = lease_seconds
        self._clock = clock
        self._on_delete = on_delete
        self._on_lease = on_lease
        self._on_renewal = on_renewal
        self._on_takeover = on_takeover
        self._on_loss = on_loss
        self._lease: NodeLease | None = None
        self._writer: GroupCommit | None = None
        # One at a time: two sessions that begin together share the lease that the first of them acquires.
        self._leasing = asyncio.Lock()
        self._logs: dict[str, PostgresLog] = {}
        # Sessions that are being opened, which are not to be opened twice.
        self._opening: set[str] = set()
        # What goes on without a caller: what a cancelled one began, and what is given back later.
        self._tasks: set[asyncio.Future[Any]] = set()
        self._takings: set[asyncio.Future[_Taken]] = set()
        # The fences of sessions that may have been taken for nothing.
        self._unsure: dict[str, int] = {}
        self._is_closed = False
        self.figures: Final = StoreFigures()

    def __repr__(self) -> str:
        return f"<PostgresStore {self._database!r} {self._lease!r} logs={len(self._logs)} opening={len(self._opening)}>"

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def create(self, meta: SessionMeta) -> PostgresLog:
        """Make a new session, owned by this node; wait until it is committed."""
        return await self._open_log(meta.id, lambda: self._create(meta, None, None))

    async def fork(self, source: str, meta: SessionMeta, last: int | None = None) -> PostgresLog:
        """Copy the log of the session `source` into a new one, owned by this node. Wait until it is committed.

        `meta` describes the new session. `last` is the sequence number of the last entry that is copied; None: all are.
        """
        await self._settle(source)
        return await self._open_log(meta.id, lambda: self._create(meta, source, last))

    async def open(self, session_id: str, check: Check | None = None) -> PostgresLog:
        """Become the owner of a stored session, and wait for that. `check` as in the contract, called in the loop."""
        return await self._open_log(session_id, lambda: self._take(session_id, check))

    async def restore(self, meta: SessionMeta, entries: Sequence[Entry]) -> None:
        """Write a whole session as `meta` describes it, with its `entries`, and wait until it is committed.

        No node owns it. Raise `StoreFailed` if there is a session with this id.
        """
        _check_name(meta.id)
        try:
            rows = [(meta.id, number, *encode_entry(entry)) for number, entry in enumerate(entries, 1)]
        except UnwritableEntry as error:
            raise StoreFailed("an entry cannot be written down") from error
        async with self._database.transaction() as connection:
            # By COPY, in a transaction of several statements: no node owns the session yet, so nothing waits for it.
            # Before the move is counted, which nothing else can do until the commit.
            columns = ("session", "sequence", "kind", "body")
            await connection.copy_records_to_table("entry", schema_name="dragoman", columns=columns, records=rows)
            number = await count_restored(connection, meta.activity)
            if not await ownership.create(connection, meta, number, len(rows), None):
                raise _exists()

    async def change(self, session_id: str, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        """Change the `title` of a session, or whether it is `archived`. Wait until it is committed."""
        # As often as the row changes in between: its owner may append, or be another node a moment later.
        storable = None if title is None else storable_title(title)
        for _ in range(_TRIES):
            async with self._database.transaction() as connection:
                # Counted first: every transaction locks the row that counts before that of a session.
                number = None if archived is None else await count_move(connection)
                seen = await self._look(connection, session_id)
                self._raise_if_held(session_id, seen)
                if await ownership.change(connection, seen, storable, archived, number):
                    return (await self._look(connection, session_id)).meta
        raise _busy()

    async def delete(self, session_id: str) -> bool:
        """Delete a session for good, and wait for that. Return whether there was one."""
        try:
            await self._delete(session_id)
        except SessionMissing:
            return False
        log = self._logs.get(session_id)
        if log is not None:
            log.end()
        self._on_delete(session_id)
        return True

    # -- questions -----------------------------------------------------------------------------------------------------

    async def read_meta(self, session_id: str) -> SessionMeta:
        """Return the title, folder and times of a session, of any owner. Wait for the database."""
        async with self._database.transaction(read_only=True) as connection:
            return (await self._look(connection, session_id)).meta

    async def ids(self, prefix: str = "") -> Sequence[str]:
        """Return the ids of all sessions that begin with `prefix`, sorted. Wait for the database."""
        if prefix and not _NAME.fullmatch(prefix):
            return []
        async with self._database.transaction(read_only=True) as connection:
            query = "SELECT id FROM dragoman.session WHERE id >= $1 AND id < $2 ORDER BY id"
            return [row["id"] for row in await connection.fetch(query, prefix, f"{prefix}\x7f")]

    async def length(self, session_id: str) -> int:
        """Return the sequence number of a session's last entry; 0 if it has none. Wait for the database."""
        await self._settle(session_id)
        async with self._database.transaction(read_only=True) as connection:
            return (await self._look(connection, session_id)).last

    async def read(self, session_id: str, after: int = 0, *, joined: bool = True) -> AsyncIterator[Sequence[Record]]:
        """Yield the records of a session behind the number `after`, in batches; also where another node owns it.

        Pieces of one message come as one record, unless `joined` is false.
        """
        await self._settle(session_id)

        def read(behind: int) -> Awaitable[Batch]:
            reading = asyncio.ensure_future(self._read(session_id, behind))
            reading.add_done_callback(retrieve_exception)
            return reading

        async for records in log_batches(read, after, joined=joined):
            yield records

    async def list(
        self,
        *,
        cwd: str | None = None,
        related: Sequence[str] = (),
        cursor: str | None = None,
        archived: ArchiveFilter = "exclude",
    ) -> SessionPage:
        """Return a page of sessions, newest first; the arguments are those of the contract. Wait for the database."""
        folders = () if cwd is None else (cwd, *related)
        async with self._database.transaction(read_only=True) as connection:
            return await page(connection, folders, cursor, archived)

    async def close(self) -> None:
        """Commit what waits, give every session back, and disconnect.

        In little more than the time of a lease: what the database has not taken by then has failed.
        """
        self._is_closed = True
        is_silent = False
        try:
            async with asyncio.timeout(self.lease_seconds + _CLOSE_SECONDS):
                await self._give_all_back()
        except TimeoutError:
            is_silent = True
            for log in list(self._logs.values()):
                log.end()
            if self._lease is not None:
                self._lease.lose()
            if self._writer is not None:
                await self._writer.close()
        for task in list(self._tasks):
            task.cancel()
        await self._database.close(at_once=is_silent)

    async def _give_all_back(self) -> None:
        # What is being opened is ours first, and then refused; a session that is given back later is so with the lease.
        await asyncio.gather(*self._takings, return_exceptions=True)
        # Logs first: what they have appended is written under the lease that is given back at the end.
        # What fails was told to the `committed` callback of each lost entry.
        await asyncio.gather(*(log.finish() for log in list(self._logs.values())), return_exceptions=True)
        async with self._leasing:
            if self._writer is not None:
                await self._writer.close()
            if self._lease is not None:
                await self._lease.release()

    # -- for clusters --------------------------------------------------------------------------------------------------

    async def join(self) -> NodeLease:
        """Become the node, if this process is not, and return its lease. Wait for the database.

        Raise `NodeRuns` while another process has its name. A lease that was lost is followed by one of the next
        incarnation.
        """
        lease, _ = await self._leased()
        return lease

    async def release_lease(self) -> None:
        """Commit what waits, and give the lease and all sessions back: others may take them at once. Bounded."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.lease_seconds + _CLOSE_SECONDS):
                await self._give_all_back()

    @property
    def lease(self) -> NodeLease | None:
        """Return the lease that this process has now, or had last; None before the first."""
        return self._lease

    @property
    def owned(self) -> int:
        """Return how many sessions are open for writing here."""
        return len(self._logs)

    @property
    def database(self) -> Database:
        """Return the connections that the sessions share, for questions about nodes."""
        return self._database

    # -- for logs ------------------------------------------------------------------------------------------------------

    def lose_log(self, log: PostgresLog) -> None:
        """End a log because the session is not this node's any more, or may not be."""
        if self._logs.get(log.meta.id) is log:
            log.end()
            # Not called at once: what was appended has failed first.
            asyncio.get_running_loop().call_soon(self._on_loss, log.meta.id)

    def remove_log(self, log: PostgresLog) -> None:
        """Forget a log that has ended."""
        if self._logs.get(log.meta.id) is log:
            del self._logs[log.meta.id]
            _open_here.discard((*self._place, log.meta.id))

    async def touch(self, session_id: str) -> SessionMeta:
        """Note in the list that a session was active now."""
        async with self._database.transaction() as connection:
            return await ownership.move(connection, session_id, self._now())

    async def release(self, session_id: str, fence: int, *, was_active: bool) -> None:
        """Give back what was taken with this fence; later, if the database is away."""
        lease = self._lease
        try:
            async with self._database.transaction() as connection:
                if was_active:
                    with suppress(SessionMissing):
                        await ownership.move(connection, session_id, self._now())
                if lease is not None:
                    await ownership.give_back(connection, session_id, fence, lease)
        except BaseException:
            # Also for a caller that is cancelled: a session without a log would be held for as long as we live.
            self._run(self._give_back_later(session_id, fence, lease))
            raise

    # -- ownership -----------------------------------------------------------------------------------------------------

    async def _open_log(self, session_id: str, take: Callable[[], Awaitable[_Taken]]) -> PostgresLog:
        _check_name(session_id)
        # Decided here and not by the owner in the row: to the database both of our own requests look the same.
        if session_id in self._logs or session_id in self._opening:
            raise SessionOpenHere(_OPEN_HERE)
        # From here to the log there are three states: being taken, taken and ours, refused.
        self._opening.add(session_id)
        # A caller that is cancelled leaves the database to finish; what was taken for it is given back then.
        taking = asyncio.ensure_future(take())
        self._note(taking)
        self._takings.add(taking)
        taking.add_done_callback(self._takings.discard)
        try:
            taken = await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(lambda _: self._release_late(session_id, taking))
            raise
        finally:
            if taking.done():
                self._end_opening(session_id)
        if self._is_closed:
            raise StoreFailed(_CLOSED)  # it was given back with the lease
        if taken.writer.has_ended:
            raise StoreFailed("the lease of this node was lost while the session was opened; try again")
        log = PostgresLog(self, taken.writer, taken.meta, taken.last, taken.fence)
        self._logs[session_id] = log
        _open_here.add((*self._place, session_id))
        return log

    def _release_late(self, session_id: str, taking: "asyncio.Future[_Taken]") -> None:
        if not taking.cancelled() and taking.exception() is None:
            self._unsure[session_id] = taking.result().fence
        self._end_opening(session_id)

    def _end_opening(self, session_id: str) -> None:
        """Let a session be opened again here, after what may have been taken for nothing is given back: to the row both
        would be this node."""
        fence = self._unsure.pop(session_id, None)
        if fence is None:
            self._opening.discard(session_id)
        else:
            given_back = self._give_back_later(session_id, fence, self._lease)
            self._run(given_back, lambda: self._opening.discard(session_id))

    async def _give_back_later(self, session_id: str, fence: int, lease: NodeLease | None) -> None:
        """Try until the session is given back, or the lease is over that it was taken under."""
        while lease is not None and lease.state is not LeaseState.LOST:
            with suppress(StoreFailed):
                async with self._database.transaction() as connection:
                    await ownership.give_back(connection, session_id, fence, lease)
                    return
            await asyncio.sleep(_PAUSE)

    def _run(self, work: Coroutine[Any, Any, None], then: Callable[[], None] = lambda: None) -> None:
        task = asyncio.create_task(work)
        self._note(task)
        task.add_done_callback(lambda _: then())

    def _note(self, task: "asyncio.Future[Any]") -> None:
        # The loop itself has no lasting reference to a task.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(retrieve_exception)

    async def _create(self, meta: SessionMeta, source: str | None, last: int | None) -> _Taken:
        lease, writer = await self._leased()
        async with self._database.transaction() as connection:
            # Before the move is counted, which nothing else can do until the commit.
            length = 0 if source is None else await ownership.copy_entries(connection, source, meta.id, last)
            now, number = await count_activity(connection, self._now())
            meta = meta._replace(created=meta.created or now, activity=now, title=storable_title(meta.title))
            home = lease.name if (meta.home or self._home) == "node" else ""
            if not await ownership.create(connection, meta, number, length, lease, home):
                raise _exists()
        return _Taken(meta, length, ownership.FIRST_FENCE, writer)

    async def _take(self, session_id: str, check: Check | None) -> _Taken:
        for _ in range(_TRIES):
            async with self._database.transaction(read_only=True) as connection:
                seen = await self._look(connection, session_id)
            # Before anything changes: what it raises leaves the session as it was.
            if check is not None:
                check(seen.meta)
            self._raise_if_held(session_id, seen)
            lease, writer = await self._leased()
            if seen.owner is not None and seen.is_current and seen.owner != (lease.name, lease.incarnation):
                # In a transaction of its own: it waits for appends of that node, which lock its row before sessions.
                async with self._database.transaction() as connection:
                    await ownership.count_on(connection, seen.owner)
                self._on_takeover(seen.owner[0])
                continue
            # The row may have got another owner since we looked; then its fence differs, and we look again.
            try:
                async with self._database.transaction() as connection:
                    last = await ownership.take(connection, seen, lease)
            except StoreFailed:
                self._unsure[session_id] = seen.fence + 1  # it may be ours all the same: the answer got lost
                raise
            if last is not None:
                # One that was given back has no owner.
                self.figures.taken_over += seen.owner is not None
                return _Taken(await self._listed(seen), last, seen.fence + 1, writer)
        raise _busy()

    async def _listed(self, seen: SessionRow) -> SessionMeta:
        """Bring the list up to date if the session's last owner has died before it could."""
        if seen.appended > seen.meta.activity:
            with suppress(StoreFailed):  # the session is ours already; the next one that opens it does this
                return await self.touch(seen.meta.id)
        return seen.meta

    async def _delete(self, session_id: str) -> None:
        for _ in range(_TRIES):
            async with self._database.transaction() as connection:
                seen = await self._look(connection, session_id)
                self._raise_if_held(session_id, seen)
                if await ownership.delete(connection, seen):
                    return
        raise _busy()

    async def _leased(self) -> tuple[NodeLease, GroupCommit]:
        """Return a lease that is not lost, and its writer; new ones, if the last one was."""
        async with self._leasing:
            if self._is_closed:
                raise StoreFailed(_CLOSED)
            if self._lease is None or self._writer is None or self._lease.state is LeaseState.LOST:
                lease = NodeLease(
                    self._database,
                    self._node,
                    url=self._node_url,
                    seconds=self.lease_seconds,
                    previous=0 if self._lease is None else self._lease.incarnation,
                    on_change=self._on_lease_change,
                    on_renewal=self._on_renewal,
                )
                await lease.acquire()
                # The writer of the lost lease has failed what it had; nothing waits in it.
                if self._writer is not None:
                    await self._writer.close()
                self._lease, self._writer = lease, GroupCommit(self._database, lease, self._now, self.figures)
            return self._lease, self._writer

    def _on_lease_change(self, state: LeaseState) -> None:
        self.figures.leases_late += state is LeaseState.LATE
        # Their entries are refused by the database from now on; readers and writers of them learn it at once.
        if state is LeaseState.LOST:
            self.figures.leases_lost += self._lease is not None and not self._lease.is_released
            if self._writer is not None:
                self._writer.stop_trying()
            for log in list(self._logs.values()):
                self.lose_log(log)
        self._on_lease(state)

    def _raise_if_held(self, session_id: str, seen: SessionRow) -> None:
        """Raise `SessionHeld` if a living node owns a session and this one does not."""
        # Ours, open or not: the log of a session that is being released has ended already.
        lease = self._lease
        if lease is not None and seen.owner == (lease.name, lease.incarnation):
            return
        if seen.owner is not None and seen.is_current and seen.is_alive:
            if (*self._place, session_id) in _open_here:
                raise SessionOpenHere(_OPEN_HERE)
            raise SessionHeld("the session is open in another process")

    # -- rows ----------------------------------------------------------------------------------------------------------

    async def _look(self, connection: "AnyConnection", session_id: str) -> SessionRow:
        _check_name(session_id)
        return await ownership.look(connection, session_id)

    async def _read(self, session_id: str, after: int) -> Batch:
        _check_name(session_id)
        async with self._database.transaction(read_only=True) as connection:
            return await ownership.read(connection, session_id, after)

    async def _settle(self, session_id: str) -> None:
        """Wait until what was appended here to a session is committed, or has failed."""
        log = self._logs.get(session_id)
        if log is not None:
            with suppress(StoreFailed):
                await log.flush()

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)


def _check_name(session_id: str) -> None:
    if not _NAME.fullmatch(session_id):
        raise SessionMissing("there is no such session")


def _busy() -> StoreFailed:
    return StoreFailed("the session changes hands; try again")


def _exists() -> StoreFailed:
    return StoreFailed("there is a session with this id already")
