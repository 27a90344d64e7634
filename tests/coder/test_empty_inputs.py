"""A model that calls a tool with empty text is told what is wrong, and nothing runs."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.vocabulary.events import ToolCallUpdate
from tests.coder.strict_model import StrictModel
from tests.support.whole_agent import events_of, whole


@pytest.mark.parametrize(
    ("tool", "given", "sentence"),
    [
        ("bash", {"command": " \n"}, "bash needs 'command' as a command line that is not empty."),
        ("update_plan", {"entries": [{"content": " "}]}, "A step of a plan is an object with 'content' as text that"),
    ],
)
async def test_an_empty_text_is_told_to_the_model(tmp_path: Path, tool: str, given: Any, sentence: str) -> None:
    model = StrictModel([{"call": tool, "input": given}, {"say": "I see."}])
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        events = await events_of(session)
    assert [event.status for event in events if isinstance(event, ToolCallUpdate)][-1] == "failed"
    assert sentence in model.asked[-1].items[-1].text  # type: ignore[union-attr]


async def test_a_tool_without_a_name_is_shown_as_that(tmp_path: Path) -> None:
    model = StrictModel([{"call": " ", "input": {}}, {"say": "I see."}])
    async with whole(tmp_path, model.make) as (_, session):
        events = await events_of(session)
    first = next(event for event in events if isinstance(event, ToolCallUpdate))
    assert (first.title, events[-1].stop_reason) == ("(a tool without a name)", "end_turn")  # type: ignore[union-attr]
