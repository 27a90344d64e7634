"""What is measured of a page: rules of WCAG that it breaks, boxes that do not fit, tasks of the thread that draws."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from tools import console

from .chrome import Tab

AXE = console.MODULES / "axe-core" / "axe.min.js"
# WCAG 2.2 at levels A and AA: what axe-core can see of it.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
THEMES = ("light", "dark")
# A telephone, a tablet upright, a laptop, a screen, and a wide one.
WIDTHS = (390, 768, 1280, 1920, 2560)


async def set_theme(page: Tab, theme: str) -> None:
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])


async def wcag_violations(page: Tab, rules: list[str] | None = None) -> list[str]:
    """What axe-core finds in the page as it is: the rule, how often, the first element, and why. All of WCAG 2.2 AA
    that it knows, or these rules."""
    if not await page.js("Boolean(window.axe)"):
        await page.js(f"{AXE.read_text()}; null")  # by the protocol: the policy of the page forbids it to pages
    only = {"type": "tag", "values": RULES} if rules is None else {"type": "rule", "values": rules}
    options = msgspec.json.encode({"runOnly": only, "resultTypes": ["violations"]}).decode()
    found = await page.js(f"axe.run({options})")
    return [_sentence(one) for one in found["violations"]]


def _sentence(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    return f"{violation['id']}: {len(nodes)} × {nodes[0]['html'][:200]} {nodes[0]['failureSummary']}"


async def boxes_beside(page: Tab) -> list[str]:
    """Elements that reach over the right edge of the window, unless a box around them scrolls or hides them."""
    found: list[str] = await page.js(
        """(() => {
          const cut = (e) => { for (let p = e.parentElement; p; p = p.parentElement)
            if (getComputedStyle(p).overflowX !== 'visible') return true; return false; };
          const over = [...document.body.querySelectorAll('*')].filter((e) => {
            const box = e.getBoundingClientRect();
            return box.width > 1 && box.right > innerWidth + 1 && !cut(e); });
          const page = document.documentElement.scrollWidth > innerWidth ? ['the page scrolls sideways'] : [];
          return [...page, ...over.slice(0, 5).map((e) => e.outerHTML.slice(0, 150))]; })()"""
    )
    return found


class Task(NamedTuple):
    """One task of the thread that draws; `cpu` is what it worked, `wall` also what it waited for a processor."""

    cpu: float  # milliseconds
    wall: float


@asynccontextmanager
async def traced(page: Tab) -> AsyncIterator[list[Task]]:
    """The tasks of the page's main thread, longest first, once the block is over."""
    browser = page.chrome.browser
    assert browser is not None
    tasks: list[Task] = []
    categories = ["disabled-by-default-devtools.timeline", "devtools.timeline", "toplevel"]
    await page.chrome.do(browser.start_tracing(page=page.page, categories=categories))
    try:
        yield tasks
    finally:
        events = msgspec.json.decode(await page.chrome.do(browser.stop_tracing()))["traceEvents"]
        tasks += await asyncio.to_thread(_tasks, events)


def _tasks(events: list[dict[str, Any]]) -> list[Task]:
    main = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    runs = [event for event in events if event.get("name") == "RunTask" and "dur" in event]
    ours = [event for event in runs if (event["pid"], event["tid"]) in main]
    return sorted((Task(event.get("tdur", 0) / 1000, event["dur"] / 1000) for event in ours), reverse=True)
