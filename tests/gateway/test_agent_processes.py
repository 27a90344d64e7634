"""Agents in processes of their own: shared or one for each session, stopped when idle, started again when they died."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.served_agent import registry_agent
from dragoman.errors import UsageError
from dragoman.gateway import agent_restart
from dragoman.gateway.agent_source import AgentSource, spawn_source
from tests.support.fork_server.client import fork_server
from tests.support.gateway import RawHttp, Served, gateway, raw_http
from tests.support.messages import Message, hello, prompt, texts
from tests.support.needs import ROOT
from tests.support.versions import both_versions
from tests.support.waiting import until

from .sockets import hear, opening, say

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
MORTAL = ROOT / "tests" / "gateway" / "peers" / "mortal.py"
one_version = pytest.mark.parametrize("version", [2, pytest.param(1, marks=pytest.mark.slow)])


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_restart, "BACKOFF_SECONDS", 0.01)


def mortal(folder: Path, *more: str, versions: tuple[int, ...] = (), **settings: Any) -> AgentSource:
    """They are forked, for there are many."""
    command = fork_server().command(MORTAL.read_text(), str(folder / "kept"), *more)
    return AgentSource(spawn_source(command, cwd=str(ROOT), env={}), versions, **settings)


async def said(raw: RawHttp, session_id: str, text: str, id: int) -> str:
    """What the agent answers to a prompt."""
    before = len(texts(raw.heard))
    await raw.post(prompt(id, session_id, text), session_id)
    answer = await raw.answer(id)
    assert "result" in answer, answer
    await until(lambda: len(texts(raw.heard)) > before)
    await until(lambda: not raw.served.hub.sessions[session_id].is_running)  # in version 2 the answer is not the end
    return "".join(texts(raw.heard)[before:])


async def die(raw: RawHttp, session_id: str, id: int) -> None:
    """The agent's process is killed in the middle of a turn."""
    before = len(texts(raw.heard))
    await raw.post(prompt(id, session_id, "farewell"), session_id)
    await until(lambda: len(texts(raw.heard)) > before)
    os.kill(int("".join(texts(raw.heard)[before:]).split()[1]), signal.SIGKILL)


def running(served: Served) -> int:
    return sum(agent_side.has_process for agent_side in served.hub.agents)


def ends(raw: RawHttp) -> list[Message]:
    """How turns ended, as a client of version 2 hears it."""
    updates = [m["params"]["update"] for m in raw.heard if m.get("method") == "session/update"]
    return [u for u in updates if u.get("sessionUpdate") == "state_update" and u.get("stopReason")]


@one_version
async def test_the_sessions_of_a_connection_share_a_process(version: int, tmp_path: Path) -> None:
    async with gateway(mortal(tmp_path), tmp_path) as served, raw_http(served, version) as raw:
        pids = {(await said(raw, await raw.session(id), "pid", id + 10)).split()[0] for id in (1, 2, 3)}
        assert len(pids) == 1


@one_version
async def test_or_each_has_its_own_which_ends_with_it(version: int, tmp_path: Path) -> None:
    agents = mortal(tmp_path, each_session=True)
    async with gateway(agents, tmp_path) as served, raw_http(served, version) as raw:
        sessions = [await raw.session(id) for id in (1, 2, 3)]
        pids = {(await said(raw, session_id, "pid", 10 + at)).split()[0] for at, session_id in enumerate(sessions)}
        assert len(pids) == 3
        assert len(served.hub.agents) == 3
        await raw.post({"id": 20, "method": "session/close", "params": {"sessionId": sessions[2]}}, sessions[2])
        assert "result" in await raw.answer(20)
        await until(lambda: len(served.hub.agents) == 2)
        # One that is opened again gets one as well, and the death of one harms no other.
        await die(raw, sessions[1], 21)
        await until(lambda: running(served) == 1)
        assert await said(raw, sessions[0], "still here", 22) == "still here"


@one_version
async def test_one_that_is_idle_is_stopped_and_wakes_for_the_next_prompt(version: int, tmp_path: Path) -> None:
    agents = mortal(tmp_path, "forgetful", idle_seconds=0.2)
    async with gateway(agents, tmp_path) as served, raw_http(served, version) as raw:
        session_id = await raw.session()
        params = {"sessionId": session_id, "configId": "depth", "value": "deep"} | (
            {"type": "id"} if version == 2 else {}
        )
        await raw.post({"id": 5, "method": "session/set_config_option", "params": params}, session_id)
        assert "result" in await raw.answer(5)
        first = await said(raw, session_id, "pid", 6)
        await until(lambda: running(served) == 0)
        heard = len(raw.heard)
        second = await said(raw, session_id, "pid", 7)
        assert first.split()[0] != second.split()[0]
        assert (first.split()[1], second.split()[1]) == ("deep", "deep")
        told = [m for m in raw.heard[heard:] if "user_message" in str(m) and first in str(m)]
        assert told == []  # the old story was not told again


async def test_one_that_wakes_with_other_options_is_not_prompted_before_that_was_seen(tmp_path: Path) -> None:
    agents = mortal(tmp_path, "stubborn")
    async with gateway(agents, tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        params = {"sessionId": session_id, "configId": "depth", "value": "deep"}
        await raw.post({"id": 5, "method": "session/set_config_option", "params": params}, session_id)
        assert "result" in await raw.answer(5)
        (agent_side,) = served.hub.agents
        resting = agent_side.stop_process()
        assert resting is not None
        await resting
        await raw.post(prompt(6, session_id, "pid"), session_id)
        assert (await raw.answer(6))["error"]["message"] == agent_restart.CHANGED
        updates = [m["params"]["update"] for m in raw.heard if m.get("method") == "session/update"]
        told = [update for update in updates if update["sessionUpdate"] == "config_option_update"]
        assert told[-1]["configOptions"][0]["currentValue"] == "shallow"
        assert (await said(raw, session_id, "pid", 7)).endswith("shallow")


@pytest.mark.slow
async def test_one_that_works_or_waits_is_not_idle(tmp_path: Path) -> None:
    async with gateway(mortal(tmp_path, idle_seconds=0.05), tmp_path) as served, raw_http(served, 2) as raw:
        session_id = await raw.session()
        await raw.post(prompt(5, session_id, "wait"), session_id)
        await until(lambda: served.hub.sessions[session_id].is_running)
        (agent_side,) = served.hub.agents
        agent_side.stop_if_idle(1e12)
        agent_side.stop_if_idle(1e12)
        assert agent_side.stop_process() is None
        assert agent_side.has_process


async def test_one_that_cannot_open_its_sessions_again_is_not_stopped(tmp_path: Path) -> None:
    # In version 2 every agent says that it can.
    agents = mortal(tmp_path, "none", versions=(1,), idle_seconds=0.05)
    async with gateway(agents, tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await said(raw, session_id, "hello", 5)
        (agent_side,) = served.hub.agents
        assert not agent_side._can_stop
        assert await said(raw, session_id, "again", 6) == "again"


@both_versions
async def test_one_that_dies_ends_its_turn_with_an_error_and_the_session_goes_on(version: int, tmp_path: Path) -> None:
    async with gateway(mortal(tmp_path), tmp_path) as served, raw_http(served, version) as raw:
        session_id = await raw.session()
        first = await said(raw, session_id, "pid", 5)
        await die(raw, session_id, 6)
        if version == 1:
            assert (await raw.answer(6))["error"]["message"] == "The agent is gone"
        else:
            await until(lambda: any(end["stopReason"] == "error" for end in ends(raw)))
        assert raw.connection in served.hub.connections
        second = await said(raw, session_id, "pid", 7)
        assert first.split()[0] != second.split()[0]
        assert served.hub.monitor.counts["agents_died"] == 1


@one_version
async def test_one_that_dies_and_keeps_nothing_loses_its_sessions_and_says_so(version: int, tmp_path: Path) -> None:
    agents = mortal(tmp_path, "none", versions=(version,))
    async with gateway(agents, tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await die(raw, session_id, 6)
        assert (await raw.answer(6))["error"]["message"] == "The agent is gone"
        await raw.post(prompt(7, session_id, "hello"), session_id)
        assert (await raw.answer(7))["error"]["code"] == -32002
        assert await said(raw, await raw.session(8), "a new one", 9) == "a new one"


async def test_one_that_dies_again_and_again_is_not_started_for_ever(tmp_path: Path) -> None:
    async with gateway(mortal(tmp_path, restarts=1), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        for id in (10, 11):
            await die(raw, session_id, id)
            assert (await raw.answer(id))["error"]["message"] == "The agent is gone"
        await raw.post(prompt(13, session_id, "hello"), session_id)
        refused = (await raw.answer(13))["error"]["message"]
        assert refused == "The agent has failed 2 times; connect anew"
        assert served.hub.monitor.counts["agents_died"] == 2
        # The session is not lost with it: a client that connects anew has an agent that counts from nothing.
        async with raw_http(served) as another:
            params = {"sessionId": session_id, "cwd": os.getcwd(), "mcpServers": []}
            await another.post({"id": 5, "method": "session/load", "params": params}, session_id)
            assert "result" in await another.answer(5)
            assert await said(another, session_id, "well", 6) == "well"


@pytest.mark.slow
async def test_a_turn_that_ends_well_makes_up_for_a_death(tmp_path: Path) -> None:
    async with gateway(mortal(tmp_path, restarts=1), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        for id in (10, 20):
            await die(raw, session_id, id)
            assert "error" in await raw.answer(id)
            assert await said(raw, session_id, "well", id + 1) == "well"


async def test_only_so_many_run_at_once_and_the_idle_make_room(tmp_path: Path) -> None:
    agents = mortal(tmp_path, each_session=True, most=2)
    async with gateway(agents, tmp_path) as served, raw_http(served, 2) as raw:
        one, two = await raw.session(1), await raw.session(2)
        assert await said(raw, one, "a", 10) == "a"
        await raw.post(prompt(11, two, "wait"), two)
        await until(lambda: served.hub.sessions[two].is_running)
        three = await raw.session(3)  # the first one sleeps for it
        assert running(served) == 2
        await raw.post(prompt(12, three, "wait"), three)
        await until(lambda: served.hub.sessions[three].is_running)
        await raw.post(prompt(13, one, "b"), one)
        assert (await raw.answer(13))["error"]["data"] == {"retry": True}


async def test_a_program_that_is_not_there_is_an_error_and_no_connection(tmp_path: Path) -> None:
    nothing = AgentSource(spawn_source([str(tmp_path / "nothing")], cwd=None, env={}), ())
    async with gateway(nothing, tmp_path) as served, raw_http(served, greet=False) as raw:
        answer = await raw.post(hello(1))
        assert answer.json()["error"]["code"] == -32603
        assert not served.hub.connections
        await until(lambda: not served.hub.agents)


async def test_a_client_that_greets_a_broken_agent_again_and_again_leaves_nothing(tmp_path: Path) -> None:
    broken = AgentSource(spawn_source([sys.executable, "-c", "pass"], cwd=None, env={}), ())
    async with gateway(broken, tmp_path) as served, opening(served) as socket:
        for id in range(3):
            await say(socket, hello(1, id))
            assert (await hear(socket, id))[0]["error"]["message"] == "The agent is gone"
        assert not served.hub.agents


def test_a_dialect_is_a_version_or_a_name() -> None:
    from dragoman.gateway.agent_source import spoken_in

    assert spoken_in("") == ((), "")
    assert spoken_in("v1") == ((1,), "")
    assert spoken_in("agentao") == ((), "agentao")


def test_the_entry_of_the_fleet_says_how_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    mine = {"command": sys.executable, "process": "session", "idleTimeoutMs": 2000, "maxRecoverableRestarts": 1}
    servers = {"mine": mine | {"dialect": "v1"}, "plain": {"command": sys.executable}, "not": {"command": "no-such-x"}}
    (tmp_path / "acp.json").write_text(json.dumps({"servers": servers}))
    agents = registry_agent("mine").agents
    assert agents[1:9] == ((1,), "", True, 2.0, 1, 64, 60.0, True)
    assert registry_agent("plain").agents[1:9] == ((), "", False, 900.0, 3, 64, 60.0, True)
    with pytest.raises(UsageError, match="no-such-x is not installed"):
        registry_agent("not")
