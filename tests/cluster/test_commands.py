"""`dragoman cluster`, and what `serve` says about its options."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.cluster import asked, cluster, says
from tests.support.command import call

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

URL = "postgresql://nowhere.invalid/dragoman"


@pytest.mark.requirement("CL4")
async def test_a_drained_node_hands_its_sessions_over_and_stops(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes:
        first = await nodes.node("a", says("from a"))
        await nodes.node("b", says("from b"))
        async with nodes.client("b") as far:
            async with nodes.client("a") as near:
                session = await near.new_session(tmp_path)
                there = await far.resume_session(session.id, tmp_path)
                assert (await there.ask("who?")).text == "from a"
                done = await asyncio.to_thread(call, "cluster", "drain", "a", "--store", nodes.url)
                assert (done.code, done.out) == (0, "a has handed its sessions over\n")
                assert await first.process.wait() == 0
            # Without a wait for a lease: it was given back.
            assert await asked(there, "and now?") == "from b"
            done = await asyncio.to_thread(call, "cluster", "status", "--json", "--store", nodes.url)
            found = {
                node["name"]: (node["alive"], node["sessions"], node["url"]) for node in json.loads(done.out)["nodes"]
            }
            ports = {name: served.port for name, served in nodes.nodes.items()}
            assert found == {
                "a": (False, 0, f"http://127.0.0.1:{ports['a']}"),
                "b": (True, 1, f"http://127.0.0.1:{ports['b']}"),
            }
            done = await asyncio.to_thread(call, "cluster", "status", "--store", nodes.url)
            assert [line.split()[:3] for line in done.out.splitlines()] == [
                ["node", "state", "sessions"],
                ["a", "away", "0"],
                ["b", "alive", "1"],
            ]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--node", "a"], "--node goes with --store postgresql://…"),
        (["--store", URL, "--node", "a"], "a node needs all of --node, --node-url and --node-secret-file"),
        (
            ["--store", URL, "--node", "a b", "--node-url", "http://a", "--node-secret-file", "s"],
            "'a b' cannot name a node",
        ),
        (
            ["--store", URL, "--node", "a", "--node-url", "ftp://a", "--node-secret-file", "s"],
            "'ftp://a' is no address of a node",
        ),
        (["--store", "mysql://a"], "the address of a store begins with postgresql://"),
        (["--store", URL, "--lease", "0.1"], "it must be seconds, from 1 to 600"),
    ],
)
def test_options_that_do_not_fit_are_told(tmp_path: Path, options: list[str], complaint: str) -> None:
    done = call("serve", "--model", "demo", *options, DRAGOMAN_HOME=str(tmp_path))
    assert done.code == 2
    assert complaint in done.error


@pytest.mark.requirement("CL5")
def test_a_secret_that_others_can_read_or_guess_starts_no_node(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    options = ["--store", URL, "--node", "a", "--node-url", "http://localhost:1", "--node-secret-file", str(secret)]
    secret.write_text("x" * 64)
    secret.chmod(0o644)
    done = call("serve", "--model", "demo", *options, DRAGOMAN_HOME=str(tmp_path))
    assert "others can read it" in done.error
    secret.chmod(0o600)
    secret.write_text("short")
    done = call("serve", "--model", "demo", *options, DRAGOMAN_HOME=str(tmp_path))
    assert "a secret of nodes has 32 characters or more" in done.error
