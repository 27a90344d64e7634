"""One connection to one server, opened and left by one task: the SDK insists on that. Any task may call through it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from mcp import Client, MCPError
from mcp.client import ClientRequestContext, IncomingMessage
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    ListRootsResult,
    Root,
    ToolListChangedNotification,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from dragoman.coder.mcp.config import Config
from dragoman.coder.mcp.definition import TOOLS, Definitions, read_definitions
from dragoman.coder.mcp.sdk.filter import filtered, said_of
from dragoman.coder.mcp.sdk.peer import SdkPeer, leaf, peer_for
from dragoman.coder.mcp.sdk.results import outcome_of
from dragoman.coder.mcp.settings import McpEnvironment
from dragoman.coder.tools.contract import ToolOutcome
from dragoman.version import VERSION

# Tools come in pages; a list without end is no list.
PAGES: Final = 32
# Answers to `initialize` that a server gives which speaks only the newer protocol.
_NEWER: Final = frozenset({METHOD_NOT_FOUND, INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION})


class SdkConnection:
    """An open connection. `lost` is set when it has ended; `on_change` is called when the tools are others."""

    def __init__(self, peer: SdkPeer, roots: Sequence[str], on_change: Callable[[], None]) -> None:
        self.lost: Final = asyncio.Event()
        self._peer = peer
        self._on_change = on_change
        self._roots = [Root(uri=Path(root).as_uri()) for root in roots]  # type: ignore[arg-type]
        self._client: Client

    async def open(self, stack: AsyncExitStack) -> None:
        """Enter the client. The handshake of today first: there are servers which end at any other first word."""
        try:
            await self._enter(stack, "legacy")
        except Exception as error:
            answer = leaf(error)
            if not isinstance(answer, MCPError) or answer.code not in _NEWER:
                raise
            self.lost.clear()
            await self._enter(stack, "auto")
        if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            listening = asyncio.ensure_future(self._listen())
            stack.callback(listening.cancel)

    async def definitions(self, server: Sequence[str]) -> Definitions:
        """Return the tools that the server has now."""
        listed: list[object] = []
        cursor: str | None = None
        for _ in range(PAGES):
            try:
                page = await self._client.list_tools(cursor=cursor)
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                break
            listed += map(said_of, page.tools)
            cursor = page.next_cursor
            if cursor is None or len(listed) > TOOLS:
                break
        return read_definitions(listed, server)

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolOutcome:
        """Call the tool and return its outcome. A cancel is sent to the server."""
        try:
            return outcome_of(await self._client.call_tool(tool, arguments))
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
            elicitation_callback=_decline,
            message_handler=self._on_message,
            # The SDK would answer from memory where a server says that its list lasts.
            cache=None,
        )
        await stack.enter_async_context(self._client)

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._on_change()

    async def _listen(self) -> None:
        """Subscribe to changes of the tools: servers of the newer protocol report them to subscribers only."""
        with suppress(Exception):
            async with self._client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._on_change()

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
    async def connect(
        self, peer: SdkPeer, seconds: float, on_change: Callable[[], None]
    ) -> AsyncIterator[SdkConnection]:
        """Open a connection within `seconds`, and close it when the block is left."""
        async with AsyncExitStack() as stack:
            connection = SdkConnection(peer, self._surroundings.roots, on_change)
            async with asyncio.timeout(seconds):
                await connection.open(stack)
            yield connection


async def _decline(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Decline every elicitation: no question of a server reaches the user yet. An error that no user can be asked
    would be worse: a server may take it for a yes."""
    return ElicitResult(action="decline")
