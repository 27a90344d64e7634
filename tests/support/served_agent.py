"""An agent of ours with a raw client at the other end."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.agent.agent import Agent
from dragoman.transports.memory import memory_pair
from tests.support.messages import Message, hello
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.waiting import until


class Reporting(Agent):
    """An agent that keeps what it would print on stderr."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.bugs: list[Exception] = []
        self._core.report = self.bugs.append  # type: ignore[method-assign,assignment]


@asynccontextmanager
async def served(agent: Agent, version: int, *, capacity: int = PIPE) -> AsyncIterator[RawPeer]:
    """A raw client that has been greeted. At the end it leaves, and the agent must too."""
    ours, theirs = memory_pair(capacity)
    serving = asyncio.ensure_future(agent.serve(ours))
    wire = RawPeer(theirs)
    try:
        wire.say(hello(version))
        assert "result" in await wire.answer(0)
        yield wire
    finally:
        await wire.leave()
        async with asyncio.timeout(30):
            await serving


async def opened(wire: RawPeer, id: int = 1) -> str:
    """A session, opened by request 1."""
    wire.say({"id": id, "method": "session/new", "params": {"cwd": os.getcwd(), "mcpServers": []}})
    session_id = (await wire.answer(id))["result"]["sessionId"]
    assert isinstance(session_id, str)
    return session_id


async def end_of_turn(wire: RawPeer, id: int, version: int) -> Message:
    """How the prompt `id` ended: its stop reason, or its error; as both versions tell it."""
    answer = await wire.answer(id)
    if version == 1:
        return answer["result"] if "result" in answer else {"error": answer["error"]}

    def ends() -> list[Message]:
        after = wire.heard[wire.heard.index(answer) :]
        found = [m["params"]["update"] for m in after if m.get("method") == "session/update"]
        return [update for update in found if update.get("state") == "idle" and update.get("stopReason")]

    await until(lambda: bool(ends()))
    end = ends()[0]
    return {"error": end["error"]} if end["stopReason"] == "error" else {"stopReason": end["stopReason"]}
