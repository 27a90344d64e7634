"""The roots of a session: found when it gets them, and whatever is put in their place afterwards is none."""

from pathlib import Path

import pytest

from tests.coder.whole import ends, events_of, scripted, whole

pytestmark = pytest.mark.anyio

SWAP = "cd .. && mv work away && ln -s outside work"


async def test_what_one_turn_puts_in_the_place_of_a_root_is_no_root_in_the_next(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (work, outside):
        folder.mkdir()
    (outside / "theirs").write_text("theirs")
    model = scripted(
        [{"call": "bash", "input": {"command": SWAP}}],
        [
            {"call": "write_file", "input": {"path": "new", "content": "ours"}},
            {"call": "read_file", "input": {"path": "theirs"}},
            {"call": "bash", "input": {"command": "touch ran"}},
        ],
    )
    async with whole(work, model, mode="full-access") as (_, session):
        assert ends(await events_of(session)) == [("bash", "completed")]
        later = ends(await events_of(session))
    assert sorted(later) == [("bash", "failed"), ("read_file", "failed"), ("write_file", "failed")]
    assert [(file.name, file.read_text()) for file in outside.iterdir()] == [("theirs", "theirs")]
