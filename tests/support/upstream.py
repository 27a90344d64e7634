"""A model provider on loopback, as wicked as a test wants it: real sockets, hand-made HTTP.

It refuses what the real APIs refuse (`strict`), so that no test passes with a conversation that no provider takes.
"""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from tests.support.provider_rules import refusal


class Request(NamedTuple):
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Exchange:
    """One request and our side of the connection it came on."""

    def __init__(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self._reader = reader
        self._writer = writer

    async def answer(self, status: int, body: bytes | dict[str, Any] = b"", **headers: str) -> None:
        """A whole answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers.setdefault("content_type", "application/json")
        await self.head(status, content_length=str(len(data)), **headers)
        await self.write(data)

    async def head(self, status: int = 200, **headers: str) -> None:
        lines = [
            f"HTTP/1.1 {status} Whatever",
            *(f"{name.replace('_', '-')}: {text}" for name, text in headers.items()),
        ]
        await self.write("\r\n".join([*lines, "", ""]).encode())

    async def stream(self, events: Iterable[bytes]) -> None:
        """An event stream, whole, in chunked coding."""
        await self.begin_stream()
        for event in events:
            await self.chunk(event)
        await self.write(b"0\r\n\r\n")

    async def begin_stream(self) -> None:
        await self.head(200, content_type="text/event-stream", transfer_encoding="chunked")

    async def chunk(self, data: bytes) -> None:
        await self.write(b"%x\r\n%s\r\n" % (len(data), data))

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def hung_up(self) -> None:
        """Returns when the client has closed its end."""
        with suppress(ConnectionError):
            while await self._reader.read(65536):
                pass

    def reset(self) -> None:
        """End the connection as a crash would."""
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Reply = Callable[[Exchange], Awaitable[None]]


class Upstream:
    """The server. Each request takes the next reply, the last one again when none is left."""

    def __init__(self) -> None:
        self.url = ""
        self.port = 0
        self.requests: list[Request] = []
        self.replies: list[Reply] = []
        self.connections = 0
        # Tokens of a conversation; one that has more is refused as too long.
        self.window: int | None = None
        self.is_strict = True
        # The errors of requests that were refused for what they hold.
        self.refusals: list[dict[str, Any]] = []
        # Set when a connection has ended.
        self.ended = asyncio.Event()

    def then(self, *replies: Reply) -> None:
        self.replies.extend(replies)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                request = await _read(reader)
                self.requests.append(request)
                refused = refusal(request.path, request.body, self.window) if self.is_strict else None
                if refused is not None:
                    self.refusals.append(refused.body)
                    await Exchange(request, reader, writer).answer(*refused)
                    continue
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                await reply(Exchange(request, reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self.ended.set()


@asynccontextmanager
async def upstream(*replies: Reply, strict: bool = True, window: int | None = None) -> AsyncGenerator[Upstream, None]:
    """A running server on a free port. Not `strict`: it takes every conversation."""
    it = Upstream()
    it.is_strict, it.window = strict, window
    it.then(*replies)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await it._serve(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    it.port = server.sockets[0].getsockname()[1]
    it.url = f"http://127.0.0.1:{it.port}"
    try:
        yield it
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(head[0].split(" ")[1], headers, json.loads(body) if body else {})


# -- replies ---------------------------------------------------------------------------------------------------------


def streams(*events: bytes) -> Reply:
    """Answers with a whole stream."""

    async def reply(exchange: Exchange) -> None:
        await exchange.stream(events)

    return reply


def answers(status: int, body: bytes | dict[str, Any] = b"", **headers: str) -> Reply:
    """Answers with a status."""

    async def reply(exchange: Exchange) -> None:
        await exchange.answer(status, body, **headers)

    return reply


def data(value: object) -> bytes:
    """One event of a stream."""
    return f"data: {json.dumps(value)}\n\n".encode()


# -- OpenAI's chat completions, as most servers speak them -----------------------------------------------------------

DONE = b"data: [DONE]\n\n"


def chat(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return data({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


def chat_usage(given: int, made: int) -> bytes:
    usage = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
    return data(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}
    )


def chat_call(index: int, **fields: Any) -> bytes:
    return chat({"tool_calls": [{"index": index, **fields}]})


def chat_says(*texts: str, finish: str = "stop") -> Reply:
    """A plain answer."""
    return streams(*(chat({"content": text}) for text in texts), chat({}, finish), chat_usage(7, 3), DONE)
