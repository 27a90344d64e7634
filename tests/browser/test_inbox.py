"""The inbox: what waits in all sessions at every agent, answered in one place, on a telephone too."""

from pathlib import Path

import pytest

from .chrome import Tab
from .console import asked, enter, show, two_agents

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

WAITING = "Number.parseInt(document.querySelector('#waiting')?.textContent ?? '0')"
# Where the answers are: their lowest edge, and whether each is as wide as a thumb needs and as high.
REACH = """(() => {
  const boxes = [...document.querySelectorAll('.inbox .choice')].map((one) => one.getBoundingClientRect());
  return [boxes.length, innerHeight - Math.max(...boxes.map((box) => box.bottom)) < innerHeight / 3,
    boxes.every((box) => box.width > innerWidth * 0.8 && box.height >= 44)]; })()"""


async def test_questions_of_two_agents_are_answered_in_one_place_on_a_telephone(page: Tab, tmp_path: Path) -> None:
    async with (
        two_agents(tmp_path) as served,
        asked(served, "main", tmp_path) as first,
        asked(served, "second", tmp_path) as second,
    ):
        await page.resize(390, 844, phone=True)
        await enter(page, served, "inbox")
        await page.until_text(".inbox .place", "1 of 2")
        await page.until("document.querySelector('.inbox .choice:not(:disabled)')")
        assert await page.text(".inbox h2") == "Delete the secret plan?"
        assert await page.js(REACH) == [2, True, True]
        await page.click("role=button[name='Next']")
        await page.until_text(".inbox .place", "2 of 2")
        await page.click(".inbox .choice.allow:not(:disabled)")
        await page.until("!document.querySelector('.inbox .waiting')")  # one is left
        await page.click(".inbox .why")
        await page.type("keep it")
        await page.press("Enter")
        await page.until_text("main:not([hidden])", "Nothing waits for you")
        assert {(await first).text, (await second).text} == {"yes", "no"}
        await page.until(f"{WAITING} === 0")


async def test_a_digit_answers_only_the_question_that_is_seen(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served, asked(served, "main", tmp_path) as turn:
        await enter(page, served, "inbox")
        await page.until("document.querySelector('.inbox .choice:not(:disabled)')")
        # The conversation has it as well, and stands behind other screens.
        await show(page, "settings")
        await page.until_text("main:not([hidden])", "Appearance")
        await page.press("1")
        await page.press("2")
        await show(page, "inbox")
        await page.until("document.querySelector('.inbox .choice:not(:disabled)')")
        assert not turn.done()
        await page.press("2")
        await page.until_text("main:not([hidden])", "Nothing waits for you")
        assert (await turn).text == "no"


async def test_a_login_that_only_reads_sees_that_a_session_waits_and_cannot_answer(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served, asked(served, "main", tmp_path) as turn:
        watcher = served.token_of("screen", ("read",), "default")
        await enter(page, served, "inbox", watcher)
        await page.until_text(".inbox", "Your login may read, and not answer")
        assert await page.js("document.querySelectorAll('.inbox .choice').length") == 0
        await page.until(f"{WAITING} === 1")
        assert "secret plan" not in await page.text("main:not([hidden])")
        assert not turn.done()
