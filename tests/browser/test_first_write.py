"""What a new user sees first: a file is written without a failure beside it, and an error says why."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.coder.agent import coding_agent
from dragoman.coder.models.demo import DemoModel
from dragoman.coder.setup import Setup
from dragoman.errors import RequestFailed
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import Served, gateway
from tests.support.whole_agent import ENVIRONMENT, Fixed

from .chrome import ALT, Tab
from .measures import wcag_violations
from .test_page import enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

IDLE = "document.querySelector('#transcript').dataset.state === 'idle'"
CALLS = "[...document.querySelectorAll('.call')].map((call) => call.dataset.status)"


@pytest.fixture
async def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """The agent as it is delivered, without a model."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    setup = Setup(Fixed(lambda name: DemoModel()), ENVIRONMENT, home=str(tmp_path / "home"))
    try:
        async with gateway(coding_agent(setup, store=SqliteStore(tmp_path / "sessions")), tmp_path) as served:
            yield served
    finally:
        await asyncio.to_thread(setup.close)


async def test_the_first_file_is_written_without_a_red_card(page: Tab, demo: Served, tmp_path: Path) -> None:
    await enter(page, demo)
    await prompt(page, "create notes/a.txt\nhello")
    await page.until_text("#question .patch .added", "+hello")
    await page.until("!document.querySelector('#question .choice').disabled")
    await page.press("1")
    await page.until_text(".virtual-item:last-child .message.agent", "Wrote 6 bytes to")
    await page.until(IDLE)
    assert set(await page.js(CALLS)) == {"completed"}
    assert await page.js("document.querySelectorAll('.notice').length") == 0
    assert (tmp_path / "work" / "notes" / "a.txt").read_text() == "hello\n"


async def test_a_change_is_shown_side_by_side_where_there_is_room_and_stays_so(page: Tab, demo: Served) -> None:
    await page.resize(1280, 800)
    await enter(page, demo)
    await prompt(page, "create notes/a.txt\nhello")
    await page.until_text("#question .patch .added", "+hello")
    await page.click("#question .diff-view")
    await page.until("document.querySelector('#question .diff-lines.split')")
    assert await wcag_violations(page) == []
    await page.resize(390, 800)
    await page.until("getComputedStyle(document.querySelector('#question .diff-view')).display === 'none'")
    await page.resize(1280, 800)
    await page.press("1", ALT)
    await page.until_text(".virtual-item:last-child .message.agent", "Wrote 6 bytes to")
    await page.reload()
    await page.until("document.querySelector('.call .diff-lines.split')")


async def test_the_tour_is_played_in_the_browser(page: Tab, demo: Served, tmp_path: Path) -> None:
    await page.resize(1100, 4000)  # what is out of the view is not in the page
    await enter(page, demo)
    await prompt(page, "tour")
    for shown in ("def add", "import unittest", "discover", "return a + b", "discover"):
        await page.until_text("#question", shown)
        await page.until("!document.querySelector('#question .choice').disabled")
        await page.press("1", ALT)
    await page.until_text(".virtual-item:last-child .message.agent", "end of the recording")
    await page.until(IDLE)
    assert await page.js(CALLS) == ["completed", "completed", "failed", "completed", "completed", "completed"]
    assert (tmp_path / "work" / "dragoman-tour" / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"


async def test_an_error_of_the_agent_is_told_with_its_details(page: Tab, tmp_path: Path) -> None:
    agent = Agent("Broken")

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        raise RequestFailed(-32603, "Internal error", {"details": "no space left on device"})

    async with gateway(agent, tmp_path) as served:
        await enter(page, served)
        await prompt(page, "go")
        await page.until_text(".notice.error", "Internal error: no space left on device")
