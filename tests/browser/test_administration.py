"""Administration on the console: tokens made and revoked, the server and its measurements, and who sees none of it."""

from pathlib import Path

import pytest

from tests.support.console_api import ConsoleApi
from tests.support.waiting import until

from .chrome import Tab
from .console import enter, show, two_agents

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]


async def test_a_token_is_made_used_and_revoked(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await enter(page, served, "admin/tokens")
        await page.click("role=button[name='New token']")
        await page.click("role=textbox[name='Name']")
        await page.type("phone")
        await page.click("role=button[name='Make the token']")
        await page.until("document.querySelector('.link input')")
        token = str(await page.js("document.querySelector('.link input').value"))
        phone = ConsoleApi(served, token)
        assert (await phone.get("activity")).status_code == 200
        assert (await phone.get("tokens")).status_code == 403
        await page.click("text=I have it")
        assert token not in await page.text("body")
        await page.click("role=button[name='Revoke phone']")
        await page.click(".dialog >> role=button[name='Revoke']")
        await page.until("!document.querySelector('[aria-label=\"Principal phone\"]')")
        assert (await phone.get("activity")).status_code == 401


async def test_the_server_its_agents_and_its_measurements_are_shown(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await enter(page, served, "admin")
        await page.until_text("main:not([hidden]) table", "main")
        await page.until_text("main:not([hidden])", "This server is alone")
        assert "second" in await page.text("main:not([hidden]) table")
        await show(page, "admin/metrics")
        await page.until("document.querySelectorAll('.plot').length === 10")
        await page.until(
            "[...document.querySelectorAll('.plot')].some((one) => /Connections\\s+1/.test(one.innerText))"
        )
        await show(page, "admin/decisions")
        await page.until_text("main:not([hidden])", "No decisions are recorded yet")


async def test_a_login_without_admin_is_neither_offered_nor_shown_any_of_it(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await enter(page, served, "admin/tokens", served.token_of("ada", ("read", "prompt")))
        await page.until_text("main:not([hidden])", "This screen needs a login with the scope admin")
        assert "Administration" not in await page.text("nav")


async def test_who_revokes_the_own_token_is_logged_out(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served:
        await enter(page, served, "admin/tokens")
        await page.click("role=button[name='Revoke default']")
        await page.until_text(".dialog", "you will be logged out")
        await page.click(".dialog >> role=button[name='Revoke']")
        await until(lambda: not served.tokens.all())
        await page.until("document.querySelector('#login')?.hidden === false")
