"""What a node tells a Prometheus about the promises of a cluster."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from dragoman.cluster.member import ClusterMember
from dragoman.cluster.metrics import ClusterMetrics
from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.store import PostgresStore
from tests.store.scenes import meta, note, tried, write
from tests.support.cluster import cluster, says
from tests.support.postgres import empty_database, shared_server
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


class Figures:
    """The figures of a node, by their names."""

    def __init__(self, member: ClusterMember) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(ClusterMetrics(member))

    def __getitem__(self, name: str) -> float | None:
        return self._registry.get_sample_value(f"dragoman_{name}")


@pytest.fixture
async def stores() -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    with empty_database() as url:
        pair = PostgresStore(url, node="a", node_url="http://a"), PostgresStore(url, node="b", node_url="http://b")
        yield pair
        for store in pair:
            await store.close()


@pytest.mark.requirement("CL11")
async def test_what_a_node_commits_loses_and_takes_over_is_counted(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    one, other = stores
    members = ClusterMember(one, "a"), ClusterMember(other, "b")
    figures, others = Figures(members[0]), Figures(members[1])
    log = await one.create(meta("s"))
    await write(log, note(1), note(2))
    await other.join()
    for member in members:
        await member.look()
    assert (figures["entries_committed_total"], figures["commits_total"]) == (2, 1)
    assert (figures["sessions_owned"], figures["lease_held"], figures["nodes_alive"]) == (1, 1, 1)
    assert 0 <= (figures["database_silent_seconds"] or 0) < 60
    shared_server().execute("UPDATE dragoman.node SET expires = '-infinity' WHERE id = 'a'", "shared")
    await other.open("s")
    assert isinstance(await tried(log, note(3)), StoreFailed)
    assert (figures["appends_fenced_total"], figures["leases_lost_total"], figures["lease_held"]) == (1, 1, 0)
    assert (others["sessions_taken_over_total"], others["sessions_owned"]) == (1, 1)


@pytest.mark.requirement("CL11")
async def test_a_lease_that_is_late_is_counted_and_one_that_is_given_back_is_not_lost() -> None:
    with empty_database() as url:
        store = PostgresStore(url, node="c", lease_seconds=1.5)
        figures = Figures(ClusterMember(store, "c"))
        await store.join()
        with shared_server().paused():
            await until(lambda: figures["leases_late_total"] == 1)
            await until(lambda: figures["leases_lost_total"] == 1)
        await store.join()
        await store.close()
        assert figures["leases_lost_total"] == 1


@pytest.mark.requirement("CL11")
async def test_the_metrics_of_a_node_have_those_of_the_cluster(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes:
        served = await nodes.node("a", says("hello"))
        async with nodes.client("a") as client:
            await (await client.new_session(tmp_path)).ask("who?")
        async with httpx2.AsyncClient() as http:
            address = f"http://127.0.0.1:{served.port}/metrics"
            answer = await http.get(address, headers={"Authorization": f"Bearer {served.token}"})
        found = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
        assert found["dragoman_lease_held"] == "1.0"
        assert float(found["dragoman_entries_committed_total"]) > 0
