"""A prompt is accepted when it is on disk, and shown after that: whatever dies in between, nothing accepted is lost."""

import json
import threading
from pathlib import Path

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.store.sqlite import SqliteStore
from tests.support.raw_peer import Message, prompt
from tests.support.served_agent import opened, served
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

    store._keeper.put(job)


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
async def test_whoever_gives_up_before_a_prompt_is_accepted_has_cancelled_it(tmp_path: Path, version: int) -> None:
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
