"""A raw client on a WebSocket."""

import asyncio
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from tests.support.gateway import Served
from tests.support.messages import Message, hello


def opening(served: Served, **more: str) -> Any:
    headers = served.headers | {name.replace("_", "-"): value for name, value in more.items()}
    return connect(served.ws, additional_headers=headers, compression=None, proxy=None, max_size=None)


async def say(socket: ClientConnection, message: Message) -> None:
    await socket.send(msgspec.json.encode({"jsonrpc": "2.0", **message}).decode())


async def hear(socket: ClientConnection, id: int) -> tuple[Message, list[Message]]:
    """The answer to a request, and what was said before it."""
    before: list[Message] = []
    async with asyncio.timeout(30):
        while True:
            message = msgspec.json.decode(await socket.recv())
            if message.get("id") == id and "method" not in message:
                return message, before
            before.append(message)


async def session(socket: ClientConnection, version: int) -> tuple[str, str]:
    """The connection's id and that of a new session."""
    await say(socket, hello(version))
    greeting, _ = await hear(socket, 0)
    await say(socket, {"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
    opened, _ = await hear(socket, 1)
    return greeting["result"]["connectionId"], opened["result"]["sessionId"]
