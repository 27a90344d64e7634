"""The endpoint `/acp` of one agent: Streamable HTTP and WebSocket, as the ACP remote transport has them; plain ASGI.

| request | answer |
|---|---|
| POST `initialize` without `Acp-Connection-Id` | 200, its answer as the body, `Acp-Connection-Id` |
| any other POST with it | 202; the answer comes on a stream |
| GET with `Accept: text/event-stream` | 200, the connection's stream, or that of `Acp-Session-Id`, from behind \
`Last-Event-ID` |
| GET with `Upgrade: websocket` | 101; see `socket_endpoint` |
| DELETE | 202, the connection and what only it watches are over |

415 not JSON, 413 too large, 408 too slow, 400 an id is missing or does not fit, 404 unknown, 406 not acceptable,
409 the stream has a reader, or what is behind `Last-Event-ID` is not held (`resuming`), 501 a batch, 503 full. The
guard stands before all of it.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman import limits
from dragoman.dialects.handshake.initialize import spoken_version
from dragoman.gateway.client_side import ClientSide
from dragoman.gateway.connection_names import CONNECTION, LAST_EVENT, SESSION, client_side_of
from dragoman.gateway.envelope import Envelope, peek
from dragoman.gateway.guard import Guard
from dragoman.gateway.headers import Headers, number_in, value_of
from dragoman.gateway.http_replies import Bodies, Stop, answer, message_in
from dragoman.gateway.hub import Hub
from dragoman.gateway.replay_buffer import ReplayBuffer
from dragoman.gateway.resuming import GAPS, OURS, Delivery
from dragoman.gateway.socket_endpoint import SocketEndpoint
from dragoman.gateway.streaming import STREAM, Receive, Send, stream_events
from dragoman.gateway.token_types import TokenIdentity

if TYPE_CHECKING:
    from starlette.types import Scope

# Larger messages go over a WebSocket, or do not go.
BODY_BYTES: Final = 16 * limits.MIB
# Our own: how many messages the client had sent with this one, so that one sent twice is heard once.
NUMBER: Final = b"acp-message-number"
# They work on a session that is open, so they have to name it in the header as well. Those that open one need not:
# official clients differ there. Nor need a client that never did so and has opened it here: such as those of iac-code,
# which know one stream and no such header.
_NEED_SESSION: Final = frozenset(
    {"session/prompt", "session/cancel", "session/close", "session/set_mode", "session/set_config_option"}
)
# An object whose values stay as they came: what is only passed on is not worth decoding.
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class AcpEndpoint:
    """The endpoint of one agent, which its hub has. `bodies` are bounded together with those of other endpoints."""

    def __init__(self, hub: Hub, guard: Guard, bodies: Bodies) -> None:
        self._connections = hub.connections
        self._sessions = hub.sessions
        self._access = hub.access
        self._sockets = SocketEndpoint(hub.connections, guard)
        self._bodies = bodies

    def __repr__(self) -> str:
        return f"<AcpEndpoint {self._connections!r}>"

    # -- HTTP --------------------------------------------------------------------------------------------------------

    async def http(self, scope: "Scope", receive: Receive, send: Send) -> None:
        """Serve a POST, GET or DELETE. Raises `Stop` for what is refused, `Full`, `LinkClosed`."""
        handle = {"POST": self._post, "GET": self._get, "DELETE": self._delete}[scope["method"]]
        await handle(scope, receive, send)

    async def _delete(self, scope: "Scope", receive: Receive, send: Send) -> None:
        await self._connections.close(client_side_of(scope, self._connections), with_work=True)
        await answer(send, 202)

    async def _post(self, scope: "Scope", receive: Receive, send: Send) -> None:
        headers: Headers = scope["headers"]
        kind = (value_of(headers, b"content-type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Stop(415, "The body must be application/json.")
        # The body counts against its principal's budget until its message is handed on: a client that posts faster than
        # its agent reads cannot fill the memory.
        async with self._bodies.read(scope, receive, BODY_BYTES) as body:
            await self._receive_post(scope, body, send)

    async def _receive_post(self, scope: "Scope", body: bytes, send: Send) -> None:
        headers: Headers = scope["headers"]
        message = message_in(body)
        # The only message that may come without a connection is the one that makes it.
        if value_of(headers, CONNECTION) is None:
            if message.method != "initialize" or not message.is_request:
                raise Stop(400, "Acp-Connection-Id is missing; initialize comes first.")
            await self._initialize(scope["identity"], body, message, send)
            return
        client_side = client_side_of(scope, self._connections)
        connection = client_side.connection
        named = value_of(headers, SESSION)
        if named is not None:
            connection.names_sessions = True
        # A client that has never used the header, and has opened this session here, is one that knows a single stream.
        one_stream = not connection.names_sessions and message.session_id in client_side.sessions
        body, message = _with_session(body, message, named, must_be_named=not one_stream)
        # Without this check an answer could be tried on connections until one has asked under this id.
        if not message.method and not connection.was_sent(message.id):
            raise Stop(400, "No request with this id was sent on this connection.")
        await connection.feed(body, message, number=number_in(value_of(headers, NUMBER)))
        await answer(send, 202)

    async def _initialize(self, token_identity: TokenIdentity, body: bytes, message: Envelope, send: Send) -> None:
        client_side = self._connections.open("http", token_identity)
        connection = client_side.connection
        connection.version = spoken_version(message.version)
        try:
            await connection.feed(body, number=1)
            # The agent's own time limit is a second shorter, so that its refusal arrives here as an answer, and not as
            # a 503.
            async with asyncio.timeout(limits.START_SECONDS + 1):
                # Shielded: a client that hangs up must not cancel the future that `close` looks at.
                reply = await asyncio.shield(connection.initialize_reply)
        except BaseException as error:
            # Whatever went wrong, the client has no id of this connection, so nothing could ever use it.
            await self._connections.close(client_side, with_work=True)
            if isinstance(error, TimeoutError) or connection.initialize_reply.cancelled():
                raise Stop(503, "The agent did not answer.") from None
            raise
        # An agent that refused to start leaves no connection behind, and the body says why.
        more = [(CONNECTION, connection.id.encode())]
        if b'"error"' in reply and "error" in msgspec.json.decode(reply):
            await self._connections.close(client_side, with_work=True)
            more = []
        await answer(send, 200, reply, more)

    async def _get(self, scope: "Scope", receive: Receive, send: Send) -> None:
        headers: Headers = scope["headers"]
        if "text/event-stream" not in (value_of(headers, b"accept") or "").lower():
            raise Stop(406, "Accept must have text/event-stream.")
        shown = value_of(headers, LAST_EVENT) or None
        is_ours = value_of(headers, OURS) == GAPS
        try:
            client_side, buffer = await self._stream_of(scope)
        except Stop as stop:
            # Who resumes is told that the position is gone: to a client that knows no session here, both are new.
            raise Stop(409, stop.reason) if shown is not None and not is_ours and stop.status == 404 else stop from None
        after = number_in(shown)
        # A client that reconnects names its last event, and so proves that it is the one that was here; a second tab
        # does not, and must not steal the stream from the first.
        if buffer.reader is not None and after is None:
            raise Stop(409, "This stream has a reader already. Send Last-Event-ID to replace that reader.")
        is_resumed = shown is not None and not is_ours
        # Never a live stream in its place: its client would not learn that messages are lost.
        if is_resumed and (after is None or not buffer.holds(after)):
            raise Stop(409, "What came behind this Last-Event-ID is not held any more. Resume or load the session.")
        # Nothing between these lines waits, so the states are those behind the newest message of the replay.
        reader = buffer.read(after)
        states = client_side.state_frames(buffer) if is_resumed else []
        delivery = Delivery(cursors=not is_ours, until=buffer.last, states=states)
        self._on_stream_opened(client_side, value_of(headers, SESSION))
        scope[STREAM] = partial(stream_events, reader, delivery)

    async def _stream_of(self, scope: "Scope") -> tuple[ClientSide, ReplayBuffer]:
        """Return the stream that a request names, and its client. Raise `Stop` (400, 404)."""
        client_side = client_side_of(scope, self._connections)
        connection = client_side.connection
        if connection.kind != "http":
            raise Stop(404, "There is no such connection.")
        session_id = value_of(scope["headers"], SESSION)
        if session_id is None:
            return client_side, connection.main
        # A stream may be opened before the session is: official clients do that with `session/load`.
        if session_id not in client_side.sessions and not await self._access.exists(session_id, scope["identity"]):
            raise Stop(404, "There is no such session.")
        if client_side.is_closed:  # while the store was asked
            raise Stop(404, "There is no such connection.")
        connection.names_sessions = True
        return client_side, connection.streams.of_session(session_id)

    def _on_stream_opened(self, client_side: ClientSide, session_id: str | None) -> None:
        if session_id is not None:
            client_side.connection.streams.on_stream_opened(session_id)
            shared = self._sessions.get(session_id)
            if shared is not None:
                # The client may have opened the stream of a session that another client has open: from here on it is
                # sent everything.
                shared.subscribe(client_side)
        # Open questions are asked now, and an agent that waited for a reader goes on.
        client_side.on_reader_change()

    async def websocket(self, scope: "Scope", receive: Receive, send: Send) -> None:
        """Serve a WebSocket until it ends. Raises as `http`, before it is accepted."""
        await self._sockets.serve(scope, receive, send)


def _with_session(body: bytes, message: Envelope, named: str | None, *, must_be_named: bool) -> tuple[bytes, Envelope]:
    """Return the message with the session that the header names. Raise `Stop` (400) where the two differ, or where the
    header is missing and has to be there."""
    if named is None:
        if must_be_named and message.method in _NEED_SESSION:
            raise Stop(400, "Acp-Session-Id is missing.")
        return body, message
    if message.session_id is not None and message.session_id != named:
        raise Stop(400, "Acp-Session-Id is not the session of the message.")
    if message.method not in _NEED_SESSION or message.session_id is not None:
        return body, message
    # Only the two outer objects are decoded: a prompt of megabytes is passed on as it came.
    full = _members.decode(body)
    try:
        params = _members.decode(full.get("params", b"{}"))
    except msgspec.ValidationError:
        params = {}  # no object: there is nothing to keep
    params["sessionId"] = msgspec.Raw(msgspec.json.encode(named))
    full["params"] = msgspec.Raw(msgspec.json.encode(params))
    body = msgspec.json.encode(full)
    return body, peek(body)
