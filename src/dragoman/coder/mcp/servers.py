"""The MCP servers of one session."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.background import call_in_background
from dragoman.coder.mcp.catalog import ServerPrompt, ServerResource
from dragoman.coder.mcp.config import Config, name_of
from dragoman.coder.mcp.names import PREFIX, labels, tool_name
from dragoman.coder.mcp.server import McpServerConnection, SdkMissing, State
from dragoman.coder.mcp.settings import McpCallbacks, McpEnvironment, McpTimeouts, NoQuestions, Notify, UserQuestions
from dragoman.coder.mcp.tool import McpTool
from dragoman.coder.mcp.typed import ResourceMention, mentions_in, typed_tools
from dragoman.coder.tools.contract import Tool
from dragoman.errors import how_to_install
from dragoman.host.guardian import Guardian

if TYPE_CHECKING:
    from dragoman.agent.lent_servers import LentServers
    from dragoman.coder.mcp.sdk.connection import Sdk

# More are a mistake; each may be a process tree.
SERVERS: Final = 32
DEFAULT_BOUNDS: Final = McpTimeouts()
NO_QUESTIONS: Final = NoQuestions()
MISSING: Final = f"MCP servers need the package mcp, which is not installed: {how_to_install('mcp')}"


class McpServerStatus(NamedTuple):
    """The state of a server. `error` is why it is not connected; `left_out` counts tools that cannot be offered.
    `prompts` are commands by their names here, `resources` what is typed behind an `@`."""

    name: str
    state: State
    tools: list[str]
    left_out: int
    error: str
    stderr: str
    prompts: Sequence[str] = ()
    resources: Sequence[str] = ()


class TypedPrompt(NamedTuple):
    """A prompt of a server as a slash command: its name here, the label of its server, and what the server says."""

    name: str
    label: str
    prompt: ServerPrompt


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
        questions: UserQuestions = NO_QUESTIONS,
        lent: "LentServers | None" = None,
    ) -> None:
        """`environment` is this process's: children get it without secrets. `roots` are told to servers that ask.
        `guarded` tells whether the tools of a server are guarded ones, `is_strange` whether only a public address of it
        is called. `logins` is the folder of kept logins; empty: none is used. `questions` takes those of
        servers to the user. `lent` calls servers that the client lends; None: they are not called."""
        self._guarded = guarded
        self._notice = notice
        self._surroundings = McpEnvironment(cwd, environment, roots or [cwd], guardian, is_strange, logins, lent)
        self._too_many = max(0, len(configs) - SERVERS)
        self._loading: asyncio.Task[Sdk] | None = None
        self._began = 0.0
        # The tools as a model is shown them: what they were offered for, and the tools.
        self._offered: tuple[object, list[Tool]] | None = None
        callbacks = McpCallbacks(notice, changed, allow, bounds, questions)
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
            for label, server in self._connected()
            for name, tool in _named(label, server.definitions.by_tool).items()
        ]

    def offered_tools(self, occasion: object) -> list[Tool]:
        """Return the tools that a model is shown: what there was at the first call for this occasion.

        Requests to a model begin with its tools, and a server that comes, goes or changes would make that beginning
        another one: providers charge the whole conversation anew.
        """
        if self._offered is None or self._offered[0] != occasion:
            self._offered = (occasion, self.tools())
        return self._offered[1]

    def offer_anew(self) -> None:
        """Show the model what there is now, whatever the occasion."""
        self._offered = None

    def tools_not_offered(self) -> tuple[list[str], list[str]]:
        """Return the names of tools that are new or defined anew since they were offered, and of those that are gone.

        Of a server that is away no tool is gone: it may come back, and the user is told if it does not.
        """
        if self._offered is None:
            return [], []
        then, now = _shown(self._offered[1]), _shown(self.tools())
        here = tuple(f"{PREFIX}{label}__" for label, _ in self._connected())
        new = [name for name in now if now[name] != then.get(name)]
        return new, [name for name in then if name not in now and name.startswith(here)]

    def typed_prompts(self) -> list[TypedPrompt]:
        """Return the prompts of the servers that are connected, by the names they have as commands."""
        return [
            TypedPrompt(name, label, server.catalog.prompts[prompt])
            for label, server in self._connected()
            for name, prompt in _named(label, server.catalog.prompts).items()
        ]

    def resources(self) -> list[tuple[str, ServerResource]]:
        """Return the resources of the servers that are connected, each with what is typed behind an `@`."""
        return [(f"{label}:{one.uri}", one) for label, server in self._connected() for one in server.catalog.resources]

    def mentions_in(self, text: str) -> list[ResourceMention]:
        """Return the resources of servers that a text names."""

        def uris(label: str) -> set[str]:
            return {one.uri for one in self._servers[label].catalog.resources}

        return mentions_in(text, self._servers, uris)

    def typed_tools(self) -> list[Tool]:
        """Return what reads the resources and fetches the prompts that a user has typed."""
        return [
            tool
            for label, server in self._servers.items()
            for tool in typed_tools(label, server, guarded=self._guarded(server.config))
        ]

    def _connected(self) -> "list[tuple[str, McpServerConnection]]":
        return [(label, server) for label, server in self._servers.items() if server.state == "connected"]

    def status(self) -> list[McpServerStatus]:
        """Return the state of each server, in the order they were given."""
        return [
            McpServerStatus(
                server.name,
                server.state,
                list(_named(label, server.definitions.by_tool)) if server.state == "connected" else [],
                server.definitions.left_out,
                server.error,
                server.stderr(),
                [f"/{name}" for name in _named(label, server.catalog.prompts)] if server.state == "connected" else [],
                [f"@{label}:{one.uri}" for one in server.catalog.resources] if server.state == "connected" else [],
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


def _shown(tools: Iterable[Tool]) -> dict[str, tuple[str, object]]:
    return {tool.name: (tool.description, tool.schema) for tool in tools}


def _named(label: str, listed: Iterable[str]) -> dict[str, str]:
    """Return what a server lists by the name it has here. Of two with the same name here, the first counts."""
    names: dict[str, str] = {}
    for one in listed:
        names.setdefault(tool_name(label, one), one)
    return names
