"""A little internet on loopback: names with addresses, a server that every address leads to, and a listener."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx2
import pytest

from dragoman.host import fetch as fetching
from dragoman.host.address import DEFAULT_PORTS
from dragoman.host.fetch import FetchedPage, fetch

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
        self.dead: set[str] = set()

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The next answer for a name, the last one for ever; public unless said otherwise."""
        self.resolved.append(host)
        replies = self.names.get(host, [[PUBLIC]])
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def open_transport(self, url: str, proxy: str | None) -> httpx2.AsyncBaseTransport:
        """What a fetch is given in place of its own: httpx2, connected to the server here whatever address is asked."""
        verify = self.tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return _Rerouted(self, httpx2.AsyncHTTPTransport(verify=verify, http2=True))

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
            url,
            max_bytes=max_bytes,
            deadline_seconds=deadline_seconds,
            resolve=self.resolve,
            open_transport=self.open_transport,
        )


class _Rerouted(httpx2.AsyncBaseTransport):
    """Notes where a request wants to go, and sends it to the server of this world."""

    def __init__(self, world: Web, inner: httpx2.AsyncBaseTransport) -> None:
        self._world = world
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        tls_name = request.extensions["sni_hostname"] if url.scheme == "https" else None
        port = url.port or DEFAULT_PORTS[url.scheme]
        self._world.dialled.append((url.raw_host.decode("ascii"), port, tls_name))
        if url.raw_host.decode("ascii") in self._world.dead:
            raise httpx2.ConnectError("Connection refused", request=request)
        request.url = url.copy_with(host="127.0.0.1", port=self._world.port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


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
        monkeypatch.setattr("dragoman.host.fetch.look_up", world.resolve)
        monkeypatch.setattr("dragoman.host.fetch.open_transport_for", world.open_transport)
        yield world
