"""A tab that comes back when the server does not hold all that it missed."""

from pathlib import Path

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.gateway.replay_buffer import BUFFER_BYTES
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import gateway

from .chrome import Tab
from .test_page import enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

MESSAGES = 40
FILLING = "word " * (2 * BUFFER_BYTES // MESSAGES // 5)  # twice what is held, in all
BOX = "document.querySelector('#transcript')"
IDLE = f"{BOX}?.dataset.state === 'idle'"
ORDER = f"[...{BOX}.querySelectorAll('.message')].map((one) => one.innerText.slice(0, 10).trim().split(' ')[0])"


async def test_a_reload_of_a_long_session_shows_its_messages_in_their_order(page: Tab, tmp_path: Path) -> None:
    agent = Agent("Talker", store=SqliteStore(tmp_path / "sessions"))

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        for number in range(MESSAGES):
            await session.think(f"t{number}")
            await session.say(f"m{number} {FILLING if number < MESSAGES - 2 else ''}")

    async with gateway(agent, tmp_path) as served:
        await enter(page, served)
        await prompt(page, "talk")
        await page.until_text(".virtual-item:last-child .message.agent", f"m{MESSAGES - 1}")
        await page.until(IDLE)
        await page.reload()
        await page.until_text(".virtual-item:last-child .message.agent", f"m{MESSAGES - 1}")
        await page.until(IDLE)
        assert (await page.js(ORDER))[-3:] == [f"m{MESSAGES - 2}", "Thought", f"m{MESSAGES - 1}"]
        # What is above the last messages is what came before them, up to the prompt.
        await page.js(f"{BOX}.dispatchEvent(new WheelEvent('wheel')), {BOX}.scrollTop = 0")
        await page.until_text(".virtual-item:first-child .message.user", "talk")
