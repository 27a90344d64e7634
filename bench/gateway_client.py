"""A client of a remote agent on bare sockets: what it costs must not be what is measured."""

import asyncio
import json
import re
import time
from typing import Any, Final

TOKEN: Final = "bench"
_STAMP: Final = re.compile(rb'"text":"(\d+)"')


class Client:
    """One connection with one session, and how long each chunk was on its way, in milliseconds."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connection = ""
        self.session = ""
        self.latencies: list[float] = []
        self.over = asyncio.Event()
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    def head(self, method: str, more: str = "") -> bytes:
        named = f"Acp-Connection-Id: {self.connection}\r\n" if self.connection else ""
        top = f"{method} /acp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        return f"{top}{named}{more}\r\n".encode()

    async def post(self, message: dict[str, Any], session: str = "") -> tuple[dict[str, str], bytes]:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        writer.write(self.head("POST", more + (f"Acp-Session-Id: {session}\r\n" if session else "")) + body)
        answer = await reader.read()
        writer.close()
        top, _, rest = answer.partition(b"\r\n\r\n")
        lines = top.decode().split("\r\n")
        assert lines[0].split(" ")[1] in ("200", "202"), answer
        return {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}, rest

    async def open(self, session: str = "", *, deaf: bool = False) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        more = "Accept: text/event-stream\r\n" + (f"Acp-Session-Id: {session}\r\n" if session else "")
        writer.write(self.head("GET", more))
        await reader.readuntil(b"\r\n\r\n")
        self._writers.append(writer)
        if deaf:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        else:
            self._tasks.append(asyncio.create_task(self._read(reader)))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            now = time.monotonic_ns()
            stamp = _STAMP.search(line)
            if stamp is not None:
                self.latencies.append((now - int(stamp[1])) / 1e6)
            elif line.startswith(b"data:") and b'"result"' in line:
                message = json.loads(line[5:])
                self._answers[message["id"]].set_result(message["result"])

    def answer(self, id: int) -> "asyncio.Future[dict[str, Any]]":
        return self._answers.setdefault(id, asyncio.get_running_loop().create_future())

    async def connect(self) -> None:
        """Greet, and read what comes: no session yet."""
        params: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": {}}
        headers, _ = await self.post({"id": 0, "method": "initialize", "params": params})
        self.connection = headers["acp-connection-id"]
        await self.open()

    @property
    def is_connected(self) -> bool:
        """Whether its streams are open."""
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    async def start(self, *, deaf: bool = False) -> None:
        await self.connect()
        opened = self.answer(1)
        await self.post({"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
        self.session = (await opened)["sessionId"]
        await self.open(self.session, deaf=deaf)

    async def turn(self, *, wait: bool = True) -> None:
        ended = self.answer(2)
        params = {"sessionId": self.session, "prompt": [{"type": "text", "text": "go"}]}
        await self.post({"id": 2, "method": "session/prompt", "params": params}, self.session)
        if wait:
            await ended

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
