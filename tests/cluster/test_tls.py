"""Nodes that speak TLS with each other, and believe the authorities that they are told to."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import connect
from dragoman.errors import NODE_AWAY, RequestFailed
from dragoman.transports.remote import transport_for
from tests.support.certificates import certificate_files
from tests.support.cluster import Cluster, cluster, says
from tests.support.gateway import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def secure_node(nodes: Cluster, name: str, trusted: Path | None) -> None:
    """Start a node that speaks TLS with a certificate of its own, and believes this one."""
    certificate, key = certificate_files(nodes.folder / f"of-{name}")
    port = free_port()
    words = ["--certificate", str(certificate), "--key", str(key), "--node-url", f"https://localhost:{port}"]
    words += ["--node-ca", str(trusted)] if trusted else []
    await nodes.node(name, says(f"from {name}"), *words, port=port)


def client(nodes: Cluster, name: str) -> Any:
    url = f"wss://localhost:{nodes.nodes[name].port}/acp"
    return connect(transport_for(url, nodes.token, ca_file=str(nodes.folder / f"of-{name}" / "cert.pem")))


@pytest.mark.requirement("CL5")
@pytest.mark.parametrize("is_believed", [True, pytest.param(False, marks=pytest.mark.slow)])
async def test_a_node_is_called_by_tls_if_its_authority_is_believed(tmp_path: Path, is_believed: bool) -> None:
    trusted = tmp_path / "of-a" / "cert.pem"
    async with cluster(tmp_path) as nodes:
        await secure_node(nodes, "a", None)
        await secure_node(nodes, "b", trusted if is_believed else None)
        async with client(nodes, "a") as near, client(nodes, "b") as far:
            session = await near.new_session(tmp_path)
            if is_believed:
                there = await far.load_session(session.id, tmp_path)
                assert (await there.ask("who?")).text == "from a"
            else:
                with pytest.raises(RequestFailed) as refused:
                    await far.load_session(session.id, tmp_path)
                assert refused.value.code == NODE_AWAY
