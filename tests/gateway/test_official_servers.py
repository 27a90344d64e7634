"""Our client against the official SDKs' own HTTP and WebSocket servers."""

import asyncio
from pathlib import Path

import pytest

from dragoman.client.connect import connect
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.gateway import free_port
from tests.support.needs import ROOT, need, need_typescript_sdk
from tests.support.sdk_peers import PYTHON_V1

pytestmark = pytest.mark.anyio
PROGRAMS = Path(__file__).resolve().parent / "peers"


async def allow(request: RequestPermission) -> PermissionOption:
    return request.options[0]


@pytest.mark.parametrize(("language", "schemes"), [("python", ["http", "ws"]), ("typescript", ["http"])])
async def test_our_client_works_against_their_server(language: str, schemes: list[str], tmp_path: Path) -> None:
    port = free_port()
    if language == "typescript":
        need_typescript_sdk()
        command = [need("node"), str(PROGRAMS / "server_v1.mjs"), str(port)]
    else:
        command = [*PYTHON_V1.python("tests.gateway.peers.server_v1"), str(port)]
    server = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    try:
        await _until_open(port)
        for scheme in schemes:
            assert await _heard(f"{scheme}://127.0.0.1:{port}", tmp_path) == ["one ", "two ", "allowed True"]
    finally:
        server.kill()
        await server.wait()


async def _heard(url: str, folder: Path) -> list[str]:
    """What our client is told in a turn."""
    async with connect(transport_for(url), permission=allow, protocol=1) as client:
        conversation = await client.new_session(folder)
        return [
            event.content.text
            async for event in conversation.prompt("go")
            if isinstance(event, AgentMessageChunk) and isinstance(event.content, Text)
        ]


async def _until_open(port: int) -> None:
    async with asyncio.timeout(40):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
