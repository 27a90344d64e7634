"""`repr()` of what lives long shows its state and counts, and no content."""

import os
import sys
from pathlib import Path

import pytest

from dragoman.coder.execution import DirectExecution
from dragoman.coder.mcp.server import McpServerConnection
from dragoman.coder.mcp.servers import DEFAULT_BOUNDS, allow_all
from dragoman.coder.mcp.settings import McpCallbacks
from dragoman.host.paths import Roots
from dragoman.host.process import Child
from dragoman.vocabulary.requests import McpStdio

pytestmark = pytest.mark.anyio


async def test_a_child_shows_its_program_and_how_it_ended(tmp_path: Path) -> None:
    child = Child.start([sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(3)"], cwd=tmp_path, env={})
    name = os.path.basename(sys.executable)
    assert repr(child).startswith(f"<Child {name} pid {child.pid} running, ")
    child.close_stdin()
    await child.wait()
    assert repr(child).startswith(f"<Child {name} pid {child.pid} ended with 3, ")
    await child.stop()
    assert repr(child) == f"<Child {name} pid {child.pid} ended with 3, 0 descriptors open>"


async def test_a_server_shows_its_state_and_no_argument_of_its_command() -> None:
    async def notice(text: str, description: str = "") -> None: ...

    async def load() -> object:
        raise NotImplementedError

    config = McpStdio("files", "/bin/server", ["--key", "a-secret"], [])
    callbacks = McpCallbacks(notice, lambda: None, allow_all, DEFAULT_BOUNDS)
    server = McpServerConnection(config, load, callbacks)  # type: ignore[arg-type]
    assert repr(server) == "<McpServerConnection files starting, 0 tools, 0 calls>"
    await server.close()
    assert repr(server) == "<McpServerConnection files closed, 0 tools, 0 calls>"


def test_an_execution_shows_the_mode_and_how_many_roots(tmp_path: Path) -> None:
    execution = DirectExecution(None, Roots([str(tmp_path)]), lambda: "ask", {"KEY": "a-secret"}, "")
    assert repr(execution) == "<DirectExecution mode ask, 1 roots>"
