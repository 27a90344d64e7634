"""A node that has lost its lease does nothing more, also what was allowed before."""

from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.errors import RequestFailed
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.cluster.test_two_nodes import WRITES
from tests.support.cluster import cluster
from tests.support.postgres import shared_server

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.mark.slow
@pytest.mark.requirement("CL7")
async def test_a_tool_does_not_run_for_a_session_that_was_taken_from_its_node(tmp_path: Path) -> None:
    async def take_and_allow(request: RequestPermission) -> PermissionOption:
        shared_server().execute("UPDATE dragoman.node SET incarnation = incarnation + 1", "shared")
        return next(option for option in request.options if option.kind == "allow_once")

    work = tmp_path / "work"
    work.mkdir()
    async with cluster(tmp_path) as nodes:
        await nodes.node("a", WRITES)
        async with nodes.client("a", permission=take_and_allow) as client:
            session = await client.new_session(work)
            with suppress(RequestFailed):
                await session.ask("write it")
            assert list(work.iterdir()) == []
