"""A session of ten thousand messages: what is in the page is what is in view."""

from pathlib import Path

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from tests.support.gateway import gateway

from .chrome import Tab
from .test_page import enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180), pytest.mark.slow]

MESSAGES = 10_000
BOX = "document.querySelector('#transcript')"
IS_AT_END = f"{BOX}?.dataset.state === 'idle' && {BOX}.scrollHeight - {BOX}.clientHeight - {BOX}.scrollTop <= 1"
ITEMS = "document.querySelectorAll('.item').length"
# Scrolls up by a view with each frame, and returns how long the longest task of the page was, in milliseconds.
SCROLL = """new Promise((done) => {
    let longest = 0, frames = 0;
    const seen = (list) => list.getEntries().forEach((one) => { longest = Math.max(longest, one.duration); });
    new PerformanceObserver(seen).observe({ type: 'longtask' });
    const box = document.querySelector('#transcript');
    const step = () => {
        box.dispatchEvent(new WheelEvent('wheel'));
        box.scrollTop -= box.clientHeight;
        if (++frames < 120) requestAnimationFrame(step);
        else setTimeout(() => done(longest), 200);
    };
    requestAnimationFrame(step);
})"""


async def test_ten_thousand_messages_are_scrolled_with_few_of_them_in_the_page(page: Tab, tmp_path: Path) -> None:
    agent = Agent("Talker")

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        for number in range(MESSAGES // 2):
            await session.think(f"thought {number}")
            await session.say(f"**{number}** is said with `code`, in a line that is as long as such lines are.")

    async with gateway(agent, tmp_path) as served:
        await enter(page, served)
        await prompt(page, "talk")
        await page.until("document.querySelector('#transcript')?.dataset.state === 'idle'")
        await page.until_text(".virtual-item:last-child .message.agent", f"{MESSAGES // 2 - 1} is said")
        assert 0 < await page.js(ITEMS) < 60
        await page.reload()  # of which the server does not hold all that is told again
        await page.until_text(".virtual-item:last-child .message.agent", f"{MESSAGES // 2 - 1} is said")
        await page.until(IS_AT_END)
        top = await page.js("document.querySelector('#transcript').scrollTop")
        print(f"longest task: {await page.js(SCROLL)} ms")
        assert await page.js("document.querySelector('#transcript').scrollTop") < top - 50_000
        assert 0 < await page.js(ITEMS) < 60
