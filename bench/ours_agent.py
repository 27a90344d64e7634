"""The bench's agent on Dragoman, written as its own examples are."""

from typing import TYPE_CHECKING

from dragoman import Agent
from dragoman.vocabulary.options import Choice, Select
from dragoman.vocabulary.tools import Diff

if TYPE_CHECKING:
    from dragoman.agent.session import Prompt, Session

modes = Select("mode", "Mode", "a", [Choice("a", "A"), Choice("b", "B")], category="mode")
agent = Agent("bench", version="1", options=[modes])


@agent.extension("_bench/echo")
async def echo(params: object) -> object:
    return {}


@agent.prompt
async def work(session: "Session", prompt: "Prompt") -> None:
    word, count, *words = prompt.text.split(" ", 2)
    if word == "big":
        async with session.tool("Edit a file", kind="edit") as call:
            await call.update(content=[Diff.of("/bench/file.py", None, ("x" * 79 + "\n") * (int(count) // 80))])
        return
    for _ in range(int(count)):
        await session.say(words[0])


if __name__ == "__main__":
    agent.run()
