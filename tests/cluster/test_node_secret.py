"""The token of a node is worth something only with the secret."""

from pathlib import Path

import httpx2
import pytest

from dragoman.cluster.node_secret import NodeSecret
from tests.support.cluster import cluster, says
from tests.support.messages import hello


def secret(folder: Path, text: str) -> NodeSecret:
    file = folder / "secret"
    file.write_text(text)
    file.chmod(0o600)
    return NodeSecret(file)


@pytest.mark.requirement("CL5")
@pytest.mark.parametrize("change", ["", "x", "dragoman-node:b", "dragoman-node:b:", "other:a:"])
def test_a_token_that_the_secret_did_not_make_names_no_node(tmp_path: Path, change: str) -> None:
    ours, other = secret(tmp_path, "a" * 64), secret(tmp_path, "b" * 64)
    assert ours.node_of(ours.token_of("a").encode()) == "a"
    assert ours.node_of(other.token_of("a").encode()) == ""
    proof = ours.token_of("a").rpartition(":")[2]
    assert ours.node_of(f"{change}{proof}".encode()) == ""
    assert ours.node_of(ours.token_of("a").replace(":a:", ":b:").encode()) == ""


@pytest.mark.anyio
@pytest.mark.requirement("CL5")
async def test_a_node_with_another_secret_is_refused(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes, httpx2.AsyncClient(verify=False) as client:
        served = await nodes.node("a", says("from a"))
        stranger = secret(tmp_path, "b" * 64).token_of("b")
        body = {"jsonrpc": "2.0", **hello(2)}
        url = f"http://127.0.0.1:{served.port}/acp"
        answer = await client.post(url, json=body, headers={"Authorization": f"Bearer {stranger}"})
        assert answer.status_code == 401
