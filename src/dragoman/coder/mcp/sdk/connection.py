"""One connection to one server, opened and left by one task: the SDK insists on that. Any task may call through it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from mcp import Client, MCPError
from mcp.client import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    ElicitCompleteNotification,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    ListRootsResult,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    Root,
    ToolListChangedNotification,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from dragoman.coder.mcp.catalog import PROMPTS, RESOURCES, ServerCatalog, read_catalog
from dragoman.coder.mcp.config import Config
from dragoman.coder.mcp.definition import TOOLS, Definitions, read_definitions
from dragoman.coder.mcp.sdk.elicitation import answer_for
from dragoman.coder.mcp.sdk.filter import filtered, said_of
from dragoman.coder.mcp.sdk.peer import SdkPeer, leaf, peer_for
from dragoman.coder.mcp.sdk.results import outcome_of, outcome_of_prompt, outcome_of_resource
from dragoman.coder.mcp.settings import Listed, McpEnvironment, ServerEvents
from dragoman.coder.tools.contract import ToolOutcome
from dragoman.version import VERSION

# Tools come in pages; a list without end is no list.
PAGES: Final = 32
# Answers to `initialize` that a server gives which speaks only the newer protocol.
_NEWER: Final = frozenset({METHOD_NOT_FOUND, INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION})
_CHANGES: Final[dict[type, Listed]] = {
    ToolListChangedNotification: "tools",
    PromptListChangedNotification: "prompts",
    ResourceListChangedNotification: "resources",
}
# What servers of the newer protocol send to those who listen.
_EVENTS: Final[dict[type, Listed]] = {
    ToolsListChanged: "tools",
    PromptsListChanged: "prompts",
    ResourcesListChanged: "resources",
}


_A = TypeVar("_A")


class SdkConnection:
    """An open connection. `lost` is set when it has ended; `owner` gets what comes of the server without a call."""

    def __init__(self, peer: SdkPeer, roots: Sequence[str], owner: ServerEvents) -> None:
        self.lost: Final = asyncio.Event()
        self._peer = peer
        self._owner = owner
        self._roots = [Root(uri=Path(root).as_uri()) for root in roots]  # type: ignore[arg-type]
        self._client: Client

    async def open(self, stack: AsyncExitStack) -> None:
        """Enter the client. The handshake of today first: there are servers which end at any other first word."""
        if self._peer.is_modern:
            await self._enter(stack, "auto")
        else:
            await self._open_older(stack)
        if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            listening = asyncio.ensure_future(self._listen())
            stack.callback(listening.cancel)

    async def _open_older(self, stack: AsyncExitStack) -> None:
        try:
            await self._enter(stack, "legacy")
        except Exception as error:
            answer = leaf(error)
            if not isinstance(answer, MCPError) or answer.code not in _NEWER:
                raise
            self.lost.clear()
            await self._enter(stack, "auto")

    async def definitions(self, server: Sequence[str]) -> Definitions:
        """Return the tools that the server has now."""
        return read_definitions(await self._listed(self._client.list_tools, "tools", TOOLS), server)

    async def catalog(self) -> ServerCatalog:
        """Return the prompts and resources that the server has now; none of what it does not say to have."""
        can = self._client.server_capabilities
        prompts = await self._listed(self._client.list_prompts, "prompts", PROMPTS) if can.prompts else []
        if not can.resources:
            return read_catalog(prompts, [], [])
        resources = await self._listed(self._client.list_resources, "resources", RESOURCES)
        templates = await self._listed(self._client.list_resource_templates, "resource_templates", RESOURCES)
        return read_catalog(prompts, resources, templates)

    async def _listed(self, ask: Callable[..., Awaitable[Any]], field: str, most: int) -> list[object]:
        """Return all pages of a list; a server that does not know the method has none."""
        listed: list[object] = []
        cursor: str | None = None
        for _ in range(PAGES):
            try:
                page = await ask(cursor=cursor)
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                break
            listed += map(said_of, getattr(page, field))
            cursor = page.next_cursor
            if cursor is None or len(listed) > most:
                break
        return listed

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolOutcome:
        """Call the tool and return its outcome. A cancel is sent to the server."""
        return await self._outcome(lambda: self._client.call_tool(tool, arguments), outcome_of)

    async def prompt(self, name: str, arguments: dict[str, str]) -> ToolOutcome:
        """Fetch a prompt: its messages are the content of the outcome."""
        return await self._outcome(lambda: self._client.get_prompt(name, arguments), outcome_of_prompt)

    async def resource(self, uri: str) -> ToolOutcome:
        """Read a resource: what it holds is the content of the outcome."""
        return await self._outcome(lambda: self._client.read_resource(uri), outcome_of_resource)

    async def _outcome(self, ask: Callable[[], Awaitable[_A]], read: Callable[[_A], ToolOutcome]) -> ToolOutcome:
        try:
            return read(await ask())
        except MCPError as error:
            if self._peer.has_forgotten_us():
                self.lost.set()
            is_lost = error.code == CONNECTION_CLOSED and self.lost.is_set() and not self._peer.needs_login()
            return ToolOutcome(
                "The MCP server went away during the call." if is_lost else self._failure(error), failed=True
            )
        except Exception as error:
            return ToolOutcome(self._failure(error), failed=True)

    def _failure(self, error: Exception) -> str:
        return f"The MCP server {self._peer.explain(error)}."

    async def _enter(self, stack: AsyncExitStack, mode: str) -> None:
        self._client = Client(
            filtered(self._peer.transport(), self.lost.set),
            mode=mode,
            client_info=Implementation(name="dragoman", version=VERSION),
            list_roots_callback=self._tell_roots,
            elicitation_callback=self._ask_user,
            message_handler=self._on_message,
            # The SDK would answer from memory where a server says that its list lasts.
            cache=None,
        )
        await stack.enter_async_context(self._client)

    async def _on_message(self, message: IncomingMessage) -> None:
        if what := _CHANGES.get(type(message)):
            self._owner.on_change(what)
        elif isinstance(message, ElicitCompleteNotification):
            await self._owner.page_done(message.params.elicitation_id)

    async def _listen(self) -> None:
        """Subscribe to changes of lists: servers of the newer protocol report them to subscribers only."""
        with suppress(Exception):
            async with self._client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as events:
                async for event in events:
                    if what := _EVENTS.get(type(event)):
                        self._owner.on_change(what)

    async def _ask_user(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return await answer_for(params, self._owner.ask_user)

    async def _tell_roots(self, context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=self._roots)


class Sdk:
    """What a server's owner needs of the SDK."""

    def __init__(self, surroundings: McpEnvironment) -> None:
        self._surroundings = surroundings

    def peer_for(self, config: Config) -> SdkPeer:
        """Return the far end that a configuration names."""
        return peer_for(config, self._surroundings)

    @asynccontextmanager
    async def connect(self, peer: SdkPeer, seconds: float, owner: ServerEvents) -> AsyncIterator[SdkConnection]:
        """Open a connection within `seconds`, and close it when the block is left."""
        async with AsyncExitStack() as stack:
            connection = SdkConnection(peer, self._surroundings.roots, owner)
            async with asyncio.timeout(seconds):
                await connection.open(stack)
            yield connection
