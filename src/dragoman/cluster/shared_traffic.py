"""What moves with every message, in the database of a cluster: rates, and how far the streams of connections are. It is
told to the other nodes at intervals, and never for a message."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.gateway.rate_limiter import RateLimiter
from dragoman.gateway.shared_state import ConnectionPosition, FoundConnection
from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.node_lease import NodeLease

_log = logging.getLogger(__name__)

# How old what other nodes know of rates and positions may be.
_SAVE_SECONDS: Final = 2.0
# How often rows are deleted that no node needs any more.
_CLEAN_SECONDS: Final = 600.0
# A prompt is known by its operation id for so long.
OPERATION_HOURS: Final = 24
_CLEAN: Final = f"""
    DELETE FROM dragoman.operation WHERE began < clock_timestamp() - interval '{OPERATION_HOURS} hours';
    DELETE FROM dragoman.question WHERE began < clock_timestamp() - interval '7 days';
    DELETE FROM dragoman.rate WHERE noted < clock_timestamp() - interval '10 minutes';
    DELETE FROM dragoman.connection WHERE noted < clock_timestamp() - interval '10 minutes';
    DELETE FROM dragoman.login WHERE used < clock_timestamp() - interval '7 days';
    DELETE FROM dragoman.login_grant WHERE expires < clock_timestamp();
"""
_SAVE: Final = """
    INSERT INTO dragoman.connection
    SELECT id, principal, $1, $2, received, newest, clock_timestamp()
    FROM unnest($3::text[], $4::text[], $5::bigint[], $6::text[]) AS row (id, principal, received, newest)
    ON CONFLICT (id) DO UPDATE SET node = excluded.node, incarnation = excluded.incarnation,
    received = excluded.received, newest = excluded.newest, noted = excluded.noted
"""
_FIND: Final = """
    SELECT connection.principal, received, newest, node.id AS node, node.url,
    node.incarnation = connection.incarnation AND node.expires >= clock_timestamp() AS is_alive
    FROM dragoman.connection LEFT JOIN dragoman.node ON node.id = connection.node
    WHERE connection.id = $1 AND principal = $2
"""
_COUNT: Final = """
    INSERT INTO dragoman.rate AS rate SELECT kind, key, used, clock_timestamp()
    FROM unnest($1::text[], $2::text[], $3::bigint[]) AS row (kind, key, used) ORDER BY kind, key
    ON CONFLICT (kind, key) DO UPDATE SET used = rate.used + excluded.used, noted = excluded.noted
    RETURNING kind, key, used
"""


class PostgresRates:
    """The rates of one kind of thing, counted over all nodes; a `SharedRates`.

    A node decides by itself at once, and learns at intervals what the others have let through. So a key that asks all
    nodes at once gets what each of them has, for one interval, and from then on its share.
    """

    def __init__(self, kind: str, rate: float, burst: float) -> None:
        self.kind: Final = kind
        self._here: Final = RateLimiter(rate, burst, time.monotonic)
        # What was let through here and is not counted yet, and the count of all nodes when it was seen last.
        self._used: dict[str, int] = {}
        self._seen: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<PostgresRates {self.kind} keys={len(self._used)}>"

    async def acquire(self, key: str) -> bool:
        """Take one, and return whether there was one."""
        is_there = await self._here.acquire(key)
        if is_there:
            self._used[key] = self._used.get(key, 0) + 1
        return is_there

    async def delay(self, key: str) -> float:
        """Take one and return the seconds the caller has to wait for it; 0 if there was one. Does not wait for it."""
        self._used[key] = self._used.get(key, 0) + 1
        return await self._here.delay(key)

    def take_used(self) -> dict[str, int]:
        """Return what was let through since the last call, by key."""
        used, self._used = self._used, {}
        return used

    async def count(self, key: str, used: int, of_all: int) -> None:
        """Take what other nodes have let through: `of_all` is the count of all nodes, with `used` of this one."""
        others = of_all - self._seen.get(key, of_all - used) - used
        self._seen[key] = of_all
        for _ in range(max(others, 0)):
            if not await self._here.acquire(key):
                break

    def forget(self, keys: set[str]) -> None:
        """Forget the counts of keys that were not used in the last interval."""
        self._seen = {key: count for key, count in self._seen.items() if key in keys}


class PostgresPositions:
    """The connections at all nodes; a `SharedPositions`. Also tells the rates, and deletes what is over."""

    def __init__(self, database: Database, lease: Callable[[], NodeLease | None]) -> None:
        self._database: Final = database
        self._lease: Final = lease
        self._positions: dict[str, Callable[[], ConnectionPosition]] = {}
        self._over: list[str] = []
        self._rates: list[PostgresRates] = []
        self._cleaned_at = float("-inf")

    def __repr__(self) -> str:
        return f"<PostgresPositions connections={len(self._positions)}>"

    def rates(self, kind: str, rate: float, burst: float) -> PostgresRates:
        """Return the rates of one kind of thing."""
        made = PostgresRates(kind, rate, burst)
        self._rates.append(made)
        return made

    def add(self, connection_id: str, position: Callable[[], ConnectionPosition]) -> None:
        """Note a new connection. `position` is asked at intervals."""
        self._positions[connection_id] = position

    def remove(self, connection_id: str) -> None:
        """Note that a connection is over."""
        if self._positions.pop(connection_id, None) is not None:
            self._over.append(connection_id)

    async def find(self, connection_id: str, principal: str) -> FoundConnection | None:
        """Return a connection of this principal; None: it is over, or never was, or the database is away."""
        here = self._positions.get(connection_id)
        if here is not None:
            found = here()
            return FoundConnection(found) if found.principal == principal else None
        try:
            async with self._database.transaction(read_only=True) as connection:
                row = await connection.fetchrow(_FIND, connection_id, principal)
        except StoreFailed:
            return None
        if row is None:
            return None
        newest = msgspec.json.decode(row["newest"], type=dict[str, int])
        position = ConnectionPosition(connection_id, row["principal"], row["received"], newest)
        return FoundConnection(position, row["node"] or "", row["url"] or "", bool(row["is_alive"]))

    async def save(self) -> None:
        """Tell the other nodes how far the connections are, and what was let through, unless the database is away."""
        try:
            await self._save()
            await self._clean()
        except StoreFailed as error:
            _log.debug("positions and rates were not told: %s", error)

    async def _save(self) -> None:
        lease = self._lease()
        if lease is None:
            return
        now = [position() for position in self._positions.values()]
        over, self._over = self._over, []
        columns = (
            [one.connection_id for one in now],
            [one.principal for one in now],
            [one.received for one in now],
            [msgspec.json.encode(dict(one.newest)).decode() for one in now],
        )
        async with self._database.transaction() as connection:
            if now:
                await connection.execute(_SAVE, lease.name, lease.incarnation, *columns)
            if over:
                await connection.execute("DELETE FROM dragoman.connection WHERE id = ANY ($1)", over)
        await self._save_rates()

    async def save_at_intervals(self) -> None:
        """Save at intervals, for as long as the server runs."""
        while True:
            await asyncio.sleep(_SAVE_SECONDS)
            await self.save()

    async def _save_rates(self) -> None:
        used = {(rates.kind, key): count for rates in self._rates for key, count in rates.take_used().items()}
        if used:
            columns = ([kind for kind, _ in used], [key for _, key in used], list(used.values()))
            async with self._database.transaction() as connection:
                rows = {(row["kind"], row["key"]): row["used"] for row in await connection.fetch(_COUNT, *columns)}
            for rates in self._rates:
                for (kind, key), count in rows.items():
                    if kind == rates.kind:
                        await rates.count(key, used[kind, key], count)
        for rates in self._rates:
            rates.forget({key for kind, key in used if kind == rates.kind})

    async def _clean(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._cleaned_at >= _CLEAN_SECONDS:
            self._cleaned_at = now
            async with self._database.transaction() as connection:
                await connection.execute(_CLEAN)
