"""The bridge as a program between two others: an editor of one version, an agent of the other."""

import sys
from pathlib import Path

import pytest

from dragoman import connect
from dragoman.vocabulary.events import ToolCallUpdate
from tests.nursery.nursery import nursery

BRIDGE = [sys.executable, str(Path(__file__).parent.parent / "examples" / "bridge.py")]


@pytest.mark.parametrize(("editor", "agent"), [(1, 2), (2, 1)])
async def test_a_turn_with_a_tool_call_crosses_versions(editor: int, agent: int, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    command = [*nursery().dragoman(), "acp", "--model", "offline", "--protocol", str(agent)]
    async with connect([*BRIDGE, *command], protocol=editor) as client:
        session = await client.new_session(str(tmp_path))
        told = [event async for event in session.prompt("read notes.txt")]
    (end,) = [event.status for event in told if isinstance(event, ToolCallUpdate)][-1:]
    assert end == "completed"
    assert "remember the milk" in str(told)
