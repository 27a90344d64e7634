"""What works beside the conversation: commands in the background, above the prompt; helpers, below their calls."""

import pytest

from .chrome import Tab
from .conftest import Serve
from .measures import wcag_violations
from .test_page import enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]


async def test_a_command_in_the_background_is_named_and_stopped(page: Tab, serve: Serve) -> None:
    run = {"call": "bash", "input": {"command": "echo up; sleep 600", "background": True}}
    async with serve([run, {"say": "It runs."}]) as served:
        await enter(page, served)
        await prompt(page, "start it")
        await page.click("#question [data-option=allow_once]")
        await page.until_text(".message.agent", "It runs.")
        await page.until_text("#work summary", "1 command in the background")
        await page.click("#work summary")
        assert "sleep 600" in await page.text("#work li")
        await page.click("#work li button")
        await page.until("!document.querySelector('#work')")


async def test_what_a_helper_calls_stands_below_the_call_that_started_it(page: Tab, serve: Serve) -> None:
    start = {"call": "agent", "input": {"prompt": "look", "description": "Look around"}}
    look = {"call": "glob", "input": {"pattern": "*.none"}}
    helper = {"turns": [{"steps": [look, {"say": "I saw nothing."}]}]}
    async with serve([start, {"say": "Nothing there."}], agents={"agent": helper}) as served:
        await enter(page, served)
        await prompt(page, "look around")
        await page.until_text(".message.agent", "Nothing there.")
        for _ in range(2):  # also as it is told again, to a tab that knows nothing of it
            await page.until_text(".call .helper-calls summary", "1 call of this helper")
            assert await page.js("document.querySelectorAll('.story > .call').length") == 1
            await page.click(".helper-calls summary")
            await page.until_text(".helper-calls .call", "agent: ")
            assert await wcag_violations(page) == []
            await page.js("sessionStorage.clear()")
            await page.reload()
