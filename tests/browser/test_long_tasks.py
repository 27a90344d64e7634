"""How long the tasks of the page are in a session of ten thousand items: streamed in, and walked through."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import gateway

from .chrome import Tab
from .console import enter
from .measures import Task, traced

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900), pytest.mark.slow]

ITEMS = 10_000
PATIENCE = 300.0  # seconds
LONGEST_TASK = 50.0  # milliseconds of a processor
BOX = "document.querySelector('#transcript')"
IS_AT_END = f"{BOX}.scrollHeight - {BOX}.clientHeight - {BOX}.scrollTop <= 1"
IDLE = f"{BOX}?.dataset.state === 'idle' && {BOX}.innerText.includes('message {ITEMS - 1}') && {IS_AT_END}"
# From the first to the last item in so many steps, each of them drawn.
STEPS = f"""(async () => {{
  for (let step = 0; step <= 100; step++) {{
    {BOX}.scrollTop = ({BOX}.scrollHeight - {BOX}.clientHeight) * step / 100;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }}
}})()"""
TEXT = "**Message** with `code`, a [link](https://example.test/) and\n\n- an item\n- another one\n\n"


def talkative(folder: Path) -> Agent:
    """An agent that says and does as much as asked for."""
    agent = Agent("talkative", store=SqliteStore(folder))

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for number in range(1, int(prompt.text), 2):
            async with session.tool(f"Look at {number}", kind="read"):
                pass
            await session.say(f"{TEXT * (number % 4)}message {number}")

    return agent


def assert_short(tasks: list[Task]) -> None:
    """By the time of the processor: how long a task waits for one is not the page's doing."""
    print(f"{len(tasks)} tasks, the longest: {[f'{cpu:.0f} of {wall:.0f} ms' for cpu, wall in tasks[:5]]}")
    assert tasks, "the trace has no tasks"
    assert [task for task in tasks if task.cpu > LONGEST_TASK] == []


async def test_ten_thousand_items_stream_in_and_scroll_in_short_tasks(page: Tab, tmp_path: Path) -> None:
    async with gateway(talkative(tmp_path / "sessions"), tmp_path) as served:
        await enter(page, served)
        await page.click("#prompt")
        await page.type(str(ITEMS))
        async with traced(page) as tasks:
            await page.press("Enter")
            await page.until(IDLE, PATIENCE)
        assert_short(tasks)
        assert await page.js("document.querySelectorAll('.virtual-item').length < 40")
        async with traced(page) as tasks:
            await page.js(STEPS)
        assert_short(tasks)
