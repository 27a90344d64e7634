"""What one client, one room and one agent can hold here is bounded, and what is too much says so."""

from pathlib import Path

import pytest

from dragoman import limits
from dragoman.gateway import session_opener, shared_session
from dragoman.gateway.agent_side import AgentSide
from dragoman.link.pending_events import PendingEvents
from dragoman.vocabulary.events import AnyEvent
from tests.support.gateway import counting, gateway, raw_http
from tests.support.messages import prompt, texts
from tests.support.waiting import until

from .counters import counters, heard, loaded, loading, noted

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
NEW = {"method": "session/new", "params": {"cwd": "/", "mcpServers": []}}


async def test_a_connection_has_so_many_sessions_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_opener, "SESSIONS", 2)
    async with (
        gateway(counters(tmp_path / "agent", renames=True), tmp_path) as served,
        raw_http(served) as raw,
        raw_http(served) as other,
    ):
        one, _ = await raw.session(1), await raw.session(2)
        await raw.post(NEW | {"id": 3})
        message = (await raw.answer(3))["error"]["message"]
        assert message == "A connection has at most 2 sessions open; close one first"
        theirs = await other.session(1)
        await raw.post(loading(theirs, 4), theirs)
        assert (await raw.answer(4))["error"]["message"] == message
        assert "result" in await loaded(raw, one, 5)  # it has this one
        await raw.post({"id": 6, "method": "session/close", "params": {"sessionId": one}}, one)
        await raw.answer(6)
        assert await raw.session(7)


async def test_those_that_are_being_opened_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_opener, "SESSIONS", 2)
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        for id in range(1, 9):
            await raw.post(NEW | {"id": id})
        answers = [await raw.answer(id) for id in range(1, 9)]
        assert 1 <= sum("result" in answer for answer in answers) <= 2
        assert 1 <= len(served.hub.sessions) <= 2


async def test_a_session_has_so_many_watchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_session, "SUBSCRIBERS", 2)
    async with (
        gateway(counters(tmp_path / "agent", renames=True), tmp_path) as served,
        raw_http(served) as raw,
        raw_http(served) as second,
        raw_http(served) as third,
    ):
        session_id = await raw.session()
        assert await second.open(session_id) == 200
        assert await third.open(session_id) == 503
        await third.post(loading(session_id), session_id)
        assert (await third.answer(5))["error"]["message"] == "Too many watch this session already"
        await third.post(prompt(6, session_id), session_id)
        assert (await third.answer(6))["error"]["message"] == "Too many watch this session already"
        said = await heard(raw, session_id, "hello", 6)
        await until(lambda: said in texts(second.heard))
        assert texts(third.heard) == []
        assert "result" in await loaded(second, session_id, 7)


async def test_unknown_sessions_are_held_while_one_is_opened_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = [0, 0]
    hold = PendingEvents.hold

    def watched(pending: PendingEvents, session_id: str, event: AnyEvent, size: int) -> None:
        hold(pending, session_id, event, size)
        most[:] = max(most[0], pending.sessions), max(most[1], pending.size)

    monkeypatch.setattr(PendingEvents, "hold", watched)
    async with gateway(counters(tmp_path / "agent"), tmp_path) as served, raw_http(served) as raw:
        await raw.post({"id": 1, "method": "session/new", "params": {"cwd": "/flood", "mcpServers": []}})
        session_id = (await raw.answer(1))["result"]["sessionId"]
        assert await raw.open(session_id) == 200
        await until(lambda: texts(raw.heard) == ["early"])
        assert 0 < most[0] <= limits.IN_FLIGHT
        assert 0 < most[1] <= limits.EARLY_UPDATE_BYTES
        (agent_side,) = served.hub.agents
        await heard(raw, session_id, "stray", 2)
        assert (agent_side._events.pending_events.sessions, agent_side._events.pending_events.size) == (0, 0)


@pytest.mark.usefixtures("_often_swept")
async def test_one_that_fails_does_not_end_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[float] = []

    def look(agent_side: AgentSide, now: float) -> None:
        failed.append(now)
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(AgentSide, "stop_if_idle", look)
    async with gateway(counting(1), tmp_path) as served:
        async with raw_http(served) as raw:
            await until(lambda: len(failed) > 1)
        await served.forget(raw.connection)
        assert {str(bug) for bug in served.bugs} == {"a mistake of ours"}
        served.bugs.clear()


async def test_a_session_whose_owner_cannot_be_written_down_is_closed_again(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent, renames=True), tmp_path) as served, raw_http(served) as raw:
        (tmp_path / "owners.jsonl").mkdir()
        await raw.post(NEW | {"id": 1})
        assert (await raw.answer(1))["error"]["message"] == "The session cannot be kept; it was not opened"
        await until(lambda: noted(agent, "closed") == ["0"])
        assert not served.hub.sessions
        (bug,) = served.bugs
        assert isinstance(bug, OSError)
        served.bugs.clear()
        (tmp_path / "owners.jsonl").rmdir()
        session_id = await raw.session(2)
        assert session_id in (tmp_path / "owners.jsonl").read_text()
