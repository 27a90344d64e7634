"""The gateway under load: clients with open streams, turns that stream at once, and how long a chunk is on its way.

    python -m bench.gateway [--clients 200] [--turns 50] [--chunks 200] [--deaf 0] [--peer python]

A chunk is the time at which the agent said it, on a clock that both processes share. The server is a process of its
own; its CPU time and memory are read from /proc. `--peer python` is the official Python SDK's own server on uvicorn.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.gateway.serving import free_port

TOKEN = "bench"
_STAMP = re.compile(rb'"text":"(\d+)"')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.01, help="seconds between two chunks of a turn")
    parser.add_argument("--deaf", type=int, default=0, help="streams of clients that do not read what they prompted")
    parser.add_argument("--peer", choices=("ours", "python"), default="ours")
    parser.add_argument("--serve", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        (_serve_python if given.peer == "python" else _serve_ours)(given)
    else:
        print(json.dumps(asyncio.run(_measure(given)), indent=2))


# -- the servers -----------------------------------------------------------------------------------------------------


def _serve_ours(given: argparse.Namespace) -> None:
    from dragoman.agent.agent import Agent
    from dragoman.gateway import guard
    from dragoman.gateway.back import Agents
    from dragoman.gateway.hub import Hub
    from dragoman.gateway.local import in_process
    from dragoman.gateway.server import Server
    from dragoman.gateway.tokens import Tokens

    agent = Agent("bench")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for _ in range(given.chunks):
            await session.say(str(time.monotonic_ns()))
            await asyncio.sleep(given.pause)

    class One(Tokens):
        def valid(self) -> list[guard.Token]:
            return [guard.Token("bench", "bench", guard.SCOPES, guard.digest_of(TOKEN.encode()))]

    async def serve() -> None:
        guard.BURST = guard.RATE = 1e9  # type: ignore[misc]
        hub = Hub(Agents(in_process(agent.serve, print)), report=print)
        server = Server(hub, One(Path(tempfile.mkdtemp()) / "none"), port=given.serve)
        await server.start()
        await asyncio.Event().wait()

    asyncio.run(serve())


def _serve_python(given: argparse.Namespace) -> None:
    import uvicorn
    from acp import PROTOCOL_VERSION, InitializeResponse, NewSessionResponse, PromptResponse, update_agent_message_text
    from acp.http.asgi import create_asgi_app

    class Bench:
        def __init__(self, connection: Any) -> None:
            self.connection = connection

        async def initialize(self, **_: Any) -> InitializeResponse:
            return InitializeResponse(protocol_version=PROTOCOL_VERSION)

        async def new_session(self, **_: Any) -> NewSessionResponse:
            return NewSessionResponse(session_id=os.urandom(16).hex())

        async def prompt(self, session_id: str, **_: Any) -> PromptResponse:
            for _i in range(given.chunks):
                text = update_agent_message_text(str(time.monotonic_ns()))
                await self.connection.session_update(session_id, text)
                await asyncio.sleep(given.pause)
            return PromptResponse(stop_reason="end_turn")

    app = create_asgi_app(Bench)  # type: ignore[arg-type]
    uvicorn.run(app, host="127.0.0.1", port=given.serve, log_level="error")


# -- the clients -----------------------------------------------------------------------------------------------------


class Client:
    """A client on bare sockets: what it costs must not be what is measured."""

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

    async def start(self, *, deaf: bool = False) -> None:
        params: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": {}}
        headers, _ = await self.post({"id": 0, "method": "initialize", "params": params})
        self.connection = headers["acp-connection-id"]
        await self.open()
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
        for writer in self._writers:
            writer.close()


async def _measure(given: argparse.Namespace) -> dict[str, object]:
    port = free_port()
    command = [sys.executable, "-m", "bench.gateway", *sys.argv[1:], "--serve", str(port)]
    server = subprocess.Popen(command)
    try:
        await _until_open(port)
        before = _memory(server.pid)
        clients = [Client(port) for _ in range(given.clients)]
        deaf = [Client(port) for _ in range(given.deaf)]
        for at in range(0, len(clients), 20):
            await asyncio.gather(*(client.start() for client in clients[at : at + 20]))
        for client in deaf:
            await client.start(deaf=True)
            await client.turn(wait=False)
        idle = _memory(server.pid)
        cpu, began = _cpu(server.pid), time.monotonic()
        await asyncio.gather(*(client.turn() for client in clients[: given.turns]))
        seconds, cpu = time.monotonic() - began, _cpu(server.pid) - cpu
        latencies = sorted(latency for client in clients for latency in client.latencies)
        assert len(latencies) == given.turns * given.chunks, len(latencies)
        for client in (*clients, *deaf):
            await client.close()
        return {
            "peer": given.peer,
            "clients": given.clients,
            "turns at once": given.turns,
            "chunks": len(latencies),
            "seconds": round(seconds, 2),
            "p50 ms": round(latencies[len(latencies) // 2], 2),
            "p99 ms": round(latencies[len(latencies) * 99 // 100], 2),
            "chunks per CPU second": round(len(latencies) / max(cpu, 0.01)),
            "MiB at start": before,
            "MiB with clients": idle,
            "MiB at the end": _memory(server.pid),
        }
    finally:
        server.kill()
        server.wait()


async def _until_open(port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    main()
