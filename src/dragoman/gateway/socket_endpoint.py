"""A WebSocket at `/acp`: which connection it is for, from which position, and the frames that come on it.

| the upgrade names | the first frame is | the socket is for |
|---|---|---|
| nothing | anything | a new connection |
| nothing | `stream/resume` | the connection that the frame names, from behind its cursors |
| `Acp-Connection-Id` | `stream/resume` | that connection, from behind its cursors |
| that and `Last-Event-ID` | anything | that connection, from there; what is lost is a stated gap |
| `Acp-Connection-Id` | another, or none for a while | that connection, from where its last reader was |

A browser, which can set no header, says `?connection=ID&after=NUMBER`. A refused `stream/resume` leaves a socket
with a new connection behind, so its client goes on with `initialize` and `session/resume`, and is sent nothing before.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman import limits
from dragoman.dialects.handshake.initialize import spoken_version
from dragoman.errors import LinkClosed
from dragoman.gateway.client_side import ClientSide
from dragoman.gateway.connection_names import CONNECTION, LAST_EVENT, client_side_of, with_query
from dragoman.gateway.connections import Connections
from dragoman.gateway.envelope import NotAMessage, peek
from dragoman.gateway.guard import Guard
from dragoman.gateway.headers import Headers, number_in, value_of
from dragoman.gateway.http_replies import Stop
from dragoman.gateway.precheck import precheck
from dragoman.gateway.replay_buffer import StreamReader
from dragoman.gateway.resuming import (
    GAPS,
    OURS,
    PLAIN,
    Delivery,
    ResumeRefused,
    ResumeRequest,
    notification,
    resume_request_in,
)
from dragoman.gateway.session_streams import Full
from dragoman.gateway.streaming import GOODBYE, Event, Receive, Send, send_messages

if TYPE_CHECKING:
    from starlette.types import Scope

_TOO_BIG: Final = 1009
_TRY_LATER: Final = 1013
_SUBPROTOCOL: Final = "acp"
# For the first frame of a socket that names a connection and no position: it may say one.
_FIRST_FRAME_SECONDS: Final = 2.0


class SocketEndpoint:
    """The WebSockets of one agent's endpoint."""

    def __init__(self, connections: Connections, guard: Guard) -> None:
        self._connections = connections
        self._guard = guard

    def __repr__(self) -> str:
        return f"<SocketEndpoint {self._connections!r}>"

    async def serve(self, scope: "Scope", receive: Receive, send: Send) -> None:
        """Serve a WebSocket until it ends. Raises `Stop` and `Full` before it is accepted."""
        await receive()  # websocket.connect
        headers: Headers = with_query(scope)
        names_connection = value_of(headers, CONNECTION) is not None
        if names_connection:
            client_side = client_side_of(scope, self._connections)
        else:
            client_side = self._connections.open("websocket", scope["identity"])
        if client_side.connection.kind != "websocket":
            raise Stop(404, "There is no such connection.")
        # granian drops the header, so the answer to `initialize` has the id as well.
        accepted = [(CONNECTION, client_side.connection.id.encode())]
        # A browser that offers subprotocols wants one of them back; its page key is another one, and is never said.
        spoken = _SUBPROTOCOL if _SUBPROTOCOL in scope.get("subprotocols", ()) else None
        await send({"type": "websocket.accept", "subprotocol": spoken, "headers": accepted})
        socket = _Socket(receive, send)
        try:
            await self._serve_accepted(scope, client_side, socket, is_resumed=names_connection)
        except Full:
            await send({"type": "websocket.close", "code": _TRY_LATER, "reason": ""})
        finally:
            await socket.forget_first()

    async def _serve_accepted(
        self, scope: "Scope", client_side: ClientSide, socket: "_Socket", *, is_resumed: bool
    ) -> None:
        after = number_in(value_of(scope["headers"], LAST_EVENT))
        delivery = PLAIN if value_of(scope["headers"], OURS) == GAPS else Delivery(cursors=True)
        # Not a reader at once: it would be sent what the client may name as known, or not have, in its first frame.
        if is_resumed and after is None:
            socket.asked = await socket.first_resume()
        if socket.asked is None:
            reader = client_side.connection.main.read(after)
            # The client learns how many of its own messages have arrived, and sends the rest again.
            if is_resumed:
                note = msgspec.json.encode({"received": client_side.connection.received})
                await socket.send_frame(notification("_dragoman/resumed", note))
            # Only a socket that is for a connection of its own may still become one for another.
            await self._stream(client_side, reader, socket, delivery, may_resume=not is_resumed)
        while socket.asked is not None:
            asked, socket.asked = socket.asked, None
            await self._resume(scope, client_side, asked, socket, is_new=not is_resumed)

    async def _resume(
        self, scope: "Scope", opened: ClientSide, asked: ResumeRequest, socket: "_Socket", *, is_new: bool
    ) -> None:
        """Go on with what `stream/resume` asks for. `opened` is the connection of the upgrade; `is_new`: it was made
        for it."""
        try:
            client_side, after = self._find(scope, asked)
        except ResumeRefused as refused:
            # The connection that cannot go on stays as it is, for a client that knows another of its positions.
            if not is_new:
                opened = self._connections.open("websocket", scope["identity"])
            for frame in asked.failures(refused.reason):
                await socket.send_frame(frame)
            await self._stream(opened, opened.connection.main.read(None), socket, Delivery(cursors=True))
            return
        # Made with the upgrade, before its first frame was here, and used by nothing.
        if client_side is not opened and is_new:
            await self._connections.close(opened, with_work=True)
        connection = client_side.connection
        # In one step of the loop: the states are those at `until`, and what comes later is behind both.
        reader = connection.main.read(after)
        states = client_side.state_frames(connection.main)
        delivery = Delivery(cursors=True, until=connection.main.last, states=states, known=asked.positions)
        answer = asked.answer(connection.received, client_side.turn_state)
        if answer is not None:
            await socket.send_frame(answer)
        await self._stream(client_side, reader, socket, delivery)

    def _find(self, scope: "Scope", asked: ResumeRequest) -> tuple[ClientSide, int]:
        """Return the connection that `asked` names, and the position to begin behind. Raise `ResumeRefused`."""
        try:
            client_side = client_side_of(scope, self._connections, asked.connection_id)
        except Stop:
            raise ResumeRefused("unknown_connection") from None
        if client_side.connection.kind != "websocket":
            raise ResumeRefused("unknown_connection")
        return client_side, asked.start(client_side.connection.main)

    async def _stream(
        self,
        client_side: ClientSide,
        reader: StreamReader,
        socket: "_Socket",
        delivery: Delivery,
        *,
        may_resume: bool = False,
    ) -> None:
        """Send and receive until the socket ends, or its first frame asks for another connection (`socket.asked`)."""
        client_side.on_reader_change()
        receiving = self._receive_frames(client_side, reader, socket, may_resume=may_resume)
        await send_messages(reader, receiving, socket.send, delivery)
        # Only an orderly close ends the connection and its work, and only if no newer socket has taken over; any other
        # end is a drop, after which the client may come back.
        if socket.said_goodbye and client_side.connection.main.reader is None:
            await self._connections.close(client_side, with_work=True)

    async def _receive_frames(
        self, client_side: ClientSide, reader: StreamReader, socket: "_Socket", *, may_resume: bool
    ) -> None:
        """Feed the text frames of a WebSocket to the connection, until the client disconnects, another WebSocket has
        replaced this one, or the connection takes no more. Ignore binary frames; wait before a frame that exceeds the
        message rate of its principal; close the WebSocket on a frame that is too large."""
        connection = client_side.connection
        while True:
            frame = await socket.receive_frame()
            if frame is None:
                return
            delay = await self._guard.message_delay(connection.token_identity)
            if delay:
                await asyncio.sleep(delay)
            if len(frame) > limits.FRAME_BYTES:
                await socket.send({"type": "websocket.close", "code": _TOO_BIG, "reason": ""})
                return
            rejected = precheck(frame)
            if rejected is not None:
                connection.reject(reader, rejected.code, rejected.reason)
                continue
            if may_resume and not connection.received:
                socket.asked = resume_request_in(frame)
                if socket.asked is not None:
                    return
            # Looked at once, in the first message that can be read: it decides in which version the agent is started.
            if not connection.version:
                with suppress(NotAMessage):
                    connection.version = spoken_version(peek(frame).version)
            try:
                await connection.feed(frame, reader=reader)
            # Full: its agent has not read for so long that the client should reconnect later, and lose nothing.
            except (LinkClosed, Full):
                return
            if reader.code:
                return


class _Socket:
    """An accepted WebSocket. `said_goodbye`: its client has closed it in an orderly way. `asked`: the `stream/resume`
    that has come and is not answered yet."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self.send: Final = send
        self.said_goodbye = False
        self.asked: ResumeRequest | None = None
        self._receive = receive
        self._first: asyncio.Task[Event] | None = None

    async def send_frame(self, frame: bytes) -> None:
        await self.send({"type": "websocket.send", "text": frame.decode()})

    async def receive_frame(self) -> bytes | None:
        """Wait for the next text frame and return it; None: the client has disconnected."""
        while True:
            first, self._first = self._first, None
            event = await (self._receive() if first is None else first)
            if event["type"] == "websocket.disconnect":
                self.said_goodbye = event.get("code") == GOODBYE
                return None
            text = event.get("text")
            if isinstance(text, str):
                # Lone surrogates become question marks here, and the link then refuses the message as it would any
                # other.
                return text.encode("utf-8", "replace")

    async def first_resume(self) -> ResumeRequest | None:
        """Wait for the first frame, for at most `_FIRST_FRAME_SECONDS`, and return the `stream/resume` that it is. Any
        other is left for `receive_frame`."""
        self._first = asyncio.ensure_future(self._receive())
        await asyncio.wait([self._first], timeout=_FIRST_FRAME_SECONDS)
        if not self._first.done() or self._first.exception() is not None:
            return None
        text = self._first.result().get("text")
        asked = None
        # Larger than any `stream/resume`: whatever it is, it goes the usual way, with its checks.
        if isinstance(text, str) and len(text) <= limits.MIB:
            asked = resume_request_in(text.encode("utf-8", "replace"))
        if asked is not None:
            self._first = None
        return asked

    async def forget_first(self) -> None:
        """Cancel the wait for the first frame, if `receive_frame` was not called since."""
        if self._first is not None:
            self._first.cancel()
            await asyncio.gather(self._first, return_exceptions=True)
