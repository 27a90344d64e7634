"""A second client comes into a turn that runs: it is sent the state of the turn, and goes on with the first."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.gateway import shared_session, turn_buffer
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.options import Choice, Select
from tests.support.gateway import RawHttp, counting, gateway, raw_http
from tests.support.messages import Message, hello, prompt, texts
from tests.support.waiting import until

from .sockets import hear, opening, say

pytestmark = pytest.mark.anyio
mixed = pytest.mark.parametrize(("one", "two"), [(1, 1), (1, 2), (2, 1), (2, 2)])


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """In version 1 only an agent that keeps its sessions says that it can load them."""
    kept = SqliteStore(tmp_path / "sessions")
    yield kept
    await kept.close()


class Held:
    """An agent that says three numbers, and waits behind the second until it may go on."""

    def __init__(self, store: SqliteStore, options: Iterable[Select] = ()) -> None:
        self.go_on = asyncio.Event()
        self.agent = Agent("held", store=store, options=options)
        self.agent.prompt(self._reply)

    async def _reply(self, session: Any, prompt: Any) -> None:
        await session.say("0 ")
        await session.say("1 ")
        await self.go_on.wait()
        await session.say("2 ")


def loading(session_id: str, version: int, id: int = 5) -> Message:
    params = {"sessionId": session_id, "cwd": "/", "mcpServers": []}
    if version == 1:
        return {"id": id, "method": "session/load", "params": params}
    return {"id": id, "method": "session/resume", "params": params | {"replayFrom": {"type": "start"}}}


async def begun(raw: RawHttp) -> str:
    """A session whose turn runs and has said two things."""
    session_id = await raw.session()
    await raw.post(prompt(2, session_id, "please count"), session_id)
    await until(lambda: texts(raw.heard)[-2:] == ["0 ", "1 "])
    return session_id


def answer_in(messages: list[Message]) -> str:
    """What the agent has said: a whole message, or chunks, or chunks behind a whole message."""
    answer = ""
    for update in (m["params"]["update"] for m in messages if m.get("method") == "session/update"):
        if update["sessionUpdate"] == "agent_message":
            answer += "".join(block["text"] for block in update["content"])
        elif update["sessionUpdate"] == "agent_message_chunk":
            answer += update["content"]["text"]
    return answer


def missed(messages: list[Message]) -> list[int]:
    return [m["params"]["missed"] for m in messages if m.get("method") == "_gateway/missed"]


@mixed
async def test_a_client_that_joins_gets_the_turn_from_its_beginning_and_goes_on(
    one: int, two: int, store: SqliteStore, tmp_path: Path
) -> None:
    held = Held(store)
    async with gateway(held.agent, tmp_path) as served, raw_http(served, one) as first, raw_http(served, two) as second:
        session_id = await begun(first)
        await second.post(loading(session_id, two), session_id)
        assert "result" in await second.answer(5)
        assert answer_in(second.heard) == "0 1 "
        assert "please count" in str(second.heard)
        assert missed(second.heard) == []
        if two == 2:
            states = [m["params"]["update"].get("state") for m in second.heard if m.get("method") == "session/update"]
            assert "running" in states
        held.go_on.set()
        for raw in (first, second):
            await until(lambda raw=raw: answer_in(raw.heard) == "0 1 2 ")  # type: ignore[misc]
        assert "result" in await first.answer(2)


async def test_over_a_websocket_the_answer_comes_behind_what_is_told(store: SqliteStore, tmp_path: Path) -> None:
    held = Held(store)
    async with gateway(held.agent, tmp_path) as served, raw_http(served) as first, opening(served) as socket:
        session_id = await begun(first)
        await say(socket, hello(1))
        await hear(socket, 0)
        await say(socket, loading(session_id, 1))
        _, before = await hear(socket, 5)
        assert answer_in(before) == "0 1 "


async def test_without_a_replay_only_what_comes_is_heard(store: SqliteStore, tmp_path: Path) -> None:
    held = Held(store)
    async with gateway(held.agent, tmp_path) as served, raw_http(served) as first, raw_http(served, 2) as second:
        session_id = await begun(first)
        request = loading(session_id, 2)
        del request["params"]["replayFrom"]
        await second.post(request, session_id)
        assert "result" in await second.answer(5)
        assert (texts(second.heard), missed(second.heard)) == ([], [])
        held.go_on.set()
        await until(lambda: texts(second.heard) == ["2 "])


async def test_a_turn_before_this_one_is_a_gap_and_is_said(store: SqliteStore, tmp_path: Path) -> None:
    held = Held(store)
    async with gateway(held.agent, tmp_path) as served, raw_http(served) as first, raw_http(served) as second:
        session_id = await begun(first)
        held.go_on.set()
        await first.answer(2)
        held.go_on.clear()
        await first.post(prompt(3, session_id), session_id)
        await until(lambda: texts(first.heard) == ["0 ", "1 ", "2 ", "0 ", "1 "])
        await second.post(loading(session_id, 1), session_id)
        assert "result" in await second.answer(5)
        assert (answer_in(second.heard), missed(second.heard)) == ("0 1 ", [0])


async def test_what_is_no_longer_held_of_a_turn_is_counted(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_buffer, "TURN_BYTES", 10 * shared_session.SHORT_BYTES)
    go_on = asyncio.Event()
    pieces = iter(range(100))

    async def pause() -> None:
        if next(pieces) == 49:
            await go_on.wait()

    agent = Agent("counting", store=store)
    agent.prompt(counting(100, pause)._core.prompt_handler)  # type: ignore[arg-type]
    async with gateway(agent, tmp_path) as served, raw_http(served) as first, raw_http(served) as second:
        session_id = await first.session()
        await first.post(prompt(2, session_id), session_id)
        await until(lambda: len(texts(first.heard)) == 50)
        await second.post(loading(session_id, 1), session_id)
        assert "result" in await second.answer(5)
        told = answer_in(second.heard).split()
        assert 0 < len(told) <= 10
        assert told[-1] == "49"
        (count,) = missed(second.heard)
        assert count >= 50 - len(told)
        go_on.set()
        await until(lambda: answer_in(second.heard).endswith(" 99 "))
        assert answer_in(second.heard).split() == [str(number) for number in range(50 - len(told), 100)]


async def test_options_are_told_as_they_are_now(store: SqliteStore, tmp_path: Path) -> None:
    held = Held(store, [Select("depth", "Depth", "low", [Choice("low", "Low"), Choice("high", "High")])])
    async with gateway(held.agent, tmp_path) as served, raw_http(served) as first, raw_http(served) as second:
        session_id = await first.session()
        change = {"sessionId": session_id, "configId": "depth", "value": "high"}
        await first.post({"id": 4, "method": "session/set_config_option", "params": change}, session_id)
        await first.answer(4)
        await first.post(prompt(2, session_id), session_id)
        await until(lambda: texts(first.heard) == ["0 ", "1 "])
        await second.post(loading(session_id, 1), session_id)
        (option,) = (await second.answer(5))["result"]["configOptions"]
        assert option["currentValue"] == "high"


async def test_a_question_that_is_open_is_put_to_a_client_that_joins(store: SqliteStore, tmp_path: Path) -> None:
    agent = Agent("asking", store=store)

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        await session.say(f"allowed {bool(await session.ask_permission('May I?'))}")

    def asked(raw: RawHttp) -> list[Message]:
        return [m for m in raw.heard if m.get("method") == "session/request_permission"]

    async with gateway(agent, tmp_path) as served, raw_http(served) as first, raw_http(served) as second:
        session_id = await first.session()
        await first.post(prompt(2, session_id), session_id)
        await until(lambda: bool(asked(first)))
        await second.post(loading(session_id, 1), session_id)
        await until(lambda: bool(asked(second)))
        question = asked(second)[0]
        option = next(o for o in question["params"]["options"] if o["kind"] == "allow_once")
        outcome = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        await second.post({"id": question["id"], "result": outcome}, session_id)
        await until(lambda: texts(first.heard) == texts(second.heard) == ["allowed True"])


async def test_notices_that_are_shown_as_calls_have_other_ids_after_a_reconnect(
    store: SqliteStore, tmp_path: Path
) -> None:
    """A client that resumes keeps what it shows: a call of the same id would replace the notice before it."""
    agent = Agent("held", store=store, protocol=2)
    watched = [asyncio.Event(), asyncio.Event()]

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for event in watched:
            await event.wait()
            await session.notice("Trying again")

    async with gateway(agent, tmp_path, versions=(2,)) as served, raw_http(served, 2) as first:
        session_id = await first.session()
        await first.post(prompt(2, session_id, "go"), session_id)
        await first.answer(2)
        shown = [await notice_shown(served, session_id, event) for event in watched]
    assert len(set(shown)) == 2, shown


async def notice_shown(served: Any, session_id: str, watched: asyncio.Event) -> str:
    """The id of the first call that a client of version 1 is shown after it has joined."""
    async with raw_http(served, 1) as watcher:
        assert await watcher.open(session_id) == 200
        await watcher.post({**loading(session_id, 1), "method": "session/resume"}, session_id)
        await watcher.answer(5)
        watched.set()
        await until(lambda: bool(calls(watcher.heard)))
        return calls(watcher.heard)[0]


def calls(messages: list[Message]) -> list[str]:
    updates = [m["params"]["update"] for m in messages if m.get("method") == "session/update"]
    return [update["toolCallId"] for update in updates if update["sessionUpdate"] == "tool_call"]
