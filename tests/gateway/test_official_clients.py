"""The official SDKs' own HTTP and WebSocket clients against the gateway: a turn, and a session found again."""

import asyncio
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import Served, gateway
from tests.support.needs import ROOT, need, need_typescript_sdk
from tests.support.sdk_peers import PEERS, PYTHON_V2, Peer

pytestmark = pytest.mark.anyio
PROGRAMS = Path(__file__).resolve().parent / "peers"
# What that of Python for v2 does here, that for v1 does over the same transports, and TypeScript's in the same version.
DEAR = pytest.param(PYTHON_V2, marks=pytest.mark.slow)
every_peer = pytest.mark.parametrize("peer", [*[peer for peer in PEERS if peer != PYTHON_V2], DEAR], ids=str)


def talking(folder: Path) -> Agent:
    agent = Agent("talking", store=lambda: SqliteStore(folder / "sessions"))

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for word in ("one ", "two "):
            await session.say(word)
        await session.say(f"allowed {bool(await session.ask_permission('May I?'))}")

    return agent


async def told(peer: Peer, served: Served, *urls: str) -> list[list[list[Any]]]:
    """What the peer saw on each of its connections: two for an address."""
    if peer.language == "typescript":
        need_typescript_sdk()
        command = [need("node"), "--experimental-websocket", "--no-warnings", str(PROGRAMS / "typescript.mjs")]
        command.append(str(peer.version))
    else:
        command = peer.python(f"tests.gateway.peers.python_v{peer.version}")
    process = await asyncio.create_subprocess_exec(
        *command,
        *["/", *urls],
        env={**os.environ, **peer.environment(), "PEER_TOKEN": served.token},
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    async with asyncio.timeout(50):
        output, _ = await process.communicate()
    assert process.returncode == 0
    lines = [json.loads(line) for line in output.splitlines()]
    begins = [at for at, line in enumerate(lines) if line[0] == "initialize"]
    return [lines[begin:end] for begin, end in pairwise([*begins, len(lines)])]


def said(lines: list[list[Any]]) -> str:
    """The agent's words, in pieces or in whole messages."""
    updates = [value for kind, value in lines if kind == "update"]
    blocks = [u["content"] for u in updates if u["sessionUpdate"] in ("agent_message_chunk", "agent_message")]
    return "".join(part["text"] for block in blocks for part in (block if isinstance(block, list) else [block]))


@every_peer
async def test_their_client_works_against_the_gateway(peer: Peer, tmp_path: Path) -> None:
    async with gateway(talking(tmp_path), tmp_path) as served:
        connections = await told(peer, served, served.http, served.ws)
    assert len(connections) == 4
    for first, again in (connections[:2], connections[2:]):
        kinds = [kind for kind, _ in first if kind != "update"]
        assert kinds == ["initialize", "session", "permission", "end"]
        assert first[0][1] == peer.version
        assert said(first) == "one two allowed True"
        assert dict(first)["end"] == "end_turn"
        assert dict(again)["session"] == dict(first)["session"]
        assert said(again) == 2 * "one two allowed True"  # the story, then the turn
        assert dict(again)["end"] == "end_turn"
