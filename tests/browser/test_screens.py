"""Every screen of the console, as a person comes to it: WCAG in both themes, and nothing over the edge at any width."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.gateway import Served

from .chrome import Tab
from .conftest import Serve
from .measures import THEMES, WIDTHS, boxes_beside, set_theme, wcag_violations

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
ALLOW = "#question button:not(:disabled)[data-option=allow_once]"


@asynccontextmanager
async def opened(page: Tab, serve: Serve, tmp_path: Path) -> AsyncIterator[Served]:
    """The console, before a login, of a server whose agent does a little of everything."""
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\n")
    usage = {"usage": {"input": 12, "output": 34, "cost": 0.0125}}
    async with serve([*TURN, {"say": "Done."}, usage], window=1000) as served:
        await page.go(f"http://127.0.0.1:{served.server.port}/console/")
        await page.until("document.querySelector('#token')?.offsetParent")
        yield served


async def walk(page: Tab, served: Served, look: Callable[[str], Awaitable[None]]) -> list[str]:
    """Go to every screen; `look` is called on each with its name. Returns the names."""
    names: list[str] = []

    async def at(name: str) -> None:
        names.append(name)
        await look(name)

    await at("login")
    await page.go("about:blank")
    await page.go(f"http://127.0.0.1:{served.server.port}/console/#token={served.token}")
    await page.until("document.querySelector('#start .examples')")
    await at("start")
    await page.click("#browse")
    await page.until("document.querySelector('dialog[open]')")
    await at("folders")
    await page.press("Escape")
    await page.until("!document.querySelector('dialog[open]')")
    await page.click("#prompt")
    await page.type("please go on")
    await page.press("Enter")
    await page.until("document.querySelector('#question .patch .added')")
    await at("permission")
    await page.click(ALLOW)
    await page.until_text("#question", "touch b")
    await at("permission-command")
    await visit(page, "inbox", ".inbox #inbox-title, .inbox article h2")
    await at("inbox-with-question")
    await page.js("history.back()")
    await page.until_text("#question", "touch b")
    await page.click(ALLOW)
    await page.until_text("#transcript", "Done.")
    await page.until("document.querySelector('#transcript .hljs-keyword')")
    await at("conversation")
    session = await page.js("location.hash.split('/').pop()")
    for name in await page.js("[...document.querySelectorAll('.places a')].map((link) => link.hash.slice(2))"):
        await visit(page, name, READY[name])
        await at(name)
    for part in await page.js("[...document.querySelectorAll('.admin .tabs a')].map((link) => link.hash.slice(2))"):
        await visit(page, part, ".admin [aria-current=page]")
        await at(part.replace("/", "-"))
    await visit(page, f"beside/{session}/none", ".beside section")
    await at("beside")
    await visit(page, "sessions", READY["sessions"])
    await page.click(".row [aria-haspopup=menu]")
    await at("menu")
    await page.press("Escape")
    for label in ("Rename", "Share"):
        await page.click(".row [aria-haspopup=menu]")
        await page.chrome.do(page.page.get_by_role("menuitem", name=label).first.click())
        await page.until("document.querySelector('dialog[open]')")
        await at(label.lower())
        await page.press("Escape")
        await page.until("!document.querySelector('dialog[open]')")
    return names


async def visit(page: Tab, name: str, ready: str) -> None:
    """Go to a screen by its address, until it is drawn and waits for nothing."""
    await page.js(f"location.hash = '#/{name}'")
    await page.until(f"document.querySelector({ready!r}) && !{WAITS}")


@pytest.mark.parametrize("theme", THEMES)
async def test_every_screen_meets_wcag(page: Tab, serve: Serve, tmp_path: Path, theme: str) -> None:
    await set_theme(page, theme)
    found: dict[str, list[str]] = {}

    async def look(name: str) -> None:
        await page.picture(f"screen-{name}-{theme}")
        found[name] = await wcag_violations(page)

    async with opened(page, serve, tmp_path) as served:
        names = await walk(page, served, look)
    wrong = [f"{name}: {one}" for name, all_of in found.items() for one in all_of]
    assert not wrong, "\n\n".join(wrong)
    assert {"login", "start", "permission", "conversation", "inbox", "sessions", "settings", "admin"} <= set(names)


async def test_no_screen_reaches_over_the_edge_from_390_to_2560_pixels(page: Tab, serve: Serve, tmp_path: Path) -> None:
    found: dict[str, list[str]] = {}

    async def look(name: str) -> None:
        for width in WIDTHS:
            await page.resize(width, 844)
            if width == WIDTHS[0]:
                await page.picture(f"screen-{name}-phone")
            wrong = await boxes_beside(page)
            if wrong:
                found[f"{name} at {width}"] = wrong
        await page.resize(1100, 800)

    async with opened(page, serve, tmp_path) as served:
        await walk(page, served, look)
    assert found == {}
