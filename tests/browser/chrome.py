"""Chromium, driven by Playwright: a browser that tests share, and a tab with its own cookies for each.

What a person does is done with the browser's own mouse and keyboard, so what cannot be reached cannot be clicked.
Playwright lives on an event loop in a thread of its own, because each test has another loop.
"""

import asyncio
import base64
import re
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from playwright.async_api import (
    Browser,
    BrowserContext,
    CDPSession,
    Dialog,
    Error,
    Page,
    Playwright,
    ViewportSize,
    async_playwright,
)

CONSOLE = Path(__file__).resolve().parents[2] / "console"
ARTIFACTS = Path(__file__).resolve().parents[2] / "build" / "browser"
FLAGS = ["--disable-gpu", "--no-proxy-server"]
WAIT_SECONDS = 30.0
# How long a question cannot be answered yet. A test has no finger that was on its way, and does not wait for one.
STILL = re.search(r"const STILL = (\d+);", (CONSOLE / "src" / "conversation" / "Question.tsx").read_text())
HURRY = """{ const wait = setTimeout;
window.setTimeout = (work, time, ...more) => wait(work, time === %s ? 20 : time, ...more); }"""
DESK: ViewportSize = {"width": 1100, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
CONTROL, ALT = 2, 1
MODIFIERS = {0: "", CONTROL: "Control+", ALT: "Alt+"}

T = TypeVar("T")


class Chrome:
    """A browser, and the loop on which Playwright speaks with it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="playwright", daemon=True)
        self._playwright: Playwright | None = None
        self.browser: Browser | None = None

    def start(self, program: str) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._launch(program), self._loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """What Playwright is asked to do, from the loop of a test."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _launch(self, program: str) -> None:
        self._playwright = await async_playwright().start()
        self.browser = await self._playwright.chromium.launch(executable_path=program, args=FLAGS)

    async def _end(self) -> None:
        if self.browser is not None:
            await self.browser.close()
        if self._playwright is not None:
            await self._playwright.stop()


@contextmanager
def browser(program: str) -> Iterator[Chrome]:
    chrome = Chrome()
    try:
        chrome.start(program)
        yield chrome
    finally:
        chrome.stop()


class Tab:
    """One page. `complaints` is what the browser had to say: errors of scripts, and what the policy forbade."""

    def __init__(self, chrome: Chrome) -> None:
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        self.chrome = chrome
        self.context: BrowserContext  # whose cookies and storage these are
        self.page: Page
        self._protocol: CDPSession

    # -- what a person does ------------------------------------------------------------------------------------------

    async def go(self, url: str) -> None:
        await self.chrome.do(self.page.goto(url))

    async def reload(self) -> None:
        """What was there before is gone when this returns."""
        await self.chrome.do(self.page.reload())

    async def click(self, selector: str) -> None:
        """The middle of the first of them, once it can be clicked: seen, at rest, enabled, and on top."""
        await self.chrome.do(self.page.locator(selector).first.click())

    async def type(self, text: str) -> None:
        """Into what has the focus."""
        await self.chrome.do(self.page.keyboard.insert_text(text))

    async def fill(self, selector: str, text: str) -> None:
        """In the place of what stands in a field."""
        await self.click(selector)
        await self.js(f"{_find(selector)}.select()")
        await self.type(text)

    async def press(self, key: str, modifiers: int = 0) -> None:
        await self.chrome.do(self.page.keyboard.press(MODIFIERS[modifiers] + key))

    async def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )

    async def picture(self, name: str) -> None:
        """Kept for people to look at."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        # By the protocol itself: Playwright's own way gives the page another size.
        shot = await self.call("Page.captureScreenshot", format="png")
        (ARTIFACTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    # -- what a test sees --------------------------------------------------------------------------------------------

    async def js(self, expression: str) -> Any:
        """The value of an expression; promises are waited for."""
        return await self.chrome.do(self.page.evaluate(expression))

    async def text(self, selector: str) -> str:
        """What can be read in the first of them; empty where there is none."""
        return str(await self.js(f"{_find(selector)}?.innerText ?? ''")).strip()

    async def until(self, expression: str, seconds: float = WAIT_SECONDS) -> None:
        """Until it is true of the page; fails after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    if await self._is_true(expression):
                        return
                    await asyncio.sleep(0.02)
        except TimeoutError:
            await self.picture("failure")
            seen = await self.js("document.body.innerText")
            raise AssertionError(f"never true: {expression}\n{seen}\n{self.complaints}") from None

    async def until_text(self, selector: str, wanted: str) -> None:
        await self.until(f"({_find(selector)}?.innerText ?? '').includes({msgspec.json.encode(wanted).decode()})")

    async def _is_true(self, expression: str) -> bool:
        try:
            return bool(await self.js(f"Boolean({expression})"))
        except Error:
            return False  # there is no page just now, or not all of it

    # -- the protocol below ------------------------------------------------------------------------------------------

    async def call(self, method: str, **params: Any) -> Any:
        return await self.chrome.do(self._protocol.send(method, params))

    async def open(self, beside: "Tab | None", *, patient: bool, phone: bool) -> None:
        await self.chrome.do(self._open(beside, patient, phone))

    async def close(self, *, with_context: bool) -> None:
        await self.chrome.do(self.context.close() if with_context else self.page.close())

    async def _open(self, beside: "Tab | None", patient: bool, phone: bool) -> None:
        assert self.chrome.browser is not None
        if beside is None:
            self.context = await self.chrome.browser.new_context(
                viewport=PHONE if phone else DESK, is_mobile=phone, has_touch=phone, reduced_motion="reduce"
            )
            self.context.set_default_timeout(WAIT_SECONDS * 1000)
        else:
            self.context = beside.context
        self.page = await self.context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self._protocol = await self.context.new_cdp_session(self.page)
        self._protocol.on("Log.entryAdded", lambda event: self._note(event["entry"]))
        await self._protocol.send("Log.enable")
        if not patient:
            assert STILL is not None
            await self.page.add_init_script(HURRY % STILL[1])

    def _note(self, entry: dict[str, Any]) -> None:
        if entry["level"] == "error" and entry["source"] != "network":  # a refused request is no mistake of the page
            self.complaints.append(entry["text"])

    async def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        await dialog.dismiss()


@asynccontextmanager
async def tab(
    chrome: Chrome, *, patient: bool = False, phone: bool = False, beside: Tab | None = None
) -> AsyncIterator[Tab]:
    """A tab with cookies of its own, or with those of another tab; a patient one waits before a question can be
    answered; on a phone there is a finger and no mouse. A page that has made the browser complain fails the test."""
    opened = Tab(chrome)
    await opened.open(beside, patient=patient, phone=phone)
    try:
        yield opened
        assert opened.complaints == [], opened.complaints
        assert opened.dialogs == []
    finally:
        # One beside another is closed alone, or it stays in front of the other, which is not drawn then.
        await opened.close(with_context=beside is None)


def _find(selector: str) -> str:
    return f"document.querySelector({msgspec.json.encode(selector).decode()})"
