"""Back-pressure through a bridge: a side that does not read stops the other, and nothing is lost."""

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman import limits
from dragoman.bridge import GONE, UNFORWARDED_BYTES
from dragoman.bridge.forwarding import ForwardedRequest, OpenWork
from dragoman.transports.memory import Faults
from dragoman.vocabulary.requests import ListSessions
from tests.support.bridge_peers import LOAD, Peer, error, every_pair, in_session, note, request, text, update
from tests.support.waiting import settled

COUNT = 300
SIZE = 36_000
MUCH = COUNT * SIZE
# The outbox, what waits before it, and the pipes.
HELD = limits.OUTBOX_BYTES + UNFORWARDED_BYTES + limits.MIB


@pytest.mark.parametrize(("front", "back", "loading"), [(1, 2, True), (2, 2, False)])
async def test_an_editor_that_does_not_read_stops_the_agent_and_loses_nothing(
    front: int, back: int, loading: bool
) -> None:
    chunks = [update("agent_message_chunk", messageId="a", content=text(f"{n} {'x' * SIZE}")) for n in range(COUNT)]
    async with in_session(front, back) as (editor, agent):
        if loading:
            editor.say(LOAD[front])  # while an answer is waited for the limit is the same
            await agent.hear()
        for _ in range(2):
            editor.deaf()
            agent.say(*chunks)
            assert MUCH - await stuck(agent) < HELD
            editor.listen()
            assert await editor.hear_many(COUNT) == chunks


async def stuck(peer: Peer) -> int:
    """How much of what it says has not left when nothing moves any more."""
    await settled()
    return len(peer.unsent)


@pytest.mark.parametrize(("front", "back"), [(1, 2), (2, 1)])
async def test_an_agent_that_does_not_read_stops_the_editor_and_loses_nothing(front: int, back: int) -> None:
    notes = [note("_much", n=n, data="x" * SIZE) for n in range(COUNT)]
    async with in_session(front, back) as (editor, agent):
        for _ in range(2):
            agent.deaf()
            editor.say(*notes)
            assert MUCH - await stuck(editor) < HELD
            agent.listen()
            assert await agent.hear_many(COUNT) == notes


async def test_a_slow_editor_may_read_on_for_as_long_as_it_reads_when_the_agent_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "CLOSE_FLUSH_SECONDS", 0.1)
    chunks = [update("agent_message_chunk", messageId="a", content=text("x" * SIZE))] * 175
    async with in_session(2, 2, to_editor=Faults(per_turn=400)) as (editor, agent):
        agent.say(*chunks)
        await agent.leave_when_all_is_said()
        assert await editor.ended() == chunks


@every_pair
async def test_a_request_that_never_reached_the_agent_is_answered(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.deaf()
        editor.say(*[note("_much", data="x" * SIZE)] * 150, request("x", "_late"), request("y", "_later"))
        await stuck(editor)
        await agent.leave()
        assert await editor.ended() == [error("x", -32603, GONE), error("y", -32603, GONE)]


@pytest.mark.parametrize(("front", "back"), [(1, 2), (2, 1)])
async def test_one_message_larger_than_all_limits_but_its_own_passes(
    front: int, back: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INBOX_BYTES", limits.OUTBOX_BYTES)
    large = update("agent_message_chunk", messageId="a", content=text("x" * (limits.INBOX_BYTES + limits.MIB)))
    async with in_session(front, back) as (editor, agent):
        agent.say(note("_first"), large, note("_last"))
        assert await editor.hear() == note("_first")
        assert await editor.hear() == large
        assert await editor.hear() == note("_last")


async def test_a_request_that_is_asked_again_is_known_by_its_last_number_alone() -> None:
    unfinished = OpenWork()
    side: Any = SimpleNamespace(on_sent=unfinished.add, on_end=unfinished.remove)
    crossing = ForwardedRequest(side, side, ListSessions(), 7)
    crossing.on_sent(1)
    crossing.on_sent(2)
    assert unfinished.find(1) is None
    assert unfinished.find(2) is crossing
