"""The endpoint `/acp`: Streamable HTTP and WebSocket, as the ACP remote transport has them; plain ASGI on starlette.

| request | answer |
|---|---|
| POST `initialize` without `Acp-Connection-Id` | 200, its answer as the body, `Acp-Connection-Id` |
| any other POST with it | 202; the answer comes on a stream |
| GET with `Accept: text/event-stream` | 200, the connection's stream, or that of `Acp-Session-Id` |
| GET with `Upgrade: websocket` | 101; with `Acp-Connection-Id` and `Last-Event-ID` an old connection goes on |
| DELETE | 202, the connection and what only it watches are over |

415 not JSON, 413 too large, 408 too slow, 400 an id is missing or does not fit, 404 unknown, 406 not acceptable,
409 somebody reads that stream, 501 a batch, 503 full. The guard stands before all of it.
"""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dragoman import limits
from dragoman.errors import LinkClosed
from dragoman.gateway.connection import Connection, Full
from dragoman.gateway.front import Front
from dragoman.gateway.guard import Guard, Headers, Pass, Refusal, value_of
from dragoman.gateway.hub import Hub
from dragoman.gateway.metrics import metrics_of
from dragoman.gateway.peek import Batched, NotAMessage, Peeked, peek
from dragoman.gateway.streaming import GOODBYE, Event, Receive, Send, send_messages, stream_events

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Scope

# Larger messages go over a WebSocket, or do not go.
BODY_BYTES: Final = 16 * limits.MIB
# For the whole of a body; 16 MiB in this time is what a telephone can do.
BODY_SECONDS: Final = 30.0
OPEN_PATHS: Final = ("/health", "/ready")
CONNECTION: Final = b"acp-connection-id"
SESSION: Final = b"acp-session-id"
# Our own: how many messages the client had sent with this one, so that one sent twice is heard once.
NUMBER: Final = b"acp-message-number"
# They work on a session that is open, so they have to name it in the header as well. Those that open one need not:
# official clients differ there.
_NEED_SESSION: Final = frozenset(
    {"session/prompt", "session/cancel", "session/close", "session/set_mode", "session/set_config_option"}
)
# A name that is longer is none of ours, and is not kept.
_SESSION_LENGTH: Final = 256
_TOO_BIG: Final = 1009
_REFUSED: Final = {400: 4400, 404: 4404, 503: 1013}


class _Stop(Exception):
    """A request ends here, with this status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Gateway:
    """The ASGI application."""

    def __init__(self, hub: Hub, guard: Guard) -> None:
        self._hub = hub
        self._guard = guard
        self._routes = self._routed()

    async def __call__(self, scope: "Scope", receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        headers: Headers = scope["headers"]
        scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
        refusal = self._guard.refusal(headers, scheme)
        if refusal is None and scope["path"] not in OPEN_PATHS:
            entered = self._guard.enter(headers, (scope.get("client") or ("",))[0])
            if isinstance(entered, Refusal):
                refusal = entered
            else:
                scope["pass"] = entered
        if refusal is not None:
            self._hub.counts[f"refused_{refusal.status}"] += 1
            await _refuse(scope, send, refusal.status, refusal.reason)
            return
        began = False

        async def noted(event: Event) -> None:
            nonlocal began
            began = True
            await send(event)

        try:
            await self._routes(scope, receive, noted)
        except _Stop as stop:
            await _refuse(scope, send, stop.status, stop.reason)
        except Full:
            await _refuse(scope, send, 503, "The server is full. Try again later.")
        except LinkClosed:
            await _refuse(scope, send, 404, "There is no such connection.")
        except Exception as error:
            self._hub.report(error)
            if not began:
                await _refuse(scope, send, 500, "Something went wrong here.")

    def _routed(self) -> "ASGIApp":
        from starlette.routing import Route, Router, WebSocketRoute

        async def nothing(scope: "Scope", receive: Receive, send: Send) -> None:
            raise _Stop(404, "There is nothing here.")

        return Router(
            [
                Route("/acp", _Endpoint(self._http)),
                WebSocketRoute("/acp", _Endpoint(self._websocket)),
                Route("/health", _Endpoint(self._health)),
                Route("/ready", _Endpoint(self._ready)),
                Route("/metrics", _Endpoint(self._metrics)),
            ],
            redirect_slashes=False,
            default=nothing,
        )

    # -- HTTP --------------------------------------------------------------------------------------------------------

    async def _http(self, scope: "Scope", receive: Receive, send: Send) -> None:
        match scope["method"]:
            case "POST":
                await self._post(scope, receive, send)
            case "GET":
                await self._get(scope, receive, send)
            case "DELETE":
                front = self._front(scope)
                await self._hub.end(front, with_work=True)
                await _answer(send, 202)
            case _:
                raise _Stop(405, "Use POST, GET or DELETE.")

    async def _post(self, scope: "Scope", receive: Receive, send: Send) -> None:
        headers: Headers = scope["headers"]
        kind = (value_of(headers, b"content-type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise _Stop(415, "The body must be application/json.")
        body = await _read(headers, receive)
        message = _peeked(body)
        if value_of(headers, CONNECTION) is None:
            if message.method != "initialize" or not message.is_request:
                raise _Stop(400, "Acp-Connection-Id is missing; initialize comes first.")
            await self._initialize(scope["pass"], body, message, send)
            return
        front = self._front(scope)
        connection = front.connection
        body, message = _with_session(body, message, value_of(headers, SESSION))
        if not message.method and not connection.was_asked(message.id):
            raise _Stop(400, "Nobody has asked this on this connection.")
        number = _number(value_of(headers, NUMBER))
        if number is None or number > connection.received:
            connection.received = connection.received if number is None else number
            connection.expect(message)
            await connection.feed(body)
        await _answer(send, 202)

    async def _initialize(self, entrance: Pass, body: bytes, message: Peeked, send: Send) -> None:
        front = self._hub.connect("http", entrance)
        connection = front.connection
        connection.version = min(message.version, 2)
        connection.received = 1
        try:
            await connection.feed(body)
            async with asyncio.timeout(limits.START_SECONDS + 1):
                answer = await asyncio.shield(connection.hello)
        except BaseException as error:
            await self._hub.end(front, with_work=True)
            if isinstance(error, TimeoutError) or connection.hello.cancelled():
                raise _Stop(503, "The agent did not answer.") from None
            raise
        more = [(CONNECTION, connection.id.encode())]
        if b'"error"' in answer and "error" in msgspec.json.decode(answer):
            await self._hub.end(front, with_work=True)
            more = []
        await _answer(send, 200, answer, more)

    async def _get(self, scope: "Scope", receive: Receive, send: Send) -> None:
        headers: Headers = scope["headers"]
        if "text/event-stream" not in (value_of(headers, b"accept") or "").lower():
            raise _Stop(406, "Accept must have text/event-stream.")
        front = self._front(scope)
        connection = front.connection
        if connection.kind != "http":
            raise _Stop(404, "There is no such connection.")
        session_id = value_of(headers, SESSION)
        after = _number(value_of(headers, b"last-event-id"))
        window = connection.main
        if session_id is not None:
            if session_id not in front.rooms and not await self._hub.exists(session_id, scope["pass"]):
                raise _Stop(404, "There is no such session.")
            window = connection.stream(session_id)
        if window.reader is not None and after is None:
            raise _Stop(409, "Somebody reads this stream already.")
        reader = window.read(after)
        if session_id is not None:
            connection.opened(session_id)
            room = self._hub.rooms.get(session_id)
            if room is not None:
                room.enter(front)
        front.looked()
        await stream_events(reader, receive, send)

    def _front(self, scope: "Scope") -> Front:
        connection_id = value_of(scope["headers"], CONNECTION)
        if connection_id is None:
            raise _Stop(400, "Acp-Connection-Id is missing.")
        front = self._hub.find(connection_id, scope["pass"])
        if front is None:
            raise _Stop(404, "There is no such connection.")
        return front

    # -- WebSocket ---------------------------------------------------------------------------------------------------

    async def _websocket(self, scope: "Scope", receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        headers: Headers = scope["headers"]
        resumed = value_of(headers, CONNECTION) is not None
        front = self._front(scope) if resumed else self._hub.connect("websocket", scope["pass"])
        connection = front.connection
        if connection.kind != "websocket":
            raise _Stop(404, "There is no such connection.")
        # granian drops the header, so the answer to `initialize` has the id as well.
        accepted = [(CONNECTION, connection.id.encode())]
        await send({"type": "websocket.accept", "headers": accepted})
        reader = connection.main.read(_number(value_of(headers, b"last-event-id")))
        if resumed:
            note = {"jsonrpc": "2.0", "method": "_dragoman/resumed", "params": {"received": connection.received}}
            await send({"type": "websocket.send", "text": msgspec.json.encode(note).decode()})
        front.looked()
        goodbye = asyncio.Event()
        await send_messages(reader, _hear(connection, receive, send, goodbye), send)
        if goodbye.is_set() and connection.main.reader is None:
            await self._hub.end(front, with_work=True)

    # -- operations --------------------------------------------------------------------------------------------------

    async def _health(self, scope: "Scope", receive: Receive, send: Send) -> None:
        _only_get(scope)
        await _answer(send, 200, b'{"status":"ok"}')

    async def _ready(self, scope: "Scope", receive: Receive, send: Send) -> None:
        _only_get(scope)
        if self._hub.closing:
            raise _Stop(503, "The server is stopping.")
        await _answer(send, 200, b'{"status":"ready"}')

    async def _metrics(self, scope: "Scope", receive: Receive, send: Send) -> None:
        _only_get(scope)
        if not scope["pass"].may("admin"):
            raise _Stop(403, "This token may not read the metrics.")
        await _answer(send, 200, metrics_of(self._hub), kind=b"text/plain; version=0.0.4")


class _Endpoint:
    """A method as an ASGI application: starlette takes functions for something else."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def __call__(self, scope: "Scope", receive: Receive, send: Send) -> Awaitable[None]:
        handled: Awaitable[None] = self._handle(scope, receive, send)
        return handled


async def _hear(connection: Connection, receive: Receive, send: Send, goodbye: asyncio.Event) -> None:
    """What the client says on a WebSocket, until it is gone. Binary frames say nothing here."""
    while True:
        event = await receive()
        if event["type"] == "websocket.disconnect":
            if event.get("code") == GOODBYE:
                goodbye.set()
            return
        text = event.get("text")
        if not isinstance(text, str):
            continue
        frame = text.encode("utf-8", "replace")
        if len(frame) > limits.FRAME_BYTES:
            await send({"type": "websocket.close", "code": _TOO_BIG, "reason": ""})
            return
        if not connection.version:
            try:
                connection.version = min(peek(frame).version, 2)
            except NotAMessage:
                pass
        connection.received += 1
        try:
            await connection.feed(frame)
        except (LinkClosed, Full):
            return


async def _read(headers: Headers, receive: Receive) -> bytes:
    length = _number(value_of(headers, b"content-length"))
    if length is not None and length > BODY_BYTES:
        raise _Stop(413, f"The body has more than {BODY_BYTES} bytes.")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                event = await receive()
                if event["type"] != "http.request":
                    raise _Stop(400, "The body ended early.")
                parts.append(event.get("body", b""))
                size += len(parts[-1])
                if size > BODY_BYTES:
                    raise _Stop(413, f"The body has more than {BODY_BYTES} bytes.")
                if not event.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise _Stop(408, f"The body did not come within {BODY_SECONDS:g} seconds.") from None


def _peeked(body: bytes) -> Peeked:
    try:
        message = peek(body)
        if message.session_id is not None and len(message.session_id) > _SESSION_LENGTH:
            raise _Stop(400, "That is no name of a session.")
        return message
    except Batched:
        raise _Stop(501, "Batches are not supported.") from None
    except NotAMessage:
        raise _Stop(400, "The body is no JSON-RPC message.") from None


def _with_session(body: bytes, message: Peeked, named: str | None) -> tuple[bytes, Peeked]:
    """The message with the session that the header names; 400 where the two differ, or the header has to be there."""
    if named is None:
        if message.method in _NEED_SESSION:
            raise _Stop(400, "Acp-Session-Id is missing.")
        return body, message
    if message.session_id is not None and message.session_id != named:
        raise _Stop(400, "Acp-Session-Id is not the session of the message.")
    if message.method not in _NEED_SESSION or message.session_id is not None:
        return body, message
    full = msgspec.json.decode(body)
    params = full.get("params")
    full["params"] = {**(params if isinstance(params, dict) else {}), "sessionId": named}
    body = msgspec.json.encode(full)
    return body, peek(body)


def _number(text: str | None) -> int | None:
    """A number in a header; garbage is as good as nothing."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else None


def _only_get(scope: "Scope") -> None:
    if scope["method"] not in ("GET", "HEAD"):
        raise _Stop(405, "Use GET.")


async def _answer(
    send: Send,
    status: int,
    body: bytes = b"",
    more: list[tuple[bytes, bytes]] | None = None,
    *,
    kind: bytes = b"application/json",
) -> None:
    headers = [
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *([(b"content-type", kind)] if body else []),
        *(more or []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _refuse(scope: "Scope", send: Send, status: int, reason: str) -> None:
    body = msgspec.json.encode({"error": reason})
    more = [(b"www-authenticate", b"Bearer")] if status == 401 else []
    if status == 405:
        more = [(b"allow", b"GET, POST, DELETE")]
    if status in (400, 408, 413, 421, 431):
        more.append((b"connection", b"close"))  # what follows on it cannot be trusted
    if scope["type"] == "http":
        if scope.get("http_version") != "1.1":
            more = [header for header in more if header[0] != b"connection"]
        await _answer(send, status, body, more)
        return
    headers = [(b"content-type", b"application/json"), (b"x-content-type-options", b"nosniff"), *more]
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})
    else:
        await send({"type": "websocket.close", "code": _REFUSED.get(status, 4000 + status)})
