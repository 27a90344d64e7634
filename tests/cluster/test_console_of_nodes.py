"""What the console asks is the same at every node: the inbox, share links and tokens."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman import connect
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.cluster import Cluster, cluster
from tests.support.gateway import http_client

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90), pytest.mark.slow]

WRITES: dict[str, object] = {
    "turns": [{"steps": [{"call": "write_file", "input": {"path": "new.txt", "content": "hello"}}, {"say": "done"}]}]
}


async def ask(nodes: Cluster, node: str, path: str, wish: object = None, token: str = "") -> httpx2.Response:
    """The answer of a node to what its console asks."""
    headers = {"Authorization": f"Bearer {token or nodes.token}", "X-Dragoman": "1"}
    address = f"http://127.0.0.1:{nodes.nodes[node].port}/{path}"
    async with http_client() as client:
        if wish is None:
            return await client.get(address, headers=headers)
        return await client.post(address, headers=headers, json=wish)


async def waiting(nodes: Cluster, node: str, token: str = "") -> list[dict[str, Any]]:
    found = await ask(nodes, node, "api/activity", token=token)
    assert found.status_code == 200, found.text
    return [one for one in found.json()["sessions"] if one["state"] == "waiting"]


@pytest.mark.requirement("K62")
@pytest.mark.requirement("K65")
async def test_inbox_links_and_tokens_are_those_of_all_nodes(tmp_path: Path) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def wait(request: RequestPermission) -> PermissionOption:
        asked.set()
        await answered.wait()
        return request.options[0]

    async with cluster(tmp_path) as nodes:
        await nodes.node("a", WRITES, "--mode", "ask")
        await nodes.node("b", WRITES, "--mode", "ask")
        states = (await ask(nodes, "b", "api/nodes")).json()
        assert [(node["name"], node["isAlive"]) for node in states["nodes"]] == [("a", True), ("b", True)]
        made = (await ask(nodes, "b", "api/tokens", {"name": "bob", "scopes": ["read", "prompt"]})).json()
        async with nodes.client("a", permission=wait) as client:
            session = await client.new_session(tmp_path)
            turn = asyncio.create_task(session.ask("write"))
            await asked.wait()
            found: list[dict[str, Any]] = []
            while not found:  # what another node asks is told to the database in the background
                found = await waiting(nodes, "b")
            assert [(one["sessionId"], one["cwd"]) for one in found] == [(session.id, str(tmp_path))]
            assert await waiting(nodes, "b", made["token"]) == []
            wish = {"sessionId": session.id, "expires": time.time() + 3600}
            link = (await ask(nodes, "b", "api/shares", wish)).json()
            answered.set()
            assert (await turn).text == "done"
        # Read at the node that does not work on it.
        async with connect(transport_for(f"ws://127.0.0.1:{nodes.nodes['b'].port}/acp", link["token"])) as reader:
            assert (await reader.load_session(session.id, tmp_path)).id == session.id
        assert (await ask(nodes, "a", "api/shares/revoke", {"name": link["name"]})).json() == {"revoked": True}

        async def is_over() -> bool:
            return (await ask(nodes, "b", "me", {}, link["token"])).status_code == 401

        async with asyncio.timeout(30):
            while not await is_over():
                pass
