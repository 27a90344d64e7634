"""Remote transports, connected to servers of other projects, or that are bare sockets in the test's hands."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, NamedTuple, Protocol

from websockets.asyncio.server import ServerConnection, serve

from dragoman.transports.contract import Transport
from dragoman.transports.http import HttpTransport
from dragoman.transports.websocket import WebSocketTransport
from tests.support.waiting import until

from .pairs import Recorder

HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n'
GREETING = b'{"jsonrpc":"2.0","id":0,"result":{"connectionId":"c1"}}'


class Server(Protocol):
    """The other end."""

    heard: list[bytes]
    reads: asyncio.Event

    async def say(self, message: bytes) -> None: ...
    async def drop(self) -> None: ...
    async def forget(self) -> None: ...


class Remote(NamedTuple):
    """A transport that was greeted."""

    transport: Transport
    receiver: Recorder
    server: Server


class WebSocketServer:
    """On the websockets library; it keeps to what a gateway does about resuming."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.reads = asyncio.Event()
        self.reads.set()
        # While it is not set, a client that has come back is not told what has arrived.
        self.resumes = asyncio.Event()
        self.resumes.set()
        self.goodbyes: list[int | None] = []
        self.cookies: list[str | None] = []
        self._said: list[bytes] = []
        self._socket: ServerConnection | None = None
        self._forgotten = False

    def sign(self, connection: ServerConnection, request: Any, response: Any) -> None:
        response.headers["Set-Cookie"] = "node=7; Path=/; HttpOnly"

    def check(self, connection: ServerConnection, request: Any) -> Any:
        self.cookies.append(request.headers.get("Cookie"))
        if self._forgotten:
            return connection.respond(404, "gone")
        return None

    async def handle(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        self._socket = socket
        after = socket.request.headers.get("Last-Event-ID")
        if after is not None:
            await self.resumes.wait()
            note = {"jsonrpc": "2.0", "method": "_dragoman/resumed", "params": {"received": len(self.heard)}}
            await socket.send(json.dumps(note, separators=(",", ":")))
            for message in self._said[int(after) :]:
                await socket.send(message.decode())
        with suppress(Exception):
            while True:
                message = await socket.recv(decode=False)
                self.heard.append(message)
                if len(self.heard) == 1:
                    await self.say(GREETING)
                await self.reads.wait()
        self.goodbyes.append(socket.close_code)

    async def say(self, message: bytes) -> None:
        self._said.append(message)
        if self._socket is not None:
            with suppress(Exception):
                await self._socket.send(message.decode())

    async def drop(self) -> None:
        assert self._socket is not None
        self._socket.transport.abort()

    async def forget(self) -> None:
        self._forgotten = True
        await self.drop()


class HttpServer:
    """On bare sockets: just enough of HTTP/1.1."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.deleted = False
        self._said: list[bytes] = []
        self._stream: asyncio.StreamWriter | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._numbers: set[str] = set()
        self._forgotten = False

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                top = (await reader.readuntil(b"\r\n\r\n")).decode()
                headers = dict(line.lower().split(": ", 1) for line in top.split("\r\n")[1:] if ": " in line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                await self._answer(top.split(" ", 1)[0], headers, body, writer)
        writer.close()
        self._writers.discard(writer)

    async def _answer(self, method: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> None:
        if self._forgotten:
            writer.write(b"HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n")
        elif method == "DELETE":
            self.deleted = True
            writer.write(b"HTTP/1.1 202 Ok\r\nContent-Length: 0\r\n\r\n")
        elif method == "POST":
            await self.reads.wait()
            if headers["acp-message-number"] not in self._numbers:
                self._numbers.add(headers["acp-message-number"])
                self.heard.append(body)
            if "acp-connection-id" in headers:
                writer.write(b"HTTP/1.1 202 Ok\r\nContent-Length: 0\r\n\r\n")
            else:
                head = f"HTTP/1.1 200 Ok\r\nAcp-Connection-Id: c1\r\nContent-Length: {len(GREETING)}\r\n\r\n"
                writer.write(head.encode() + GREETING)
        else:
            writer.write(b"HTTP/1.1 200 Ok\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            self._stream = writer
            for number in range(int(headers.get("last-event-id", "0")), len(self._said)):
                self._event(number + 1)
        await writer.drain()

    async def say(self, message: bytes) -> None:
        self._said.append(message)
        if self._stream is not None:
            self._event(len(self._said))

    def _event(self, number: int) -> None:
        assert self._stream is not None
        event = b"id: %d\ndata: %b\n\n" % (number, self._said[number - 1])
        self._stream.write(b"%x\r\n%b\r\n" % (len(event), event))

    async def drop(self) -> None:
        self._stream = None
        for writer in list(self._writers):
            writer.transport.abort()

    async def forget(self) -> None:
        self._forgotten = True
        await self.drop()


@asynccontextmanager
async def _websocket() -> AsyncIterator[Remote]:
    server = WebSocketServer()
    options: dict[str, Any] = {"process_request": server.check, "process_response": server.sign}
    async with serve(server.handle, "127.0.0.1", 0, max_size=None, max_queue=1, **options) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        async with _greeted(WebSocketTransport(f"ws://127.0.0.1:{port}/acp", "t"), server) as remote:
            yield remote


@asynccontextmanager
async def _http() -> AsyncIterator[Remote]:
    server = HttpServer()
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    try:
        port = listening.sockets[0].getsockname()[1]
        async with _greeted(HttpTransport(f"http://127.0.0.1:{port}/acp", "t"), server) as remote:
            await until(lambda: server._stream is not None)
            yield remote
    finally:
        listening.close()
        await server.drop()
        await listening.wait_closed()


@asynccontextmanager
async def _greeted(transport: Transport, server: Server) -> AsyncIterator[Remote]:
    receiver = Recorder()
    transport.start(receiver)
    try:
        assert transport.write(HELLO) == len(HELLO)
        await until(lambda: receiver.data == GREETING + b"\n", "the greeting")
        receiver.data.clear()
        receiver.pieces.clear()
        server.heard.clear() if isinstance(server, HttpServer) else None
        yield Remote(transport, receiver, server)
    finally:
        server.reads.set()
        await transport.close()


OpenRemote = Callable[[], AbstractAsyncContextManager[Remote]]
REMOTES: dict[str, OpenRemote] = {"websocket": _websocket, "http": _http}
