"""After a reload the page shows the options that the session has, whatever its connection repeats."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.agent.session import Session
from dragoman.vocabulary.options import Choice, Option, Select
from tests.support.gateway import gateway

from .chrome import Tab
from .conftest import Serve
from .test_page import enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

MODE = "document.querySelector('[data-option=mode]')?.value"
IDLE = "document.querySelector('#transcript').dataset.state === 'idle'"
MODES: list[Any] = [Choice("ask", "Ask"), Choice("plan", "Plan"), Choice("free", "Free")]
OPTIONS: list[Option] = [Select("mode", "Mode", "ask", MODES, category="mode")]


async def choose(page: Tab, name: str, value: str) -> None:
    await page.js(
        f"{{ const list = document.querySelector('[data-option={name}]'); list.value = '{value}';"
        " list.dispatchEvent(new Event('change')); }"
    )


async def test_a_mode_that_was_chosen_after_an_update_of_the_agent(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "Hello."}]) as served:
        await enter(page, served)
        await prompt(page, "/mode plan")  # the agent sends an update
        await page.until(f"{MODE} === 'plan'")
        await page.until(IDLE)
        await choose(page, "mode", "full-access")  # the agent sends an answer, and no update
        (shared,) = served.hub.sessions.values()
        saved = f"JSON.parse(sessionStorage.dragoman).sessions[{shared.id!r}].options"
        await page.until(f"{saved}.some((option) => option.currentValue === 'full-access')")
        for _ in range(2):
            await page.reload()
            await page.until(IDLE)
            await prompt(page, "/mode")
            await page.until(
                "document.querySelector('.virtual-item:last-child .message.agent')?.innerText.includes('full-access')"
            )
            await page.until(IDLE)
            assert await page.js(MODE) == "full-access"
        await prompt(page, "/mode plan")  # and an update that is newer than the choice counts
        await page.until(f"{MODE} === 'plan'")
        await page.until(IDLE)
        await page.reload()
        await page.until(IDLE)
        assert await page.js(MODE) == "plan"


async def test_a_mode_whose_answer_comes_after_the_reload(page: Tab, tmp_path: Path) -> None:
    agent = Agent("slow", options=OPTIONS)
    asked, go_on = asyncio.Event(), asyncio.Event()

    @agent.option_changed
    async def changed(session: Session, config_id: str, value: Any) -> None:
        asked.set()
        await go_on.wait()

    @agent.prompt
    async def reply(session: Session, prompt: Any) -> None:
        await session.say("Hello.")

    async with gateway(agent, tmp_path) as served:
        await enter(page, served)
        await prompt(page, "hi")
        await page.until_text(".message.agent", "Hello.")
        await page.until(IDLE)
        await choose(page, "mode", "free")
        await asked.wait()
        await page.reload()
        await page.until(f"{MODE} === 'ask'")  # it is not set yet
        go_on.set()
        await page.until(f"{MODE} === 'free'")
        await page.reload()
        await page.until(IDLE)
        assert await page.js(MODE) == "free"
