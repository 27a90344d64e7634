"""A proxy for HTTP on loopback: tunnels (CONNECT) and requests in absolute form, all led to one server here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """`asked`: the request lines it got, with the credentials in front if there were any. `refusals`: its answer to a
    target (`host:port`) that it does not take; "addresses" stands for all that are no names."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.refusals: dict[str, str] = {}
        self._target_port = target_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, _, fields = head.partition("\r\n")
            method, target, _ = line.split(" ")
            login = [field for field in fields.split("\r\n") if field.lower().startswith("proxy-authorization:")]
            self.asked.append(" ".join([*login, method, target]))
            refusal = self._refusal(target if method == "CONNECT" else urlsplit(target).netloc)
            if refusal:
                writer.write(f"HTTP/1.1 {refusal}\r\nContent-Length: 0\r\n\r\n".encode())
            else:
                await self._forward(method, target, fields, reader, writer)
        writer.close()

    def _refusal(self, target: str) -> str | None:
        host = target.rpartition(":")[0]
        is_address = host.replace(".", "").isdigit() or ":" in host
        return self.refusals.get(target) or (self.refusals.get("addresses") if is_address else None)

    async def _forward(
        self, method: str, target: str, fields: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            parts = urlsplit(target)
            path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
            other_writer.write(f"{method} {path} HTTP/1.1\r\n{fields}".encode())
        await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def proxy(target_port: int) -> AsyncIterator[Proxy]:
    """A proxy that leads everything to this port of loopback."""
    running = Proxy(target_port)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    async with server:
        running.port = server.sockets[0].getsockname()[1]
        yield running
