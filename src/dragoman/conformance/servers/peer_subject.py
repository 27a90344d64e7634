"""The proving server as a subject, and its door: calls in place of a network."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from dragoman.conformance.servers.doors import EventStream, ServerDoor, ServerReply, ServerSocket, StreamedEvent
from dragoman.conformance.servers.peer import HOST, TOKEN, PeerLink, PeerServer, PeerStop, PeerStream
from dragoman.conformance.servers.trial import CONNECTION

Message = dict[str, Any]
_LARGE_BYTES: Final = 256 * 1024


class PeerServerSubject:
    """A server of one version with one switch, or with none: then it keeps to every row."""

    has_token = True

    def __init__(self, version: int, switch: str = "") -> None:
        self.name: Final = f"server of version {version}{f' with {switch}' if switch else ''}"
        self._server: Final = PeerServer(version, switch)

    def door(self, *, with_token: bool = True) -> ServerDoor:
        """Return a client of it."""
        return _PeerDoor(self._server, with_token=with_token)


class _PeerDoor:
    def __init__(self, server: PeerServer, *, with_token: bool) -> None:
        self._server: Final = server
        self._own: Final[Mapping[str, str]] = {
            "host": HOST,
            **({"authorization": f"Bearer {TOKEN}"} if with_token else {}),
        }

    async def request(self, method: str, headers: Mapping[str, str], body: bytes = b"") -> ServerReply:
        return await self._server.request(method, {**self._own, **headers}, body)

    async def open_stream(self, headers: Mapping[str, str]) -> EventStream | ServerReply:
        try:
            stream, queue = self._server.stream({**self._own, **headers})
        except PeerStop as stop:
            return self._server._refused(stop.reply, headers)
        return _PeerEventStream(self._server, stream, queue)

    async def open_socket(self, headers: Mapping[str, str]) -> ServerSocket | ServerReply:
        try:
            self._server.guard({**self._own, **headers}, "socket")
        except PeerStop as stop:
            return stop.reply
        if self._server.breaks("has_no_sockets"):
            return ServerReply(426)
        return _PeerSocket(self._server, await self._server.open_link())

    async def raw(self, body: bytes, *, length: int, half_close: bool) -> ServerReply | None:
        if len(body) < length:
            self._server.is_dead = self._server.is_dead or self._server.breaks("ends_at_torn_requests")
            return None
        if half_close and self._server.breaks("drops_half_closed"):
            return None
        return await self.request("POST", {"content-type": "application/json"}, body)

    async def close(self) -> None:
        """Leave the server as it is: others may use it."""


class _PeerEventStream:
    def __init__(self, server: PeerServer, stream: PeerStream, queue: asyncio.Queue[StreamedEvent | None]) -> None:
        kind = "application/json" if server.breaks("other_stream_type") else "text/event-stream"
        cached = {} if server.breaks("caches_streams") else {"cache-control": "no-store"}
        self.headers: Mapping[str, str] = {"content-type": kind, **cached}
        self._server: Final = server
        self._stream: Final = stream
        self._queue: Final = queue

    async def next(self, seconds: float) -> StreamedEvent | None:
        async with asyncio.timeout(seconds):
            # No event tells that another has read; a switch waits for it, and the time limit ends that.
            while self._server.is_held_up(self._stream):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return await self._queue.get()

    async def close(self) -> None:
        self._server.on_stream_left(self._stream, self._queue)


class _PeerSocket:
    def __init__(self, server: PeerServer, link: PeerLink) -> None:
        self.headers: Mapping[str, str] = {} if server.breaks("names_no_sockets") else {CONNECTION: link.id}
        self._server: Final = server
        self._link: Final = link
        self._queue: Final[asyncio.Queue[str | bytes | None]] = asyncio.Queue()
        self._is_closed = False
        link.on_message = self._on_message

    def _on_message(self, message: Message) -> None:
        breaks = self._server.breaks
        if breaks("loses_socket_updates") and "method" in message:
            return
        if breaks("ids_as_text_on_sockets") and isinstance(message.get("id"), int):
            message = {**message, "id": str(message["id"])}
        text = json.dumps(message)
        self._queue.put_nowait(text.encode() if breaks("answers_in_binary") else text)

    async def send(self, message: str | bytes, *, pieces: int = 1) -> None:
        breaks = self._server.breaks
        if self._is_closed or self._server.is_dead:
            raise OSError("The socket is closed.")
        if isinstance(message, bytes):
            self._end_if("ends_at_binary")
            return
        if pieces > 1 and breaks("ends_at_fragments"):
            self._end_if("ends_at_fragments")
            return
        if len(message) > _LARGE_BYTES and breaks("ends_at_large_frames"):
            self._end_if("ends_at_large_frames")
            return
        try:
            read = json.loads(message)
        except ValueError:
            self._end_if("ends_at_noise_on_sockets")
            return
        if read.get("method") == "initialize":
            self._link.is_greeted = True
        elif not self._link.is_greeted and not breaks("serves_ungreeted"):
            error = {"code": -32600, "message": "initialize comes first"}
            self._queue.put_nowait(json.dumps({"jsonrpc": "2.0", "id": read.get("id"), "error": error}))
            return
        self._link.feed(read)

    def _end_if(self, switch: str) -> None:
        if self._server.breaks(switch):
            self._is_closed = True
            self._queue.put_nowait(None)

    async def receive(self, seconds: float) -> str | bytes | None:
        async with asyncio.timeout(seconds):
            return await self._queue.get()

    async def ping(self, seconds: float) -> bool:
        return not self._server.breaks("answers_no_pings")

    async def close(self) -> None:
        self._is_closed = True
        self._server.links.pop(self._link.id, None)
        await self._link.close()

    async def abort(self) -> None:
        if self._server.breaks("ends_with_socket"):
            self._server.is_dead = True
        await self.close()
