"""Our own requests: replies, refusals, the second name of a method, cancelling."""

import asyncio
from typing import Any

import pytest

from dragoman import limits
from dragoman.errors import (
    PeerError,
    RequestFailed,
    UsageError,
)
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult, Reply
from dragoman.vocabulary.requests import ListSessions, NewSession, SessionInfo, SessionList
from tests.support.links import agent_link, client_link, next_call, next_call_of, ping, wait_for_ever
from tests.support.messages import Message
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("B13")
async def test_answers_in_any_order_find_their_callers() -> None:
    async with client_link() as end:
        calls = [asyncio.ensure_future(end.link.ask(Extension("_a", {"n": n}))) for n in range(100)]
        await until(lambda: len(end.wire.heard) == 101)
        for asked in reversed(end.wire.heard[1:]):
            end.wire.say({"id": asked["id"], "result": asked["params"]["n"]})
        assert [await call for call in calls] == [ExtensionResult(n) for n in range(100)]


@pytest.mark.parametrize(
    "answer", [{"error": {"code": -5, "message": "no"}}, {"error": {"code": -5, "message": "no", "data": [1]}}]
)
async def test_a_refusal_reaches_its_caller_whole(answer: Message) -> None:
    async with client_link() as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        end.wire.say({"id": (await next_call(end.wire))["id"], **answer})
        with pytest.raises(RequestFailed) as caught:
            await call
        assert (caught.value.code, caught.value.message, caught.value.data) == (-5, "no", answer["error"].get("data"))


async def test_an_answer_that_makes_no_sense_ends_the_call() -> None:
    async with client_link() as end:
        call = asyncio.ensure_future(end.link.ask(NewSession("/")))
        end.wire.say({"id": (await next_call(end.wire))["id"], "result": {"sessionId": 5}})
        with pytest.raises(PeerError):
            await call


class Watching:
    """A watch that must know when a request leaves and when it is answered."""

    def __init__(self) -> None:
        self.log: list[object] = []

    def on_sent(self, number: int) -> None:
        self.log.append(number)

    def on_reply(self) -> None:
        self.log.append("heard")


NOT_FOUND = {"code": -32601, "message": "Method not found"}
RENAMING = "iac-code"  # a dialect in which a list has two names


async def _refuse(wire: RawPeer, **error: Any) -> tuple[int, str]:
    """The next call, refused: its number and its name."""
    call = await next_call(wire)
    wire.say({"id": call["id"], "error": {**NOT_FOUND, **error}})
    return call["id"], call["method"]


@pytest.mark.requirement("8.1.12")
async def test_what_a_peer_does_not_know_is_asked_under_its_other_name() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        watch = Watching()
        replies: list[Reply] = []
        call = asyncio.ensure_future(end.link.ask(ListSessions("/"), watch, replies.append))
        first, name = await _refuse(end.wire)
        again = await next_call(end.wire)
        assert (name, again["method"], again["params"]) == ("session/list", "sessions/list", {"cwd": "/"})
        end.wire.say({"id": again["id"], "result": {"sessions": [{"sessionId": "s"}]}})
        found = SessionList([SessionInfo("s", "/")])
        assert await call == found
        # It is one request, asked under two names: the refusal was no answer.
        assert (again["id"], watch.log, replies) == (first, [first, "heard"], [found])


@pytest.mark.requirement("8.1.12")
async def test_what_fails_under_both_names_has_failed() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        watch = Watching()
        call = asyncio.ensure_future(end.link.ask(ListSessions("/"), watch))
        first = await _refuse(end.wire)
        second = await _refuse(end.wire, data="second")
        with pytest.raises(RequestFailed) as caught:
            await call
        assert (caught.value.code, caught.value.data) == (-32601, "second")
        assert [first[1], second[1]] == ["session/list", "sessions/list"]
        assert (second[0], watch.log) == (first[0], [first[0], "heard"])
        # And from now on there is one name.
        later = asyncio.ensure_future(end.link.ask(ListSessions("/")))
        assert (await _refuse(end.wire))[1] == "sessions/list"
        with pytest.raises(RequestFailed):
            await later
        assert len(end.wire.heard) == 4


@pytest.mark.requirement("8.1.12")
async def test_two_that_are_refused_together_are_both_asked_again() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        calls = [asyncio.ensure_future(end.link.ask(ListSessions("/"))) for _ in range(2)]
        asked = [await next_call(end.wire) for _ in calls]
        end.wire.say(*({"id": call["id"], "error": NOT_FOUND} for call in asked))
        for _ in calls:
            again = await next_call(end.wire)
            assert again["method"] == "sessions/list"
            end.wire.say({"id": again["id"], "result": {"sessions": []}})
        assert [await call for call in calls] == [SessionList([])] * 2


@pytest.mark.requirement("8.1.12")
async def test_any_other_failure_is_the_failure_at_once() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        call = asyncio.ensure_future(end.link.ask(ListSessions("/")))
        await _refuse(end.wire, code=-32603)
        with pytest.raises(RequestFailed):
            await call
        assert len(end.wire.heard) == 2


async def test_a_call_given_up_before_it_is_asked_again_is_not() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        call = asyncio.ensure_future(end.link.ask(ListSessions("/")))
        asked = await next_call(end.wire)
        call.cancel()
        assert (await end.wire.hear())["method"] == "$/cancel_request"
        end.wire.say({"id": asked["id"], "error": NOT_FOUND}, {"method": "_note", "params": {}})
        await until(lambda: bool(end.above.log))
        assert call.cancelled()
        assert len(end.wire.heard) == 3


async def test_everywhere_else_a_refusal_is_a_refusal() -> None:
    async with client_link(1) as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_list")))
        await _refuse(end.wire)
        with pytest.raises(RequestFailed):
            await call
        assert len(end.wire.heard) == 2


@both_versions
async def test_a_text_that_is_no_unicode_is_our_callers_mistake(version: int) -> None:
    async with client_link(version) as end:
        for request in (NewSession("/\udcff"), Extension("_a", {"half": "\ud800"})):
            with pytest.raises(UsageError, match="no Unicode"):
                await end.link.ask(request)
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        end.wire.say({"id": (await next_call(end.wire))["id"], "result": 1})
        assert await call == ExtensionResult(1)


async def test_a_cancelled_call_is_cancelled_at_the_peer_and_its_late_answer_ignored() -> None:
    async with client_link() as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        number = (await next_call(end.wire))["id"]
        call.cancel()
        withdrawn = await end.wire.hear()
        assert withdrawn == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": number}}
        end.wire.say({"id": number, "result": "late"}, {"method": "_note", "params": {}})
        await until(lambda: bool(end.above.log))
        assert call.cancelled()
        assert end.above.noises == []  # it was to be expected


@pytest.mark.parametrize("when", ["same breath", "while it runs"])
async def test_a_request_that_the_peer_cancels_is_answered_so(when: str) -> None:
    async with agent_link() as end:
        end.above.answer = wait_for_ever
        end.wire.say(ping(1))
        if when != "same breath":
            await until(lambda: bool(end.above.log))
            await settled()
        end.wire.say({"method": "$/cancel_request", "params": {"requestId": 1}})
        error = (await end.wire.answer(1))["error"]
        assert error == {"code": -32800, "message": "Request cancelled"}
        end.wire.say({"method": "$/cancel_request", "params": {"requestId": 1}}, ping(1))
        await settled()
        assert len(await end.wire.answers(1)) == 1  # the id is free again, and its second request runs


async def test_a_call_cancelled_while_it_waits_for_room_is_never_sent_and_leaves_its_slot() -> None:
    async with client_link() as end:
        end.wire.pause()
        end.link.send_notification_now(ExtensionNote("_fill", {"x": "x" * (limits.OUTBOX_BYTES + PIPE)}))
        waiting = [asyncio.ensure_future(end.link.ask(Extension("_never"))) for _ in range(limits.IN_FLIGHT + 5)]
        await settled()
        for call in waiting:
            call.cancel()
        await asyncio.wait(waiting)
        assert not end.link.busy
        end.wire.resume()
        call = asyncio.ensure_future(end.link.ask(Extension("_b")))
        asked = await next_call_of(end.wire, "_b")
        end.wire.say({"id": asked["id"], "result": 1})
        assert await call == ExtensionResult(1)
        assert "_never" not in {m.get("method") for m in end.wire.heard}
