"""A little internet on loopback: names with addresses, a server that every address leads to, and a listener."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from dragoman.host import fetch as fetching
from dragoman.host.fetch import FetchedPage, Streams, fetch
from dragoman.host.response import HEAD_BYTES

PUBLIC = "93.184.216.34"
Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


class Web:
    """A little internet: names with addresses, and a server that every address leads to."""

    def __init__(self, port: int, answers: dict[str, Answer]) -> None:
        self.port = port
        self.answers = answers
        self.names: dict[str, list[list[str]]] = {}
        self.resolved: list[str] = []
        self.dialled: list[tuple[str, int, str | None]] = []
        self.requests: list[bytes] = []
        self.tls: ssl.SSLContext | None = None

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The next answer for a name, the last one for ever; public unless said otherwise."""
        self.resolved.append(host)
        replies = self.names.get(host, [[PUBLIC]])
        return replies.pop(0) if len(replies) > 1 else replies[0]

    async def dial(self, address: str, port: int, tls_name: str | None) -> Streams:
        self.dialled.append((address, port, tls_name))
        context = self.tls if tls_name is not None else None
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=context, server_hostname=tls_name, limit=HEAD_BYTES
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(request)
            answer = self.answers[request.split(b" ")[1].decode()]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone, as it may
        finally:
            writer.close()

    async def get(
        self, url: str, *, max_bytes: int = fetching.PAGE_BYTES, deadline_seconds: float = fetching.PAGE_SECONDS
    ) -> FetchedPage:
        return await fetch(
            url, max_bytes=max_bytes, deadline_seconds=deadline_seconds, resolve=self.resolve, dial=self.dial
        )


@asynccontextmanager
async def web(answers: dict[str, Answer], tls: ssl.SSLContext | None = None) -> AsyncIterator[Web]:
    world = Web(0, answers)
    server = await asyncio.start_server(world.serve, "127.0.0.1", 0, ssl=tls)
    world.port = server.sockets[0].getsockname()[1]
    try:
        yield world
    finally:
        server.close()


def page(body: bytes, *fields: str, status: str = "200 OK", kind: str = "text/plain") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(head).encode() + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return f"HTTP/1.1 {status}\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()


@contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A listener on this machine: its port, and what came."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        stop = threading.Event()

        def listen() -> None:
            while not stop.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(0.2)
                    try:
                        heard.append(connection.recv(4096))
                    except TimeoutError:
                        heard.append(b"")

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            stop.set()
            thread.join()


@asynccontextmanager
async def public_web(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Answer]) -> Any:
    """Every name is public, and leads to a server of ours."""
    async with web(answers) as world:
        monkeypatch.setattr("dragoman.host.fetch._resolve", world.resolve)
        monkeypatch.setattr("dragoman.host.fetch._dial", world.dial)
        yield world
