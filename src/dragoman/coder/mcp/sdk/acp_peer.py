"""The far end of a server that the client lends over its own connection (`mcp/message`).

Each request of the SDK's client is a request of ACP, and a cancel of it cancels that. Nothing else can be sent this
way, and the server can ask nothing by itself: the protocol of today has questions as results. So the newest protocol is
spoken at once, without a handshake. The ids of requests are ours, because other sessions may call the same server: what
a subscription names is translated back.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from dragoman.coder.mcp.sdk.streams import SdkReadStream, SdkWriteStream
from dragoman.coder.mcp.server_text import one_line
from dragoman.errors import LinkClosed, RequestFailed
from dragoman.vocabulary.mcp_messages import SERVER_UNAVAILABLE, McpOutcome
from dragoman.vocabulary.requests import McpAcp

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

# Messages of the server that wait for the SDK's client; a notification beyond is thrown away.
_WAITING: Final = 256
_SAID_CHARACTERS: Final = 500
GONE: Final = "is not lent by the client any more"


class LentCalls(Protocol):
    """Calls a server that the client lends."""

    def call(
        self,
        server_id: str,
        method: str,
        params: Mapping[str, object],
        on_notification: Callable[[str, Mapping[str, object]], None] = ...,
    ) -> Awaitable[McpOutcome]: ...


class LentPeer:
    """A server behind the client."""

    is_modern = True

    def __init__(self, config: McpAcp, lent: LentCalls) -> None:
        self._config = config
        self._lent = lent
        self._calls: dict[RequestId, asyncio.Task[None]] = {}
        # The end of the stream is a None.
        self._incoming: asyncio.Queue[SessionMessage | None]
        self._ending = ""

    def transport(self) -> Transport:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> "AsyncIterator[TransportStreams]":
        self._incoming = asyncio.Queue()
        self._ending = ""
        try:
            yield SdkReadStream(self._receive, self._close), SdkWriteStream(self._send, self._close)
        finally:
            for call in self._calls.values():
                call.cancel()
            if self._calls:
                await asyncio.wait(self._calls.values())

    def explain(self, error: BaseException | None) -> str:
        from dragoman.coder.mcp.sdk.peer import said_of_error

        return self._ending or said_of_error(error) or "closed the connection"

    def stderr(self) -> str:
        return ""

    def has_forgotten_us(self) -> bool:
        return bool(self._ending)

    def needs_login(self) -> bool:
        return False

    def is_gone(self) -> bool:
        return bool(self._ending)

    async def _receive(self) -> SessionMessage:
        message = await self._incoming.get()
        if message is None:
            raise StopAsyncIteration
        return message

    async def _close(self) -> None:
        self._incoming.put_nowait(None)

    async def _send(self, item: SessionMessage) -> None:
        match item.message:
            case JSONRPCRequest() as request:
                call = asyncio.ensure_future(self._call(request))
                self._calls[request.id] = call
                call.add_done_callback(lambda _: self._calls.pop(request.id, None))
            case JSONRPCNotification(method="notifications/cancelled", params=dict() as params):
                cancelled = self._calls.get(params.get("requestId", ""))
                if cancelled is not None:
                    cancelled.cancel()
            case _:
                pass  # no other notification has a way to the server, and no answer of ours is waited for

    async def _call(self, request: JSONRPCRequest) -> None:
        def on_notification(method: str, params: Mapping[str, object]) -> None:
            if self._incoming.qsize() < _WAITING:
                told = _with_subscription(params, request.id)
                note = JSONRPCNotification(jsonrpc="2.0", method=method, params=told)
                self._incoming.put_nowait(SessionMessage(note))

        try:
            outcome = await self._lent.call(
                self._config.server_id, request.method, request.params or {}, on_notification
            )
        except RequestFailed as failed:
            self._fail(request, failed)
        except LinkClosed:
            self._ending = GONE
            await self._close()
        else:
            self._answer(request, outcome)

    def _answer(self, request: JSONRPCRequest, outcome: McpOutcome) -> None:
        if outcome.fault is not None:
            code, message, data = outcome.fault
            self._reply_error(request, ErrorData(code=code, message=message, data=data))
        elif isinstance(outcome.result, dict):
            reply = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=outcome.result)
            self._incoming.put_nowait(SessionMessage(reply))
        else:
            self._reply_error(request, ErrorData(code=INTERNAL_ERROR, message="a result that is no object"))

    def _fail(self, request: JSONRPCRequest, failed: RequestFailed) -> None:
        """Answer a call that has not reached the server. One that is not there any more ends the connection."""
        if failed.code == SERVER_UNAVAILABLE:
            self._ending = GONE
        code = CONNECTION_CLOSED if failed.code == SERVER_UNAVAILABLE else INTERNAL_ERROR
        message = one_line(f"the client answered: {failed.message}", _SAID_CHARACTERS)
        self._reply_error(request, ErrorData(code=code, message=message))
        if self._ending:
            self._incoming.put_nowait(None)

    def _reply_error(self, request: JSONRPCRequest, error: ErrorData) -> None:
        reply: Any = JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
        self._incoming.put_nowait(SessionMessage(reply))


def _with_subscription(params: Mapping[str, object], request_id: RequestId) -> dict[str, Any]:
    """Return the params of a notification with the SDK's own id of the subscription that it belongs to."""
    meta = params.get("_meta")
    if not isinstance(meta, Mapping) or SUBSCRIPTION_ID_META_KEY not in meta:
        return dict(params)
    return {**params, "_meta": {**meta, SUBSCRIPTION_ID_META_KEY: request_id}}
