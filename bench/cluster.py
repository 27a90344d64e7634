"""`python -m bench.cluster`: what it costs to watch a session at its owner and at another node, with a verdict.

Two nodes on one database. A turn streams pieces of text at a steady rate while clients watch it; the cost is the
processor time of both nodes for the whole turn. All in one run, in turns.

A watcher at the owner is one write more among those that are made anyway, so by itself it costs nearly nothing. The
first one at another node has that node read, keep and write the stream; the next ones there are one write more again.

Exit status: 0 the promise is met, 1 it is missed.
"""

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.lines import Line, told
from chaos.load import Client
from tests.support.gateway import free_port
from tests.support.postgres import running_server

PIECES: Final = 3000
REPETITIONS: Final = 5
MANY: Final = 20
MOST_FAR: Final = 2.0
# Flat, within what the measurement itself moves.
MOST_GROWTH: Final = 1.15
_START_SECONDS: Final = 60.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.cluster", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; noisier")
    repetitions = 2 if parser.parse_args(arguments).quick else REPETITIONS
    return told(lines(asyncio.run(measured(repetitions))))


def lines(costs: "Costs") -> Iterator[Line]:
    alone, near, far, many = (costs[name] for name in WATCHERS)
    at_owner = median(_all(one) - _all(none) for one, none in zip(near, alone, strict=True))
    elsewhere = median(_all(one) - _all(none) for one, none in zip(far, alone, strict=True))
    yield Line(f"{PIECES} pieces to the client that prompts: the owner", median(owner for owner, _ in alone), "ms")
    yield Line("one watcher at the owner: more at both nodes", at_owner, "ms")
    yield Line("one watcher at another node: more at both nodes", elsewhere, "ms")
    whole = median(_all(one) / _all(other) for one, other in zip(far, near, strict=True))
    yield Line("the turn watched at another node, of one at the owner", whole, "x", promise=MOST_FAR)
    growth = median(more / one for (more, _), (one, _) in zip(many, far, strict=True))
    yield Line(f"the owner with {MANY} watchers at another node, of one", growth, "x", promise=MOST_GROWTH)


def _all(cost: "Cost") -> float:
    return sum(cost)


# Milliseconds of the owner and of the other node, for one turn; by the watchers that it had.
Cost = tuple[float, float]
Costs = dict[str, list[Cost]]
# How many watch, and at which node: the owner is the first.
WATCHERS: Final = {"none": (0, 0), "near": (1, 0), "far": (1, 1), "many": (MANY, 1)}


class Node:
    """A node as a process of its own."""

    def __init__(self, name: str, url: str, folder: Path) -> None:
        self.port: Final = free_port()
        home = folder / name
        home.mkdir()
        self._log: Final = home / "log"
        command = [sys.executable, "-m", "dragoman", "serve", "--port", str(self.port), "--store", url, "--node", name]
        command += ["--node-url", f"http://127.0.0.1:{self.port}", "--node-secret-file", str(folder / "secret")]
        command += ["--home", "shared", "--model", f"script:{folder / 'script.json'}"]
        environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
        with self._log.open("wb") as log:
            self.process: Final = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    async def listening(self) -> str:
        """Wait until it listens; return what it has said."""
        async with asyncio.timeout(_START_SECONDS):
            while "listening on" not in self._log.read_text():
                await asyncio.sleep(0.1)
        return self._log.read_text()

    def spent(self) -> float:
        """Return the milliseconds of processor time that its threads have used."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1_000_000


async def measured(repetitions: int) -> Costs:
    """Return what turns cost, with the watchers in turn."""
    costs: Costs = {name: [] for name in WATCHERS}
    async with nodes() as (pair, token, folder):
        for _ in range(repetitions):
            for name, (count, at) in WATCHERS.items():
                costs[name].append(await turn(pair, token, folder, count, at))
    return costs


@asynccontextmanager
async def nodes() -> AsyncIterator[tuple[Sequence[Node], str, Path]]:
    """Two nodes on a database, a token, and a folder for sessions."""
    with tempfile.TemporaryDirectory() as name, running_server(fsync="on") as server:
        folder = Path(name)
        (folder / "secret").write_text(secrets.token_hex(32))
        (folder / "secret").chmod(0o600)
        step = {"say": "the quick brown fox ", "repeat": PIECES, "delay_ms": 1}
        (folder / "script.json").write_text(json.dumps({"turns": [{"steps": [step]}]}))
        pair: list[Node] = []
        token = ""
        url = server.create("bench")
        try:
            for number in range(2):
                pair.append(Node(f"node-{number}", url, folder))
                # The first one makes the token.
                token = token or (await pair[-1].listening()).partition("shown this once: ")[2].split()[0]
            await pair[-1].listening()
            yield pair, token, folder
        finally:
            for node in pair:
                node.process.kill()
                node.process.wait()


async def turn(pair: Sequence[Node], token: str, folder: Path, count: int, at: int) -> Cost:
    """Return what one turn costs each node, with so many watchers at one of them."""
    async with AsyncExitStack() as stack:

        async def client(number: int) -> Client:
            opened = await Client.open(f"127.0.0.1:{pair[number].port}", token, lambda message: None)
            stack.callback(opened.drop)
            return opened

        prompting = await client(0)
        session: dict[str, Any] = {"cwd": str(folder), "mcpServers": []}
        session_id = (await prompting.ask("session/new", session))["sessionId"]
        watching = [await client(at) for _ in range(count)]
        for one in watching:
            await one.ask("session/load", {**session, "sessionId": session_id})
        listening = [asyncio.ensure_future(_listen(one)) for one in watching]
        before = [node.spent() for node in pair]
        await prompting.ask("session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": "go"}]})
        owner, other = (node.spent() - spent for node, spent in zip(pair, before, strict=True))
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
        return owner, other


async def _listen(client: Client) -> None:
    while True:
        await client.listen(_START_SECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
