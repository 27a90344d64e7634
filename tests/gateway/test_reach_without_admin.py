"""What a token without `admin` does not reach: addresses of the server's own machine, providers of its agent.

A real `dragoman serve`, and clients that come to it over the network with tokens of their own.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.errors import METHOD_NOT_FOUND, RequestFailed
from dragoman.gateway.token_types import SCOPES
from dragoman.vocabulary.asking import Extension
from dragoman.vocabulary.requests import McpHttp, McpServer, McpSse
from tests.support.gateway_process import words
from tests.support.needs import ROOT
from tests.support.principals import Household, calling
from tests.support.versions import both_versions

from .test_principals import workspace

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@pytest.mark.parametrize(("kind", "host"), [(McpHttp, "127.0.0.1"), (McpSse, "localhost"), (McpHttp, "2130706433")])
async def test_a_token_without_admin_has_the_server_call_no_address_of_its_own_machine(
    kind: type[McpHttp] | type[McpSse], host: str, tmp_path: Path
) -> None:
    """What listens there may believe programs of this machine, as the server itself does with `--elephant`."""
    house, folder = Household(tmp_path), workspace(tmp_path)
    owner, bob = house.token("owner", SCOPES), house.token("bob")
    called: list[str] = []

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.append("called")
        writer.close()

    listening = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    servers: list[McpServer] = [kind("inner", f"http://{host}:{port}/mcp", headers=[])]
    async with listening, house.served(calling()):
        async with house.client(bob) as client:
            session = await client.new_session(folder, mcp_servers=servers)
            said = words([event async for event in session.prompt("/mcp")])
            assert "- inner: failed, 0 tools: could not be started: its address is not public" in said
            assert called == []
        async with house.client(owner) as client:
            session = await client.new_session(folder, mcp_servers=servers)
            await session.ask("/mcp")
    assert called


@both_versions
async def test_the_providers_of_another_agent_are_set_by_admin_only(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = Household(tmp_path)
    owner, bob = house.token("owner", SCOPES), house.token("bob")
    monkeypatch.setenv("DRAGOMAN_HOME", str(house.home))
    assert main(["agents", "add", "example", "--", sys.executable, str(ROOT / "examples" / "agent.py")]) == 0
    request = Extension("providers/set", {"id": "openai", "baseUrl": "http://mine.example"})
    async with house.served({}, "--agent", "example"):
        async with house.client(bob, version) as client:
            with pytest.raises(RequestFailed, match="The token 'bob' may not use providers/set: that needs the scope"):
                await client.ask(request)
        async with house.client(owner, version) as client:
            with pytest.raises(RequestFailed) as failed:
                await client.ask(request)
            assert failed.value.code == METHOD_NOT_FOUND  # the agent was asked, and has none
