"""Clients of iac-code's HTTP on `/acp`: they know a connection and its one stream, and no header for a session."""

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import RawHttp, counting, gateway, raw_http
from tests.support.messages import prompt, texts
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
OPENING = {"cwd": os.getcwd(), "mcpServers": []}


def asking(folder: Path) -> Agent:
    agent = Agent("asking", store=SqliteStore(folder / "store"))

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        await session.say(f"allowed {bool(await session.ask_permission('May I?'))}")

    return agent


async def question(raw: RawHttp) -> Any:
    await until(lambda: [m for m in raw.heard if m.get("method") == "session/request_permission"])
    return next(m for m in raw.heard if m.get("method") == "session/request_permission")


async def test_a_client_that_never_names_a_session_in_a_header_has_everything_on_its_one_stream(tmp_path: Path) -> None:
    async with gateway(asking(tmp_path), tmp_path) as served:
        async with raw_http(served) as raw:
            session_id = await raw.session(stream=False)
            assert (await raw.post(prompt(2, session_id))).status_code == 202
            asked = await question(raw)
            no = {"outcome": {"outcome": "selected", "optionId": asked["params"]["options"][-1]["optionId"]}}
            assert (await raw.post({"id": asked["id"], "result": no})).status_code == 202
            assert (await raw.answer(2))["result"]["stopReason"] == "end_turn"
            assert texts(raw.heard) == ["allowed False"]
            assert (await raw.post(prompt(3, session_id))).status_code == 202
            await until(lambda: served.hub.sessions[session_id].is_running)
            cancel = {"method": "session/cancel", "params": {"sessionId": session_id}}
            assert (await raw.post(cancel)).status_code == 202
            assert (await raw.answer(3))["result"]["stopReason"] == "cancelled"
            assert list(raw.by_stream) == [""]
        async with raw_http(served) as again:
            await again.post({"id": 4, "method": "session/load", "params": {"sessionId": session_id, **OPENING}})
            assert "error" not in await again.answer(4)
            assert texts(again.heard) == ["allowed False"]
            assert list(again.by_stream) == [""]


async def test_the_stream_is_dropped_in_mid_turn_and_nothing_is_lost(tmp_path: Path) -> None:
    async with gateway(asking(tmp_path), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session(stream=False)
        last = raw.by_stream[""][-1][0]
        await raw.drop()
        await raw.post(prompt(2, session_id))
        await until(lambda: served.hub.sessions[session_id].is_running)
        assert await raw.open(after=last) == 200
        asked = await question(raw)
        await raw.post({"id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}})
        await raw.answer(2)
        assert texts(raw.heard) == ["allowed False"]


async def test_the_header_is_still_needed_by_a_client_that_has_used_it_and_for_sessions_that_are_not_open_here(
    tmp_path: Path,
) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw, raw_http(served) as other:
        session_id = await raw.session(stream=False)
        assert (await other.post(prompt(2, session_id))).status_code == 400
        assert (await raw.post(prompt(2, "sess_unknown"))).status_code == 400
        assert (await raw.post(prompt(2, session_id), session_id)).status_code == 202
        await raw.answer(2)
        assert (await raw.post(prompt(3, session_id))).status_code == 400
