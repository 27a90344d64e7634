"""An ASGI application of a test's own on a port of this machine."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from tests.support.waiting import until


@asynccontextmanager
async def on_loopback(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Serve it on this socket, which is closed at the end."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, ws="none"))
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    await until(lambda: server.started)
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        await serving
        listener.close()
