"""The MCP servers of one session."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.background import call_in_background
from dragoman.coder.mcp.config import Config, name_of
from dragoman.coder.mcp.names import labels, tool_name
from dragoman.coder.mcp.server import McpServerConnection, SdkMissing, State
from dragoman.coder.mcp.settings import McpCallbacks, McpEnvironment, McpTimeouts
from dragoman.coder.mcp.tool import ForeignTool
from dragoman.coder.tools.contract import Tool
from dragoman.errors import how_to_install
from dragoman.host.guardian import Guardian

if TYPE_CHECKING:
    from dragoman.coder.mcp.sdk.connection import Sdk

# More are a mistake; each may be a process tree.
SERVERS: Final = 32
DEFAULT_BOUNDS: Final = McpTimeouts()
MISSING: Final = f"MCP servers need the package mcp, which is not installed: {how_to_install('mcp')}"


class McpServerStatus(NamedTuple):
    """How a server is doing. `error` is why it is not connected; `left_out` counts tools that are of no use."""

    name: str
    state: State
    tools: list[str]
    left_out: int
    error: str
    stderr: str


async def allow_all(config: Config) -> bool:
    """Default `allow` callback: start every server without asking the user."""
    return True


class McpServers:
    """Starts them, has their tools, ends them. `changed` is called whenever `tools` or `status` has become another."""

    def __init__(
        self,
        configs: Sequence[Config],
        *,
        environment: Mapping[str, str],
        cwd: str,
        guardian: Guardian,
        notice: Callable[[str], Awaitable[None]],
        changed: Callable[[], None],
        roots: Sequence[str] = (),
        allow: Callable[[Config], Awaitable[bool]] = allow_all,
        bounds: McpTimeouts = DEFAULT_BOUNDS,
        guarded: Callable[[Config], bool] = lambda config: False,
        is_strange: Callable[[Config], bool] = lambda config: False,
    ) -> None:
        """`environment` is this process's: children get it without secrets. `roots` are told to servers that ask.
        `guarded` tells whether the tools of a server are guarded ones, `is_strange` whether only a public address of it
        is called."""
        self._guarded = guarded
        self._notice = notice
        self._surroundings = McpEnvironment(cwd, environment, roots or [cwd], guardian, is_strange)
        self._too_many = max(0, len(configs) - SERVERS)
        self._loading: asyncio.Task[Sdk] | None = None
        self._began = 0.0
        manners = McpCallbacks(notice, changed, allow, bounds)
        servers = [McpServerConnection(config, self._load, manners) for config in configs[:SERVERS]]
        self._servers = dict(zip(labels(name_of(server.config) for server in servers), servers, strict=True))

    def start(self) -> None:
        """Begins to connect to all of them, and returns at once."""
        self._began = asyncio.get_running_loop().time()
        for server in self._servers.values():
            server.start()

    async def started(self, within: float) -> None:
        """Waits until each is connected or known to fail, or until so many seconds from the start are over."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._began + within):
                for server in self._servers.values():
                    await server.started()

    def tools(self) -> list[Tool]:
        """The tools of the servers that are connected now."""
        return [
            ForeignTool(name, server.definitions.by_tool[tool], server, guarded=self._guarded(server.config))
            for label, server in self._servers.items()
            if server.state == "connected"
            for name, tool in _named(label, server).items()
        ]

    def status(self) -> list[McpServerStatus]:
        """How each of them is doing, in the order they were given."""
        return [
            McpServerStatus(
                server.name,
                server.state,
                list(_named(label, server)) if server.state == "connected" else [],
                server.definitions.left_out,
                server.error,
                server.stderr(),
            )
            for label, server in self._servers.items()
        ]

    async def close(self) -> None:
        """Ends all of them, at the same time; what they have started is dead afterwards."""
        if self._loading is not None:
            self._loading.cancel()
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    async def _load(self) -> "Sdk":
        if self._loading is None:
            self._loading = asyncio.create_task(self._load_once())
        return await asyncio.shield(self._loading)

    async def _load_once(self) -> "Sdk":
        """The SDK, imported in a thread: that takes a second."""
        if self._too_many:
            await self._notice(f"Only {SERVERS} MCP servers are connected; {self._too_many} more are left out")
        try:
            return await call_in_background(self._import)
        except SdkMissing as error:
            await self._notice(str(error))
            raise

    def _import(self) -> "Sdk":
        try:
            from dragoman.coder.mcp.sdk.connection import Sdk
        except ImportError as error:
            raise SdkMissing(MISSING) from error
        return Sdk(self._surroundings)


def _named(label: str, server: McpServerConnection) -> dict[str, str]:
    """What its tools are called here, and there. Of two that would be called the same, the first is."""
    names: dict[str, str] = {}
    for tool in server.definitions.by_tool:
        names.setdefault(tool_name(label, tool), tool)
    return names
