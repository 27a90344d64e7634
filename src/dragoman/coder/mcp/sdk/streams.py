"""The two streams that the SDK's client talks through, each of two functions: pass one message, close."""

from collections.abc import Awaitable, Callable
from typing import Self

from mcp.shared.message import SessionMessage

Close = Callable[[], Awaitable[None]]


class _Stream:
    """What both have: they are closed when their block is left."""

    def __init__(self, close: Close) -> None:
        self._close = close

    async def aclose(self) -> None:
        await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._close()


class SdkReadStream(_Stream):
    """A read stream. `receive` returns the next message and raises `StopAsyncIteration` after the last."""

    def __init__(self, receive: Callable[[], Awaitable[SessionMessage | Exception]], close: Close) -> None:
        super().__init__(close)
        self._receive = receive

    async def receive(self) -> SessionMessage | Exception:
        return await self._receive()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._receive()


class SdkWriteStream(_Stream):
    """A write stream. `send` may wait."""

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]], close: Close) -> None:
        super().__init__(close)
        self._send = send

    async def send(self, item: SessionMessage, /) -> None:
        await self._send(item)
