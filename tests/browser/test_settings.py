"""Settings of the console, and the folder of a new session."""

from pathlib import Path

import pytest

from dragoman.gateway.console_api.routes import ConsoleSettings
from tests.support.console_api import asking
from tests.support.gateway import gateway

from .chrome import Tab
from .console import enter, show, two_agents

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

THEME = "getComputedStyle(document.documentElement).colorScheme"


async def test_theme_and_language_of_dates_are_kept_in_this_browser(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await enter(page, served, "settings")
        await page.click("role=radio[name='Dark']")
        await page.until(f"{THEME} === 'dark'")
        await page.js(
            "(() => { const list = document.querySelector('.settings select'); list.value = 'de-DE';"
            " list.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )
        await page.until(r"/Now: \d\d\.\d\d\.\d{4}/.test(document.querySelector('.settings').innerText)")
        await page.reload()
        await page.until(f"{THEME} === 'dark'")
        await page.until(r"/Now: \d\d\.\d\d\.\d{4}/.test(document.querySelector('.settings')?.innerText)")


async def test_a_webhook_is_added_where_it_may_go_and_shows_its_secret_once(page: Tab, tmp_path: Path) -> None:
    console = ConsoleSettings(webhook_origins=["http://127.0.0.1:9"])
    async with gateway(asking(), tmp_path, console=console, logins=tmp_path) as served:
        await enter(page, served, "settings")
        await page.click("role=textbox[name='Address']")
        await page.type("https://10.0.0.5/inside")
        await page.press("Enter")
        await page.until_text(".failure", "10.0.0.5 is not a public address")
        await page.press("a", 2)
        await page.type("http://127.0.0.1:9/hook")
        await page.press("Enter")
        await page.until("document.querySelector('.link input')?.value.startsWith('whsec_')")
        await page.click("role=button[name='Try']")
        await page.until_text(".settings .plain-list", "It cannot be reached")
        await show(page, "inbox")
        await show(page, "settings")
        await page.until_text(".settings .plain-list", "http://127.0.0.1:9/hook")
        assert await page.js("document.querySelector('.link') === null")
        await page.click("role=button[name='Remove http://127.0.0.1:9/hook']")
        await page.until("!document.querySelector('.settings .plain-list li')")


async def test_the_folder_of_a_new_session_is_chosen_from_those_there_are(page: Tab, tmp_path: Path) -> None:
    (tmp_path / "projects" / "parser").mkdir(parents=True)
    (tmp_path / "projects" / "docs").mkdir()
    async with two_agents(tmp_path) as served:
        await enter(page, served)
        await page.js(f"document.querySelector('#folder').value = {str(tmp_path)!r}")
        await page.click("#browse")
        await page.click("role=button[name='projects']")
        await page.until_text(".folder-picker ol", "parser")
        await page.click("role=searchbox")
        await page.type("pars")
        await page.press("Enter")
        await page.until_text(".folder-picker .where", "projects/parser")
        await page.picture("folders")
        await page.click("text=Use this folder")
        await page.until(f"document.querySelector('#folder').value === {str(tmp_path / 'projects' / 'parser')!r}")
