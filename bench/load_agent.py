"""An agent that keeps its sessions, for `bench.load`: the prompt says what to stream, and how many events of it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman import Agent
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk

if TYPE_CHECKING:
    from dragoman.agent.session import Prompt, Session

MESSAGE_PIECES = 1_000
"""Pieces of text between two tool calls: what a long answer of a model is like."""

agent = Agent("bench", version="1", store=lambda: SqliteStore(Path(sys.argv[1])))


@agent.prompt
async def work(session: "Session", prompt: "Prompt") -> None:
    kind, count = prompt.text.split(" ")
    await {"text": text, "messages": messages, "calls": calls}[kind](session, int(count))


async def text(session: "Session", count: int) -> None:
    """Long messages in small pieces, and a tool call now and then."""
    for number in range(1, count + 1):
        await session.say("the quick ")
        if number % MESSAGE_PIECES == 0:
            async with session.tool("Look", kind="read"):
                pass


async def messages(session: "Session", count: int) -> None:
    """Messages of one piece each: nothing to merge."""
    for number in range(count):
        await session.emit(AgentMessageChunk(Text("the quick "), f"m{number}"))


async def calls(session: "Session", count: int) -> None:
    """A word and a tool call, in turn: three events that become two."""
    for number in range(count // 3):
        await session.say("the quick ")
        async with session.tool("Look", kind="read", id=f"c{number}"):
            pass


if __name__ == "__main__":
    agent.run()
