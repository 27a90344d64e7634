"""What passes between a server and the SDK's client, whatever carries it.

Everything here is cheap for a server to send and dear for us to receive: requests that pile up behind a reader that
does not read, notifications without a handler (each is a task), a million blocks in one result, schemas for results
that would be checked, with regular expressions of the server's choice, on our event loop. A tool that is not
well-formed costs only itself.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp.types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    Prompt,
    RequestId,
    Resource,
    ResourceTemplate,
    Tool,
)

from dragoman.coder.mcp.catalog import PROMPTS, RESOURCES
from dragoman.coder.mcp.definition import TOOLS
from dragoman.coder.mcp.sdk.streams import SdkReadStream, SdkWriteStream

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream

# Requests of the server that wait for our answer; further ones get none.
REQUESTS: Final = 32
# The parts of one result; a page of text is one, a folder of pictures some dozens.
BLOCKS: Final = 256
_METHODS_FROM_SERVER: Final = frozenset(
    {
        "notifications/cancelled",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/elicitation/complete",
        "notifications/subscriptions/acknowledged",
    }
)
_SAID: Final = "dragoman/said"


@asynccontextmanager
async def filtered(transport: Transport, on_end: Callable[[], None]) -> "AsyncIterator[TransportStreams]":
    """Filter what passes a transport. `on_end` is called when the server has sent its last message."""
    async with transport as (read, write):
        passing = _Filter(read, write, on_end)
        yield SdkReadStream(passing.receive, read.aclose), SdkWriteStream(passing.send, write.aclose)


class _Filter:
    """What passes two streams of a transport, and which requests of the server wait for an answer."""

    def __init__(
        self,
        read: "ReadStream[SessionMessage | Exception]",
        write: "WriteStream[SessionMessage]",
        on_end: Callable[[], None],
    ) -> None:
        self._read = read
        self._write = write
        self._on_end = on_end
        self._pending: dict[RequestId, None] = {}

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message that the client may have."""
        while True:
            try:
                item = await self._read.__anext__()
            except StopAsyncIteration:
                self._on_end()
                raise
            if isinstance(item, Exception) or self._passes(item.message):
                return item

    async def send(self, item: SessionMessage) -> None:
        """Send a message of the client; an answer ends the wait of a request."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
            self._pending.pop(item.message.id, None)
        await self._write.send(item)

    def _passes(self, message: JSONRPCMessage) -> bool:
        match message:
            case JSONRPCRequest():
                if len(self._pending) >= REQUESTS:
                    return False
                self._pending[message.id] = None
            case JSONRPCNotification():
                if message.method == "notifications/cancelled":
                    self._pending.pop((message.params or {}).get("requestId", ""), None)
                return message.method in _METHODS_FROM_SERVER
            case JSONRPCResponse():
                _mend(message.result)
            case JSONRPCError():
                pass
        return True


def _mend(result: dict[str, Any]) -> None:
    """Make an answer fit what the SDK's models take, and no larger than what we take."""
    if isinstance(result.get("tools"), list):
        result["tools"] = [tool for tool in map(_mended, result["tools"][: 2 * TOOLS]) if tool]
    for key, identity, most in _LISTS:
        if isinstance(result.get(key), list):
            result[key] = [_named(one, identity) for one in result[key][: 2 * most] if _has_text(one, identity)]
    content = result.get("content")
    if isinstance(content, list) and len(content) > BLOCKS:
        note = f"[… {len(content) - BLOCKS} more parts were thrown away …]"
        result["content"] = [*content[:BLOCKS], {"type": "text", "text": note}]
    for key in ("messages", "contents"):
        if isinstance(result.get(key), list):
            result[key] = result[key][:BLOCKS]


def said_of(listed: Tool | Prompt | Resource | ResourceTemplate) -> object:
    """Return what is listed as the server sent it."""
    return (listed.meta or {}).get(_SAID)


# What else is listed: the field of the answer, what names an entry, and how many of them are looked at.
_LISTS: Final = (
    ("prompts", "name", PROMPTS),
    ("resources", "uri", RESOURCES),
    ("resourceTemplates", "uriTemplate", RESOURCES),
)


def _has_text(entry: object, key: str) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get(key), str)


def _named(entry: dict[str, Any], identity: str) -> dict[str, Any]:
    """Return an entry that the SDK accepts, with the server's own inside."""
    return {"name": "", identity: entry[identity], "_meta": {_SAID: entry}}


def _mended(tool: object) -> dict[str, Any] | None:
    """Return a tool that the SDK accepts, with the server's definition inside.

    It needs the properties to make headers of them.
    """
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    schema: dict[str, Any] = {"type": "object"}
    input_schema = tool.get("inputSchema")
    properties = input_schema.get("properties") if isinstance(input_schema, dict) else None
    if isinstance(properties, dict) and all(isinstance(one, dict | bool) for one in properties.values()):
        schema["properties"] = properties
    return {"name": tool["name"], "inputSchema": schema, "_meta": {_SAID: tool}}
