"""The list of all sessions: found, renamed, put away, deleted and taken back, looked at side by side."""

from pathlib import Path

import pytest

from dragoman import connect
from dragoman.transports.remote import transport_for
from tests.support.gateway import Served
from tests.support.waiting import until

from .chrome import Tab
from .console import asked, enter, two_agents

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

NAMES = "[...document.querySelectorAll('.rows .name')].map((name) => name.innerText).sort().join()"


async def made(served: Served, agent: str, folder: Path, *prompts: str) -> None:
    """Sessions of an agent, one for each prompt, which is its title."""
    async with connect(transport_for(f"{served.ws}/{agent}", served.token)) as client:
        for prompt in prompts:
            session = await client.new_session(folder)
            await session.set_title(prompt)
            await session.ask("do not ask")


async def titles(served: Served, agent: str) -> list[str]:
    async with connect(transport_for(f"{served.ws}/{agent}", served.token)) as client:
        return sorted(str(info.title) for info in await client.list_sessions())


async def test_sessions_of_every_agent_are_found_and_changed(page: Tab, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    async with two_agents(tmp_path) as served:
        await made(served, "main", tmp_path, "Fix the parser", "Write the docs")
        await made(served, "second", tmp_path / "app", "Deploy")
        await enter(page, served, "sessions")
        await page.until(f"{NAMES} === 'Deploy,Fix the parser,Write the docs'")
        await page.click("role=searchbox")
        await page.type("parser")
        await page.until(f"{NAMES} === 'Fix the parser'")
        await page.click(".rows [aria-haspopup=menu]")
        await page.click("role=menuitem[name='Rename']")
        await page.click("role=textbox[name='Title']")
        await page.press("a", 2)
        await page.type("Parse anew")
        await page.press("Enter")
        await page.until(f"{NAMES} === ''")  # the search does not fit any more
        await page.click("text=Show all")
        await page.until(f"{NAMES} === 'Deploy,Parse anew,Write the docs'")
        assert await titles(served, "main") == ["Parse anew", "Write the docs"]
        # Those of an agent alone.
        await page.js(_choose("Every agent", "second"))
        await page.until(f"{NAMES} === 'Deploy'")
        await page.click(".rows [aria-haspopup=menu]")
        await page.click("role=menuitem[name='Archive']")
        await page.until(f"{NAMES} === ''")
        await page.click("role=button[name='Undo']")
        await page.until(f"{NAMES} === 'Deploy'")


async def test_a_session_is_deleted_when_it_is_not_taken_back(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await made(served, "main", tmp_path, "One", "Two")
        await enter(page, served, "sessions")
        await page.until(f"{NAMES} === 'One,Two'")
        row = ".rows .row:has-text('One')"
        for answer, left in (("Undo", "One,Two"), ("Close", "Two")):
            await page.click(f"{row} [aria-haspopup=menu]")
            await page.click("role=menuitem[name='Delete']")
            await page.until(f"{NAMES} === 'Two'")
            assert await titles(served, "main") == ["One", "Two"]  # not yet
            await page.click(f".toast >> role=button[name='{answer}']")
            await page.until(f"{NAMES} === '{left}'")

        async def is_gone() -> bool:
            return await titles(served, "main") == ["Two"]

        while not await is_gone():
            await page.until("true")


async def test_a_session_that_waits_is_found_by_that(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await made(served, "main", tmp_path, "Quiet")
        async with asked(served, "main", tmp_path, "Loud"):
            await enter(page, served, "sessions")
            await page.until(f"{NAMES} === 'Loud,Quiet'")
            await page.js(_choose("All", "waiting"))
            await page.until(f"{NAMES} === 'Loud'")
            assert await page.text(".rows .mark.waits") == "asks"


async def test_two_sessions_are_worked_in_side_by_side(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await made(served, "main", tmp_path, "Left", "Right")
        await enter(page, served, "sessions")
        await page.until(f"{NAMES} === 'Left,Right'")
        await page.click(".rows .row:nth-child(1) .choose")
        await page.click(".rows .row:nth-child(2) .choose")
        await page.click("text=Look at 2 side by side")
        await page.until("document.querySelectorAll('.beside form textarea').length === 2")
        column = ".beside > section:nth-child(2)"
        await page.click(f"{column} textarea")
        await page.type("now ask")
        await page.press("Enter")
        await page.click(f"{column} .asked .choice.allow:not(:disabled)")
        await page.until(f"document.querySelector('{column} .story').innerText.includes('yes')")
        assert "yes" not in await page.text(".beside > section:nth-child(1) .story")
        await until(lambda: not served.hub.sessions or not any(one.is_running for one in served.hub.sessions.values()))


def _choose(shown: str, value: str) -> str:
    """Choose in the list that has this as its first choice."""
    return f"""(() => {{ const list = [...document.querySelectorAll('.filters select')]
        .find((one) => one.options[0].text === '{shown}');
    list.value = '{value}'; list.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"""


async def test_the_session_that_is_shown_is_renamed_in_its_header(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await made(served, "main", tmp_path, "Old name")
        await enter(page, served)
        await page.click("#list a")
        await page.until_text("#transcript", "nothing was asked")
        await page.click("#tools [aria-haspopup=menu]")
        await page.click("role=menuitem[name='Rename']")
        await page.click("role=textbox[name='Title']")
        await page.press("a", 2)
        await page.type("New name")
        await page.press("Enter")
        await page.until_text("#title", "New name")
        await page.until_text("#list", "New name")
        assert await titles(served, "main") == ["New name"]
