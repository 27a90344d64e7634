"""Four ways to build a cluster that look right and are not. A campaign with one of them has to turn the checker red.

Each is a function that changes this process, before it becomes a node.

    no-fence        the database gives an entry its number, and asks neither who writes it nor behind what
    advisory-lock   a node lives for as long as a connection of it holds an advisory lock
    no-freeze       what agents have started is left alone when the lease is late or lost
    notify          a node is dead when no NOTIFY of it was heard for a lease, and learns of its own end by one
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from dragoman.cluster import member
from dragoman.host import watchdog
from dragoman.store.contract import StoreFailed
from dragoman.store.postgres import group_commit, nodes, ownership
from dragoman.store.postgres.database import Database, OwnConnection, failures
from dragoman.store.postgres.node_lease import LeaseState, NodeLease, NodeRuns

_NAIVE_APPEND: Final = """
    WITH moved AS (
        UPDATE dragoman.session
        SET last_sequence = last_sequence + part.last - part.previous, appended = greatest($3, activity + 1)
        FROM unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[]) AS part (id, fence, previous, last)
        WHERE session.id = part.id AND ($1::text, $2::bigint) IS NOT NULL
        RETURNING session.id, part.fence, last_sequence - part.last AS shift
    ),
    added AS (
        INSERT INTO dragoman.entry (session, sequence, kind, body, fence)
        SELECT session, sequence + shift, kind, body, moved.fence
        FROM unnest($8::text[], $9::bigint[], $10::text[], $11::bytea[]) AS row (session, sequence, kind, body)
        JOIN moved ON moved.id = session
    )
    SELECT id FROM moved
"""
_LOCKS: Final = 7731
_IS_LOCKED: Final = f"""EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = {_LOCKS} AND granted
    AND objid::bigint = hashtext({{name}})::bigint & 4294967295
)"""
_BEATS: Final = "dragoman_beats"


def write_without_fence() -> None:
    """Let any node append to any log, behind whatever is there."""
    _put(group_commit, _APPEND=_NAIVE_APPEND)


def lease_by_advisory_lock() -> None:
    """Hold the lease by a lock of a connection, which has no end in time and is free when the connection is lost."""

    async def acquire(lease: NodeLease) -> None:
        await _lock(lease)
        take = "INSERT INTO dragoman.node VALUES ($1, 1, $2, 'infinity') ON CONFLICT (id) DO UPDATE SET"
        take += " incarnation = node.incarnation + 1, url = excluded.url, draining = false, expires = excluded.expires"
        async with lease._database.transaction() as connection:
            lease.incarnation = await connection.fetchval(f"{take} RETURNING incarnation", lease.name, lease.url)
        lease._change(LeaseState.HELD)
        lease._task = asyncio.create_task(lease._renew_for_ever())

    async def renew(lease: NodeLease) -> bool:
        with suppress(StoreFailed, TimeoutError):
            async with asyncio.timeout(lease.seconds / 3):
                await _lock(lease)
                return True
        lease._connection.drop()
        return False

    _put(NodeLease, acquire=acquire, _renew=renew)
    for module, names in ((ownership, ("_LOOK", "_COUNT_ON")), (nodes, ("_NODES", "_PLACE"))):
        for name in names:
            _put(module, **{name: _by_lock(getattr(module, name))})


def _by_lock(statement: str) -> str:
    for table in ("node.", "owner.", "home.", ""):
        is_locked = _IS_LOCKED.format(name=f"{table}id")
        statement = statement.replace(f"{table}expires >= clock_timestamp()", is_locked)
        statement = statement.replace(f"{table}expires < clock_timestamp()", f"NOT {is_locked}")
    return statement


async def _lock(lease: NodeLease) -> None:
    with failures():
        connection = await lease._connection.get()
        if not await connection.fetchval(f"SELECT pg_try_advisory_lock({_LOCKS}, hashtext($1))", lease.name):
            raise NodeRuns("another process holds the lock")


def leave_agents_alone() -> None:
    """Tell the watchdog nothing."""
    _put(watchdog.Watchdog, renew=lambda *_: None, say_lost=lambda *_: None)


def believe_notifications() -> None:
    """Believe who lives by what was heard, and not by the rows."""
    heard: dict[str, float] = {}
    lease_seconds: list[float] = []
    began = time.monotonic()

    def lives(name: str) -> bool:
        return time.monotonic() - max(heard.get(name, 0.0), began) < lease_seconds[0]

    look, find_place, list_nodes, start = ownership.look, nodes.find_place, nodes.list_nodes, member.ClusterMember.start

    async def look_by_ear(connection: Any, session_id: str) -> ownership.SessionRow:
        row = await look(connection, session_id)
        return row._replace(is_alive=row.owner is not None and lives(row.owner[0]))

    async def find_by_ear(database: Database, session_id: str) -> "nodes.SessionNodes | None":
        place = await find_place(database, session_id)
        if place is None or place.owner is None:
            return place
        return place._replace(owner=place.owner._replace(is_alive=lives(place.owner.name)))

    async def list_by_ear(database: Database) -> "list[nodes.NodeRow]":
        return [row._replace(is_alive=lives(row.name)) for row in await list_nodes(database)]

    async def renew(lease: NodeLease) -> bool:
        asked_at = asyncio.get_running_loop().time()
        with suppress(StoreFailed, TimeoutError), failures():
            async with asyncio.timeout(lease.seconds / 3):
                connection = await lease._connection.get()
                await connection.fetchval("SELECT pg_notify($1, $2)", _BEATS, lease.name)
                lease._note_renewal(asked_at)
                return True
        lease._connection.drop()
        return False

    async def listen(database: Database) -> None:
        own = OwnConnection(database)
        while True:
            with suppress(StoreFailed), failures():
                connection = await own.get()
                await connection.add_listener(_BEATS, lambda _, __, ___, name: heard.update({name: time.monotonic()}))
                while not connection.is_closed():
                    await asyncio.sleep(0.1)
            await asyncio.sleep(0.1)

    async def begin(cluster_member: member.ClusterMember) -> None:
        lease_seconds.append(cluster_member.store.lease_seconds)
        task = asyncio.create_task(listen(cluster_member.store.database))
        _tasks.add(task)
        await start(cluster_member)

    _put(ownership, look=look_by_ear, _COUNT_ON=ownership._COUNT_ON.partition("AND expires")[0])
    _put(member, find_place=find_by_ear, list_nodes=list_by_ear)
    _put(member.ClusterMember, start=begin)
    # Of its own end it would be told.
    _put(NodeLease, _renew=renew, lose=lambda lease: None)


def _put(place: object, **values: object) -> None:
    """Put other values in the place of what a class or a module has."""
    for name, value in values.items():
        assert hasattr(place, name)
        setattr(place, name, value)


# The loop itself has no lasting reference to a task.
_tasks: Final[set[asyncio.Task[None]]] = set()
VARIANTS: Final[Mapping[str, Callable[[], None]]] = {
    "no-fence": write_without_fence,
    "advisory-lock": lease_by_advisory_lock,
    "no-freeze": leave_agents_alone,
    "notify": believe_notifications,
}
