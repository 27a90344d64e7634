"""How many requests are in flight, ours and theirs."""

import asyncio

import pytest

from dragoman import limits
from dragoman.vocabulary.asking import Extension, ExtensionResult
from dragoman.vocabulary.requests import CancelTurn, CloseSession, ListSessions, SessionList
from tests.support.links import (
    agent_link,
    client_link,
    next_call_of,
    ping,
    wait_for_ever,
)
from tests.support.messages import Message
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


async def test_we_keep_at_most_128_of_our_own_unanswered_and_closing_and_listing_pass() -> None:
    async with client_link() as end:
        calls = [asyncio.ensure_future(end.link.ask(Extension("_a", {"n": n}))) for n in range(200)]
        await settled()

        def asked() -> list[Message]:
            return [m for m in end.wire.heard if m.get("method") == "_a"]

        assert (len(asked()), end.link.busy) == (limits.IN_FLIGHT, True)
        listing = asyncio.ensure_future(end.link.ask(ListSessions()))
        closing = asyncio.ensure_future(end.link.ask(CloseSession("s")))
        end.wire.say({"id": (await next_call_of(end.wire, "session/list"))["id"], "result": {"sessions": []}})
        end.wire.say({"id": (await next_call_of(end.wire, "session/close"))["id"], "result": {}})
        assert await listing == SessionList([])
        await closing
        answered = 0
        while answered < 200:
            for one in asked()[answered:]:
                end.wire.say({"id": one["id"], "result": one["params"]["n"]})
                answered += 1
            await settled()
        assert [await call for call in calls] == [ExtensionResult(n) for n in range(200)]
        assert not end.link.busy


async def test_128_requests_are_worked_on_and_the_next_is_told_to_retry() -> None:
    async with agent_link() as end:
        end.above.answer = wait_for_ever
        end.wire.say(*[ping(n) for n in range(1, 130)])
        refused = await end.wire.answer(129)
        assert refused["error"] == {"code": -32001, "message": "Too many requests in flight", "data": {"retry": True}}
        assert len(end.above.log) == limits.IN_FLIGHT
        end.wire.say({"method": "session/cancel", "params": {"sessionId": "s"}})
        end.wire.say({"id": 200, "method": "session/list", "params": {}})
        await until(lambda: len(end.above.log) == limits.IN_FLIGHT + 2)
        assert end.above.log[-2:] == [CancelTurn("s"), ListSessions()]
        for id in (5, 200):
            end.wire.say({"method": "$/cancel_request", "params": {"requestId": id}})
            assert (await end.wire.answer(id))["error"]["code"] == -32800
        end.above.answer = lambda request: ExtensionResult("room again")
        end.wire.say(ping(130))
        assert (await end.wire.answer(130))["result"] == "room again"
