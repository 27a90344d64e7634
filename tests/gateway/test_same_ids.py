"""Agents whose every process counts its session ids: what they call the same is never taken for the same."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.agent_restart import AMBIGUOUS, GONE, ID_IN_USE
from tests.support.gateway import RawHttp, gateway, raw_http
from tests.support.messages import prompt, texts
from tests.support.waiting import until

from .counters import counters, heard, loaded, loading, noted, opened

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def listed(raw: RawHttp, id: int) -> list[str]:
    await raw.post({"id": id, "method": "session/list", "params": {}})
    return [info["sessionId"] for info in (await raw.answer(id))["result"]["sessions"]]


async def test_two_people_hear_each_their_own(tmp_path: Path) -> None:
    async with (
        gateway(counters(tmp_path / "agent", renames=True), tmp_path) as served,
        raw_http(served, token=served.token_of("alice")) as alice,
        raw_http(served, token=served.token_of("bob")) as bob,
    ):
        hers, his = await alice.session(), await bob.session()
        assert hers != his
        assert "0" not in (hers, his)
        assert await bob.open(hers) == await bob.open("0") == 404
        await bob.post(prompt(3, hers), hers)
        assert (await bob.answer(3))["error"]["code"] == -32002
        first = await heard(alice, hers, "her secret", 4)
        second = await heard(bob, his, "his secret", 5)
        assert first.split()[0] != second.split()[0]  # each has a process
        assert texts(alice.heard) == ["early", first]
        assert texts(bob.heard) == ["early", second]


async def test_two_connections_of_one_person_do_so_too(tmp_path: Path) -> None:
    async with (
        gateway(counters(tmp_path / "agent", renames=True), tmp_path) as served,
        raw_http(served) as one,
        raw_http(served, 2) as two,
    ):
        first, second = await one.session(), await two.session()
        assert first != second
        assert "here" in await heard(one, first, "here", 4)
        assert "there" in await heard(two, second, "there", 5)
        assert "there" not in "".join(texts(one.heard))
        # What the other has opened can be joined under the name it has here.
        assert "result" in await loaded(two, first, 6)
        again = await heard(one, first, "both", 7)
        await until(lambda: again in texts(two.heard))


async def test_without_names_of_ours_the_second_is_refused_and_closed_in_its_agent(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent), tmp_path) as served, raw_http(served) as one:
        session_id = await one.session()
        assert session_id == "0"
        async with raw_http(served, token=served.token_of("bob")) as bob:
            await bob.post({"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
            assert (await bob.answer(1))["error"]["message"] == ID_IN_USE
            await until(lambda: noted(agent, "closed") == ["0"])
            assert await bob.open("0") == 404
        assert "mine" in await heard(one, session_id, "mine", 3)


async def test_an_id_that_two_people_have_is_opened_in_no_other_process(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent, renames=True), tmp_path) as served:
        alices, bobs = served.token_of("alice"), served.token_of("bob")
        async with raw_http(served, token=alices) as alice, raw_http(served, token=bobs) as bob:
            hers, his = await alice.session(), await bob.session()
            own = await alice.session(2)  # which bob's process has not given out
            assert all(not agent_side._can_stop for agent_side in served.hub.agents)
            for raw, session_id in ((alice, hers), (bob, his), (alice, own)):
                await raw.post({"id": 8, "method": "session/close", "params": {"sessionId": session_id}}, session_id)
                await raw.answer(8)
                raw.heard.clear()
            await alice.post({"id": 9, "method": "session/delete", "params": {"sessionId": hers}}, hers)
            assert (await alice.answer(9))["error"]["message"] == AMBIGUOUS
            assert (await loaded(alice, hers, 10))["error"]["message"] == AMBIGUOUS
            assert "result" in await loaded(alice, own, 11)
            assert [params["sessionId"] for params in opened(agent)] == ["1"]
            assert await listed(bob, 12) == ["z"]


async def test_a_list_and_a_restart_know_the_names(tmp_path: Path) -> None:
    agents = counters(tmp_path / "agent", renames=True)
    async with gateway(agents, tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        assert await listed(raw, 5) == [session_id, "z"]  # the other was made without a gateway
        async with raw_http(served, token=served.token_of("other", ("read", "prompt"))) as other:
            assert await listed(other, 5) == []
        async with raw_http(served, token=served.token_of("admin")) as other:
            assert await listed(other, 5) == ["z"]
            assert await other.open("0") == 404
            for id, message in ((6, prompt(6, "0")), (7, loading("0", 7))):
                await other.post(message, "0")
                assert (await other.answer(id))["error"]["message"] == "Session not found"
    (tmp_path / "tokens.json").unlink()
    async with gateway(agents, tmp_path) as served, raw_http(served) as raw:
        assert "result" in await loaded(raw, session_id)
        assert "again" in await heard(raw, session_id, "again", 6)


async def test_what_the_agent_asks_and_is_told_names_the_right_session(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent, renames=True), tmp_path) as served, raw_http(served) as raw:
        await raw.session(1)
        session_id = await raw.session(2)
        await raw.post(prompt(3, session_id, "ask 1"), session_id)
        await until(lambda: any(m.get("method") == "session/request_permission" for m in raw.heard))
        (question,) = [m for m in raw.heard if m.get("method") == "session/request_permission"]
        assert question["params"]["sessionId"] == session_id
        outcome = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        await raw.post({"id": question["id"], "result": outcome}, session_id)
        await raw.answer(3)
        await raw.post(prompt(4, session_id, "wait"), session_id)
        await until(lambda: noted(agent, "ticks"))
        await raw.post({"method": "session/cancel", "params": {"sessionId": "1"}}, "1")  # no name of a session here
        await raw.post({"method": "session/cancel", "params": {"sessionId": session_id}}, session_id)
        assert (await raw.answer(4))["result"]["stopReason"] == "cancelled"
        assert noted(agent, "cancelled") == ["1"]


async def test_it_sleeps_and_wakes_under_the_agents_name(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent, renames=True), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        first = await heard(raw, session_id, "pid", 3)
        (agent_side,) = served.hub.agents
        resting = agent_side.stop_process()
        assert resting is not None
        await asyncio.shield(resting)
        raw.heard.clear()
        second = await heard(raw, session_id, "pid", 4)
        assert first.split()[0] not in second
        assert [params["sessionId"] for params in opened(agent)] == ["0"]


async def test_nor_in_the_next_process_of_its_own_agent(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with (
        gateway(counters(agent, renames=True), tmp_path) as served,
        raw_http(served, token=served.token_of("alice")) as alice,
        raw_http(served, token=served.token_of("bob")) as bob,
    ):
        hers, _ = await alice.session(), await bob.session()
        await alice.post(prompt(3, hers, "die"), hers)
        assert "error" in await alice.answer(3)
        for id, message, reason in (
            (4, prompt(4, hers), GONE),
            (5, loading(hers, 5), AMBIGUOUS),
            (6, loading(hers, 6), AMBIGUOUS),
        ):
            await alice.post(message, hers)
            assert (await alice.answer(id))["error"]["message"] == reason
        assert opened(agent) == []


async def test_a_process_that_was_started_again_counts_again(tmp_path: Path) -> None:
    async with gateway(counters(tmp_path / "agent", renames=True), tmp_path) as served, raw_http(served) as raw:
        first = await raw.session(1)
        await raw.post(prompt(2, first, "die"), first)
        assert "error" in await raw.answer(2)
        second = await raw.session(3)
        assert second != first
        assert "here" in await heard(raw, second, "here", 4)
        await raw.post(prompt(5, first), first)
        assert (await raw.answer(5))["error"]["code"] == -32002  # what it was called is another's now
        await raw.post(loading(first, 6), first)
        assert (await raw.answer(6))["error"]["message"] == AMBIGUOUS


async def test_what_is_said_beside_a_session_is_heard_by_its_people_only(tmp_path: Path) -> None:
    def notes(raw: RawHttp) -> list[Any]:
        return [m["params"] for m in raw.heard if m.get("method") == "_own/note"]

    async with (
        gateway(counters(tmp_path / "agent", renames=True), tmp_path) as served,
        raw_http(served, token=served.token_of("alice")) as alice,
        raw_http(served, token=served.token_of("bob")) as bob,
    ):
        own = await alice.session()
        for raw in (alice, bob):  # it was not made here, so both may see it
            assert "result" in await loaded(raw, "z")
        await heard(alice, own, "note", 6)
        await heard(bob, "z", "note", 7)
        await until(lambda: len(notes(alice)) == 4)  # on three streams
        assert {note.get("sessionId") for note in notes(alice)} == {None, own, "z"}
        await listed(bob, 8)  # behind whatever came on its own stream
        assert [note.get("sessionId") for note in notes(bob)] == ["z"]
