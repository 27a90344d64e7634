"""Two nodes on one database: any serves any client, one works on a session, and the other takes over after its end."""

from pathlib import Path

import pytest

from dragoman.errors import RequestFailed
from tests.support.cluster import Cluster, cluster, says
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def test_a_client_of_one_node_prompts_a_session_that_another_works_on(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes:
        await nodes.node("a", says("from a"))
        await nodes.node("b", says("from b"))
        async with nodes.client("a") as near, nodes.client("b") as far:
            session = await near.new_session(tmp_path)
            assert (await session.ask("who?")).text == "from a"
            there = await far.load_session(session.id, tmp_path)
            assert (await there.ask("who?")).text == "from a"
