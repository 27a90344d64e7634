"""Our gateway with an agent that says the time: `PORT CHUNKS PAUSE STORED`. STORED sessions lie in its store; none
means that it has no store."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dragoman.agent.agent import Agent
from dragoman.gateway import guard, token_types
from dragoman.gateway.agent_source import AgentSource, in_process
from dragoman.gateway.hub import Hub
from dragoman.gateway.server import GatewayServer
from dragoman.gateway.token_store import TokenStore
from dragoman.store.contract import SessionMeta
from dragoman.store.sqlite import SqliteStore

TOKEN = "bench"


class OneToken(TokenStore):
    def valid(self) -> list[token_types.Token]:
        return [token_types.Token("bench", "bench", token_types.SCOPES, token_types.digest_of(TOKEN.encode()))]


async def filled(folder: Path, count: int) -> SqliteStore:
    store = SqliteStore(folder)
    for number in range(count):
        now = int(time.time() * 1000)
        meta = SessionMeta(f"sess_{number:032x}", "/", (), f"Session {number}", now, now, archived=False)
        await (await store.create(meta)).release()
    return store


async def main(port: int, chunks: int, pause: float, stored: int) -> None:
    folder = Path(tempfile.mkdtemp())
    agent = Agent("bench", store=await filled(folder / "sessions", stored) if stored else None)

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for _ in range(chunks):
            await session.say(str(time.monotonic_ns()))
            await asyncio.sleep(pause)

    guard.BURST = guard.RATE = 1e9  # type: ignore[misc]  # a thousand clients come from one address here
    hub = Hub(AgentSource(in_process(agent.serve, print)), report=print)
    await GatewayServer(hub, OneToken(folder / "tokens"), port=port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
