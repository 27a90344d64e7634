"""What checkpoints keep goes by age and by size, the oldest session first, and a rewind then says so."""

import os
import time
from pathlib import Path

import pytest

from dragoman.coder.checkpoints.cleaning import KEPT_DAYS, clean
from dragoman.vocabulary.requests import RewindSession
from tests.support.rewind_desk import desk, tree
from tests.support.scripted_turns import bash

pytestmark = pytest.mark.anyio
DAY = 24 * 3600.0
LONG_AGO = 1_000_000_000


def kept(home: Path) -> int:
    """Bytes of all contents that are kept."""
    return sum(path.stat().st_size for path in (home / "checkpoints").rglob("*") if path.is_file())


@pytest.mark.requirement("RW6")
async def test_what_a_session_keeps_goes_when_it_has_changed_nothing_for_long(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo mine > draft"), {"say": "."}], [bash("rm draft"), {"say": "."}]) as it:
        await it.say("write", "delete")
        clean(str(tmp_path / "home"), now=time.time() + (KEPT_DAYS - 1) * DAY)
        assert it.names(await it.rewind(scope="files", preview=True)) == {("draft", "restore", "")}
        clean(str(tmp_path / "home"), now=time.time() + (KEPT_DAYS + 1) * DAY)
        assert it.names(await it.rewind(scope="files")) == {("draft", "restore", "not kept")}
        assert tree(it.folder) == {"file": "- one\n"}


@pytest.mark.requirement("RW6")
async def test_after_a_cleaning_the_next_turn_has_its_checkpoint(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo a > file"), {"say": "."}], [bash("echo b > file"), {"say": "."}]) as it:
        await it.say("write")
        clean(str(tmp_path / "home"), now=time.time() + (KEPT_DAYS + 1) * DAY)
        await it.say("write again")
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- a\n"}


@pytest.mark.requirement("RW6")
async def test_of_too_much_the_oldest_session_loses_what_it_keeps_and_no_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    steps = [[bash("head -c 400000 /dev/urandom > file"), {"say": "."}], [bash("rm file"), {"say": "."}]]
    async with desk(tmp_path, *steps, *steps) as it:
        await it.say("write", "delete")
        other = await it.client.new_session(str(it.folder))
        for words in ("write", "delete"):
            await other.prompt(words).read()
        for path in (home / "checkpoints").glob(f"*/sessions/{it.conversation.id}"):
            for one in (path, path / "ids"):
                os.utime(one, (LONG_AGO, LONG_AGO))
        clean(str(home), now=LONG_AGO + DAY, most_bytes=kept(home) - 1)
        shown = await it.client.ask(RewindSession(other.id, scope="files", preview=True))
        assert it.names(shown) == {("file", "restore", "")}
        assert it.names(await it.rewind(scope="files", preview=True)) == {("file", "restore", "not kept")}
