"""A session is shared by a link, read by a browser without a login, and the link is ended."""

from pathlib import Path

import pytest

from .chrome import Chrome, Tab, tab
from .console import enter, origin, show, two_agents
from .test_all_sessions import NAMES, made

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]


async def test_a_link_shows_one_session_until_it_is_ended(page: Tab, chrome: Chrome, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await made(served, "second", tmp_path, "Shown to others")
        await made(served, "main", tmp_path, "Mine alone")
        await enter(page, served, "sessions")
        await page.until(f"{NAMES} === 'Mine alone,Shown to others'")
        await page.click(".rows .row:has-text('Shown') [aria-haspopup=menu]")
        await page.click("role=menuitem[name='Share']")
        await page.click("role=button[name='Make a link']")
        await page.until("document.querySelector('.link input')")
        link = str(await page.js("document.querySelector('.link input').value"))
        await page.picture("share-dialog")
        assert link.startswith(f"{origin(served)}/")
        async with tab(chrome) as reader:
            await reader.go(link)
            await reader.until_text("#transcript", "nothing was asked")
            assert await reader.text("#title") == "Shown to others"
            assert await reader.js("document.querySelectorAll('textarea, nav, #logout, .choice').length") == 0
            assert "Mine alone" not in await reader.text("body")
            await reader.picture("shared")
            await reader.reload()
            await reader.until_text("#transcript", "nothing was asked")
        # In the browser of its maker it is read too, who stays logged in beside it.
        async with tab(chrome, beside=page) as own:
            await own.go(link)
            await own.until_text("#transcript", "nothing was asked")
        await page.click(".dialog >> role=button[name='Close']")
        await show(page, "settings")
        await page.until_text("main:not([hidden])", "Shown to others")
        await page.click("role=button[name='End Shown to others']")
        await page.until_text("main:not([hidden])", "None are open")
        async with tab(chrome) as late:
            await late.go(link)
            await late.until_text("#login", "This link is over")
