"""The row of a session: who owns it, how far its log goes, and the statements that change that.

`fence` counts the owners of a session: each that takes it, and each end of an owner, counts it on. So one number says
whether a row is still what it was, and every statement here that depends on an owner compares it.

Locks are taken in one order: the row that counts moves (`listing`), then a node, then sessions. Who only needs a
session to stay locks it weakly, which keeps it from being deleted and no entry from being appended.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.limits import MIB
from dragoman.store.contract import Record, SessionDamaged, SessionMeta, SessionMissing
from dragoman.store.entries import Batch, UnreadableEntry, decode_entry
from dragoman.store.postgres.listing import COLUMNS, columns_of, count_activity, leave_place, meta_of
from dragoman.store.postgres.node_lease import NodeLease

if TYPE_CHECKING:
    from dragoman.store.postgres.database import AnyConnection

# Entries read at a time, and about how many bytes.
_BATCH: Final = 500
_BATCH_BYTES: Final = 4 * MIB
# A session, and whether its owner is a node in the incarnation that it is in; the rest is decided in Python, from one
# moment, and is compared with the row's `fence` when it is acted upon.
_LOOK: Final = f"""
    SELECT {", ".join(f"session.{name}" for name in COLUMNS.split(", "))}, owner, owner_incarnation, fence,
    last_sequence, appended, node.incarnation AS incarnation, node.expires >= clock_timestamp() AS is_alive
    FROM dragoman.session LEFT JOIN dragoman.node ON node.id = session.owner WHERE session.id = $1
"""
_CREATE: Final = f"""
    INSERT INTO dragoman.session ({COLUMNS}, changed, owner, owner_incarnation, fence, last_sequence, appended, home)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, 0, $12) ON CONFLICT DO NOTHING RETURNING true
"""
_KEEP: Final = "SELECT last_sequence FROM dragoman.session WHERE id = $1 FOR KEY SHARE"
_COPY: Final = """
    INSERT INTO dragoman.entry (session, sequence, kind, body, fence)
    SELECT $2, sequence, kind, body, 1 FROM dragoman.entry
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
# Nothing happens if the session has another owner, or the same once more: it is not ours to give.
_GIVE_BACK: Final = """
    UPDATE dragoman.session SET owner = NULL, owner_incarnation = NULL, fence = fence + 1
    WHERE id = $1 AND fence = $2 AND owner = $3 AND owner_incarnation = $4
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
# The first fence of a session.
FIRST_FENCE: Final = 1


class SessionRow(NamedTuple):
    """A session's row as it was a moment ago."""

    meta: SessionMeta
    owner: tuple[str, int] | None
    fence: int
    last: int
    appended: int
    # Whether the owner is a node in the incarnation that it is in, and whether that is alive.
    is_current: bool
    is_alive: bool


async def look(connection: "AnyConnection", session_id: str) -> SessionRow:
    """Return the row of a session; raise `SessionMissing` if there is none."""
    row = await connection.fetchrow(_LOOK, session_id)
    if row is None:
        raise SessionMissing("there is no such session")
    owner = None if row["owner"] is None else (row["owner"], row["owner_incarnation"])
    is_current = owner is not None and row["incarnation"] == row["owner_incarnation"]
    is_alive = is_current and bool(row["is_alive"])
    return SessionRow(meta_of(row), owner, row["fence"], row["last_sequence"], row["appended"], is_current, is_alive)


async def create(
    connection: "AnyConnection", meta: SessionMeta, number: int, length: int, lease: NodeLease | None, home: str = ""
) -> bool:
    """Add the row of a session that a node owns, or none; `home` is the node that has its folder (empty: every node).
    Return False if there is one with this id."""
    owner = (None, None) if lease is None else (lease.name, lease.incarnation)
    return bool(await connection.fetchval(_CREATE, *columns_of(meta), number, *owner, length, home))


async def copy_entries(connection: "AnyConnection", source: str, target: str, last: int | None) -> int:
    """Copy a log, up to the entry `last`; return how many entries. The source is not deleted before the commit."""
    there = await connection.fetchval(_KEEP, source)
    if there is None:
        raise SessionMissing("there is no such session")
    # Entries never change, so those up to the length that was read are the same a moment later.
    length = int(there) if last is None else min(last, int(there))
    await connection.execute(_COPY, source, target, length)
    return length


async def count_on(connection: "AnyConnection", node: tuple[str, int]) -> None:
    """Take an expired node's sessions from it, by counting its incarnation on."""
    await connection.execute(_COUNT_ON, *node)


async def take(connection: "AnyConnection", seen: SessionRow, lease: NodeLease) -> int | None:
    """Make a node the owner of a session, whose fence is one higher then; return the length of its log.

    None: the row has changed since it was seen.
    """
    return await connection.fetchval(_TAKE, seen.meta.id, lease.name, lease.incarnation, seen.fence)  # type: ignore[no-any-return]


async def give_back(connection: "AnyConnection", session_id: str, fence: int, lease: NodeLease) -> None:
    """End the ownership of a node that has this fence, if it has not ended."""
    await connection.execute(_GIVE_BACK, session_id, fence, lease.name, lease.incarnation)


async def move(connection: "AnyConnection", session_id: str, now: int) -> SessionMeta:
    """Give a session the place of one that is active now."""
    activity, number = await count_activity(connection, now)
    await leave_place(connection, session_id, number)
    await connection.execute(_MOVE, session_id, activity, number)
    return (await look(connection, session_id)).meta


async def change(
    connection: "AnyConnection", seen: SessionRow, title: str | None, archived: bool | None, number: int | None
) -> bool:
    """Change what the list shows; False: the row has got another owner since it was seen."""
    if number is not None:
        await leave_place(connection, seen.meta.id, number)
    return bool(await connection.fetchval(_CHANGE, seen.meta.id, title, archived, number, seen.fence))


async def delete(connection: "AnyConnection", seen: SessionRow) -> bool:
    """Delete a session and its log; False: the row has got another owner since it was seen."""
    if not await connection.fetchval(_DELETE, seen.meta.id, seen.fence):
        return False
    # Behind the session's row: an append of ours that runs now has locked it, and is waited for.
    await connection.execute("DELETE FROM dragoman.entry WHERE session = $1", seen.meta.id)
    return True


async def read(connection: "AnyConnection", session_id: str, after: int) -> Batch:
    """Return the next entries of a log; raise `SessionDamaged` where it cannot be read on."""
    last = (await look(connection, session_id)).last
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
