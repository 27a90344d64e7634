"""Every screen of the console, as a person comes to it: WCAG in both themes, and nothing over the edge at any width."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.gateway import Served

from .chrome import DESK, Tab
from .conftest import Serve
from .measures import WIDTHS, boxes_beside, set_theme, wcag_violations

Look = Callable[[str], Awaitable[None]]

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

ANSWER = """# What I found

The **login** refuses a `token` that has *ended*; see https://example.test/x.

1. Read the file:
   ```python
   def read(path: Path) -> str:
       return path.read_text()  # may raise
   ```
2. Then:
   - [x] find the cause
   - [ ] write a test

| Case | Before | After |
|:-----|-------:|:-----:|
| ended | 200 | **401** |
"""
PLAN = [
    {"content": "Change the file", "status": "in_progress", "priority": "high"},
    {"content": "Run it", "status": "pending", "priority": "low"},
]
EDIT = {"call": "edit_file", "input": {"path": "a.txt", "old_string": "two", "new_string": "TWO"}}
COMMAND = {"call": "bash", "input": {"command": "touch b && printf '\\033[31mred\\033[0m end\\n'"}}
TURN = [{"think": "Let me look. "}, {"say": ANSWER}, {"call": "update_plan", "input": {"entries": PLAN}}, EDIT, COMMAND]
# What a screen has when it is there. A screen that is not here yet fails the walk, so that it gets a line.
READY = {
    "inbox": ".inbox, .nothing",
    "sessions": ".all-sessions .row",
    "settings": ".settings",
    "admin": ".admin .tabs",
}
WAITS = "[...document.querySelectorAll('[role=status]')].some((one) => /^(Loading|Looking|Asking)/.test(one.innerText))"
# What is asked is seen, whatever the number of its answers: all of it, or a good part of the window.
FACTS = """(({ clientHeight, scrollHeight }) =>
  clientHeight > 30 && clientHeight >= Math.min(scrollHeight, innerHeight / 3)
)(document.querySelector('#question > .subject'))"""
ALLOW = "#question button:not(:disabled)[data-option=allow_once]"


@asynccontextmanager
async def opened(page: Tab, serve: Serve, tmp_path: Path) -> AsyncIterator[Served]:
    """The console, before a login, of a server whose agent does a little of everything."""
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\n")
    usage = {"usage": {"input": 12, "output": 34, "cost": 0.0125}}
    async with serve([*TURN, {"say": "Done."}, usage], window=1000) as served:
        await page.go(f"http://127.0.0.1:{served.server.port}/")
        await page.until("document.querySelector('#token')?.offsetParent")
        yield served


async def walk_to_an_answer(page: Tab, served: Served, look: Look) -> None:
    """From the login to the end of the first turn; `look` is called on each screen with its name."""
    await look("login")
    await page.go("about:blank")
    await page.go(f"http://127.0.0.1:{served.server.port}/#token={served.token}")
    await page.until("document.querySelector('#start .examples')")
    await look("start")
    await page.click("#prompt")
    await page.type("please go on")
    await page.press("Enter")
    await page.until("document.querySelector('#question .patch .added')")
    await page.until(f"document.querySelector('{ALLOW}')")
    await look("permission")
    await page.click(ALLOW)
    await page.until_text("#question", "touch b")
    await page.until(f"document.querySelector('{ALLOW}')")
    await look("permission-command")
    await page.click(ALLOW)
    await page.until_text("#transcript", "Done.")
    await page.until("document.querySelector('#transcript .hljs-keyword')")
    await look("conversation")


async def walk_around(page: Tab, look: Look) -> None:
    """Every other screen, and what is opened on them."""
    session = await page.js("location.hash.split('/').pop()")
    for name in await page.js("[...document.querySelectorAll('.places a')].map((link) => link.hash.slice(2))"):
        await visit(page, name, READY[name])
        await look(name)
    for part in await page.js("[...document.querySelectorAll('.admin .tabs a')].map((link) => link.hash.slice(2))"):
        await visit(page, part, ".admin [aria-current=page]")
        await look(part.replace("/", "-"))
    await visit(page, f"beside/{session}/none", ".beside section")
    await look("beside")
    await visit(page, "sessions", READY["sessions"])
    await page.click(".row [aria-haspopup=menu]")
    await look("menu")
    await page.press("Escape")
    for label in ("Rename", "Share"):
        await page.click(".row [aria-haspopup=menu]")
        await page.click(f"role=menuitem >> text={label}")
        await page.until("document.querySelector('dialog[open]')")
        await look(label.lower())
        await page.press("Escape")
        await page.until("!document.querySelector('dialog[open]')")


async def visit(page: Tab, name: str, ready: str) -> None:
    """Go to a screen by its address, until it is drawn and waits for nothing."""
    await page.js(f"location.hash = '#/{name}'")
    await page.until(f"document.querySelector({ready!r}) && !{WAITS}")


class Walk:
    """What was found on the way: a screen is looked at in the light theme, its colours in the dark one, then at each
    width."""

    def __init__(self, page: Tab) -> None:
        self._page = page
        self.names: list[str] = []
        self.found: list[str] = []

    async def look(self, name: str) -> None:
        page = self._page
        self.names.append(name)
        light = await wcag_violations(page)
        await page.picture(f"screen-{name}-light")
        await set_theme(page, "dark")
        dark = await wcag_violations(page, ["color-contrast", "link-in-text-block"])
        await page.picture(f"screen-{name}-dark")
        await set_theme(page, "light")
        self.found.extend(f"{name}: {one}" for one in (*light, *dark))
        if name != "menu":  # which a change of the window closes
            self.found.extend(f"{name} at {width}: {one}" for width, one in await boxes_at_widths(page, name))


async def test_the_screens_of_a_first_turn_meet_wcag_in_both_themes_and_fit_every_width(
    page: Tab, serve: Serve, tmp_path: Path
) -> None:
    walk = Walk(page)
    async with opened(page, serve, tmp_path) as served:
        await walk_to_an_answer(page, served, walk.look)
    assert not walk.found, "\n\n".join(walk.found)
    assert walk.names == ["login", "start", "permission", "permission-command", "conversation"]


@pytest.mark.slow  # test_console_screens.py looks at these screens too, at two widths
async def test_every_other_screen_meets_wcag_in_both_themes_and_fits_every_width(
    page: Tab, serve: Serve, tmp_path: Path
) -> None:
    walk = Walk(page)

    async def pass_by(name: str) -> None:
        assert name

    async with opened(page, serve, tmp_path) as served:
        await walk_to_an_answer(page, served, pass_by)
        await walk_around(page, walk.look)
    assert not walk.found, "\n\n".join(walk.found)
    assert len(walk.names) == 12


async def boxes_at_widths(page: Tab, name: str) -> list[tuple[int, str]]:
    found = []
    for width in WIDTHS:
        await page.resize(width, 844)
        if width == WIDTHS[0]:
            await page.picture(f"screen-{name}-phone")
        found += [(width, one) for one in await boxes_beside(page)]
        if name.startswith("permission") and not await page.js(FACTS):
            found.append((width, "what is asked has no room"))
    await page.resize(DESK["width"], DESK["height"])
    return found
