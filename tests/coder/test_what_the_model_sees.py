"""Links, windows and old results: what of a session the model is given."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextToolResult, ContextUserMessage, read
from dragoman.coder.models.contract import ModelRequest
from dragoman.coder.token_estimate import tokens_of, tokens_of_setting
from dragoman.host.trust import trust
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Content, Image, Resource, ResourceLink, Text, TextResource
from dragoman.vocabulary.events import (
    CompactionUpdate,
)
from tests.support.conversation import conversation
from tests.support.language_servers import small
from tests.support.scripted_turns import RecordingModel
from tests.support.whole_agent import events_of, scripted, text, whole


class EveryTool(RecordingModel):
    """A model of a family with a tool of its own, and a provider that searches."""

    search_host = "api.openai.com"

    def respond(self, request: ModelRequest) -> Any:
        self.tokens = tokens_of_setting(request.system, request.tools) + tokens_of(request.items)
        self.tools = request.tools
        self.offered = {tool.name for tool in request.tools}
        return super().respond(request)


@pytest.mark.requirement("CA14")
async def test_the_first_request_with_every_tool_has_at_most_6000_tokens(tmp_path: Path) -> None:
    model = EveryTool([{"say": "ok"}])
    model.name = "openai/gpt-5"
    trust(tmp_path / "trust.json", tmp_path)
    setup = {"language_servers": lambda: [small()], "trust": str(tmp_path / "trust.json")}
    async with whole(tmp_path, model.make, mode="full-access", setup=setup) as (_, session):
        await events_of(session)
    assert {"apply_patch", "web_search", "diagnostics", "bash", "agent"} <= model.offered
    assert model.tokens <= 6_000


@pytest.mark.parametrize("mode", ["full-access", "sandbox"])
@pytest.mark.requirement("CA14")
async def test_every_tool_has_an_example_that_its_schema_takes(tmp_path: Path, mode: str) -> None:
    model = EveryTool([{"say": "ok"}])
    model.name = "openai/gpt-5"
    trust(tmp_path / "trust.json", tmp_path)
    setup = {"language_servers": lambda: [small()], "trust": str(tmp_path / "trust.json")}
    async with whole(tmp_path, model.make, mode=mode, setup=setup, home=tmp_path / "home") as (_, session):
        await events_of(session)
    for tool in model.tools:
        found = re.search("Examples?: ", tool.description)
        assert found is not None, tool.name
        example, _ = json.JSONDecoder().raw_decode(tool.description, found.end())
        assert set(tool.schema.get("required", ())) <= set(example) <= set(tool.schema["properties"]), tool.name
        # What it does, when to use it and its limits take more than a line, and no page.
        assert 25 <= len(tool.description.split()) <= 220, tool.name


@pytest.mark.requirement("J8")
async def test_links_inside_the_roots_are_read_and_others_are_not(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "in.txt").write_text("inside")
    (tmp_path / "out.txt").write_text("canary")
    prompt: list[Content] = [
        Text("look: "),
        ResourceLink("in", f"file://{folder}/in.txt"),
        ResourceLink("out", f"file://{tmp_path}/out.txt"),
        ResourceLink("passwd", "file:///etc/passwd"),
        Resource(TextResource("embedded", "file:///elsewhere")),
        Image("iVBORw0KGgo=", "image/png"),
    ]
    async with whole(folder, scripted([{"say": "ok"}]), store=store) as (_, session):
        async for _event in session.prompt(prompt):
            pass
        entries = [record.entry async for records in store.read(session.id) for record in records]
    (said, _) = conversation(read(entries))
    assert isinstance(said, ContextUserMessage)
    words = [block.text if isinstance(block, Text) else type(block).__name__ for block in said.content]
    assert "inside" in words[1]
    assert words[2] == f"[out](file://{tmp_path}/out.txt)"
    assert words[3] == "[passwd](file:///etc/passwd)"
    assert "embedded" in words[4]
    assert words[5] == "Image"
    await store.close()


async def test_a_full_window_is_summed_up_and_the_turn_goes_on(tmp_path: Path) -> None:
    first = [{"say": "x" * 200}, {"usage": {"input": 790, "output": 50}}]
    async with whole(tmp_path, scripted(first, [{"say": "still here"}], window=1000)) as (_, session):
        await events_of(session)
        events = await events_of(session)
        assert text(events) == "still here"
        stages = [event.status for event in events if isinstance(event, CompactionUpdate)]
        assert stages == ["in_progress", "completed"]
        assert "about" in text(await events_of(session, "/context"))


async def test_old_results_are_trimmed_before_anything_is_summed_up(tmp_path: Path) -> None:
    (tmp_path / "big").write_text("y" * 2500)
    first = [
        {"call": "read_file", "input": {"path": "big"}},
        {"say": "I see."},
        {"usage": {"input": 800, "output": 50}},
    ]
    store = SqliteStore(tmp_path / "store")
    async with whole(tmp_path, scripted(first, [{"say": "on"}], window=1000), store=store) as (_, session):
        await events_of(session)
        events = await events_of(session)
        entries = [record.entry async for records in store.read(session.id) for record in records]
    assert not any(isinstance(event, CompactionUpdate) for event in events)
    assert [item.text for item in read(entries) if isinstance(item, ContextToolResult)] == [
        "[trimmed: 2502 characters]"
    ]
    await store.close()
