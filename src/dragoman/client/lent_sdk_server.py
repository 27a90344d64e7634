"""A server made with the official MCP SDK, as the handler of a server that is lent.

Each request is served by itself, as the protocol of today has it: no handshake, and questions are results. The
server's lifespan is entered with the first request and lasts as long as the process: it has no end of its own.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from mcp import MCPError
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.runner import modern_on_request
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.transport_context import TransportContext

from dragoman.client.lent_servers import McpCall, McpHandler
from dragoman.errors import INVALID_PARAMS, RequestFailed, UsageError


def handler_of(server: object) -> McpHandler:
    """Return the handler of a server of the SDK."""
    if isinstance(server, MCPServer):
        # The SDK has no public way from one to the other; its own client goes this way too.
        server = server._lowlevel_server
    if not isinstance(server, Server):
        raise UsageError(f"an MCP server is an MCPServer or a Server of the package mcp, not {type(server).__name__}")
    return _SdkServer(server)


class _SdkServer:
    """Serves requests with one server."""

    def __init__(self, server: "Server[Any]") -> None:
        self._server = server
        self._entering = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._serve: Any = None

    async def __call__(self, call: McpCall) -> object:
        async with self._entering:
            if self._serve is None:
                state = await self._stack.enter_async_context(self._server.lifespan(self._server))
                self._serve = modern_on_request(self._server, state)
        try:
            return await self._serve(_Exchange(call), call.method, call.params)
        except MCPError as error:
            raise RequestFailed(error.code, error.message, error.data) from None
        except ValueError:  # params that are not those of the method
            raise RequestFailed(INVALID_PARAMS, "Invalid params") from None


class _Exchange:
    """What the SDK knows of one request: how to answer it is not its business, how to notify is."""

    can_send_request = False
    message_metadata = None

    def __init__(self, call: McpCall) -> None:
        self._call = call
        self.request_id = call.request_id
        self.transport = TransportContext(kind="acp", can_send_request=False)
        # Never set: a cancel ends the task that serves the request.
        self.cancel_requested = asyncio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        await self._call.notify(method, params or {})

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        meta = self._call.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, Mapping) else None
        if token is not None:
            more = {"total": total, "message": message}
            told = {"progressToken": token, "progress": progress} | {k: v for k, v in more.items() if v is not None}
            await self._call.notify("notifications/progress", told)
