"""The MCP servers of one session."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.background import call_in_background
from dragoman.coder.mcp.config import Config, name_of
from dragoman.coder.mcp.names import labels, tool_name
from dragoman.coder.mcp.server import McpServerConnection, SdkMissing, State
from dragoman.coder.mcp.settings import McpCallbacks, McpEnvironment, McpTimeouts, Notify
from dragoman.coder.mcp.tool import McpTool
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
    """The state of a server. `error` is why it is not connected; `left_out` counts tools that cannot be offered."""

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
    """Starts and stops the servers of a session, and has their tools. Calls `changed` when those or a state change."""

    def __init__(
        self,
        configs: Sequence[Config],
        *,
        environment: Mapping[str, str],
        cwd: str,
        guardian: Guardian,
        notice: Notify,
        changed: Callable[[], None],
        roots: Sequence[str] = (),
        allow: Callable[[Config], Awaitable[bool]] = allow_all,
        bounds: McpTimeouts = DEFAULT_BOUNDS,
        guarded: Callable[[Config], bool] = lambda config: False,
        is_strange: Callable[[Config], bool] = lambda config: False,
        logins: str = "",
    ) -> None:
        """`environment` is this process's: children get it without secrets. `roots` are told to servers that ask.
        `guarded` tells whether the tools of a server are guarded ones, `is_strange` whether only a public address of it
        is called. `logins` is the folder of kept logins; empty: none is used."""
        self._guarded = guarded
        self._notice = notice
        self._surroundings = McpEnvironment(cwd, environment, roots or [cwd], guardian, is_strange, logins)
        self._too_many = max(0, len(configs) - SERVERS)
        self._loading: asyncio.Task[Sdk] | None = None
        self._began = 0.0
        callbacks = McpCallbacks(notice, changed, allow, bounds)
        servers = [McpServerConnection(config, self._load, callbacks) for config in configs[:SERVERS]]
        self._servers = dict(zip(labels(name_of(server.config) for server in servers), servers, strict=True))

    def __repr__(self) -> str:
        return f"<McpServers {', '.join(f'{server.name} {server.state}' for server in self._servers.values())}>"

    def start(self) -> None:
        """Begin to connect to all servers, and return at once."""
        self._began = asyncio.get_running_loop().time()
        for server in self._servers.values():
            server.start()

    async def wait_until_started(self, within: float) -> None:
        """Wait until each server is connected or has failed, at most until `within` seconds after `start`."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._began + within):
                for server in self._servers.values():
                    await server.wait_until_started()

    def tools(self) -> list[Tool]:
        """Return the tools of the servers that are connected now."""
        return [
            McpTool(name, server.definitions.by_tool[tool], server, guarded=self._guarded(server.config))
            for label, server in self._servers.items()
            if server.state == "connected"
            for name, tool in _named(label, server).items()
        ]

    def status(self) -> list[McpServerStatus]:
        """Return the state of each server, in the order they were given."""
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
        """Stop all servers, at the same time, with everything they have started."""
        if self._loading is not None:
            self._loading.cancel()
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    async def _load(self) -> "Sdk":
        if self._loading is None:
            self._loading = asyncio.create_task(self._load_once())
        return await asyncio.shield(self._loading)

    async def _load_once(self) -> "Sdk":
        """Import the SDK in a thread: that takes a second."""
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
    """Return the tools of a server by the name they have here. Of two with the same name here, the first counts."""
    names: dict[str, str] = {}
    for tool in server.definitions.by_tool:
        names.setdefault(tool_name(label, tool), tool)
    return names
