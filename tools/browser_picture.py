"""The console in README and in docs: a real `dragoman serve` in a real browser. `python -m tools.browser_picture`

The demo plays its tour there as it does in the terminal; the pictures are taken when it asks whether it may edit, and
where that question waits on a telephone.
It needs chromium and the extra `[serve]`, and no network. The browser is driven as the tests drive it.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.browser.chrome import ALT, ARTIFACTS, Chrome, Tab, browser, tab
from tests.browser.console import show
from tools.picture import ROOT, SAID, Failed, empty_folder

FOLDER: Final = ROOT / "docs" / "pictures"
PICTURES: Final = ("browser", "console-phone", "console-administration")
LARGEST: Final = 150_000  # bytes
PORT: Final = 8790
WIDTH: Final = 1000
HEIGHT: Final = 760
PHONE: Final = (390, 760)


def main() -> int:
    program = shutil.which("chromium")
    if program is None:
        print("The picture needs chromium.", file=sys.stderr)
        return 1
    try:
        with empty_folder() as project, serving(project) as address, browser(program) as driver:
            asyncio.run(taken(driver, address))
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        target = FOLDER / f"{name}.png"
        shutil.move(ARTIFACTS / f"{name}.png", target)
        print(f"Wrote {target.relative_to(ROOT)}")
        if target.stat().st_size > LARGEST:
            print(f"{target.relative_to(ROOT)} is larger than {LARGEST} bytes.", file=sys.stderr)
            return 1
    return 0


@contextmanager
def serving(project: Path) -> Iterator[str]:
    """A gateway there; the address that a person would be sent."""
    with tempfile.TemporaryDirectory(prefix="dragoman-picture-") as home:
        command = [sys.executable, "-m", "dragoman.cli.main", "serve", "--port", str(PORT), "--model", "demo"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "DRAGOMAN_HOME": home, "PATH": path}
        server = subprocess.Popen(command, cwd=project, env=environment, stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        said = ""
        try:
            for line in server.stderr:
                said += line
                if "listening on" in line:
                    break
            token = re.search(r"shown this once: (\S+)", said)
            if token is None:
                raise Failed(f"the gateway did not start:\n{said}")
            yield f"http://127.0.0.1:{PORT}/#token={token[1]}"
        finally:
            server.terminate()
            server.wait(30)
            server.stderr.close()


async def taken(driver: Chrome, address: str) -> None:
    async with tab(driver) as page:
        await page.resize(WIDTH, HEIGHT)
        await page.go(address)
        await page.until("document.querySelector('#who').textContent")  # logged in
        await page.click("#prompt")
        await page.type(SAID)
        await page.press("Enter")
        for shown, key in (("def add", "1"), ("import unittest", "1"), ("unittest discover", "2")):
            await page.until_text("#question", shown)
            await answered(page, key)
        await page.until_text("#question .patch .added", "return a + b")
        await page.until("!document.querySelector('#question .choice').disabled")
        await page.picture("browser")
        await on_a_phone(page)
        await page.until_text("#question .patch .added", "return a + b")
        await answered(page, "1")
        await page.until_text(".virtual-item:last-child .message.agent", "end of the recording")
        await show(page, "admin")
        await page.until("document.querySelector('.app-screen table')")
        await page.picture("console-administration")


async def on_a_phone(page: Tab) -> None:
    """The question that waits, in the inbox; then all as it was."""
    await page.js("document.documentElement.dataset.theme = 'dark'")
    await page.resize(*PHONE, phone=True)
    place = await page.js("location.hash")
    await show(page, "inbox")
    await page.until("document.querySelector('.inbox .choice:not(:disabled)')")
    await page.picture("console-phone")
    await page.js(f"location.hash = {place!r}, delete document.documentElement.dataset.theme")
    await page.resize(WIDTH, HEIGHT)


async def answered(page: Tab, key: str) -> None:
    await page.until("!document.querySelector('#question .choice').disabled")
    await page.press(key, ALT)


if __name__ == "__main__":
    sys.exit(main())
