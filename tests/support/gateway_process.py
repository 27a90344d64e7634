"""`dragoman serve` as a process of its own, which is forked."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessage, AgentMessageChunk, AnyEvent
from tests.support.fork_server.client import MAIN, Forked, fork_server
from tests.support.waiting import until

SLOW: dict[str, object] = {"turns": [{"steps": [{"say": "word ", "repeat": 200, "delay_ms": 50}]}]}


class Process:
    """What was forked, with as much of asyncio's own as tests use; nothing is written to it."""

    def __init__(self, forked: Forked, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.send_signal = forked.send_signal
        self.kill = forked.kill
        self._forked = forked

    async def wait(self) -> int:
        """How it has ended."""
        await until(lambda: self._forked.poll() is not None, "the end of the process")
        return self._forked.wait()


@asynccontextmanager
async def forked(*words: str, source: str = MAIN, said: bytes = b"", **env: str) -> AsyncIterator[Process]:
    """`dragoman` with these arguments, and with this on its stdin, which stays open; it is killed at the end."""
    child = fork_server().child(source, *words, env={**os.environ, **env})
    child.stdin.write(said)
    child.stdin.flush()
    streams = [await _read(stream) for stream in (child.stdout, child.stderr)]
    process = Process(child, *[reader for reader, _ in streams])
    try:
        yield process
    finally:
        process.kill()
        await process.wait()
        child.stdin.close()
        for _, transport in streams:
            transport.close()


async def _read(stream: IO[bytes]) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), stream
    )
    return reader, transport


class Serving:
    """A `dragoman serve` that runs."""

    def __init__(self, process: Process, lines: list[str], port: int) -> None:
        self.process = process
        self.lines = lines
        self.port = port

    @property
    def token(self) -> str:
        (line,) = [line for line in self.lines if "shown this once" in line]
        return line.rpartition(" ")[2].strip()


@asynccontextmanager
async def serving(
    home: Path, port: int, script: dict[str, object], *more: str, until_listening: bool = True
) -> AsyncIterator[Serving]:
    """The command, until it listens; where it does not say so, until a client can connect."""
    home.mkdir(exist_ok=True)
    (home / "script.json").write_text(json.dumps(script))
    agent = [] if "--agent" in more or "--model" in more else ["--model", f"script:{home / 'script.json'}"]
    async with forked("serve", "--port", str(port), *agent, *more, DRAGOMAN_HOME=str(home)) as process:
        lines: list[str] = []
        async with asyncio.timeout(30):
            while until_listening and not any("listening on" in line for line in lines):
                line = (await process.stderr.readline()).decode()
                assert line, lines
                lines.append(line)
            if not until_listening:
                await _reachable(port)
        yield Serving(process, lines, port)


async def _reachable(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        await writer.wait_closed()
        return


def words(events: list[AnyEvent]) -> str:
    said = []
    for event in events:
        if isinstance(event, AgentMessageChunk) and isinstance(event.content, Text):
            said.append(event.content.text)
        elif isinstance(event, AgentMessage) and isinstance(event.content, list):
            said += [part.text for part in event.content if isinstance(part, Text)]
    return "".join(said)
