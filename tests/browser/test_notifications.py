"""Notifications of the browser: of what is new, while the page is not seen, and only where that was switched on."""

from pathlib import Path

import pytest

from .chrome import Tab
from .console import asked, enter, show, two_agents

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

# What the browser would show; a real one shows nothing without a desktop.
SHOWN = """(() => { window.shown = []; window.Notification = class {
    static permission = 'granted';
    static requestPermission = async () => 'granted';
    constructor(title, { body, tag }) { shown.push([title, body, tag]); } }; })()"""
# A page that is not seen looks every fifteen seconds; a test does not wait for that.
HURRIED = """{ const wait = setTimeout;
window.setTimeout = (work, time, ...more) => wait(work, time === 15000 ? 50 : time, ...more); null }"""
AWAY = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => true})"


async def test_a_question_is_notified_of_once_without_what_it_asks(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await enter(page, served)
        await page.js(SHOWN)
        await page.js(HURRIED)
        await show(page, "settings")
        await page.click("role=checkbox[name=/Notify me/]")
        await show(page, "")
        await page.js(AWAY)
        async with asked(served, "second", tmp_path):
            await page.until("shown.length > 0")
            ((title, body, tag),) = await page.js("shown")
            assert title == "A session asks you something"
            assert "secret plan" not in body
            assert tag
        await page.until("shown.some(([title]) => title === 'A session is done')")
        assert await page.js("shown.length") == 2


async def test_nothing_is_notified_of_before_it_is_switched_on(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await enter(page, served)
        await page.js(SHOWN)
        await page.js(HURRIED)
        await page.js(AWAY)
        async with asked(served, "second", tmp_path):
            await page.until("document.querySelector('#waiting')")
            assert await page.js("shown") == []
