"""A cookie has no port: another server of the machine is handed ours by the browser, and gets nothing for it.

The other server is a real one at another port of the same host, and its program sends what it was handed as our own
page would. The page itself goes on: by a reload, in a second tab, after a drop and over restarts of the server.
"""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.support.gateway import free_port, http_client
from tests.support.gateway_process import Serving, serving
from tests.support.messages import hello

from .chrome import Chrome, Tab, tab

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]
SCRIPT: dict[str, object] = {"turns": [{"steps": [{"say": "Heard."}]}] * 9}


class OtherServer:
    """A server of another project. `heads` is what browsers have sent it."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        body = b"<title>other</title>"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n" % len(body))
        writer.write(b"Connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    def cookie_for(self, port: int) -> str:
        """The cookie of the gateway at that port."""
        headers = [line.partition(": ") for head in self.heads for line in head.splitlines()]
        pairs = [pair for name, _, value in headers if name.lower() == "cookie" for pair in value.split("; ")]
        return next(pair for pair in pairs if pair.startswith(f"dragoman-{port}="))


@asynccontextmanager
async def other_server() -> AsyncIterator[OtherServer]:
    other = OtherServer()
    async with await asyncio.start_server(other.answer, "127.0.0.1", 0) as listening:
        other.port = listening.sockets[0].getsockname()[1]
        yield other


async def replay(port: int, cookie: str) -> dict[str, int]:
    """What a program gets that says all that our page says, but for what only our page can know."""
    origin = f"http://127.0.0.1:{port}"
    headers = {"Cookie": cookie, "Origin": origin, "X-Dragoman": "1", "Sec-Fetch-Site": "same-origin"}
    statuses = {}
    async with http_client(headers=headers) as client:
        for path in ("/me", "/acp", "/logout", "/login"):
            statuses[path] = (await client.post(origin + path, json=hello(1))).status_code
        statuses["/metrics"] = (await client.get(origin + "/metrics")).status_code
    opening: Any = connect(f"ws://127.0.0.1:{port}/acp", additional_headers=headers, compression=None, proxy=None)
    try:
        async with opening:
            statuses["socket"] = 101
    except InvalidStatus as refused:
        statuses["socket"] = refused.response.status_code
    return statuses


async def enter(page: Tab, running: Serving) -> None:
    await page.go(f"http://127.0.0.1:{running.port}/#token={running.token}")
    await page.until_text("#title", "New session")


async def prompt(page: Tab, count: int) -> None:
    """Say something; it is the prompt with this number in the session."""
    await page.click("#prompt")
    await page.type("go")
    await page.press("Enter")
    await page.until(f"document.querySelectorAll('.message.agent').length === {count}")
    await page.until("document.querySelector('#transcript').dataset.state === 'idle'")


async def test_another_server_of_this_machine_is_handed_the_cookie_and_refused_everything(
    page: Tab, tmp_path: Path
) -> None:
    async with serving(tmp_path / "home", free_port(), SCRIPT) as running, other_server() as other:
        await enter(page, running)
        await page.go(f"http://127.0.0.1:{other.port}/")
        await page.until("document.title === 'other'")
        stolen = other.cookie_for(running.port)
        refusals = await replay(running.port, stolen)
        assert refusals == {"/me": 401, "/acp": 401, "/metrics": 401, "/logout": 401, "/login": 401, "socket": 401}
        # None of that has logged the page out.
        await page.go(f"http://127.0.0.1:{running.port}/")
        await page.until("!document.querySelector('#app').hidden")
        await prompt(page, 1)


async def test_the_page_stays_logged_in_by_a_reload_in_another_tab_and_over_restarts(
    chrome: Chrome, page: Tab, tmp_path: Path
) -> None:
    home, port = tmp_path / "home", free_port()
    async with serving(home, port, SCRIPT) as running:
        await enter(page, running)
        await prompt(page, 1)
        await page.reload()
        await page.until_text(".message.agent", "Heard.")
        await prompt(page, 2)
        async with tab(chrome, beside=page) as second:
            await second.go(f"http://127.0.0.1:{port}/")
            await second.until("!document.querySelector('#app').hidden")
            await second.click("#list li a")
            await second.until("document.querySelectorAll('.message.agent').length === 2")
            await prompt(second, 3)
            await page.until("document.querySelectorAll('.message.agent').length === 3")
        running.process.send_signal(signal.SIGTERM)
        await running.process.wait()
        await page.until_text("#link", "connecting")
    async with serving(home, port, SCRIPT) as running:
        await page.until("document.querySelector('#link').textContent === ''")
        await prompt(page, 4)  # in the tab that was there before
        running.process.kill()
        await running.process.wait()
        await page.until_text("#link", "connecting")
    async with serving(home, port, SCRIPT) as running:
        await page.reload()
        await page.until("document.querySelectorAll('.message.agent').length === 4")
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        await prompt(page, 5)
        await page.click("#logout")
        await page.until("document.querySelector('#login')?.hidden === false")
        assert await page.js("localStorage.length") == 0
    async with serving(home, port, SCRIPT):
        await page.reload()
        await page.until("document.querySelector('#login')?.hidden === false")
