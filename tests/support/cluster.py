"""Nodes of a cluster as processes of their own, on one database, with one folder for all."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from dragoman import Conversation, connect
from dragoman.errors import RequestFailed
from dragoman.transports.remote import transport_for
from tests.support.gateway import free_port
from tests.support.gateway_process import Serving, serving
from tests.support.postgres import empty_database

# As short as it may be: a take-over is waited for.
LEASE: Final = 1.5


class Cluster:
    """The database and the nodes on it; a node is started by `node`, and killed at the end."""

    def __init__(self, folder: Path, url: str, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.url = url
        self.nodes: dict[str, Serving] = {}
        self._stack = stack
        self._secret = folder / "secret"
        self._secret.write_text(secrets.token_hex(32))
        self._secret.chmod(0o600)

    async def node(self, name: str, script: dict[str, Any], *more: str, port: int = 0) -> Serving:
        """Start a node, or the next process of one, and wait until it listens."""
        port = port or free_port()
        words = ["--store", self.url, "--node", name, "--node-url", f"http://127.0.0.1:{port}"]
        words += ["--node-secret-file", str(self._secret), "--lease", str(LEASE)]
        if not any(word == "--home" for word in more):
            words += ["--home", "shared"]
        (self.folder / name).mkdir(exist_ok=True)
        served = await self._stack.enter_async_context(serving(self.folder / name, port, script, *words, *more))
        self.nodes[name] = served
        return served

    @property
    def token(self) -> str:
        """The token that counts at every node: the first one made it."""
        return next(iter(self.nodes.values())).token

    def client(self, name: str, **options: Any) -> Any:
        """A client of a node, to be entered; `options` are those of `connect`."""
        return connect(transport_for(f"ws://127.0.0.1:{self.nodes[name].port}/acp", self.token), **options)

    async def kill(self, name: str) -> None:
        """Kill a node, as a lost machine would."""
        self.nodes[name].process.kill()
        await self.nodes[name].process.wait()


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    """A database without nodes."""
    with empty_database() as url:
        async with AsyncExitStack() as stack:
            yield Cluster(folder, url, stack)


async def asked(session: Conversation, prompt: str) -> str:
    """The answer to a prompt, which is sent until a node takes it."""
    async with asyncio.timeout(30):
        while True:
            try:
                return (await session.ask(prompt)).text
            except RequestFailed:
                await asyncio.sleep(0.05)


def says(text: str) -> dict[str, object]:
    """A script of a model that says this to every prompt."""
    return {"turns": [{"steps": [{"say": text}]}] * 20}
