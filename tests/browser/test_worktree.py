"""A session of the page that works in a git worktree of its own, and is shown as that in the list."""

from pathlib import Path

import pytest

from tests.support.git_repository import repository

from .chrome import Tab
from .conftest import Serve
from .test_page import enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]


async def test_a_session_in_a_worktree_changes_nothing_beside_it_and_is_named_in_the_list(
    page: Tab, serve: Serve, tmp_path: Path
) -> None:
    write = {"call": "write_file", "input": {"path": "new.txt", "content": "new\n"}}
    async with serve([write, {"say": "Written."}]) as served:
        project = repository(tmp_path / "work")
        await enter(page, served)
        await page.click("#worktree")
        await prompt(page, "write it")
        await page.click("#question [data-option=allow_once]")
        await page.until_text("#transcript", "Written.")
        await page.until_text("#list", "worktree task-1")
        assert (tmp_path / "work.worktrees" / "task-1" / "new.txt").read_text() == "new\n"
        assert not (project / "new.txt").exists()
