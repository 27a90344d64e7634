"""MCP servers that a client lends to its agent over the connection (`mcp/message`).

Each request is answered by the server's handler, in a task of its own: a cancel of the agent cancels it, and so does
the end of the connection. What the handler says meanwhile goes to the agent as a notification of that request, and
nothing after its answer.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from dragoman.client.checks import check_async, check_text
from dragoman.errors import INVALID_PARAMS, LinkClosed, RequestFailed, UsageError
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult
from dragoman.vocabulary.mcp_messages import (
    MCP_MESSAGE,
    SERVER_FAILED,
    SERVER_UNAVAILABLE,
    TOO_MANY_CALLS,
    McpEnvelope,
    McpFault,
    McpOutcome,
    encode_outcome,
    read_envelope,
)
from dragoman.vocabulary.requests import McpAcp

# Calls of one server that are being answered.
OPEN_CALLS: Final = 64
_EXAMPLE: Final = 'client.lend_mcp("tools", server)'


class McpCall(NamedTuple):
    """A request of the agent to a server that is lent: the method and params of MCP, its `_meta` among them."""

    request_id: str
    method: str
    params: Mapping[str, object]
    # Sends a notification that belongs to this request, such as progress; after the answer it does nothing.
    notify: Callable[[str, Mapping[str, object]], Awaitable[None]]


# Returns the result of MCP, or raises `RequestFailed` with the code and message of an error of MCP.
McpHandler = Callable[[McpCall], Awaitable[object]]


class LentMcpServers:
    """The servers of one connection. `send` sends a notification to the agent."""

    def __init__(self, send: Callable[[ExtensionNote], Awaitable[None]], on_bug: Callable[[Exception], None]) -> None:
        self._send = send
        self._on_bug = on_bug
        self._handlers: dict[str, McpHandler] = {}
        self._open: dict[str, set[str]] = {}

    def __repr__(self) -> str:
        return f"<LentMcpServers {len(self._handlers)} servers, {sum(map(len, self._open.values()))} calls>"

    def add(self, name: str, server: object) -> McpAcp:
        """Lend a server under a new id, and return what names it in `mcp_servers`."""
        check_text(name, "the name of an MCP server", _EXAMPLE)
        from uuid import uuid4  # most clients lend nothing

        handler = _handler_of(server)
        lent = McpAcp(name, f"{name}:{uuid4()}")
        self._handlers[lent.server_id] = handler
        self._open[lent.server_id] = set()
        return lent

    def remove(self, server_id: str) -> None:
        """Lend a server no longer. Calls that are open are answered."""
        self._handlers.pop(server_id, None)
        self._open.pop(server_id, None)

    async def answer(self, request: Extension) -> ExtensionResult:
        """Answer `mcp/message`. Raises `RequestFailed` where the server has no part in the answer."""
        envelope = read_envelope(request.params)
        if envelope is None:
            raise RequestFailed(INVALID_PARAMS, "Invalid params: serverId, requestId and method are texts")
        handler, calls = self._handlers.get(envelope.server_id), self._open.get(envelope.server_id)
        if handler is None or calls is None:
            raise RequestFailed(SERVER_UNAVAILABLE, "There is no such MCP server here")
        if envelope.request_id in calls:
            raise RequestFailed(INVALID_PARAMS, "Invalid params: a request with this requestId is open")
        if len(calls) >= OPEN_CALLS:
            raise RequestFailed(TOO_MANY_CALLS, f"More than {OPEN_CALLS} requests of this MCP server are open")
        calls.add(envelope.request_id)
        try:
            return ExtensionResult(encode_outcome(await self._call(handler, envelope, calls)))
        finally:
            calls.discard(envelope.request_id)

    async def _call(self, handler: McpHandler, envelope: McpEnvelope, calls: set[str]) -> McpOutcome:
        async def notify(method: str, params: Mapping[str, object]) -> None:
            if envelope.request_id in calls:
                note = envelope._replace(method=method, params=params)
                try:
                    await self._send(ExtensionNote(MCP_MESSAGE, note.encode()))
                except LinkClosed:
                    calls.discard(envelope.request_id)

        try:
            return McpOutcome(await handler(McpCall(envelope.request_id, envelope.method, envelope.params, notify)))
        except RequestFailed as failed:
            return McpOutcome(fault=McpFault(failed.code, failed.message, failed.data))
        except Exception as error:
            self._on_bug(error)
            raise RequestFailed(SERVER_FAILED, "The MCP server has failed") from None


def _handler_of(server: object) -> McpHandler:
    """Return what answers for a server: itself, if it is an async function, or the official SDK's server."""
    if callable(server):
        check_async(server, "a lent MCP server", "call")
        return server
    if type(server).__module__.partition(".")[0] == "mcp":
        from dragoman.client.lent_sdk_server import handler_of

        return handler_of(server)
    raise UsageError(
        f"an MCP server is an async function of a call, or a server of the package mcp: write `{_EXAMPLE}`"
    )
