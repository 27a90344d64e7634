"""Agents of other vendors, driven by `dragoman.connect`, offline: their model is a server in the test."""

import asyncio
import os
from pathlib import Path

import pytest

from dragoman import connect
from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.client.workspace import Workspace
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Running, ToolCallUpdate
from dragoman.vocabulary.services import RequestPermission
from tests.interop.desk import (
    START_SECONDS,
    Desk,
    calls,
    cancelled_at,
    end,
    events_of,
    paths,
    said,
    told,
)
from tests.support.needs import need_sdk_example
from tests.support.real_agents import GEMINI_CLI, REAL_AGENTS, RealAgent

pytestmark = [pytest.mark.anyio, pytest.mark.interop]
every_agent = pytest.mark.parametrize("agent", REAL_AGENTS, ids=str)


@pytest.fixture
def desk(agent: RealAgent, tmp_path: Path) -> Desk:
    return Desk(agent, tmp_path)


@every_agent
async def test_a_file_is_written_after_a_yes_and_not_after_a_no(desk: Desk) -> None:
    model, agent = desk.model, desk.agent
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("I will write it.", agent.writing(desk.made, "hello\n")), model.says("It is written."))
        allowed = await events_of(session, "write it")
        assert desk.made.read_text() == "hello\n"

        desk.answer = "reject_once"
        other = desk.work / "other.txt"
        model.plays(model.says("Another one.", agent.writing(other, "hello\n")), model.says("Then not."))
        refused = await events_of(session, "write another")
        assert not other.exists()

    assert (said(allowed), end(allowed)) == (["I will write it.", "It is written."], "end_turn")
    assert (list(calls(allowed).values()), paths(allowed)) == (["completed"], {str(desk.made)})
    assert "".join(said(refused)).startswith("Another one.")
    assert "completed" not in calls(refused).values()
    assert [request.session_id for request in desk.asked] == [session.id] * 2
    assert [event for event in desk.outside if isinstance(event, ToolCallUpdate)] == []


@every_agent
async def test_lent_files_and_a_policy_that_knows_the_folder_from_elsewhere(desk: Desk, tmp_path: Path) -> None:
    model, agent = desk.model, desk.agent
    permissions = PermissionHandler(PermissionPolicy("edit"), [desk.work])
    workspace = Workspace([desk.work], environment=os.environ, permissions=permissions)
    # A file that is there: Gemini CLI cannot tell from any error that a lent file does not exist.
    desk.made.write_text("before\n")
    outside = tmp_path / "outside.txt"
    async with workspace, desk.connected(permissions, **workspace.callbacks()) as client:
        session = await client.new_session(desk.work)
        model.plays(
            model.says("I read it.", agent.reading(desk.made)),  # some write only what they have read
            model.says("I change it.", agent.writing(desk.made, "after\n")),
            model.says("Done."),
        )
        inside = await events_of(session, "change it")
        assert (desk.made.read_text(), permissions.denied) == ("after\n", 0)
        model.plays(model.says("Elsewhere.", agent.writing(outside, "hello\n")), model.says("Done."))
        elsewhere = await events_of(session, "write it elsewhere")
    assert list(calls(inside).values()) == ["completed", "completed"]
    assert list(calls(elsewhere).values()) == ["failed"]
    assert not outside.exists()
    reasons = [denial.reason for denial in permissions.denials]
    # Gemini CLI does not ask: it refuses by itself.
    assert reasons == [] if agent == GEMINI_CLI else len(reasons) == 1 and str(outside) in reasons[0]


@every_agent
async def test_a_turn_is_cancelled_and_the_session_goes_on(desk: Desk) -> None:
    model = desk.model
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        model.plays(model.waits("I wait."))
        cancelled = await cancelled_at(AgentMessageChunk, session, "take your time")
        async with asyncio.timeout(10):
            await model.left.wait()
        model.plays(model.says("Here I am."))
        after = await events_of(session, "go on")
    assert (said(cancelled), end(cancelled)) == (["I wait."], "cancelled")
    assert (said(after), end(after)) == (["Here I am."], "end_turn")


@pytest.mark.parametrize("agent", [agent for agent in REAL_AGENTS if agent.loads], ids=str)
async def test_another_process_tells_the_story_and_goes_on(desk: Desk) -> None:
    model, agent = desk.model, desk.agent
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("I will write it.", agent.writing(desk.made, "hello\n")), model.says("It is written."))
        await events_of(session, "write it")
    desk.outside.clear()
    async with desk.connected() as client:
        assert session.id in [info.session_id for info in await client.list_sessions()]
        again = await client.load_session(session.id, desk.work)
        story = list(desk.outside)
        model.plays(model.says("Here I am."))
        after = await events_of(again, "go on")
    assert told(story) == ["write it"]
    assert said(story) == ["I will write it.", "It is written."]
    assert list(calls(story).values()) == ["completed"]
    assert (said(after), end(after)) == (["Here I am."], "end_turn")


# -- the agents that come with the official TypeScript SDK -------------------------------------------------------------


async def test_the_sdks_own_example_asks_and_goes_on_as_told(tmp_path: Path) -> None:
    asked: list[RequestPermission] = []

    async def yes(request: RequestPermission) -> str:
        asked.append(request)
        return "allow"

    async with connect(need_sdk_example("agent"), permission=yes, start_timeout=START_SECONDS) as client:
        session = await client.new_session(tmp_path)
        events = await events_of(session, "hello")
        assert client.protocol_version == 1
    assert calls(events) == {"call_1": "completed", "call_2": "completed"}
    assert [request.title for request in asked] == ["Modifying critical configuration file"]
    assert (len(said(events)), end(events)) == (3, "end_turn")


async def test_the_sdks_own_example_of_v2_is_prompted_cancelled_listed_and_loaded(tmp_path: Path) -> None:
    outside: list[AnyEvent] = []
    command = need_sdk_example("dual-version-agent")
    async with connect(
        command, on_event=lambda conversation, event: outside.append(event), start_timeout=START_SECONDS
    ) as client:
        assert client.protocol_version == 2
        session = await client.new_session(tmp_path)
        first = await events_of(session, "hello")
        cancelled = await cancelled_at(Running, session, "stop")
        assert [info.session_id for info in await client.list_sessions(str(tmp_path))] == [session.id]
        await session.close()
        session = await client.load_session(session.id, tmp_path)
        story = list(outside)
        after = await events_of(session, "again")
    hello = ["Hello from the v2 implementation."]
    assert (said(first), end(first)) == (hello, "end_turn")
    assert (said(cancelled), end(cancelled)) == ([], "cancelled")
    assert (told(story), said(story)) == (["hello", "stop"], hello)
    assert (said(after), end(after)) == (hello, "end_turn")
