"""A client that leaves for good takes along what only it watched, whichever process does it."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.client.connect import connect
from dragoman.gateway import hub
from dragoman.gateway.shared_session import SharedSessions
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import RawHttp, Served, gateway, raw_http
from tests.support.messages import prompt
from tests.support.waiting import until

from .counters import counters, heard, loaded, noted
from .sockets import hear, opening, say, session

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
both_ways = pytest.mark.parametrize("each_session", [True, False])


def lives(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


async def at_work(raw: RawHttp, folder: Path, work: str = "stubborn") -> str:
    """The second session of a connection, whose turn runs."""
    await raw.session(1)
    session_id = await raw.session(2)
    await raw.post(prompt(3, session_id, work), session_id)
    await until(lambda: noted(folder, "ticks"))
    return session_id


async def leave(served: Served, raw: RawHttp) -> None:
    headers = served.headers | {"Acp-Connection-Id": raw.connection}
    assert (await raw.client.delete(served.http, headers=headers)).status_code == 202


@both_ways
async def test_delete_ends_the_work_of_every_session(each_session: bool, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agents = counters(agent, each_session=each_session, renames=True)
    async with gateway(agents, tmp_path) as served, raw_http(served) as raw:
        await at_work(raw, agent)
        await leave(served, raw)
        await until(lambda: not served.hub.agents and not served.hub.sessions)
        await until(lambda: not lives(noted(agent, "ticks")[-1]))


@both_ways
async def test_so_does_a_goodbye_on_a_websocket(each_session: bool, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agents = counters(agent, each_session=each_session, renames=True)
    async with gateway(agents, tmp_path) as served:
        async with opening(served) as socket:
            await session(socket, 1)
            await say(socket, {"id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
            session_id = (await hear(socket, 2))[0]["result"]["sessionId"]
            await say(socket, prompt(3, session_id, "stubborn"))
            await until(lambda: noted(agent, "ticks"))
        await until(lambda: not served.hub.agents and not served.hub.sessions)


@pytest.mark.usefixtures("_often_swept")
@both_ways
async def test_so_does_revoking_its_token(each_session: bool, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agents = counters(agent, each_session=each_session, renames=True)
    async with (
        gateway(agents, tmp_path) as served,
        raw_http(served, token=served.token_of("phone")) as raw,
    ):
        await at_work(raw, agent)
        assert served.tokens.revoke("phone")
        await until(lambda: not served.hub.agents and not served.hub.sessions)


@pytest.mark.usefixtures("_often_swept")
@both_ways
async def test_a_drop_ends_nothing(each_session: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_CANCEL_SECONDS", 0.1)  # nothing ends this turn
    agent = tmp_path / "agent"
    agents = counters(agent, each_session=each_session, renames=True)
    async with gateway(agents, tmp_path) as served:
        async with raw_http(served) as raw:
            session_id = await at_work(raw, agent)
        await served.forget(raw.connection)
        assert served.hub.sessions[session_id].is_running
        await until(lambda: len(served.hub.agents) == 1)  # the one that works
        assert served.hub.sessions[session_id].is_running


@both_ways
async def test_what_another_watches_goes_on(each_session: bool, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agents = counters(agent, each_session=each_session, renames=True)
    async with gateway(agents, tmp_path) as served, raw_http(served) as other, raw_http(served) as raw:
        session_id = await at_work(raw, agent, "wait")
        assert await other.open(session_id) == 200
        await leave(served, raw)
        assert served.hub.sessions[session_id].is_running
        await other.post({"method": "session/cancel", "params": {"sessionId": session_id}}, session_id)
        await until(lambda: not served.hub.sessions[session_id].is_running)


async def test_in_a_process_that_another_needs_the_turn_is_cancelled(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with (
        gateway(counters(agent, renames=True), tmp_path) as served,
        raw_http(served) as other,
        raw_http(served) as raw,
    ):
        watched = await raw.session(9)
        alone = await at_work(raw, agent, "wait")
        assert "result" in await loaded(other, watched)
        await leave(served, raw)
        await until(lambda: noted(agent, "cancelled") == ["2"])
        await until(lambda: not served.hub.sessions[alone].is_running)
        assert "still" in await heard(other, watched, "still", 6)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_that_its_agent_still_closes_is_waited_for(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing, may_close = asyncio.Event(), asyncio.Event()
    wait_until_closed = SharedSessions.wait_until_closed

    async def close_now(sessions: SharedSessions, session_id: str) -> bool:
        may_close.set()
        return await wait_until_closed(sessions, session_id)

    monkeypatch.setattr(SharedSessions, "wait_until_closed", close_now)
    agent = Agent("slow to close", store=lambda: SqliteStore(tmp_path / "sessions"))

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        await session.say("done")

    @agent.session_closed
    async def close(session: Any) -> None:
        closing.set()
        await may_close.wait()

    async with gateway(agent, tmp_path) as served:
        async with connect(served.ws, token=served.token, protocol=version) as client:
            session = await client.new_session("/")
            await session.ask("hi")
        await closing.wait()
        async with connect(served.ws, token=served.token, protocol=version) as client:
            again = await client.load_session(session.id, "/")
            assert (await again.ask("hi")).text == "done"
