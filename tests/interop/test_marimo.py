"""README's line for marimo: the bridge that it names puts our agent behind a WebSocket, which is what marimo wants."""

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.support.needs import ROOT, need

pytestmark = [pytest.mark.anyio, pytest.mark.interop]
SECONDS = 120  # npx may have to fetch it first


async def test_an_agent_behind_the_bridge_answers_a_prompt(tmp_path: Path) -> None:
    need("npx")
    (line,) = re.findall(r"^npx .*--port \d+$", (ROOT / "README.md").read_text(), re.MULTILINE)
    async with asyncio.timeout(SECONDS), bridged(line, tmp_path) as port, await reached(port) as marimo:
        await asked(marimo, 1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        opened = await asked(marimo, 2, "session/new", {"cwd": str(tmp_path), "mcpServers": []})
        prompt = {"sessionId": opened["sessionId"], "prompt": [{"type": "text", "text": "list"}]}
        assert (await asked(marimo, 3, "session/prompt", prompt))["stopReason"] == "end_turn"


@asynccontextmanager
async def bridged(line: str, folder: Path) -> AsyncIterator[int]:
    """README's command, on a port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    words = shlex.split(re.sub(r"--port \d+", f"--port {port}", line).replace("npx", "npx --yes", 1))
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=folder,
        env={**os.environ, "PATH": path, "DRAGOMAN_HOME": str(folder / "home")},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def reached(port: int) -> ClientConnection:
    """A connection, as soon as a server listens."""
    while True:
        try:
            return await connect(f"ws://127.0.0.1:{port}")
        except (OSError, WebSocketException):
            await asyncio.sleep(0.1)


async def asked(marimo: ClientConnection, number: int, method: str, params: dict[str, Any]) -> Any:
    """What is answered; what is told meanwhile is not looked at."""
    await marimo.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
    while (message := json.loads(await marimo.recv())).get("id") != number:
        pass
    return message["result"]
