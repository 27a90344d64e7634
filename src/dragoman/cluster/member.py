"""This process as a node: its lease, what it knows of the other nodes, and where sessions are.

    joining   `start` has not returned: there is no lease yet
    member    the lease is held, or renewed late
    fenced    the lease was lost; everything that this node did is over, and it joins again under the next incarnation

What is known of others is a second old at most while the database answers, and as old as its outage while it does not.
Nothing depends on it but which way a request goes: who may write is decided in each append (`store.postgres`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dragoman.cluster.bus import POLL_SECONDS, Bus, PostgresBus
from dragoman.errors import INTERNAL_ERROR, RequestFailed
from dragoman.gateway.places import HERE, NodePlace
from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.node_lease import LeaseState, NodeRuns
from dragoman.store.postgres.nodes import NodeRow, find_maker, find_place, list_nodes, list_standbys
from dragoman.store.postgres.store import PostgresStore

_log = logging.getLogger(__name__)

# A node that was stopped without a word holds its name until its lease ends.
_START_LEASES: Final = 2.0
_AGAIN_SECONDS: Final = 0.2
# How often the standbys are counted, and which a commit waits for.
_STANDBYS_SECONDS: Final = 10.0
_SYNCHRONOUS: Final = ("sync", "quorum")


class ClusterMember:
    """One node of a cluster, on a store that was made with its name and address.

    `on_drain` is called once, when an operator asks the node to hand its sessions over.
    """

    def __init__(
        self, store: PostgresStore, name: str, bus: Bus | None = None, *, on_drain: Callable[[], None] = lambda: None
    ) -> None:
        self.name: Final = name
        self.store: Final = store
        self.bus: Final[Bus] = bus or PostgresBus(store.database, name)
        self.nodes: dict[str, NodeRow] = {}
        self.looked_at = 0.0  # the loop time of the last look that succeeded
        self.synchronous_standbys = 0  # those that commits wait for, as of a moment ago
        self._counted_at = float("-inf")
        self._on_drain = on_drain
        self._is_draining = False
        self._callbacks: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "joining" if self.store.lease is None else self.store.lease.state.value
        return f"<ClusterMember {self.name} {state} nodes={len(self.nodes)}>"

    @property
    def is_fenced(self) -> bool:
        """Return whether this node has no lease now."""
        return self.store.lease is None or self.store.lease.state is LeaseState.LOST

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back after each change of a node: it has come, gone, or has got another incarnation."""
        self._callbacks.append(callback)

    async def start(self) -> None:
        """Become the node, and look at the others. Wait for the lease of a process before us that has died; raise
        `StoreFailed`, `NodeRuns` if it has not."""
        patience = _START_LEASES * self.store.lease_seconds
        deadline = asyncio.get_running_loop().time() + patience
        while True:
            try:
                await self.store.join()
                break
            except NodeRuns:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(_AGAIN_SECONDS)
        await self.look()
        self._task = asyncio.create_task(self._run())
        await self.bus.wake(*self._others())

    async def close(self) -> None:
        """Stop looking; the store gives the lease back when it is closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.bus.close()

    async def look(self) -> None:
        """Look at all nodes, this one included. Raise `StoreFailed`."""
        rows = {row.name: row for row in await list_nodes(self.store.database)}
        self.looked_at = asyncio.get_running_loop().time()
        before, self.nodes = self.nodes, rows
        own, lease = rows.get(self.name), self.store.lease
        # Sooner than by the next renewal: another node has counted our incarnation on.
        if lease is not None and own is not None and own.incarnation > lease.incarnation:
            lease.lose()
        if own is not None and own.is_draining and not self._is_draining:
            self._is_draining = True
            self._on_drain()
        if {_state(row) for row in before.values()} != {_state(row) for row in rows.values()}:
            for callback in self._callbacks:
                callback()

    async def find_made(self, agent: str, session_id: str) -> NodePlace:
        """Return where a session of another agent than ours was made, which is where it stays; `HERE` for one that is
        not known. Raise `RequestFailed` while the database is away."""
        with _database_away():
            maker = await find_maker(self.store.database, agent, session_id)
        if maker is None or maker.name == self.name:
            return HERE
        return NodePlace(maker.name, maker.incarnation, is_away=not maker.is_alive)

    async def find(self, session_id: str) -> NodePlace:
        """Return where a stored session is; `HERE` for one that is not stored. Raise `RequestFailed` while the database
        is away."""
        with _database_away():
            place = await find_place(self.store.database, session_id)
        if place is None:
            return HERE
        owner, home = place.owner, place.home
        if owner is not None and owner.is_alive:
            # A command without an address has it: what is opened here is told that the session is held.
            return HERE if owner.name == self.name or not owner.url else NodePlace(owner.name, owner.incarnation)
        if home is None or home.name == self.name:
            return HERE
        return NodePlace(home.name, home.incarnation, is_away=not home.is_alive)

    def is_current(self, place: NodePlace) -> bool:
        """Return whether a place that was found before still holds, as far as this node knows."""
        row = self.nodes.get(place.node)
        if place.is_away:
            return row is None or not row.is_alive
        return row is not None and row.is_alive and row.incarnation == place.incarnation

    def url_of(self, node: str) -> str:
        """Return the address of a node; empty if it is not known."""
        row = self.nodes.get(node)
        return "" if row is None else row.url

    def on_takeover(self, node: str) -> None:
        """Wake a node from which sessions were taken, so that it stops at once and not with its next renewal."""
        task = asyncio.ensure_future(self.bus.wake(node))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _run(self) -> None:
        while True:
            await self.bus.wait(POLL_SECONDS)
            try:
                await self.look()
                await self._count_standbys()
                if self.is_fenced:
                    await self.store.join()
                    _log.warning("node %s has joined again: %r", self.name, self.store.lease)
                    await self.bus.wake(*self._others())
            except StoreFailed as error:
                _log.debug("node %s could not look at the others: %s", self.name, error)

    async def _count_standbys(self) -> None:
        if self.looked_at - self._counted_at >= _STANDBYS_SECONDS:
            self._counted_at = self.looked_at
            standbys = await list_standbys(self.store.database)
            self.synchronous_standbys = sum(one.sync in _SYNCHRONOUS for one in standbys)

    def _others(self) -> list[str]:
        return [row.name for row in self.nodes.values() if row.is_alive and row.name != self.name]


@contextmanager
def _database_away() -> Iterator[None]:
    """Tell a client that asks where a session is that the database is away."""
    try:
        yield
    except StoreFailed:
        raise RequestFailed(INTERNAL_ERROR, "The database is away; try again", {"retry": True}) from None


def _state(row: NodeRow) -> tuple[str, str, int, bool, bool]:
    return row.name, row.url, row.incarnation, row.is_alive, row.is_draining
