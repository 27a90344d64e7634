"""A client of ours with a raw agent at the other end."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dragoman.client.connect import Client, connect
from dragoman.client.conversation import Conversation
from dragoman.transports.contract import Transport
from dragoman.transports.memory import memory_pair
from tests.support.messages import Message, greeting
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.waiting import until


class RawAgent(RawPeer):
    """An agent in raw JSON, of one version."""

    def __init__(self, transport: Transport, version: int) -> None:
        super().__init__(transport)
        self.version = version
        self._given: Counter[str] = Counter()

    async def request(self, method: str) -> Message:
        """The next message of a method: each is given out once."""

        def found() -> list[Message]:
            return [m for m in self.heard if m.get("method") == method]

        await until(lambda: len(found()) > self._given[method])
        self._given[method] += 1
        return found()[self._given[method] - 1]

    async def accept(self) -> Any:
        """Accept the next prompt, as far as the version does that; its id."""
        number = (await self.request("session/prompt"))["id"]
        if self.version == 2:
            self.say({"id": number, "result": {"messageId": f"user-{number}"}}, self.update({"state": "running"}))
        return number

    def finish(self, number: Any, reason: str = "end_turn", session_id: str = "s") -> None:
        """End the turn of a prompt."""
        if self.version == 1:
            self.say({"id": number, "result": {"stopReason": reason}})
        else:
            self.say(self.update({"state": "idle", "stopReason": reason}, session_id))

    def tell(self, *texts: str, session_id: str = "s") -> None:
        """Pieces of an answer."""
        for text in texts:
            content = {"type": "text", "text": text}
            body = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content}
            self.say({"method": "session/update", "params": {"sessionId": session_id, "update": body}})

    def update(self, state: Message, session_id: str = "s") -> Message:
        body = {"sessionUpdate": "state_update", **state}
        return {"method": "session/update", "params": {"sessionId": session_id, "update": body}}


@asynccontextmanager
async def connected(version: int, *, capacity: int = PIPE, **settings: Any) -> AsyncIterator[tuple[Client, RawAgent]]:
    """A client that has been answered, and its raw agent."""
    ours, theirs = memory_pair(capacity)
    agent = RawAgent(theirs, version)
    client = connect(ours, **settings)
    entering = asyncio.ensure_future(client.__aenter__())
    agent.say({"id": (await agent.request("initialize"))["id"], "result": greeting(version)})
    await entering
    try:
        yield client, agent
    finally:
        async with asyncio.timeout(30):
            await client.close()
            await agent.leave()


async def new_session(client: Client, agent: RawAgent, session_id: str = "s") -> Conversation:
    opening = asyncio.ensure_future(client.new_session("/"))
    agent.say({"id": (await agent.request("session/new"))["id"], "result": {"sessionId": session_id}})
    return await opening
