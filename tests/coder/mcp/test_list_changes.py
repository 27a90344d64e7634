"""A server that lists something else now: users see it at once, and what a model is shown stays as it is."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.models.contract import ModelRequest
from dragoman.vocabulary.events import AnyEvent, Notice
from dragoman.vocabulary.options import Command
from tests.support.mcp_servers import raw
from tests.support.scripted_turns import RecordingModel
from tests.support.waiting import until
from tests.support.whole_agent import Several, ends, events_of, text, whole

LIBRARY = raw("library", name="docs")
OLD, NEW = ["act", "form", "grow", "page"], ["act", "extra", "grow", "page"]
CHANGED = (
    "The tools of MCP servers have changed (new: mcp__docs__extra; gone: mcp__docs__form). "
    "The model is shown them with the next change of mode or model, or after /mcp refresh"
)


class Watching(RecordingModel):
    """Keeps the tools of servers in each of its requests."""

    def __init__(self, *turns: Any, **more: Any) -> None:
        super().__init__(*turns, **more)
        self.shown: list[list[str]] = []

    def respond(self, request: ModelRequest) -> Any:
        names = [tool.name.removeprefix("mcp__docs__") for tool in request.tools if tool.name.startswith("mcp__")]
        self.shown.append(names)
        return super().respond(request)


GROW = [{"call": "mcp__docs__grow", "input": {}}, {"say": "."}]


@pytest.mark.requirement("MCP6")
async def test_the_tools_of_a_request_change_with_the_mode_and_not_with_the_server(tmp_path: Path) -> None:
    model = Watching(GROW, [{"call": "mcp__docs__form", "input": {}}, {"say": "."}], [{"say": "."}])
    outside: list[AnyEvent] = []
    hear: dict[str, Any] = {"on_event": lambda conversation, event: outside.append(event)}
    async with whole(tmp_path, model.make, mode="full-access", mcp_servers=[LIBRARY], **hear) as (_, session):
        events = await events_of(session)
        await until(lambda: CHANGED in [event.title for event in [*events, *outside] if isinstance(event, Notice)])
        events = await events_of(session)
        assert ends(events) == [("mcp__docs__form", "failed")]
        assert model.results[-1] == "The MCP server docs does not have this tool any more."
        assert model.shown == [OLD] * 4
        assert text(await events_of(session, "/mcp")).endswith(f"- {CHANGED}.\n")
        await session.set_option("mode", "ask")
        await events_of(session)
        assert model.shown[4:] == [NEW]


async def test_the_tools_of_a_request_change_when_the_user_says_so(tmp_path: Path) -> None:
    model = Watching(GROW, [{"say": "."}])
    async with whole(tmp_path, model.make, mode="full-access", mcp_servers=[LIBRARY]) as (_, session):
        await events_of(session)
        await until(lambda: any("more" in name for name in names_of(session.commands)))
        assert text(await events_of(session, "/mcp refresh")) == (
            "The model is shown 4 tools of MCP servers from now on.\n"
        )
        await events_of(session)
    assert model.shown == [OLD, OLD, NEW]


async def test_another_model_is_shown_what_there_is(tmp_path: Path) -> None:
    first, second = Watching(GROW), Watching([{"say": "."}])
    models = Several({"first": first, "second": second})
    async with whole(tmp_path, first.make, mode="full-access", mcp_servers=[LIBRARY], models=models) as (_, session):
        await events_of(session)
        await until(lambda: any("more" in name for name in names_of(session.commands)))
        await session.set_option("model", "second")
        await events_of(session)
    assert (first.shown, second.shown) == ([OLD, OLD], [NEW])


@pytest.mark.requirement("MCP6")
async def test_prompts_and_resources_that_are_new_are_announced_at_once(tmp_path: Path) -> None:
    model = Watching(GROW)
    async with whole(tmp_path, model.make, mode="full-access", mcp_servers=[LIBRARY]) as (_, session):
        await events_of(session)
        await until(lambda: "mcp__docs__more" in names_of(session.commands))
        (mcp,) = [one for one in session.commands if isinstance(one, Command) and one.name == "mcp"]
        assert "docs:docs://new" in str(mcp.meta)


async def test_a_server_that_is_lost_changes_no_request(tmp_path: Path) -> None:
    names: list[list[str]] = []

    class Whole(Watching):
        def respond(self, request: ModelRequest) -> Any:
            names.append([tool.name for tool in request.tools])
            return super().respond(request)

    model = Whole([{"call": "mcp__raw__act", "input": {}}, {"say": "."}], [{"say": "."}])
    async with whole(tmp_path, model.make, mode="full-access", mcp_servers=[raw("dies")]) as (_, session):
        await events_of(session)
        await events_of(session)
    assert model.results == ["The MCP server went away during the call."]
    assert len(names) == 3
    assert names[0] == names[1] == names[2]


def names_of(commands: Any) -> list[str]:
    return [one.name for one in commands if isinstance(one, Command)]
