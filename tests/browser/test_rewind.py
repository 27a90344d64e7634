"""Going back to before a prompt on the page: the files are shown, then put back, and the conversation is shorter."""

from pathlib import Path

import pytest

from .chrome import Tab
from .conftest import Serve
from .test_page import enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

WRITES = [{"call": "write_file", "input": {"path": f"{word}.txt", "content": f"{word}\n"}} for word in ("one", "two")]


@pytest.mark.requirement("RW10")
async def test_a_prompt_is_taken_back_with_its_files_and_brought_back_again(
    page: Tab, serve: Serve, tmp_path: Path
) -> None:
    async with serve(*([write, {"say": f"Wrote {word}."}] for write, word in zip(WRITES, "AB", strict=True))) as served:
        await enter(page, served)
        for word in "AB":
            await prompt(page, f"write {word}")
            await page.click("#question [data-option=allow_once]")
            await page.until_text("#transcript", f"Wrote {word}.")
            await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        work = tmp_path / "work"
        assert (work / "two.txt").exists()
        await page.click(".virtual-item:has(.message.user) ~ .virtual-item:has(.message.user) .back")
        await page.until_text("#rewind", "Go back to before prompt 2?")
        await page.until_text("#rewind .path", "delete")
        assert (work / "two.txt").exists()
        await page.click("#rewind .choice.allow")
        await page.until_text("#rewind h2", "Done.")
        assert [file.name for file in sorted(work.iterdir())] == ["one.txt"]
        await page.until("document.querySelectorAll('.message.user').length === 1")
        await page.click("#rewind .choice")
        await page.until_text("#rewind h2", "Undone.")
        assert (work / "two.txt").exists()
        await page.until("document.querySelectorAll('.message.user').length === 2")


async def test_a_prompt_is_taken_back_to_be_edited_and_sent_again(page: Tab, serve: Serve, tmp_path: Path) -> None:
    async with serve([WRITES[0], {"say": "Wrote A."}], [{"say": "Again."}]) as served:
        await enter(page, served)
        await prompt(page, "write A")
        await page.click("#question [data-option=allow_once]")
        await page.until_text("#transcript", "Wrote A.")
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        await page.click(".message.user .back")
        await page.click("#rewind .choice.edit")
        await page.until("document.querySelector('#prompt').value === 'write A'")
        await page.until("document.querySelectorAll('.message').length === 0")
        assert await page.js("document.querySelector('#rewind').hidden") is True
        assert list((tmp_path / "work").iterdir()) == []
        await page.type(" differently")
        await page.press("Enter")
        await page.until_text(".message.agent", "Again.")
        assert await page.text(".message.user") == "write A differently"
