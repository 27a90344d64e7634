"""A command that goes on beside the conversation is shown above the prompt, and stopped there."""

import pytest

from .chrome import Tab
from .conftest import Serve
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
