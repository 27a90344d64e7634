"""A session begins with its first prompt: looking, writing and choosing leave none behind."""

from pathlib import Path

import pytest

from dragoman import connect
from dragoman.vocabulary.requests import SessionInfo
from tests.support.gateway import Served
from tests.support.git_repository import repository

from .chrome import Tab
from .conftest import Serve
from .test_page import address, enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

LISTED = "[...document.querySelectorAll('#list li .name')].map((name) => name.innerText)"
CHOOSE = """((name, value) => {{ const list = document.querySelector(`[data-option=${{name}}]`);
    list.value = value; list.dispatchEvent(new Event('change')); }})('{}', '{}')"""


async def stored(served: Served) -> list[SessionInfo]:
    """The sessions that the agent has, as another client is told."""
    async with connect(address(served), token=served.token) as client:
        return await client.list_sessions()


async def test_looking_writing_and_choosing_make_no_session(page: Tab, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with serve([{"say": "Heard."}]) as served:
        await enter(page, served)
        await page.click("#prompt")
        for text in ("/", "a", " long prompt"):
            await page.type(text)
        await page.reload()
        await page.until("document.querySelector('#prompt').value === '/a long prompt'")
        assert await stored(served) == []
        await page.fill("#folder", str(tmp_path / "other"))
        await page.click("#make")
        await page.until("document.querySelector('[data-option=mode]')")
        await page.js(CHOOSE.format("mode", "read-only"))
        assert await page.js(LISTED) == []
        assert await stored(served) == []

        # A reload loses nothing of it, and sending makes the session that was described.
        await page.reload()
        await page.until("document.querySelector('[data-option=mode]')?.value === 'read-only'")
        assert await page.js("document.querySelector('#folder').value") == str(tmp_path / "other")
        assert await page.js("document.querySelector('#prompt').value") == "/a long prompt"
        await page.js("document.querySelector('#prompt').value = ''")
        await prompt(page, "/mode")
        await page.until_text(".message.agent", "The mode is read-only.")
        (session,) = await stored(served)
        assert session.cwd == str(tmp_path / "other")
        assert await page.js("document.querySelector('[data-option=mode]').value") == "read-only"


async def test_a_choice_that_is_refused_keeps_the_prompt_and_makes_no_session(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "Heard."}]) as served:
        await enter(page, served)
        await page.click("#make")
        mode = "document.querySelector('[data-option=mode]')"
        await page.until(mode)
        await page.js(f"{mode}.options[0].value = 'nonsense'")
        await page.js(CHOOSE.format("mode", "nonsense"))
        await prompt(page, "go on")
        await page.until("!document.querySelector('#trouble').hidden")
        assert await page.js("document.querySelector('#prompt').value") == "go on"
        assert await page.js(LISTED) == []
        assert await page.text(".message") == ""
        assert await stored(served) == []


async def test_a_choice_that_a_new_session_does_not_offer_any_more_sends_nothing(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "Heard."}]) as served:
        await enter(page, served)
        await page.click("#make")
        await page.until("document.querySelector('[data-option=mode]')")
        # What an earlier server offered, as this browser remembers it.
        await page.js(
            "localStorage.setItem('dragoman-options', "
            'localStorage.getItem(\'dragoman-options\').replace(\'"configId":"mode"\', \'"configId":"gone"\'))'
        )
        await page.reload()
        await page.until("document.querySelector('[data-option=gone]')")
        await page.js(CHOOSE.format("gone", "plan"))
        await prompt(page, "go on")
        await page.until_text("#trouble", "no option gone")
        assert await page.js("document.querySelector('#prompt').value") == "go on"
        assert await stored(served) == []


async def test_a_folder_that_is_not_there_keeps_the_prompt(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "Heard."}]) as served:
        await enter(page, served)
        await page.fill("#folder", "/no/such/folder")
        await prompt(page, "go on")
        await page.until("!document.querySelector('#trouble').hidden")
        assert await page.js("document.querySelector('#prompt').value") == "go on"
        assert await stored(served) == []


async def test_sessions_that_were_never_used_are_not_in_the_list(page: Tab, serve: Serve, tmp_path: Path) -> None:
    async with serve([{"say": "Heard."}]) as served:
        async with connect(address(served), token=served.token) as client:
            await client.new_session(tmp_path / "work")
            used = await client.new_session(tmp_path / "work")
            await used.ask("hello")
            ordered = await client.new_session(tmp_path / "work")
            await ordered.ask("/mode")
        await enter(page, served)
        await page.until("document.querySelectorAll('#list li').length > 0")
        assert sorted(await page.js(LISTED)) == ["Untitled", "hello"]


async def test_a_session_can_begin_in_a_worktree_of_its_own(page: Tab, serve: Serve, tmp_path: Path) -> None:
    project = repository(tmp_path / "shop")
    async with serve([{"say": "Heard."}]) as served:
        await enter(page, served)
        await page.fill("#folder", str(project))
        await page.click("#worktree")
        await prompt(page, "/mode")
        await page.until_text(".message.agent", "The mode is")
        (session,) = await stored(served)
        assert session.cwd == f"{project}.worktrees/task-1"
        await page.click("#make")
        await page.until("document.querySelector('#worktree')")
        assert await page.js("document.querySelector('#worktree').checked") is False
