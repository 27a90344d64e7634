"""granian on loopback, with TLS and HTTP/2, which says what it was asked."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server

from tests.support.gateway import free_port
from tests.support.waiting import until

_HEADER = {200: b"text/plain"}


@asynccontextmanager
async def http2_server(
    certificate: Path, pages: Mapping[str, bytes]
) -> AsyncIterator[tuple[int, list[dict[str, str]]]]:
    """Its port, and what it was asked: version, path, and the headers with `host`. A page that is a URL redirects."""
    asked: list[dict[str, str]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        asked.append({"version": scope["http_version"], "path": scope["path"], **headers})
        body = pages[scope["path"]]
        status, name = (302, b"location") if body.startswith(b"https://") else (200, b"content-type")
        await send({"type": "http.response.start", "status": status, "headers": [(name, _HEADER.get(status, body))]})
        await send({"type": "http.response.body", "body": body})

    port = free_port()
    key = certificate.parent / "key.pem"
    server: Any = Server(
        app,
        address="127.0.0.1",
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.auto,
        log_enabled=False,
        ssl_cert=certificate,
        ssl_key=key,
    )
    serving = asyncio.create_task(server.serve())
    try:
        await until(lambda: serving.done() or _listens(port), "granian")
        yield port, asked
    finally:
        server.stop()
        await serving


def _listens(port: int) -> bool:
    """Whether a socket of this machine listens on the port. Not by connecting, which would be a broken handshake."""
    wanted = f"0100007F:{port:04X} 00000000:0000 0A"
    return wanted in Path("/proc/net/tcp").read_text()
