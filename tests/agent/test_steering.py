"""Steering: what becomes of words for a turn that runs, has ended, is cancelled, or was never begun."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session, session_core
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.identity import Identity
from tests.support.messages import Message, prompt, texts, updates
from tests.support.served_agent import opened, served
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
versions = pytest.mark.parametrize("version", [1, 2])


class Listener:
    """An agent that, when told "wait", takes what it was sent meanwhile once it may go on; else it answers at once."""

    def __init__(self, **settings: Any) -> None:
        self.go_on = asyncio.Event()
        self.sessions: list[Session] = []
        self.identities: list[Identity] = []
        self.agent = Agent("listener", **{"steering": True, **settings})
        self.agent.prompt(self._answer)

    async def _answer(self, session: Session, prompt: Prompt) -> None:
        self.sessions.append(session)
        self.identities.append(prompt.identity)
        await session.say(f"<{prompt.text}>")
        if prompt.text == "wait":
            await self.go_on.wait()
            for queued in await session.queued_prompts():
                await session.say(f"+{queued.text}")
        elif prompt.text == "deaf":
            await self.go_on.wait()

    async def until_queued(self) -> None:
        await until(lambda: len(session_core(self.sessions[0]).queue) > 0)


def steer(id: int, session_id: str, words: str = "more", **meta: Any) -> Message:
    message = {**prompt(id, session_id, words), "method": "_session/steering"}
    return {**message, "params": {**message["params"], "_meta": {"steering": meta}}} if meta else message


def outcome(answer: Message) -> Message:
    """Without the id that only version 2 carries."""
    found: Message = answer["result"]
    return {key: value for key, value in found.items() if key != "messageId"}


@pytest.mark.requirement("ED5")
@versions
async def test_words_for_a_running_turn_are_injected_when_the_agent_takes_them(version: int) -> None:
    listener = Listener()
    async with served(listener.agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id, "wait"))
        await until(lambda: "<wait>" in texts(wire.heard))
        wire.say(steer(3, session_id))
        await listener.until_queued()
        listener.go_on.set()
        assert outcome(await wire.answer(3)) == {"outcome": "injected"}
        await until(lambda: texts(wire.heard) == ["<wait>", "+more"])


@pytest.mark.requirement("ED5")
@versions
@pytest.mark.parametrize("stored", [False, True])
async def test_words_without_a_turn_begin_one(version: int, stored: bool, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path) if stored else None
    async with served(Listener(store=store).agent, version) as wire:
        session_id = await opened(wire)
        before = len(wire.heard)
        wire.say(steer(2, session_id))
        await until(lambda: texts(wire.heard) == ["<more>"])
        assert outcome(wire.heard[before]) == {"outcome": "startedNewTurn"}  # before the turn's first event
        # Version 1 has no end for a turn that no prompt waits for; the session takes the next one.
        wire.say(prompt(3, session_id, "next"))
        await until(lambda: texts(wire.heard) == ["<more>", "<next>"])
        if version == 1:
            assert "user_message_chunk" not in updates(wire.heard)
    if store is not None:
        await store.close()


@versions
async def test_words_that_the_turn_did_not_take_begin_the_next_one(version: int) -> None:
    listener = Listener()
    async with served(listener.agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id, "deaf"))
        await until(lambda: "<deaf>" in texts(wire.heard))
        wire.say(steer(3, session_id))
        await listener.until_queued()
        listener.go_on.set()
        assert outcome(await wire.answer(3)) == {"outcome": "startedNewTurn"}
        await until(lambda: texts(wire.heard) == ["<deaf>", "<more>"])


@pytest.mark.requirement("ED5")
@versions
async def test_words_that_need_a_turn_begin_none(version: int) -> None:
    listener = Listener()
    required = {"outcome": "promptRequired", "reason": "noRunningTurn"}
    async with served(listener.agent, version) as wire:
        session_id = await opened(wire)
        wire.say(steer(2, session_id, idleBehavior="promptRequired"))
        assert outcome(await wire.answer(2)) == required
        wire.say(prompt(3, session_id, "deaf"))
        await until(lambda: "<deaf>" in texts(wire.heard))
        wire.say(steer(4, session_id, idleBehavior="promptRequired"), steer(5, session_id, "later"))
        await listener.until_queued()
        listener.go_on.set()
        assert outcome(await wire.answer(4)) == required
        assert outcome(await wire.answer(5)) == {"outcome": "startedNewTurn"}
        await until(lambda: texts(wire.heard) == ["<deaf>", "<later>"])


@pytest.mark.requirement("ED5")
@versions
async def test_words_for_a_turn_that_is_cancelled_have_failed(version: int) -> None:
    listener = Listener()
    async with served(listener.agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id, "wait"))
        await until(lambda: "<wait>" in texts(wire.heard))
        wire.say(steer(3, session_id))
        await listener.until_queued()
        wire.say({"method": "session/cancel", "params": {"sessionId": session_id}})
        assert outcome(await wire.answer(3)) == {"outcome": "failed"}
        assert texts(wire.heard) == ["<wait>"]


@versions
async def test_words_for_a_session_that_is_not_open_are_an_error(version: int) -> None:
    async with served(Listener().agent, version) as wire:
        await opened(wire)
        wire.say(steer(2, "no"))
        assert (await wire.answer(2))["error"]["code"] == -32002


@versions
async def test_an_agent_without_steering_does_not_have_the_method(version: int) -> None:
    async with served(Listener(steering=False).agent, version) as wire:
        session_id = await opened(wire)
        wire.say(steer(2, session_id))
        assert (await wire.answer(2))["error"]["code"] == -32601


async def test_an_author_may_serve_the_method_without_steering() -> None:
    agent = Listener(steering=False).agent

    @agent.extension("_session/steering")
    async def own(params: object) -> object:
        return {"outcome": "mine"}

    async with served(agent, 1) as wire:
        session_id = await opened(wire)
        wire.say(steer(2, session_id))
        assert (await wire.answer(2))["result"] == {"outcome": "mine"}


@versions
@pytest.mark.parametrize("first", ["wait", ""], ids=["running", "idle"])
async def test_steering_may_be_called_off_in_the_read_that_brings_it(version: int, first: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    listener = Listener(store=store)
    async with served(listener.agent, version) as wire:
        session_id = await opened(wire)
        if first:
            wire.say(prompt(2, session_id, first))
            await until(lambda: f"<{first}>" in texts(wire.heard))
        wire.say(steer(3, session_id), {"method": "$/cancel_request", "params": {"requestId": 3}})
        assert (await wire.answer(3))["error"]["code"] == -32800
        listener.go_on.set()
    await store.close()
