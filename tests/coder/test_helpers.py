"""Helpers of the agent (tool `agent`): told the same, kept inside their window, counted, and cancelled whole."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextAssistantMessage, ContextToolCall, ContextToolResult
from dragoman.coder.models.contract import Model, ModelRequest, Piece, UsageReported
from dragoman.coder.models.script import Script, ScriptModel, parse
from dragoman.vocabulary.events import CompactionUpdate, Cost, Idle, TerminalUpdate, Usage, UsageChanged
from dragoman.vocabulary.tools import Cancellable
from tests.support.conversation import briefing
from tests.support.whole_agent import User, events_of, whole

pytestmark = pytest.mark.anyio

TASK: dict[str, Any] = {"call": "agent", "input": {"prompt": "look", "description": "Look around"}}


class Recording(ScriptModel):
    """A scripted model that remembers what it and its helpers were given, and tells a cost with all tokens."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.inquiries: list[ModelRequest] = []
        self.helper: Recording | None = None

    def make(self, name: str) -> Model:
        return self

    def assistant(self, name: str) -> ScriptModel:
        self.helper = self.helper or Recording(self._script.agents[name])
        return self.helper

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.inquiries.append(request)
        async for piece in super().respond(request):
            yield piece._replace(cost=0.5) if isinstance(piece, UsageReported) else piece


def recording(steps: list[Any], *helper: Any, **more: Any) -> Recording:
    turns = [{"steps": [*steps, {"say": "Done."}]}, {"steps": [{"say": "Again."}]}]
    agents = {"agent": {"turns": [{"steps": [*helper, {"say": "My report."}]}], **more}}
    return Recording(parse({"turns": turns, "window": 100_000, "agents": agents}))


@pytest.mark.requirement("CA7")
async def test_a_helper_is_told_once_who_it_is_and_all_else_as_the_agent_is(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Always run make lint.\n")
    model = recording([TASK])
    async with whole(tmp_path, model.make, mode="read-only") as (_, session):
        await events_of(session)
    assert model.helper is not None
    assert model.helper.inquiries[0].system.startswith("You are a helper of Dragoman")
    agents, helpers = (briefing(one.inquiries[0].items) for one in (model, model.helper))
    (notes,) = [text for source, text in helpers.items() if source.startswith("notes ")]
    assert "Always run make lint." in notes
    assert helpers["mode"] == 'The mode is now "read-only": looks at files, changes nothing.'
    assert {source: text for source, text in helpers.items() if source} == agents


@pytest.mark.requirement("CA7")
async def test_a_helper_that_fills_its_window_is_kept_inside_it(tmp_path: Path) -> None:
    for name in "abcdef":
        (tmp_path / name).write_text("word " * 2_000)
    reads = [step for name in "abcdef" for step in ({"call": "read_file", "input": {"path": name}}, {"think": "."})]
    model = recording([TASK], *reads, window=8_000)
    async with whole(tmp_path, model.make) as (_, session):
        events = await events_of(session)
    assert model.helper is not None
    shown = [
        sum(len(item.text) for item in one.items if isinstance(item, ContextToolResult))
        for one in model.helper.inquiries
    ]
    assert max(shown) < 4 * 8_000  # characters of results; all six are 60,000
    result = model.inquiries[1].items[-1]
    assert isinstance(result, ContextToolResult)
    assert (result.text, result.failed) == ("My report.", False)
    assert [event for event in events if isinstance(event, CompactionUpdate)] == []


@pytest.mark.requirement("CA8")
async def test_the_tokens_and_the_cost_of_a_helper_are_counted(tmp_path: Path) -> None:
    usage = {"usage": {"input": 100, "output": 10}}
    model = recording([usage, TASK, {"usage": {"input": 7, "output": 1}}], usage)
    async with whole(tmp_path, model.make) as (_, session):
        events = await events_of(session)
        again = await events_of(session, "again")
    assert [event.usage for event in events if isinstance(event, Idle)] == [Usage(228, 207, 21)]
    assert [event.cost for event in events if isinstance(event, UsageChanged)] == [Cost(0.5, "USD"), Cost(1.5, "USD")]
    assert [event.usage for event in again if isinstance(event, Idle) and event.usage] == []


async def test_a_cancel_in_a_helper_leaves_a_whole_history(tmp_path: Path) -> None:
    model = recording([TASK], {"call": "bash", "input": {"command": "sleep 981"}})
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        turn = session.prompt("go")
        async with asyncio.timeout(20):
            async for event in turn:
                if isinstance(event, TerminalUpdate) and isinstance(event.capabilities, Cancellable):
                    await turn.cancel()
        assert turn.stop_reason == "cancelled"
        await events_of(session, "again")
    asked: list[ContextToolCall] = []
    results: list[str] = []
    for item in model.inquiries[-1].items:
        asked += item.calls if isinstance(item, ContextAssistantMessage) else []
        results += [item.call_id] if isinstance(item, ContextToolResult) else []
    assert ([call.tool for call in asked], results) == (["agent"], [call.id for call in asked])


@pytest.mark.parametrize(
    ("kinds", "offered"),
    [
        ([], None),
        (["reviewer"], None),
        (
            ["reviewer", "searcher"],
            {"type": "string", "enum": ["reviewer", "searcher"], "description": "the kind of helper"},
        ),
    ],
)
@pytest.mark.requirement("CA10")
async def test_a_kind_of_helper_is_offered_only_where_there_are_several(
    tmp_path: Path, kinds: list[str], offered: object
) -> None:
    agents = {kind: {"turns": [{"steps": [{"say": f"I am the {kind}."}]}]} for kind in kinds}
    model = Recording(parse({"turns": [{"steps": [{"say": "."}]}], "agents": agents}))
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session)
    (card,) = [card for card in model.inquiries[0].tools if card.name == "agent"]
    assert card.schema["properties"].get("name") == offered


async def test_a_name_that_is_not_offered_is_accepted(tmp_path: Path) -> None:
    call = {"call": "agent", "input": {**TASK["input"], "name": "agent"}}
    model = recording([call])
    async with whole(tmp_path, model.make, user=User("allow_once")) as (_, session):
        await events_of(session)
    result = model.inquiries[1].items[-1]
    assert isinstance(result, ContextToolResult)
    assert (result.text, result.failed) == ("My report.", False)
