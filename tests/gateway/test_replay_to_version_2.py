"""A client of version 2 in front of an agent of version 1: what it is told when a session is opened again."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import RawHttp, gateway, raw_http
from tests.support.messages import Message, prompt
from tests.support.waiting import until

from .test_shared_session import root_session

pytestmark = pytest.mark.anyio
START: Message = {"replayFrom": {"type": "start"}}


def speaking(store: SqliteStore) -> Agent:
    agent = Agent("old", protocol=1, store=store)

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        await session.think("Hm.")
        for word in ("Hel", "lo"):
            await session.say(word)

    return agent


async def resumed(raw: RawHttp, session_id: str, **more: Any) -> list[Message]:
    """What a client is told before the answer to its resume."""
    begin = len(raw.heard)
    opening = {"sessionId": session_id, "cwd": "/", **more}
    await raw.post({"id": 5, "method": "session/resume", "params": opening}, session_id)
    assert "result" in await raw.answer(5)
    told = raw.heard[begin : next(i for i, m in enumerate(raw.heard) if m.get("id") == 5)]
    return [message["params"]["update"] for message in told]


WHOLE = ["user_message", "agent_thought", "agent_message", "session_info_update"]


@pytest.mark.parametrize(("more", "kinds"), [(START, WHOLE), ({}, [])], ids=["replay", "no replay"])
async def test_a_resume_is_answered_behind_whole_messages_and_the_state(
    more: Message, kinds: list[str], tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "sessions")
    async with gateway(speaking(store), tmp_path, versions=(1,)) as served:
        async with raw_http(served, 2) as first:
            session_id = await root_session(first)
            await first.post(prompt(2, session_id), session_id)
            await until(lambda: any(m.get("params", {}).get("update", {}).get("stopReason") for m in first.heard))
        async with raw_http(served, 2) as second:
            assert await second.open(session_id) == 200
            told = await resumed(second, session_id, **more)
    assert [update["sessionUpdate"] for update in told] == [*kinds, "state_update"]
    assert told[-1]["state"] == "idle"
    if kinds:
        assert told[2]["content"] == [{"type": "text", "text": "Hello"}]
    await store.close()
