"""A reader that does not read: the agent waits, memory is bounded, and no other session is harmed."""

import asyncio
import gc

import pytest

from dragoman import limits
from dragoman.client.turn import Turn
from dragoman.transports.memory import MemoryTransport
from dragoman.vocabulary.events import AgentMessageChunk
from tests.client.raw_agent import RawAgent, connected, new_session
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio

INBOX = 200_000


@pytest.fixture(autouse=True)
def small_inbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INBOX_BYTES", INBOX)


def flood(agent: RawAgent, count: int = 1000, size: int = 1000, session_id: str = "s") -> None:
    agent.tell(*["x" * size] * count, session_id=session_id)


async def read_all(turn: Turn) -> int:
    return sum([isinstance(event, AgentMessageChunk) async for event in turn])


@both_versions
@pytest.mark.parametrize(("count", "size"), [(1000, 1000), (50, 20_000)])
async def test_a_turn_that_is_not_read_pauses_the_agent_and_goes_on_when_it_is(
    version: int, count: int, size: int
) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        flood(agent, count, size)
        agent.finish(number)
        await settled()
        assert agent.unsent > 500_000
        assert await read_all(turn) == count


@both_versions
async def test_an_answer_behind_a_turn_that_is_not_read_still_comes(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        flood(agent)
        agent.finish(number)
        await settled()
        other = await new_session(client, agent, "other")
        assert other.id == "other"
        assert await read_all(turn) == 1000


@both_versions
async def test_a_turn_that_is_not_read_still_counts_while_another_is_read(version: int) -> None:
    async with connected(version) as (client, agent):
        session, other = await new_session(client, agent), await new_session(client, agent, "other")
        unread, turn = session.prompt("unread"), other.prompt("read")
        await agent.accept()
        await agent.accept()
        reading = asyncio.ensure_future(read_all(turn))
        for _ in range(100):
            flood(agent, 10)
            flood(agent, 1, session_id="other")
        await settled()
        assert agent.unsent > 500_000
        assert len(unread.ready()) < 2 * INBOX // 1000
        # Once it is let go, the other one is read to its end.
        del unread
        gc.collect()
        await until(lambda: agent.unsent == 0)
        assert not reading.done()
        reading.cancel()


@both_versions
async def test_a_turn_without_a_reference_does_not_hold_up_the_agent(version: int) -> None:
    async with connected(version) as (client, agent):
        session, other = await new_session(client, agent), await new_session(client, agent, "other")
        turn = session.prompt("left alone")
        await agent.accept()
        del turn
        gc.collect()
        turn = other.prompt("read")
        number = await agent.accept()
        flood(agent)
        agent.tell("read", session_id="other")
        agent.finish(number, session_id="other")
        assert await read_all(turn) == 1


@both_versions
async def test_events_that_are_told_in_passing_never_pile_up(version: int) -> None:
    told: list[int] = []
    async with connected(version, on_event=lambda *_: told.append(1)) as (client, agent):
        await new_session(client, agent)
        flood(agent)
        await until(lambda: len(told) == 1000)


@both_versions
async def test_a_reader_that_keeps_up_is_never_paused(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[MemoryTransport] = []
    monkeypatch.setattr(MemoryTransport, "pause_reading", paused.append)
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        reading = asyncio.ensure_future(read_all(turn))
        flood(agent, 2000)
        agent.finish(number)
        assert await reading == 2000
    assert paused == []


@both_versions
async def test_a_client_that_only_asks_may_ask_for_ever(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are read by the calls that wait for them, so they never add up to something unread."""
    monkeypatch.setattr("dragoman.link.link._FLOOD_BYTES", 2 * INBOX)
    async with connected(version) as (client, agent):
        for _ in range(10):
            asked = asyncio.ensure_future(client.request("_many"))
            agent.say({"id": (await agent.request("_many"))["id"], "result": "x" * (INBOX // 2)})
            assert len(str(await asked)) == INBOX // 2
