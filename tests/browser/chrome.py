"""A real browser, driven by the DevTools protocol: a process that tests share, and a tab with its own cookies for each.

What a person does is done with the browser's own mouse and keyboard, so what cannot be reached cannot be clicked.
"""

import asyncio
import base64
import itertools
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from dragoman import gateway

PAGE = Path(gateway.__file__).parent / "page"
ARTIFACTS = Path(__file__).resolve().parents[2] / "build" / "browser"
FLAGS = [
    *("--headless=new", "--remote-debugging-port=0", "--no-first-run", "--no-default-browser-check", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-extensions", "--no-proxy-server", "--mute-audio", "--force-prefers-reduced-motion"),
]
START_SECONDS = 30.0
WAIT_SECONDS = 30.0
# How long a question cannot be answered yet. A test has no finger that was on its way, and does not wait for one.
STILL = re.search(r"const STILL = (\d+);", (PAGE / "question.js").read_text())
HURRY = """{ const wait = setTimeout;
window.setTimeout = (work, time, ...more) => wait(work, time === %s ? 20 : time, ...more); }"""
KEYS = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Tab": ("Tab", 9, "")}
CONTROL, ALT = 2, 1


@contextmanager
def browser(program: str) -> Iterator[str]:
    """A browser; the address at which it is driven."""
    with tempfile.TemporaryDirectory(prefix="dragoman-browser-", ignore_cleanup_errors=True) as folder:
        as_root = ["--no-sandbox"] if os.getuid() == 0 else []
        command = [program, *FLAGS, *as_root, f"--user-data-dir={folder}", "about:blank"]
        environment = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
        with (Path(folder) / "said").open("wb") as said:
            process = subprocess.Popen(command, stdout=said, stderr=said, env=environment, start_new_session=True)
        try:
            yield _address(process, Path(folder))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _address(process: "subprocess.Popen[bytes]", folder: Path) -> str:
    """It is in a file of the profile as soon as a client may connect."""
    file = folder / "DevToolsActivePort"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.02)
    raise AssertionError(f"the browser did not start: {(folder / 'said').read_bytes()[-2000:]!r}")


class Tab:
    """One page. `complaints` is what the browser had to say: errors of scripts, and what the policy forbade."""

    def __init__(self, socket: ClientConnection) -> None:
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        self._socket = socket
        self.context = ""  # whose cookies and storage these are
        self._session = ""
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    # -- what a person does ------------------------------------------------------------------------------------------

    async def go(self, url: str) -> None:
        await self.call("Page.navigate", url=url)
        await self.until("location.protocol === 'http:' && document.readyState === 'complete'")

    async def reload(self) -> None:
        """What was there before is gone when this returns."""
        await self.js("window.before = true")
        await self.call("Page.reload")
        await self.until("window.before === undefined && document.readyState === 'complete'")

    async def click(self, selector: str) -> None:
        """The middle of it, where it must be what lies on top."""
        await self.until(f"{_find(selector)} && !{_find(selector)}.disabled")
        x, y, hit = await self.js(
            f"(() => {{ const e = {_find(selector)}; e.scrollIntoView({{block: 'nearest'}});"
            " const r = e.getBoundingClientRect(); const x = r.x + r.width / 2, y = r.y + r.height / 2;"
            " const top = document.elementFromPoint(x, y); return [x, y, e === top || e.contains(top)]; })()"
        )
        assert hit, f"{selector} is covered"
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def type(self, text: str) -> None:
        """Into what has the focus."""
        await self.call("Input.insertText", text=text)

    async def press(self, key: str, modifiers: int = 0) -> None:
        name, code, text = KEYS.get(key) or (key, ord(key.upper()), key)
        physical = f"Digit{key}" if key.isdigit() else name
        event = {"key": name, "code": physical, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text="" if modifiers else text, **event)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    async def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )

    async def picture(self, name: str) -> None:
        """Kept for people to look at."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        shot = await self.call("Page.captureScreenshot", format="png")
        (ARTIFACTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    # -- what a test sees --------------------------------------------------------------------------------------------

    async def js(self, expression: str) -> Any:
        """The value of an expression; promises are waited for."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def text(self, selector: str) -> str:
        """What can be read in the first of them; empty where there is none."""
        return str(await self.js(f"{_find(selector)}?.innerText ?? ''")).strip()

    async def until(self, expression: str) -> None:
        """Until it is true of the page."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
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
        except AssertionError:
            return False  # there is no page just now, or not all of it

    # -- the protocol ------------------------------------------------------------------------------------------------

    async def call(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send(msgspec.json.encode(message).decode())
        async with asyncio.timeout(WAIT_SECONDS):
            return await future

    async def attach(self, context: str, *, patient: bool) -> None:
        if not context:
            made = await self.call("Target.createBrowserContext", disposeOnDetach=True)
            context = made["browserContextId"]
        self.context = context
        target = await self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.resize(1100, 800)
        if not patient:
            assert STILL is not None
            await self.call("Page.addScriptToEvaluateOnNewDocument", source=HURRY % STILL[1])

    async def hear(self) -> None:
        async for data in self._socket:
            message = msgspec.json.decode(data)
            if "id" in message:
                future = self._waiting.pop(message["id"])
                if "error" in message:
                    future.set_exception(AssertionError(message["error"]))
                else:
                    future.set_result(message["result"])
            else:
                self._note(message["method"], message["params"])

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            entry = params["entry"]
            if entry["source"] != "network":  # a refused request is no mistake of the page
                self.complaints.append(entry["text"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])


@asynccontextmanager
async def tab(address: str, *, patient: bool = False, beside: Tab | None = None) -> AsyncIterator[Tab]:
    """A tab with cookies of its own, or with those of another tab; a patient one waits before a question can be
    answered. A page that has made the browser complain fails the test."""
    async with connect(address, compression=None, proxy=None, max_size=None) as socket:
        opened = Tab(socket)
        hearing = asyncio.create_task(opened.hear())
        try:
            await opened.attach("" if beside is None else beside.context, patient=patient)
            yield opened
            assert opened.complaints == [], opened.complaints
            assert opened.dialogs == []
            if beside is not None:
                await opened.call("Page.close")  # or it stays in front of the other, which is not drawn then
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)


def _find(selector: str) -> str:
    return f"document.querySelector({msgspec.json.encode(selector).decode()})"
