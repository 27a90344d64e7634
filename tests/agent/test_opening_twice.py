"""One session asked for twice in one process: the second request is told what is the case, and what to do."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.store.sqlite import SqliteStore
from tests.support.messages import Message, prompt, texts
from tests.support.raw_peer import RawPeer
from tests.support.served_agent import end_of_turn, opened, served
from tests.support.store_holder import holding
from tests.support.versions import both_versions

OPENING = "The session is just being opened on this connection: wait for that answer, then ask again"
CLOSING = "The session is just being closed on this connection: wait for that answer, then ask again"
ELSEWHERE = "The session is already open in this process, on another connection: close it there first"
PROCESS = "The session is open in another process: close it there first"


@asynccontextmanager
async def agent_in(folder: Path) -> AsyncIterator[Agent]:
    store = SqliteStore(folder)
    agent = Agent("x", store=store)

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say("hello")

    try:
        yield agent
    finally:
        await store.close()


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Agent]:
    async with agent_in(tmp_path / "sessions") as agent:
        yield agent


def load(version: int, id: int, session_id: str, *, replay: bool = True) -> Message:
    """Open a session again, with its history unless told otherwise."""
    params: Message = {"sessionId": session_id, "cwd": os.getcwd(), "mcpServers": []}
    if version == 2 and replay:
        params["replayFrom"] = {"type": "start"}
    return {"id": id, "method": "session/load" if version == 1 and replay else "session/resume", "params": params}


def about(method: str, id: int, session_id: str) -> Message:
    return {"id": id, "method": method, "params": {"sessionId": session_id}}


async def stored(agent: Agent, version: int) -> str:
    """A stored session with one turn, which is not open."""
    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await end_of_turn(wire, 2, version)
        wire.say(about("session/close", 3, session_id))
        await wire.answer(3)
    return session_id


async def refusal(wire: RawPeer, id: int) -> tuple[int, str, object]:
    error = (await wire.answer(id))["error"]
    return error["code"], error["message"], error["data"]


@pytest.mark.parametrize("replay", [True, False], ids=["load", "resume"])
@both_versions
async def test_two_requests_in_one_breath_open_it_once(agent: Agent, version: int, replay: bool) -> None:
    session_id = await stored(agent, version)
    async with served(agent, version) as wire:
        wire.say(load(version, 1, session_id, replay=replay), load(version, 2, session_id, replay=replay))
        assert await refusal(wire, 2) == (-32600, OPENING, {"reason": "open"})
        assert "result" in await wire.answer(1)
        wire.say(prompt(3, session_id))
        await end_of_turn(wire, 3, version)


@both_versions
async def test_one_after_the_other_the_history_is_told_twice(agent: Agent, version: int) -> None:
    session_id = await stored(agent, version)
    async with served(agent, version) as wire:
        for id in (1, 2):
            wire.say(load(version, id, session_id))
            assert "result" in await wire.answer(id)
        assert str(wire.heard).count("hello") == 2


@both_versions
async def test_a_session_is_opened_again_behind_the_answer_to_its_close(agent: Agent, version: int) -> None:
    session_id = await stored(agent, version)
    async with served(agent, version) as wire:
        wire.say(load(version, 1, session_id))
        await wire.answer(1)
        wire.say(about("session/close", 2, session_id), load(version, 3, session_id))
        assert await refusal(wire, 3) == (-32600, CLOSING, {"reason": "open"})
        await wire.answer(2)
        wire.say(load(version, 4, session_id))
        assert "result" in await wire.answer(4)


@both_versions
async def test_a_close_behind_a_load_closes_what_was_loaded(agent: Agent, version: int) -> None:
    session_id = await stored(agent, version)
    async with served(agent, version) as wire:
        wire.say(load(version, 1, session_id), about("session/close", 2, session_id))
        assert "result" in await wire.answer(1)
        assert "result" in await wire.answer(2)
        wire.say(prompt(3, session_id))
        assert (await refusal(wire, 3))[0] == -32002


@both_versions
async def test_a_session_of_another_connection_is_neither_opened_nor_deleted(agent: Agent, version: int) -> None:
    async with served(agent, version) as one, served(agent, version) as other:
        session_id = await opened(one)
        other.say(load(version, 1, session_id), load(version, 2, session_id, replay=False))
        for id in (1, 2):
            assert (await refusal(other, id))[0] == -32600
        other.say(load(version, 3, session_id))
        assert await refusal(other, 3) == (-32600, ELSEWHERE, {"reason": "open"})
        other.say(about("session/delete", 4, session_id))
        assert await refusal(other, 4) == (-32600, ELSEWHERE, {"reason": "open"})
        one.say(prompt(2, session_id))
        await end_of_turn(one, 2, version)
        assert texts(one.heard) == ["hello"]
        one.say(about("session/close", 3, session_id))
        await one.answer(3)
        other.say(load(version, 5, session_id))
        assert "result" in await other.answer(5)


@both_versions
async def test_a_session_that_is_open_can_be_forked_and_deleted_by_its_own_client(agent: Agent, version: int) -> None:
    async with served(agent, version) as one, served(agent, version) as other:
        session_id = await opened(one)
        for id, wire in enumerate((one, other), 2):
            params = {"sessionId": session_id, "cwd": os.getcwd(), "mcpServers": []}
            wire.say({"id": id, "method": "session/fork", "params": params})
            assert (await wire.answer(id))["result"]["sessionId"] != session_id
        one.say(about("session/delete", 9, session_id))
        assert "result" in await one.answer(9)


@both_versions
async def test_a_session_of_another_process_is_refused_in_other_words(
    agent: Agent, tmp_path: Path, version: int
) -> None:
    session_id = await stored(agent, version)
    process = holding(tmp_path / "sessions", session_id)
    async with served(agent, version) as wire:
        wire.say(load(version, 1, session_id))
        assert await refusal(wire, 1) == (-32600, PROCESS, {"reason": "held"})
    process.communicate("\n", timeout=30)


@both_versions
async def test_a_session_that_a_second_store_of_this_process_has_open_is_said_to_be_open_here(
    agent: Agent, tmp_path: Path, version: int
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "sessions")
    async with agent_in(tmp_path / "link") as second, served(agent, version) as one, served(second, version) as two:
        session_id = await opened(one)
        for id, message in ((1, load(version, 1, session_id)), (2, about("session/delete", 2, session_id))):
            two.say(message)
            assert await refusal(two, id) == (-32600, ELSEWHERE, {"reason": "open"})


@both_versions
async def test_a_session_of_another_folder_says_which_one(agent: Agent, tmp_path: Path, version: int) -> None:
    session_id = await stored(agent, version)
    async with served(agent, version) as wire:
        for id, is_open in ((1, False), (3, True)):
            elsewhere = load(version, id, session_id)
            elsewhere["params"]["cwd"] = str(tmp_path)
            wire.say(elsewhere)
            message = f"The session belongs to another folder: open it with the cwd {os.getcwd()}"
            assert await refusal(wire, id) == (-32602, message, {"cwd": os.getcwd()})
            if not is_open:
                wire.say(load(version, 2, session_id))
                await wire.answer(2)
