"""The bare asyncio + msgspec client: typed decoding, then one ordered consumer; answers queue behind updates."""

import asyncio
import os
import subprocess
import time
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from bench.peers.floor_link import Link, Message, Request, SessionUpdate, decode_message, decode_update
from bench.peers.outcome import Stopwatch, Task, in_flight, report_latencies, task


class NewSession(msgspec.Struct, rename="camel"):
    session_id: str


class Client:
    """Requests by id, updates to `handler` one after the other."""

    def __init__(self, read_fd: int, write_fd: int, handler: Callable[[SessionUpdate], Awaitable[None]]) -> None:
        self._handler = handler
        self._last_id = 0
        self._pending: dict[int | str, asyncio.Future[msgspec.Raw]] = {}
        self._queue: deque[SessionUpdate | Message] = deque()
        self._wake = asyncio.Event()
        self._link = Link(read_fd, write_fd, self._on_line)
        self._consumer = asyncio.ensure_future(self._consume())

    async def request(self, method: str, params: object) -> msgspec.Raw:
        self._last_id += 1
        number = self._last_id
        future: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        await self._link.send(Request(number, method, params))
        return await future

    def close(self) -> None:
        self._link.close()
        self._consumer.cancel()

    def _on_line(self, line: bytes) -> None:
        message = decode_message(line)
        if message.method == "session/update":
            self._queue.append(decode_update(message.params))
        else:
            self._queue.append(message)
        self._wake.set()

    async def _consume(self) -> None:
        queue, handler = self._queue, self._handler
        while await self._wake.wait():
            self._wake.clear()
            while queue:
                item = queue.popleft()
                if isinstance(item, SessionUpdate):
                    await handler(item)
                elif item.id is not None:
                    self._pending.pop(item.id).set_result(item.result)


async def main(asked: Task) -> None:
    process = subprocess.Popen(asked.agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None and process.stdout is not None
    seen = 0

    async def handle(_: SessionUpdate) -> None:
        nonlocal seen
        seen += 1

    client = Client(process.stdout.fileno(), process.stdin.fileno(), handle)
    await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    answer = await client.request("session/new", {"cwd": os.getcwd(), "mcpServers": []})
    session_id = msgspec.json.decode(answer, type=NewSession).session_id
    if asked.scenario == "sequential":
        asking = {"sessionId": session_id, "modeId": "b"}
        report_latencies(await requests(client, "session/set_mode", asking, asked.count))
    elif asked.scenario == "inflight":
        mode = {"sessionId": session_id, "modeId": "b"}
        await in_flight(lambda: client.request("session/set_mode", mode), asked.count)
    elif asked.scenario == "echo":
        report_latencies(await requests(client, "_bench/echo", {}, asked.count))
    else:
        prompt = {"sessionId": session_id, "prompt": [{"type": "text", "text": asked.prompt}]}
        watch = Stopwatch()
        await client.request("session/prompt", prompt)
        watch.report(seen)
    client.close()
    process.stdin.close()
    process.wait()


async def requests(client: Client, method: str, params: object, count: int) -> list[int]:
    taken = []
    for _ in range(count):
        before = time.perf_counter_ns()
        await client.request(method, params)
        taken.append(time.perf_counter_ns() - before)
    return taken


if __name__ == "__main__":
    asyncio.run(main(task()))
