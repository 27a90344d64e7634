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


@asynccontextmanager
async def http2_server(
    certificate: Path, pages: Mapping[str, bytes]
) -> AsyncIterator[tuple[int, list[dict[str, str]]]]:
    """Its port, and what it was asked: version, path, and the headers with `host`."""
    asked: list[dict[str, str]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        asked.append({"version": scope["http_version"], "path": scope["path"], **headers})
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": pages[scope["path"]]})

    port = free_port()
    key = certificate.parent / "key.pem"
    server = Server(
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
