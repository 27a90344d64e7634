"""Sessions with several subscribers, without one, and with an owner."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.gateway import open_questions
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import RawHttp, counting, gateway, raw_http
from tests.support.messages import Message, prompt, texts
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio
mixed = pytest.mark.parametrize(("one", "two"), [(1, 1), (1, 2), (2, 1), (2, 2)])


def asking() -> Agent:
    """An agent that asks once, and says what it was told."""
    agent = Agent("asking")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        allowed = await session.ask_permission("May I?")
        await session.say(f"allowed {bool(allowed)}")

    return agent


def resume(session_id: str, id: int = 5) -> Message:
    return {"id": id, "method": "session/resume", "params": {"sessionId": session_id, "cwd": "/", "mcpServers": []}}


async def asked(raw: RawHttp) -> Message:
    """The permission this client was asked for."""
    await until(lambda: any(m.get("method") == "session/request_permission" for m in raw.heard))
    return next(m for m in raw.heard if m.get("method") == "session/request_permission")


def choice(question: Message, kind: str) -> Message:
    option = next(o for o in question["params"]["options"] if o["kind"] == kind)
    return {"id": question["id"], "result": {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}}


async def root_session(raw: RawHttp, id: int = 1) -> str:
    await raw.post({"id": id, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
    session_id: str = (await raw.answer(id))["result"]["sessionId"]
    assert await raw.open(session_id) == 200
    return session_id


@mixed
async def test_two_clients_watch_one_session_and_the_first_answer_counts(one: int, two: int, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions")
    agent = Agent("asking", store=store)
    agent.prompt(asking()._core.prompt_handler)  # type: ignore[arg-type]
    async with gateway(agent, tmp_path) as served, raw_http(served, one) as left, raw_http(served, two) as right:
        session_id = await root_session(left)
        assert await right.open(session_id) == 200
        await right.post(resume(session_id), session_id)
        assert "result" in await right.answer(5)
        await left.post(prompt(2, session_id), session_id)
        there, here = await asked(right), await asked(left)
        assert (await right.post(choice(there, "allow_once"), session_id)).status_code == 202
        for raw in (left, right):
            await until(lambda raw=raw: texts(raw.heard) == ["allowed True"])  # type: ignore[misc]
        # Too late: another client has answered already. It does no harm.
        assert (await left.post(choice(here, "reject_once"), session_id)).status_code == 202
        await left.answer(2)
        cancelled = [m for m in left.heard if m.get("method") == "$/cancel_request"]
        assert [m["params"]["requestId"] for m in cancelled] == [here["id"]]
    await store.close()


@both_versions
async def test_a_permission_waits_for_a_client_that_comes_back(version: int, tmp_path: Path) -> None:
    async with gateway(asking(), tmp_path) as served, raw_http(served, version) as raw:
        session_id = await root_session(raw)
        await raw.post(prompt(2, session_id), session_id)
        question = await asked(raw)
        await raw.drop(session_id)
        await raw.drop()
        await until(lambda: not served.hub.connections[raw.connection].connection.readers)
        assert served.hub.sessions[session_id].is_running
        assert await raw.open(session_id) == 200
        await raw.post(choice(question, "allow_once"), session_id)
        await until(lambda: texts(raw.heard) == ["allowed True"])


@both_versions
async def test_a_permission_with_no_client_connected_is_a_reject_in_the_end(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_questions, "ALONE_SECONDS", 0.2)
    async with gateway(asking(), tmp_path) as served, raw_http(served, version) as raw:
        session_id = await root_session(raw)
        await raw.post(prompt(2, session_id), session_id)
        await asked(raw)
        await raw.drop(session_id)
        await raw.drop()
        await until(lambda: not served.hub.sessions[session_id].is_running)
        assert await raw.open(session_id) == 200
        await until(lambda: texts(raw.heard) == ["allowed False"])


async def test_a_subscriber_keeps_a_permission_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_questions, "ALONE_SECONDS", 0)
    async with gateway(asking(), tmp_path) as served, raw_http(served) as raw:
        session_id = await root_session(raw)
        await raw.post(prompt(2, session_id), session_id)
        question = await asked(raw)
        await settled()  # a timer for a missing client would be due at once
        assert served.hub.sessions[session_id].is_running
        await raw.post(choice(question, "allow_once"), session_id)
        await until(lambda: texts(raw.heard) == ["allowed True"])


async def test_a_token_that_may_only_read_hears_and_neither_prompts_nor_answers(tmp_path: Path) -> None:
    async with gateway(asking(), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served, 2) as raw, raw_http(served, 2, token=watcher) as reader:
            session_id = await root_session(raw)
            assert await reader.open(session_id) == 200
            await reader.post(prompt(8, session_id), session_id)
            assert (await reader.answer(8))["error"]["data"] == {"reason": "scope"}
            await raw.post(prompt(2, session_id), session_id)
            question = await asked(raw)
            assert not [m for m in reader.heard if m.get("method") == "session/request_permission"]
            assert (await reader.post(choice(question, "allow_once"), session_id)).status_code == 400
            await raw.post(choice(question, "reject_once"), session_id)
            await until(lambda: texts(reader.heard) == ["allowed False"])


async def test_a_session_belongs_to_the_principal_that_made_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions")
    agent = Agent("kept", store=store)
    agent.prompt(counting(1)._core.prompt_handler)  # type: ignore[arg-type]
    async with gateway(agent, tmp_path) as served:
        other = served.token_of("other")
        async with raw_http(served) as mine, raw_http(served, token=other) as theirs:
            session_id = await root_session(mine)
            assert await theirs.open(session_id) == 404
            await theirs.post(resume(session_id), session_id)
            unknown = "sess_" + "0" * 32
            await theirs.post(resume(unknown, 6), unknown)
            refused, never = await theirs.answer(5), await theirs.answer(6)
            assert refused["error"]["code"] == never["error"]["code"] == -32002
            assert refused["error"]["message"] == never["error"]["message"]
            for raw, found in ((mine, [session_id]), (theirs, [])):
                await raw.post({"id": 7, "method": "session/list", "params": {}})
                listed = (await raw.answer(7))["result"]["sessions"]
                assert [info["sessionId"] for info in listed] == found
    await store.close()


@pytest.mark.usefixtures("_often_swept")
async def test_a_new_connection_finds_a_session_whose_turn_still_runs(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def pause() -> None:
        await go_on.wait()

    store = SqliteStore(tmp_path / "sessions")
    agent = Agent("kept", store=store)
    agent.prompt(counting(3, pause)._core.prompt_handler)  # type: ignore[arg-type]
    async with gateway(agent, tmp_path) as served:
        async with raw_http(served, 2) as first:
            session_id = await root_session(first)
            await first.post(prompt(2, session_id), session_id)
            await until(lambda: texts(first.heard))
        await served.forget(first.connection)
        assert served.hub.sessions[session_id].is_running
        async with raw_http(served, 2) as second:
            assert await second.open(session_id) == 200
            await second.post(resume(session_id), session_id)
            assert "result" in await second.answer(5)
            go_on.set()
            await until(lambda: texts(second.heard) == ["1 ", "2 "])
            await until(lambda: not served.hub.sessions[session_id].is_running)
        await served.forget(second.connection)
        await until(lambda: not served.hub.agents)
        async with raw_http(served, 1) as third:  # from the store, with its whole story
            load = {"sessionId": session_id, "cwd": "/", "mcpServers": []}
            assert await third.open(session_id) == 200
            await third.post({"id": 5, "method": "session/load", "params": load}, session_id)
            assert "result" in await third.answer(5)
            assert "".join(texts(third.heard)) == "0 1 2 "
    await store.close()


@pytest.mark.usefixtures("_often_swept")
async def test_revoking_a_token_ends_its_connections(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        phone = served.token_of("phone")
        async with raw_http(served, token=phone) as raw:
            assert served.tokens.revoke("phone")
            await until(lambda: raw.connection not in served.hub.connections)
            assert (await raw.post({"id": 1, "method": "session/list"})).status_code == 401


@pytest.mark.parametrize(("client", "spoken"), [(1, 2), (2, 1)])
@pytest.mark.parametrize("known", [True, False])
async def test_a_client_reaches_an_agent_of_the_other_version(
    client: int, spoken: int, known: bool, tmp_path: Path
) -> None:
    agent = Agent("other", protocol=spoken)
    agent.prompt(asking()._core.prompt_handler)  # type: ignore[arg-type]
    versions = (spoken,) if known else ()
    async with gateway(agent, tmp_path, versions=versions) as served, raw_http(served, client) as raw:
        session_id = await root_session(raw)
        await raw.post(prompt(2, session_id), session_id)
        question = await asked(raw)
        await raw.post(choice(question, "allow_once"), session_id)
        await until(lambda: texts(raw.heard) == ["allowed True"])
        assert "result" in await raw.answer(2)
