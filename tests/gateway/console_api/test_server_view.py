"""How the server does, as an administrator sees it."""

import pytest

from tests.support.console_api import ConsoleApi
from tests.support.gateway import Served, raw_http

pytestmark = pytest.mark.anyio


async def test_the_agents_are_shown_with_what_they_do(served: Served) -> None:
    api = ConsoleApi(served)
    (before,) = (await api.answer("agents"))["agents"]
    assert (before["name"], before["title"], before["processes"], before["sessions"]) == ("", "", 0, 0)
    async with raw_http(served, 2) as client:
        session = await client.session()
        (agent,) = (await api.answer("agents"))["agents"]
        assert (agent["title"], agent["processes"], agent["sessions"], agent["states"]) == ("asking", 1, 1, ["running"])
        assert session not in str(agent)


async def test_a_server_alone_has_no_nodes_and_says_its_limits(served: Served) -> None:
    api = ConsoleApi(served)
    assert await api.answer("nodes") == {"isCluster": False, "nodes": []}
    limits = await api.answer("limits")
    assert (limits["maxMode"], limits["workspaces"], limits["subscribers"]) == ("", [], 64)


async def test_decisions_are_those_of_the_session_that_is_named(served: Served) -> None:
    api = ConsoleApi(served)
    assert (await api.answer("decisions", session="sess_1"))["decisions"] == [
        {"session": "sess_1", "decision": "allow"}
    ]
    assert (await api.answer("decisions"))["decisions"] == [{"session": "all", "decision": "allow"}]


async def test_what_each_principal_uses_is_shown(served: Served) -> None:
    api = ConsoleApi(served)
    assert await api.answer("principals") == {"principals": []}
    async with raw_http(served, 2, token=served.token_of("laptop", ("read", "prompt"), "ada")) as client:
        await client.session()
        (ada,) = (await api.answer("principals"))["principals"]
        assert (ada["name"], ada["sessions"], ada["turns"], ada["spentToday"]) == ("ada", 1, 0, 0)
