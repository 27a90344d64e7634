"""A client that waits finds things as they are afterwards, and not as they were."""

from pathlib import Path

import pytest

from tests.support.gateway import RawHttp, gateway, raw_http
from tests.support.messages import Message, hello, prompt
from tests.support.waiting import until

from .counters import counters, heard, loaded, loading, noted, opened

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


def closing(session_id: str, id: int) -> Message:
    return {"id": id, "method": "session/close", "params": {"sessionId": session_id}}


async def test_a_session_that_is_closed_while_another_waits_for_its_story_is_opened_anew(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with (
        gateway(counters(agent, renames=True), tmp_path) as served,
        raw_http(served) as first,
        raw_http(served) as second,
        raw_http(served) as third,
    ):
        session_id = await first.session()
        (agent / "hold").touch()
        await second.post(loading(session_id, 5), session_id)
        await until(lambda: len(opened(agent)) == 1)
        await third.post(loading(session_id, 6), session_id)
        await first.post(closing(session_id, 8), session_id)
        assert "result" in await first.answer(8)
        (agent / "hold").unlink()
        assert "result" in await third.answer(6)
        assert len(opened(agent)) == 2
        assert await third.open(session_id) == 200
        assert "here" in await heard(third, session_id, "here", 9)


async def test_so_is_one_that_two_wanted_to_open_at_once(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with (
        gateway(counters(agent, renames=True, each_session=True), tmp_path) as served,
        raw_http(served) as first,
        raw_http(served) as second,
        raw_http(served) as third,
    ):
        session_id = await first.session()
        await first.post(closing(session_id, 2), session_id)
        assert "result" in await first.answer(2)
        for raw in (second, third):
            await raw.session()  # so each has to start a process for the next one
        (agent / "hold").touch()
        (agent / "shut").touch()  # both wait for their process, however late the second comes
        begun = len(noted(agent, "clients"))
        await second.post(loading(session_id, 5), session_id)
        await third.post(loading(session_id, 6), session_id)
        await until(lambda: len(noted(agent, "clients")) == begun + 2)
        (agent / "shut").unlink()
        await until(lambda: len(opened(agent)) == 1)
        await until(lambda: len([agent_side for agent_side in served.hub.agents if not agent_side.is_closed]) == 4)
        await first.post(closing(session_id, 8), session_id)
        assert "result" in await first.answer(8)
        (agent / "hold").unlink()
        # The client that got the history lost it with the process of the session; the other has it opened.
        (raw,) = [raw for raw, id in ((second, 5), (third, 6)) if "result" in await raw.answer(id)]
        assert len(opened(agent)) == 2
        assert await raw.open(session_id) == 200
        assert "here" in await heard(raw, session_id, "here", 9)


async def test_a_prompt_that_waited_for_a_session_that_was_closed_is_refused(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with (
        gateway(counters(agent, renames=True), tmp_path) as served,
        raw_http(served) as first,
        raw_http(served) as second,
    ):
        session_id = await first.session()
        (agent / "hold").touch()
        await second.post(loading(session_id, 5), session_id)
        await until(lambda: len(opened(agent)) == 1)
        await first.post(prompt(7, session_id), session_id)
        await first.post(closing(session_id, 8), session_id)
        assert "result" in await first.answer(8)
        (agent / "hold").unlink()
        # A version 1 client is told that its turn was cancelled; the agent has never heard of it.
        assert (await first.answer(7))["result"] == {"stopReason": "cancelled"}
        await second.answer(5)
        await first.post({"id": 9, "method": "session/list", "params": {}})
        await first.answer(9)  # behind everything the agent was told
        assert noted(agent, "prompts") == []


async def test_a_file_is_read_where_a_client_is_connected(tmp_path: Path) -> None:
    async def greeted(raw: RawHttp) -> None:
        greeting = hello(1)
        greeting["params"]["clientCapabilities"] = {"fs": {"readTextFile": True}}
        raw.connection = (await raw.post(greeting)).headers["Acp-Connection-Id"]
        assert await raw.open() == 200

    def asked(raw: RawHttp) -> list[Message]:
        return [m for m in raw.heard if m.get("method") == "fs/read_text_file"]

    async with (
        gateway(counters(tmp_path / "agent", renames=True), tmp_path) as served,
        raw_http(served, greet=False) as away,
        raw_http(served, greet=False) as here,
    ):
        for raw in (away, here):
            await greeted(raw)
        session_id = await away.session()
        assert "result" in await loaded(here, session_id)
        await away.leave()
        await until(lambda: not served.hub.connections[away.connection].is_connected)
        await here.post(prompt(6, session_id, "read"), session_id)
        await until(lambda: asked(here))
        await here.post({"id": asked(here)[0]["id"], "result": {"content": "the text"}}, session_id)
        assert "result" in await here.answer(6)
        assert asked(away) == []
