"""The store in PostgreSQL: sessions that every node of a cluster can read, and one of them at a time can write.

A session is owned by a node in one incarnation (`node_lease`), or by none. Taking, giving back, changing and deleting
one are single statements or short transactions that compare what the row said a moment ago (its `fence`, which counts
its owners) with what it says now; so two that want the same session at once cannot both have it.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.limits import MIB
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
from dragoman.store.entries import Batch, Entry, UnreadableEntry, UnwritableEntry, decode_entry, encode_entry
from dragoman.store.log import log_batches, retrieve_exception
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.group_commit import GroupCommit
from dragoman.store.postgres.listing import (
    COLUMNS,
    columns_of,
    count_activity,
    count_move,
    count_restored,
    leave_place,
    meta_of,
    page,
    storable_title,
)
from dragoman.store.postgres.log import PostgresLog
from dragoman.store.postgres.node_lease import LEASE_SECONDS, LeaseState, NodeLease

if TYPE_CHECKING:
    from dragoman.store.postgres.database import AnyConnection

_OPEN_HERE: Final = "the session is open in this process already"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
# Entries read at a time, and about how many bytes.
_BATCH: Final = 500
_BATCH_BYTES: Final = 4 * MIB
# How often a session is looked at again because its row has changed meanwhile.
_TRIES: Final = 10
# What all stores of this process have open: the process (a fork has the set too), the database and the session.
_open_here: Final[set[tuple[int, str, str]]] = set()

# A session, and whether its owner is a node in the incarnation that it is in; the rest is decided in Python, from one
# moment, and is compared with the row's `fence` when it is acted upon.
_LOOK: Final = f"""
    SELECT {", ".join(f"session.{name}" for name in COLUMNS.split(", "))}, owner, owner_incarnation, fence,
    last_sequence, appended, node.incarnation AS incarnation, node.expires >= clock_timestamp() AS is_alive
    FROM dragoman.session LEFT JOIN dragoman.node ON node.id = session.owner WHERE session.id = $1
"""
# The first fence of a session is 1; each new owner, and each end of one, counts it on.
_CREATE: Final = f"""
    INSERT INTO dragoman.session ({COLUMNS}, changed, owner, owner_incarnation, fence, last_sequence, appended)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, 0) ON CONFLICT DO NOTHING RETURNING true
"""
_COPY: Final = """
    INSERT INTO dragoman.entry SELECT $2, sequence, kind, body FROM dragoman.entry
    WHERE session = $1 AND sequence <= $3
"""
# Only an expired node is counted on, by the database's clock; a node that renews in the same moment wins.
_COUNT_ON: Final = """
    UPDATE dragoman.node SET incarnation = incarnation + 1
    WHERE id = $1 AND incarnation = $2 AND expires < clock_timestamp()
"""
_TAKE: Final = """
    UPDATE dragoman.session SET owner = $2, owner_incarnation = $3, fence = fence + 1
    WHERE id = $1 AND fence = $4 RETURNING last_sequence
"""
# Nothing happens if the session was taken from us: it is not ours to give.
_GIVE_BACK: Final = """
    UPDATE dragoman.session SET owner = NULL, owner_incarnation = NULL, fence = fence + 1
    WHERE id = $1 AND owner = $2 AND owner_incarnation = $3
"""
# Behind `leave_place`, in the same transaction: the place that it leaves is the one it has in the row.
_MOVE: Final = "UPDATE dragoman.session SET activity = $2, changed = $3 WHERE id = $1"
_CHANGE: Final = """
    UPDATE dragoman.session SET title = coalesce($2, title), archived = coalesce($3, archived),
    changed = coalesce($4, changed) WHERE id = $1 AND fence = $5 RETURNING true
"""
_DELETE: Final = "DELETE FROM dragoman.session WHERE id = $1 AND fence = $2 RETURNING true"
# The sizes of bodies are in the table itself, so those beyond the bound are not fetched from where large ones are kept.
_READ: Final = f"""
    SELECT sequence, kind, body FROM (
        SELECT sequence, kind, body, sum(octet_length(body)) OVER (ORDER BY sequence) - octet_length(body) AS before
        FROM (
            SELECT sequence, kind, body FROM dragoman.entry WHERE session = $1 AND sequence > $2
            ORDER BY sequence LIMIT {_BATCH}
        ) AS next
    ) AS sized WHERE before < {_BATCH_BYTES} ORDER BY sequence
"""


class _Seen(NamedTuple):
    """A session's row as it was a moment ago."""

    meta: SessionMeta
    owner: tuple[str, int] | None
    fence: int
    last: int
    appended: int
    # Whether the owner is a node in the incarnation that it is in, and whether that is alive.
    is_current: bool
    is_alive: bool


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
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
        on_delete: Callable[[str], object] = lambda session_id: None,
        on_lease: Callable[[LeaseState], None] = lambda state: None,
    ) -> None:
        """Keep sessions in the database at `url`; its tables are made when it is first used.

        `node` names this process, `node_url` says where others reach it; without a name it is one for this process
        alone. `clock` returns the seconds since 1970. `on_delete` is called with the id of each session that was
        deleted here, `on_lease` with each state of the lease. Raise `UsageError` if `url` is no such address.
        """
        self._database = Database(url)
        self._place = (os.getpid(), url)
        self._node = node or f"process-{os.urandom(8).hex()}"
        self._node_url = node_url
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._on_delete = on_delete
        self._on_lease = on_lease
        self._lease: NodeLease | None = None
        self._writer: GroupCommit | None = None
        # One at a time: two sessions that begin together share the lease that the first of them acquires.
        self._leasing = asyncio.Lock()
        self._logs: dict[str, PostgresLog] = {}
        # Sessions that are being opened, which are not to be opened twice.
        self._opening: set[str] = set()

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
            number = await count_restored(connection, meta.activity)
            # As for a new session; without an owner, so that any node may open it.
            row = (*columns_of(meta), number, None, None, len(rows))
            if not await connection.fetchval(_CREATE, *row):
                raise StoreFailed("there is a session with this id already")
            # By COPY, in a transaction of several statements: no node owns the session yet, so nothing waits for it.
            columns = ("session", "sequence", "kind", "body")
            await connection.copy_records_to_table("entry", schema_name="dragoman", columns=columns, records=rows)

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
                if number is not None:
                    await leave_place(connection, session_id, number)
                if await connection.fetchval(_CHANGE, session_id, storable, archived, number, seen.fence):
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
        """Commit what waits, give every session back, and disconnect."""
        # Logs first: what they have appended is written under the lease that is given back at the end.
        for log in list(self._logs.values()):
            with suppress(StoreFailed):  # the `committed` callback of each lost entry got the error
                await log.finish()
        async with self._leasing:
            if self._writer is not None:
                await self._writer.close()
            if self._lease is not None:
                await self._lease.release()
        await self._database.close()

    # -- for logs ------------------------------------------------------------------------------------------------------

    def remove_log(self, log: PostgresLog) -> None:
        """Forget a log that has ended."""
        if self._logs.get(log.meta.id) is log:
            del self._logs[log.meta.id]
            _open_here.discard((*self._place, log.meta.id))

    async def touch(self, session_id: str) -> SessionMeta:
        """Note in the list that a session was active now."""
        async with self._database.transaction() as connection:
            return await self._move(connection, session_id)

    async def release(self, session_id: str, *, was_active: bool) -> None:
        """Give a session back."""
        lease = self._lease
        async with self._database.transaction() as connection:
            if was_active:
                with suppress(SessionMissing):
                    await self._move(connection, session_id)
            if lease is not None:
                await connection.execute(_GIVE_BACK, session_id, lease.name, lease.incarnation)

    # -- ownership -----------------------------------------------------------------------------------------------------

    async def _open_log(self, session_id: str, take: Callable[[], Awaitable[tuple[SessionMeta, int]]]) -> PostgresLog:
        _check_name(session_id)
        # Decided here and not by the owner in the row: to the database both of our own requests look the same.
        if session_id in self._logs or session_id in self._opening:
            raise SessionOpenHere(_OPEN_HERE)
        # From here to the log there are three states: being taken, taken and ours, refused.
        self._opening.add(session_id)
        # A caller that is cancelled leaves the database to finish; what was taken for it is given back then.
        taking = asyncio.ensure_future(take())
        try:
            meta, last = await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(lambda _: self._release_late(session_id, taking))
            raise
        finally:
            if taking.done():
                self._opening.discard(session_id)
        if self._writer is None:
            raise StoreFailed("the session store is closed")
        # The writer of the lease that is held now; if another one came while we waited, the first append fails.
        log = PostgresLog(self, self._writer, meta, last)
        self._logs[session_id] = log
        _open_here.add((*self._place, session_id))
        return log

    def _release_late(self, session_id: str, taking: "asyncio.Future[tuple[SessionMeta, int]]") -> None:
        if taking.cancelled() or taking.exception() is not None:
            self._opening.discard(session_id)
            return

        async def release() -> None:
            with suppress(StoreFailed):  # it is given back with the lease
                await self.release(session_id, was_active=False)
            self._opening.discard(session_id)

        self._late = asyncio.ensure_future(release())

    async def _create(self, meta: SessionMeta, source: str | None, last: int | None) -> tuple[SessionMeta, int]:
        lease = await self._leased()
        async with self._database.transaction() as connection:
            now, number = await count_activity(connection, self._now())
            meta = meta._replace(created=meta.created or now, activity=now)
            length = 0
            if source is not None:
                length = (await self._look(connection, source)).last
                length = length if last is None else min(last, length)
            row = (*columns_of(meta), number, lease.name, lease.incarnation, length)
            if not await connection.fetchval(_CREATE, *row):
                raise StoreFailed("there is a session with this id already")
            # Entries never change, so those up to the length that was read are the same a moment later.
            if source is not None:
                await connection.execute(_COPY, source, meta.id, length)
        return meta._replace(title=storable_title(meta.title)), length

    async def _take(self, session_id: str, check: Check | None) -> tuple[SessionMeta, int]:
        for _ in range(_TRIES):
            async with self._database.transaction(read_only=True) as connection:
                seen = await self._look(connection, session_id)
            # Before anything changes: what it raises leaves the session as it was.
            if check is not None:
                check(seen.meta)
            if self._is_ours(seen):
                raise SessionOpenHere(_OPEN_HERE)
            self._raise_if_held(session_id, seen)
            lease = await self._leased()
            if seen.owner is not None and seen.is_current:
                # In a transaction of its own: it waits for appends of that node, which lock its row before sessions.
                async with self._database.transaction() as connection:
                    await connection.execute(_COUNT_ON, *seen.owner)
                continue
            # The row may have got another owner since we looked; then its fence differs, and we look again.
            async with self._database.transaction() as connection:
                last = await connection.fetchval(_TAKE, session_id, lease.name, lease.incarnation, seen.fence)
            if last is not None:
                is_behind = seen.appended > seen.meta.activity  # its last owner has died before it could tell the list
                return (await self.touch(session_id) if is_behind else seen.meta), int(last)
        raise _busy()

    async def _delete(self, session_id: str) -> None:
        for _ in range(_TRIES):
            async with self._database.transaction() as connection:
                seen = await self._look(connection, session_id)
                self._raise_if_held(session_id, seen)
                if await connection.fetchval(_DELETE, session_id, seen.fence):
                    # Behind the session's row: an append of ours that runs now has locked it, and is waited for.
                    await connection.execute("DELETE FROM dragoman.entry WHERE session = $1", session_id)
                    return
        raise _busy()

    async def _leased(self) -> NodeLease:
        """Return a lease that is not lost; a new one, if the last one was."""
        async with self._leasing:
            if self._lease is None or self._lease.state is LeaseState.LOST:
                lease = NodeLease(
                    self._database,
                    self._node,
                    url=self._node_url,
                    seconds=self._lease_seconds,
                    on_change=self._on_lease_change,
                )
                await lease.acquire()
                # The writer of the lost lease has failed what it had; nothing waits in it.
                if self._writer is not None:
                    await self._writer.close()
                self._lease, self._writer = lease, GroupCommit(self._database, lease, self._now)
            return self._lease

    def _on_lease_change(self, state: LeaseState) -> None:
        # Their entries are refused by the database from now on; readers and writers of them learn it at once.
        if state is LeaseState.LOST:
            for log in list(self._logs.values()):
                log.end()
        self._on_lease(state)

    def _is_ours(self, seen: _Seen) -> bool:
        lease = self._lease
        return (
            lease is not None
            and lease.state is not LeaseState.LOST
            and seen.owner == (lease.name, lease.incarnation)
            and seen.meta.id in self._logs
        )

    def _raise_if_held(self, session_id: str, seen: _Seen) -> None:
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

    async def _look(self, connection: "AnyConnection", session_id: str) -> _Seen:
        _check_name(session_id)
        row = await connection.fetchrow(_LOOK, session_id)
        if row is None:
            raise SessionMissing("there is no such session")
        owner = None if row["owner"] is None else (row["owner"], row["owner_incarnation"])
        is_current = owner is not None and row["incarnation"] == row["owner_incarnation"]
        return _Seen(
            meta_of(row),
            owner,
            row["fence"],
            row["last_sequence"],
            row["appended"],
            is_current,
            is_current and bool(row["is_alive"]),
        )

    async def _move(self, connection: "AnyConnection", session_id: str) -> SessionMeta:
        """Give a session the place of one that is active now."""
        activity, number = await count_activity(connection, self._now())
        await leave_place(connection, session_id, number)
        await connection.execute(_MOVE, session_id, activity, number)
        return (await self._look(connection, session_id)).meta

    async def _read(self, session_id: str, after: int) -> Batch:
        async with self._database.transaction(read_only=True) as connection:
            last = (await self._look(connection, session_id)).last
            rows = await connection.fetch(_READ, session_id, after)
        # Numbers without a gap, as they were written: a missing entry is noticed.
        records: list[Record] = []
        for row in rows:
            try:
                if row["sequence"] != after + 1 + len(records):
                    raise UnreadableEntry
                records.append(Record(row["sequence"], decode_entry(row["kind"], row["body"])))
            except UnreadableEntry as error:
                if not records:
                    raise SessionDamaged("the session's log has an entry that cannot be read") from error
                return Batch(records, is_last=False)  # the next read begins at the bad one
        if not records and after < last:
            raise SessionDamaged("the session's log lacks entries")
        return Batch(records, is_last=not records or records[-1].sequence >= last)

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
