"""What is typed next arrives in the prompt, whatever was clicked or pressed before."""

import pytest

from .chrome import ALT, Tab
from .conftest import Serve
from .test_page import enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

RUN = {"call": "bash", "input": {"command": "touch x"}}
VALUE = "document.querySelector('#prompt').value"
GONE = "document.querySelector('#question').hidden"
LONG = {"say": "word ", "repeat": 2000, "delay_ms": 20}


async def types(page: Tab, text: str) -> None:
    """Press the keys without a click before; the text stands in the prompt."""
    for key in text:
        await page.press(key)
    assert await page.js(VALUE) == text
    await page.js("document.querySelector('#prompt').value = ''")


@pytest.mark.parametrize("how", ["click", "key", "key with Alt"])
async def test_after_an_answer_to_a_question(page: Tab, serve: Serve, how: str) -> None:
    async with serve([RUN, {"say": "Done."}]) as served:
        await enter(page, served)
        await prompt(page, "go")
        await page.until("document.querySelector('#question button:not(:disabled)')")
        if how == "click":
            await page.click("#question [data-option=reject_once]")
        else:
            await page.press("1", ALT if how == "key with Alt" else 0)
        await page.until(GONE)
        await types(page, "abc")


@pytest.mark.parametrize("answer", [".choice.allow", ".choice.reject"])
async def test_after_a_form(page: Tab, serve: Serve, answer: str) -> None:
    asked = {"call": "ask_user", "input": {"question": "Which one?", "options": ["red", "blue"]}}
    async with serve([asked, {"say": "Thank you."}]) as served:
        await enter(page, served)
        await prompt(page, "ask me")
        await page.click("#question select")
        await page.press("Escape")
        await page.click(f"#question {answer}")
        await page.until(GONE)
        await types(page, "abc")


async def test_after_stopping_a_turn(page: Tab, serve: Serve) -> None:
    async with serve([LONG]) as served:
        await enter(page, served)
        await prompt(page, "count")
        await page.until_text(".message.agent", "word word")
        await page.click("#stop")
        await types(page, "abc")
        await page.until_text(".notice", "Stopped.")
        await types(page, "def")


async def test_after_opening_sessions_and_closing_the_menu(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "One."}], [{"say": "Two."}]) as served:
        await enter(page, served)
        await types(page, "atonce")
        await prompt(page, "first")
        await page.until_text(".message.agent", "One.")
        await page.click("#make")
        await types(page, "anewone")
        await page.click("#list li a")
        await page.until_text(".message.agent", "One.")
        await types(page, "openedagain")
        await page.resize(380, 800)
        await page.click("#menu")
        await page.until("document.activeElement.dataset.session")
        await page.press("Escape")
        await types(page, "closed")


async def test_a_question_that_goes_away_leaves_other_fields_alone(page: Tab, serve: Serve) -> None:
    async with serve([RUN, {"say": "Done."}]) as served:
        await enter(page, served)
        await prompt(page, "go")
        await page.until("document.querySelector('#question button:not(:disabled)')")
        await page.js("document.querySelector('[data-option=mode]').focus()")
        await page.press("1", ALT)
        await page.until(GONE)
        assert await page.js("document.activeElement.dataset.option") == "mode"


MODEL = "document.querySelector('[data-option=model]')"
ANOTHER = f"(() => {{ const list = {MODEL}; list.value = ''; list.dispatchEvent(new Event('change')); }})()"


@pytest.mark.parametrize("when", ["before the session", "in the session"])
async def test_after_naming_a_model(page: Tab, serve: Serve, when: str) -> None:
    async with serve([{"say": "One."}]) as served:
        await enter(page, served)
        await page.click("#make")
        if when == "in the session":
            await prompt(page, "first")
            await page.until_text(".message.agent", "One.")
        await page.until(MODEL)
        await page.js(ANOTHER)
        await page.type("nosuch/one")
        await page.press("Enter")
        await types(page, "abc")
        if when == "in the session":
            await page.until_text("#trouble", "There is no model nosuch/one.")
            await page.until(f"{MODEL}?.value === 'script'")
            await types(page, "def")


async def test_an_option_that_was_chosen_keeps_the_focus(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "One."}]) as served:
        await enter(page, served)
        await prompt(page, "first")
        await page.until_text(".message.agent", "One.")
        await page.js("document.querySelector('[data-option=mode]').focus()")
        await page.js("document.activeElement.value = 'plan'")
        await page.js("document.activeElement.dispatchEvent(new Event('change'))")
        await page.until('sessionStorage.dragoman.includes(\'"currentValue":"plan"\')')  # it was accepted
        await page.js("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        assert await page.js("document.activeElement.dataset.option") == "mode"
        await page.js(ANOTHER)
        await page.press("Escape")
        assert await page.js("document.activeElement.dataset.option") == "model"


async def test_a_choice_that_is_accepted_takes_away_the_trouble_of_the_one_before(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "One."}]) as served:
        await enter(page, served)
        await prompt(page, "first")
        await page.until_text(".message.agent", "One.")
        await page.until(MODEL)
        await page.js(ANOTHER)
        await page.type("nosuch/one")
        await page.press("Enter")
        await page.until_text("#trouble", "There is no model nosuch/one.")
        await page.js(
            "{ const list = document.querySelector('[data-option=mode]'); list.value = 'plan';"
            " list.dispatchEvent(new Event('change')); }"
        )
        await page.until("document.querySelector('#trouble').hidden")
