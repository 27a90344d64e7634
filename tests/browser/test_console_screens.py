"""Every screen around sessions: what axe-core finds in both themes, and whether it fits a telephone and a desk."""

import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.console_api import ConsoleApi
from tests.support.gateway import Served

from .chrome import Tab
from .console import asked, enter, show, two_agents
from .measures import boxes_beside, set_theme, wcag_violations

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

# Each screen, and what has to be there before it is looked at.
SCREENS: Final = {
    "inbox": ".inbox .choice:not(:disabled)",
    "sessions": ".rows .row",
    "settings": ".settings .plain-list li",
    "admin": ".admin .table",
    "admin/metrics": ".plots .plot",
    "admin/tokens": ".admin .table",
    "admin/decisions": ".admin form",
}
# What is opened on a screen, by which button, and the screen.
DIALOGS: Final = {
    "sessions": (".rows [aria-haspopup=menu]", "[role=menu]"),
    "admin/tokens": ("role=button[name='New token']", ".dialog"),
}


async def with_all(served: Served) -> None:
    """A link and a webhook, so that their lists are not empty."""
    api = ConsoleApi(served)
    session = next(iter(served.hub.sessions))
    await api.answer("shares", {"sessionId": session, "expires": time.time() + 3600, "label": "for Ada"})
    await api.answer("webhooks", {"url": "https://hooks.example.com/dragoman"})


# Each theme and each width once with the fast tests, the other two pairs with the slow ones.
LOOKS: Final = (
    ("light", 1280),
    ("dark", 390),
    pytest.param("light", 390, marks=pytest.mark.slow),
    pytest.param("dark", 1280, marks=pytest.mark.slow),
)


@pytest.mark.parametrize(("theme", "width"), LOOKS)
async def test_every_screen_meets_wcag_and_fits(page: Tab, tmp_path: Path, theme: str, width: int) -> None:
    async with two_agents(tmp_path) as served, asked(served, "main", tmp_path), asked(served, "second", tmp_path):
        await set_theme(page, theme)
        await page.resize(width, 844, phone=width < 500)
        await enter(page, served)
        await page.until("document.querySelector('#waiting')")
        await with_all(served)
        for screen, there in SCREENS.items():
            await show(page, screen)
            await page.until(f"document.querySelector({there!r})")
            assert (screen, await boxes_beside(page)) == (screen, [])
            assert (screen, await wcag_violations(page)) == (screen, [])


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
async def test_what_is_opened_on_a_screen_meets_wcag(page: Tab, tmp_path: Path, theme: str) -> None:
    async with two_agents(tmp_path) as served, asked(served, "main", tmp_path):
        await set_theme(page, theme)
        await page.resize(390, 844, phone=True)
        await enter(page, served)
        for screen, (button, opened) in DIALOGS.items():
            await show(page, screen)
            await page.click(button)
            await page.until(f"document.querySelector({opened!r})")
            assert (screen, await wcag_violations(page)) == (screen, [])
            await page.press("Escape")
            await page.until(f"!document.querySelector({opened!r})")
        await show(page, "")
        await page.click("#browse")
        await page.until("document.querySelector('.folder-picker li button')")
        assert await wcag_violations(page) == []
        assert await boxes_beside(page) == []


async def test_on_a_telephone_the_navigation_is_a_drawer_over_the_page(page: Tab, tmp_path: Path) -> None:
    async with two_agents(tmp_path) as served, asked(served, "main", tmp_path):
        await page.resize(390, 844, phone=True)
        await enter(page, served)
        await page.click("#menu")
        frame = "document.querySelector('.frame').getBoundingClientRect()"
        await page.until("document.querySelector('nav#sessions').getBoundingClientRect().width > 200")
        assert await page.js(f"[{frame}.width, {frame}.height]") == [390, 844]
        assert await boxes_beside(page) == []
        await page.click("nav >> role=link[name=/Inbox/]")
        await page.until("document.querySelector('.inbox .choice')")
        assert await page.js("document.querySelector('nav#sessions').getBoundingClientRect().width") == 0
