"""What a node tells a Prometheus about the promises of a cluster, each under the name of what would break it.

Counted by the store and looked up by the member anyway: nothing is asked of the database when metrics are read.
"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dragoman.cluster.member import ClusterMember
from dragoman.store.postgres.node_lease import LeaseState

if TYPE_CHECKING:
    from prometheus_client import Metric

_COUNTERS: Final = {
    "entries": ("entries_committed", "Entries of sessions that this node has committed."),
    "groups": ("commits", "Statements that committed them."),
    "tried_again": ("commits_tried_again", "Commits that were tried again: the database was away."),
    "fenced": ("appends_fenced", "Appends that the fence refused: another node has the session."),
    "leases_late": ("leases_late", "Times that what agents have started was frozen: the lease was not renewed."),
    "leases_lost": ("leases_lost", "Times that it was killed: the lease was lost."),
    "taken_over": ("sessions_taken_over", "Sessions that this node has taken from one that had died."),
}


class ClusterMetrics:
    """The figures of one node; a `Collector` of the library, for the registry of the server."""

    def __init__(self, member: ClusterMember) -> None:
        self._member: Final = member

    def __repr__(self) -> str:
        return f"<ClusterMetrics of {self._member!r}>"

    def collect(self) -> "Iterator[Metric]":
        """Yield every figure as it is now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for field, (name, about) in _COUNTERS.items():
            yield CounterMetricFamily(f"dragoman_{name}", about, getattr(self._member.store.figures, field))
        for name, (value, about) in self._gauges().items():
            yield GaugeMetricFamily(f"dragoman_{name}", about, value)

    def _gauges(self) -> dict[str, tuple[float, str]]:
        member, store = self._member, self._member.store
        is_held = store.lease is not None and store.lease.state is LeaseState.HELD
        rows = [row for name, row in member.nodes.items() if name != member.name]
        silence = asyncio.get_running_loop().time() - member.looked_at if member.looked_at else float("inf")
        return {
            "lease_held": (is_held, "1 while the lease of this node is renewed in time."),
            "database_silent_seconds": (silence, "Since the database has answered this node for the last time."),
            "sessions_owned": (store.owned, "Sessions that this node writes."),
            "nodes_alive": (sum(row.is_alive for row in rows), "Other nodes whose leases are renewed."),
            "nodes_away": (sum(not row.is_alive for row in rows), "Other nodes that are stopped or dead."),
            "synchronous_standbys": (
                member.synchronous_standbys,
                "Standbys that commits wait for, as far as this login may see them.",
            ),
        }
