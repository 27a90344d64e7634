"""`dragoman serve` as a process of its own."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessage, AgentMessageChunk, AnyEvent

DRAGOMAN = [sys.executable, "-m", "dragoman.cli.main"]
SLOW: dict[str, object] = {"turns": [{"steps": [{"say": "word ", "repeat": 200, "delay_ms": 50}]}]}


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
    """The command, until it listens; where it does not say so, until somebody can connect."""
    home.mkdir(exist_ok=True)
    (home / "script.json").write_text(json.dumps(script))
    agent = [] if "--agent" in more else ["--model", f"script:{home / 'script.json'}"]
    command = [*DRAGOMAN, "serve", "--port", str(port), *agent, *more]
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=PIPE)
    assert process.stderr is not None
    lines: list[str] = []
    try:
        async with asyncio.timeout(30):
            while until_listening and not any("listening on" in line for line in lines):
                line = (await process.stderr.readline()).decode()
                assert line, lines
                lines.append(line)
            if not until_listening:
                await _reachable(port)
        yield Serving(process, lines, port)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


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
