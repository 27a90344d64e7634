"""The webhooks of a cluster, in its database: a row of secrets for each principal, since every webhook has one."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.gateway.shared_state import NodeState
from dragoman.gateway.webhook import WEBHOOKS, Webhook
from dragoman.store.postgres.nodes import list_nodes

if TYPE_CHECKING:
    from dragoman.store.postgres.database import Database

_READ: Final = "SELECT value FROM dragoman.secret WHERE name = $1"
_WRITE: Final = """
    INSERT INTO dragoman.secret (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


class PostgresWebhooks:
    """The webhooks of every principal at all nodes; a `SharedWebhooks`."""

    def __init__(self, database: "Database") -> None:
        self._database: Final = database

    async def of(self, principal: str) -> Sequence[Webhook]:
        """Return the webhooks of a principal. Raise `StoreFailed`."""
        async with self._database.transaction(read_only=True) as connection:
            return _decode(await connection.fetchval(_READ, _row(principal)))

    async def add(self, principal: str, webhook: Webhook) -> bool:
        """Add a webhook; return False if the principal has `WEBHOOKS` already. Raise `StoreFailed`."""
        return await self._change(principal, lambda known: [*known, webhook] if len(known) < WEBHOOKS else known)

    async def remove(self, principal: str, webhook_id: str) -> bool:
        """Remove a webhook; return whether there was one. Raise `StoreFailed`."""
        return await self._change(principal, lambda known: [one for one in known if one.id != webhook_id])

    async def _change(self, principal: str, change: Callable[[list[Webhook]], list[Webhook]]) -> bool:
        async with self._database.transaction() as connection:
            # Locked by name: two nodes may add the first one at once, when there is no row to lock.
            await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", _row(principal))
            before = _decode(await connection.fetchval(_READ, _row(principal)))
            after = change(before)
            await connection.execute(_WRITE, _row(principal), msgspec.json.encode(after))
        return len(after) != len(before)


class PostgresNodes:
    """The nodes on a database, as their rows say; a `SharedNodes`."""

    def __init__(self, database: "Database") -> None:
        self._database: Final = database

    async def nodes(self) -> Sequence[NodeState]:
        """Return the nodes by name. Raise `StoreFailed`."""
        rows = await list_nodes(self._database)
        return [
            NodeState(row.name, row.url, row.is_alive, row.is_draining, row.sessions, row.seconds_left) for row in rows
        ]


def _row(principal: str) -> str:
    return f"webhooks of {principal}"


def _decode(value: bytes | None) -> list[Webhook]:
    return [] if value is None else msgspec.json.decode(value, type=list[Webhook])
