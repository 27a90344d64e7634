"""Sessions as a client opens them; and what is heard of sessions that were not opened."""

import asyncio
import os
from typing import Any

import pytest

from dragoman.client.connect import connect
from dragoman.client.connection import EARLY_SECONDS
from dragoman.errors import LinkClosed, RequestFailed, TimedOut, UsageError
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent
from tests.client.raw_agent import RawAgent, connected, new_session
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


@both_versions
async def test_a_session_is_opened_in_an_absolute_folder(version: int) -> None:
    async with connected(version) as (client, agent):
        opening = asyncio.ensure_future(client.new_session("."))
        asked = await agent.request("session/new")
        assert asked["params"]["cwd"] == os.getcwd()
        agent.say({"id": asked["id"], "result": {"sessionId": "s"}})
        session = await opening
        assert (session.id, session.cwd) == ("s", os.getcwd())


@both_versions
async def test_what_is_told_of_a_session_before_and_right_behind_its_name_is_heard_in_order(version: int) -> None:
    told: list[AnyEvent] = []
    async with connected(version, on_event=lambda _, event: told.append(event)) as (client, agent):
        opening = asyncio.ensure_future(client.new_session("/"))
        asked = await agent.request("session/new")
        agent.tell("before", session_id="s")
        agent.say({"id": asked["id"], "result": {"sessionId": "s"}})
        agent.tell("behind", session_id="s")
        await opening
        await until(lambda: len(told) == 2)
        assert [event.text for event in told if isinstance(event, AgentMessageChunk)] == ["before", "behind"]


@both_versions
async def test_a_title_is_set_left_alone_and_cleared(version: int) -> None:
    titles: list[str] = []
    async with connected(version, on_event=lambda session, _: titles.append(session.title)) as (client, agent):
        await new_session(client, agent)
        for fields in ({"title": "T"}, {"updatedAt": "2026-01-01T00:00:00Z"}, {"title": None}):
            update = {"sessionUpdate": "session_info_update", **fields}
            agent.say({"method": "session/update", "params": {"sessionId": "s", "update": update}})
        await until(lambda: len(titles) == 3)
    assert titles == ["T", "T", ""]


@pytest.mark.requirement("C11")
@both_versions
async def test_what_is_told_of_a_session_that_was_never_opened_is_reported_and_disturbs_nothing(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noises: list[str] = []
    told: list[AnyEvent] = []
    settings: Any = {"on_noise": noises.append, "on_event": lambda _, event: told.append(event)}
    async with connected(version, **settings) as (client, agent):
        session = await new_session(client, agent)
        agent.tell("a", "b", session_id="stranger")
        agent.tell("known")
        await until(lambda: len(told) == 1)
        await pass_time(EARLY_SECONDS - 1, monkeypatch)
        assert noises == []
        await pass_time(1, monkeypatch)
        assert noises == ["an update for a session that was never opened"] * 2
        agent.tell("c", session_id="stranger")
        agent.tell("known")
        await until(lambda: len(told) == 2)
        await pass_time(EARLY_SECONDS, monkeypatch)
        assert noises == ["an update for a session that was never opened"] * 3
        turn = session.prompt("hi")
        number = await agent.accept()
        agent.finish(number)
        await turn.read()
        assert [event.text for event in told if isinstance(event, AgentMessageChunk)] == ["known"] * 2


async def pass_time(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the clock of the running loop forward, and wait until every timer that is due then has fired."""
    loop = asyncio.get_running_loop()
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + seconds)
    due = asyncio.Event()
    loop.call_later(0, due.set)  # the last of those that are due
    await due.wait()


@pytest.mark.requirement("C11")
@both_versions
@pytest.mark.parametrize(("size", "kept"), [(10, 1024), (100_000, 10)])
async def test_what_is_kept_for_strangers_has_a_bound(version: int, size: int, kept: int) -> None:
    noises: list[str] = []
    async with connected(version, on_noise=noises.append) as (client, agent):
        session = await new_session(client, agent)
        for number in range(kept + 20):
            agent.tell("x" * size, session_id=f"stranger {number}")
        agent.tell("known")
        await until(lambda: len(noises) >= 20)
        await settled()
        assert len(noises) == 20
        assert session.id == "s"


@both_versions
async def test_a_stored_session_tells_its_story_before_it_is_open(version: int) -> None:
    told: list[AnyEvent] = []
    async with connected(version, on_event=lambda _, event: told.append(event)) as (client, agent):
        opening = asyncio.ensure_future(client.load_session("old", "/"))
        method = "session/load" if version == 1 else "session/resume"
        asked = await agent.request(method)
        agent.tell("once", session_id="old")
        agent.say({"id": asked["id"], "result": {}})
        assert (await opening).id == "old"
        assert "once" in str(told[0])


@both_versions
async def test_a_session_that_cannot_be_resumed_is_forgotten_but_not_one_that_is_open(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent, "open")
        for session_id in ("gone", "open"):
            opening = asyncio.ensure_future(client.resume_session(session_id, "/"))
            asked = await agent.request("session/resume")
            agent.say({"id": asked["id"], "error": {"code": -32002, "message": "Session not found"}})
            with pytest.raises(RequestFailed, match="Session not found"):
                await opening
        turn = session.prompt("still there")
        number = await agent.accept()
        agent.finish(number, session_id="open")
        assert (await turn.read()).stop_reason == "end_turn"


@both_versions
async def test_sessions_are_listed_page_by_page(version: int) -> None:
    async with connected(version) as (client, agent):
        listing = asyncio.ensure_future(client.list_sessions())
        for cursor, following in ((None, "two"), ("two", None)):
            asked = await agent.request("session/list")
            assert asked["params"].get("cursor") == cursor
            page: dict[str, Any] = {"sessions": [{"sessionId": f"after {cursor}", "cwd": "/"}]}
            agent.say({"id": asked["id"], "result": page | ({"nextCursor": following} if following else {})})
        assert [info.session_id for info in await listing] == ["after None", "after two"]


@pytest.mark.requirement("B8")
@both_versions
async def test_extensions_are_asked_and_told(version: int) -> None:
    heard: list[Any] = []
    async with connected(version, on_notification=lambda method, params: heard.append((method, params))) as (
        client,
        agent,
    ):
        asking = asyncio.ensure_future(client.request("_ping", {"n": 1}))
        asked = await agent.request("_ping")
        agent.say({"id": asked["id"], "result": [asked["params"]]})
        assert await asking == [{"n": 1}]
        await client.notify("_note", {"m": 2})
        assert (await agent.request("_note"))["params"] == {"m": 2}
        agent.say({"method": "_told", "params": {"k": 3}})
        await until(lambda: heard == [("_told", {"k": 3})])


async def test_an_agent_that_does_not_answer_initialize_is_given_up_in_time() -> None:
    ours, theirs = memory_pair(PIPE)
    wire = RawPeer(theirs)
    with pytest.raises(TimedOut, match=r"did not answer initialize within 0\.01 s"):
        async with connect(ours, start_timeout=0.01):
            pass
    await until(lambda: wire.lost == [None])


async def test_an_agent_that_leaves_during_initialize_is_a_closed_link() -> None:
    ours, theirs = memory_pair(PIPE)
    agent = RawAgent(theirs, 1)

    async def leave() -> None:
        await agent.request("initialize")
        await agent.leave()

    leaving = asyncio.ensure_future(leave())
    with pytest.raises(LinkClosed):
        async with connect(ours):
            pass
    await leaving


async def test_a_client_that_was_closed_says_so() -> None:
    async with connected(1) as (client, agent):
        session = await new_session(client, agent)
    with pytest.raises(LinkClosed):
        await client.new_session("/")
    with pytest.raises(LinkClosed):
        await session.ask("hi")
    with pytest.raises(UsageError, match="connects once"):
        await client.__aenter__()
