"""A raw client of elephant.ai's HTTP: posts to one path, reads the one stream at the other, and has no token."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from dragoman.sse import EventReader
from tests.support.gateway import Served, http_client, msgspec_decode
from tests.support.messages import Message, hello, prompt, texts
from tests.support.waiting import until

YES = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
NO = {"outcome": {"outcome": "selected", "optionId": "reject_once"}}

_BYTES = 4096


class RawElephant:
    """One client id. Everything it was ever told, on whichever stream, is in `heard`."""

    def __init__(self, root: str, client: httpx2.AsyncClient, id: str, token: str = "") -> None:
        self.root = root
        self.id = id
        self.heard: list[Message] = []
        self.ids: list[str] = []
        self.bytes = b""  # the last of them
        self.reads = asyncio.Event()
        self.reads.set()
        self.on_message: Callable[[Message], None] = lambda _: None
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._streams: list[asyncio.Task[None]] = []

    def url(self, path: str) -> str:
        return f"{self.root}/acp/{path}?client_id={self.id}"

    async def post(self, message: Message) -> int:
        """Send a message; the status."""
        body = {"jsonrpc": "2.0", **message}
        return (await self._client.post(self.url("rpc"), json=body, headers=self._headers)).status_code

    async def open(self, after: str = "") -> None:
        """Open a stream, which is read from now on."""
        begun: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        headers = self._headers | ({"Last-Event-ID": after} if after else {})

        async def read() -> None:
            async with self._client.stream("GET", self.url("sse"), headers=headers) as response:
                begun.set_result(response.status_code)
                events = EventReader()
                async for data in response.aiter_bytes():
                    await self.reads.wait()
                    self.bytes = (self.bytes + data)[-_BYTES:]
                    for event in events.feed(data):
                        self.ids.append(event.id)
                        self.heard.append(msgspec_decode(event.data))
                        self.on_message(self.heard[-1])

        task = asyncio.create_task(read())
        self._streams.append(task)
        assert await begun == 200

    async def drop(self) -> None:
        """Close every stream."""
        for task in self._streams:
            task.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)
        self._streams.clear()

    async def answer(self, id: int) -> Message:
        """The answer to a request."""
        await until(lambda: [m for m in self.heard if m.get("id") == id and "method" not in m], f"an answer to {id}")
        return next(m for m in self.heard if m.get("id") == id and "method" not in m)

    async def ask(self, id: int, method: str, **params: Any) -> Message:
        """Ask, and wait for the answer."""
        assert await self.post({"id": id, "method": method, "params": params}) == 202
        return await self.answer(id)

    async def session(self, id: int = 1) -> str:
        """A new session."""
        opened = await self.ask(id, "session/new", cwd=os.getcwd(), mcpServers=[])
        session_id: str = opened["result"]["sessionId"]
        return session_id

    async def begin(self) -> str:
        """The stream, `initialize` and a session."""
        await self.open()
        assert await self.post(hello(1)) == 202
        assert (await self.answer(0))["result"]["protocolVersion"] == 1
        return await self.session()

    async def prompt(self, session_id: str, id: int = 2) -> int:
        return await self.post(prompt(id, session_id))

    async def question(self) -> Message:
        """What it is asked."""
        await until(lambda: [m for m in self.heard if m.get("method") == "session/request_permission"], "a question")
        return next(m for m in self.heard if m.get("method") == "session/request_permission")

    @property
    def texts(self) -> list[str]:
        return texts(self.heard)


@asynccontextmanager
async def elephant(served: Served, id: str = "an-elephant", token: str = "") -> AsyncIterator[RawElephant]:
    """A raw client that has done nothing yet."""
    async with http_client(limits=httpx2.Limits(max_connections=None)) as client:
        raw = RawElephant(served.http.removesuffix("/acp"), client, id, token)
        try:
            yield raw
        finally:
            await raw.drop()
