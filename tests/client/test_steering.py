"""Words of the user for a turn that runs."""

import asyncio
from typing import Any

import pytest

from dragoman import Agent, Prompt
from dragoman.testing import pair
from tests.support.versions import both_versions

pytestmark = pytest.mark.anyio


def listening(*, steering: bool) -> tuple[Agent, asyncio.Event, asyncio.Event]:
    """An agent whose turn waits for words of the user; the events say that it waits, and that it may end."""
    agent = Agent("listening", steering=steering)
    waits, may_end = asyncio.Event(), asyncio.Event()

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        waits.set()
        await may_end.wait()
        heard: list[Prompt] = []
        while steering and not heard:
            await asyncio.sleep(0)
            heard = await session.queued_prompts()
        for queued in heard:
            await session.say(f"heard {queued.text}; ")
        await session.say("over")

    return agent, waits, may_end


@both_versions
async def test_the_running_turn_takes_words_of_the_user(version: int) -> None:
    agent, waits, may_end = listening(steering=True)
    async with pair(agent, protocol=version) as client:
        session = await client.new_session("/")
        answer = asyncio.create_task(session.ask("begin"))
        await waits.wait()
        may_end.set()
        assert await session.steer("also this")
        assert (await answer).text == "heard also this; over"


@both_versions
async def test_without_a_turn_or_an_agent_that_takes_them_words_have_no_place(version: int) -> None:
    agent, waits, may_end = listening(steering=False)
    async with pair(agent, protocol=version) as client:
        session = await client.new_session("/")
        assert not await session.steer("nothing runs")
        answer = asyncio.create_task(session.ask("begin"))
        await waits.wait()
        assert not await session.steer("it takes none")
        may_end.set()
        assert (await answer).text == "over"
