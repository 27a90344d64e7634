"""A prompt is accepted when it is on disk, and shown after that: whatever dies in between, nothing accepted is lost."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session, session_core
from dragoman.store.contract import StoreFailed
from dragoman.store.entries import EventEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import UserMessage
from tests.support.messages import Message, prompt, updates
from tests.support.served_agent import end_of_turn, opened, served
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


def agent_of(store: SqliteStore) -> Agent:
    agent = Agent("kept", store=store)

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        await session.say("yes")

    return agent


def hold_up(store: SqliteStore, free: threading.Event) -> None:
    """A disk that takes its time."""

    def job() -> None:
        free.wait(10)

    store._engine.put(job)


def is_user_message(message: Message) -> bool:
    update = message.get("params", {}).get("update", {})
    return str(update.get("sessionUpdate")).startswith("user_message")


async def test_a_prompt_is_accepted_when_it_is_on_disk_and_shown_after_that(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    free = threading.Event()
    async with served(agent_of(store), 2) as wire:
        session_id = await opened(wire)
        hold_up(store, free)
        before = len(wire.heard)
        wire.say(prompt(2, session_id))
        await settled()
        assert wire.heard[before:] == []
        free.set()
        await until(lambda: any(map(is_user_message, wire.heard)))
        assert wire.heard[before]["id"] == 2
        assert is_user_message(wire.heard[before + 1])
    await store.close()


@pytest.mark.parametrize("version", [1, 2])
async def test_cancelling_a_prompt_before_it_is_accepted_cancels_its_turn(tmp_path: Path, version: int) -> None:
    store = SqliteStore(tmp_path)
    free = threading.Event()
    async with served(agent_of(store), version) as wire:
        session_id = await opened(wire)
        hold_up(store, free)
        wire.say(prompt(2, session_id), {"method": "$/cancel_request", "params": {"requestId": 2}})
        await settled()
        free.set()
        # Version 1 has a word for a cancelled prompt; in version 2 the request is refused, and its turn ends by itself.
        refused = {"error": {"code": -32800, "message": "Request cancelled"}}
        cancelled = {"result": {"stopReason": "cancelled"}}
        assert await wire.answer(2) == {"jsonrpc": "2.0", "id": 2, **(cancelled if version == 1 else refused)}
        if version == 2:
            await until(lambda: any('"idle"' in json.dumps(message) for message in wire.heard))
        wire.say(prompt(3, session_id))
        assert "result" in await wire.answer(3)
    await store.close()


def steered_agent(store: SqliteStore, before: Callable[[], None], stopped: Callable[[], None] = lambda: None) -> Agent:
    """An agent that accepts a queued prompt as soon as there is one.

    `before` is called in the step before that, `stopped` when the handler ends.
    """
    agent = Agent("steered", store=store, steering=True)

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        await until(lambda: len(session_core(session).queue) > 0)
        before()
        try:
            for queued in await session.queued_prompts():
                await session.say(queued.text)
        finally:
            stopped()

    return agent


async def stored_prompts(folder: Path, session_id: str) -> list[str]:
    store = SqliteStore(folder)
    found: list[str] = []
    async for records in store.read(session_id):
        for record in records:
            if isinstance(record.entry, EventEntry) and isinstance(record.entry.event, UserMessage):
                found.append(text_of(record.entry.event.content or []))
    await store.close()
    return found


async def test_a_cancel_while_a_queued_prompt_is_written_leaves_it_accepted(tmp_path: Path) -> None:
    """Its entry may be on disk already, so it cannot be rejected any more."""
    store = SqliteStore(tmp_path)
    free, accepting, stopped = threading.Event(), asyncio.Event(), asyncio.Event()

    def before() -> None:
        hold_up(store, free)
        accepting.set()

    async with served(steered_agent(store, before, stopped.set), 2) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        assert "result" in await wire.answer(2)
        wire.say(prompt(3, session_id, "more"))
        await accepting.wait()
        wire.say({"method": "session/cancel", "params": {"sessionId": session_id}})
        await stopped.wait()
        free.set()
        accepted = await wire.answer(3)
        assert "result" in accepted
        assert await end_of_turn(wire, 2, 2) == {"stopReason": "cancelled"}
        later = wire.heard[wire.heard.index(accepted) :]
        assert [kind for kind in updates(later) if kind in ("user_message", "idle")] == ["user_message", "idle"]
    await store.close()
    assert await stored_prompts(tmp_path, session_id) == ["go", "more"]


async def test_a_queued_prompt_that_cannot_be_written_is_answered_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise StoreFailed("the disk is full")

    def break_disk() -> None:
        monkeypatch.setattr(store._engine, "append", fail)

    async with served(steered_agent(store, break_disk), 2) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        assert "result" in await wire.answer(2)
        wire.say(prompt(3, session_id, "more"))
        assert "error" in await wire.answer(3)
        assert "error" in await end_of_turn(wire, 2, 2)
        monkeypatch.undo()
    await store.close()
    assert await stored_prompts(tmp_path, session_id) == ["go"]
