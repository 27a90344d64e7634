"""What the database says about nodes: who they are, and at which of them a session is worked on.

Read only, but for `set_draining`. Only nodes with an address are part of a cluster: other processes have leases too, as
`dragoman sessions delete` has one while it runs.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from dragoman.store.postgres.database import AnyConnection, Database

_NODES: Final = """
    SELECT id, url, incarnation, expires >= clock_timestamp() AS is_alive, expires, draining,
    (SELECT count(*) FROM dragoman.session WHERE owner = node.id AND owner_incarnation = node.incarnation) AS sessions,
    CASE WHEN isfinite(expires) THEN extract(epoch FROM expires - clock_timestamp())::float8 END AS seconds_left
    FROM dragoman.node WHERE url <> '' ORDER BY id
"""
_PLACE: Final = """
    SELECT session.home, owner.id AS owner, owner.url AS owner_url, owner.incarnation AS owner_incarnation,
    coalesce(owner.expires >= clock_timestamp(), false) AS owner_alive,
    home.url AS home_url, home.incarnation AS home_incarnation,
    coalesce(home.expires >= clock_timestamp(), false) AS home_alive
    FROM dragoman.session
    LEFT JOIN dragoman.node AS owner ON owner.id = session.owner AND owner.incarnation = session.owner_incarnation
    LEFT JOIN dragoman.node AS home ON home.id = session.home AND session.home <> ''
    WHERE session.id = $1
"""
# A session of another agent than ours is where it was made: what there is of it is known to that agent alone.
_MAKER: Final = """
    SELECT claim.node AS name, coalesce(node.url, '') AS url, coalesce(node.incarnation, 0) AS incarnation,
    coalesce(node.expires >= clock_timestamp(), false) AS is_alive
    FROM dragoman.claim LEFT JOIN dragoman.node ON node.id = claim.node WHERE agent = $1 AND session = $2
"""
_STANDBYS: Final = """
    SELECT coalesce(application_name, '') AS name, coalesce(sync_state, 'unknown') AS sync,
    extract(epoch FROM replay_lag)::float8 AS lag FROM pg_stat_replication ORDER BY 1
"""
_DRAIN: Final = "UPDATE dragoman.node SET draining = $2 WHERE id = $1 AND url <> '' RETURNING true"


class NodeRow(NamedTuple):
    """A node as its row says. `seconds_left`: of its lease, by the database's clock; None: it was given back."""

    name: str
    url: str
    incarnation: int
    is_alive: bool
    expires: datetime
    is_draining: bool
    sessions: int
    seconds_left: float | None


class NodeAddress(NamedTuple):
    """A node that a session is at, in the incarnation that it is in."""

    name: str
    url: str
    incarnation: int
    is_alive: bool


class SessionNodes(NamedTuple):
    """Where a session is: the node that owns it, and the one that has its folder; None: none, and every node."""

    owner: NodeAddress | None
    home: NodeAddress | None


async def list_nodes(database: "Database") -> list[NodeRow]:
    """Return the nodes with an address, sorted by name. Wait for the database; raise `StoreFailed`."""
    async with database.transaction(read_only=True) as connection:
        return [NodeRow(*row) for row in await connection.fetch(_NODES)]


async def find_place(database: "Database", session_id: str) -> SessionNodes | None:
    """Return where a session is; None: there is no such session. Wait for the database; raise `StoreFailed`."""
    async with database.transaction(read_only=True) as connection:
        row = await connection.fetchrow(_PLACE, session_id)
    if row is None:
        return None
    owner = home = None
    if row["owner"] is not None:
        owner = NodeAddress(row["owner"], row["owner_url"], row["owner_incarnation"], row["owner_alive"])
    if row["home"]:
        # A node that was forgotten has no row: its name is all that is known of it.
        home = NodeAddress(row["home"], row["home_url"] or "", row["home_incarnation"] or 0, row["home_alive"])
    return SessionNodes(owner, home)


async def find_maker(database: "Database", agent: str, session_id: str) -> NodeAddress | None:
    """Return the node at which a session of another agent was made; None: it is not known. Wait for the database; raise
    `StoreFailed`."""
    async with database.transaction(read_only=True) as connection:
        row = await connection.fetchrow(_MAKER, agent, session_id)
    return None if row is None else NodeAddress(*row)


async def set_draining(connection: "AnyConnection", node: str, *, draining: bool) -> bool:
    """Ask a node to hand its sessions over, or not to any more; return False if there is no such node."""
    return bool(await connection.fetchval(_DRAIN, node, draining))


class Standby(NamedTuple):
    """A standby of the database, as far as this login may see it. `sync`: what a commit waits for."""

    name: str
    sync: str
    lag_seconds: float | None


async def list_standbys(database: "Database") -> list[Standby]:
    """Return the standbys that are connected. Wait for the database; raise `StoreFailed`."""
    async with database.transaction(read_only=True) as connection:
        rows = await connection.fetch(_STANDBYS)
    return [Standby(row["name"], row["sync"], row["lag"]) for row in rows]
