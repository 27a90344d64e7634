"""The end: every call fails once, what was asked before is answered, within a bound."""

import asyncio

import pytest

from dragoman import limits
from dragoman.errors import (
    LinkClosed,
)
from dragoman.link import Link
from dragoman.transports.memory import Faults, memory_pair
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult, Reply, Request
from dragoman.vocabulary.hello import AgentHello, ClientHello, Implementation
from tests.support.links import (
    Above,
    agent_link,
    client_link,
    ping,
    wait_for_ever,
)
from tests.support.messages import greeting, hello
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("B14")
@pytest.mark.parametrize("how", ["EOF", "dropped", "closed"])
async def test_every_pending_call_fails_once_and_later_ones_at_once(how: str) -> None:
    ours, theirs = memory_pair(PIPE, to_right=Faults(dropped_after=2000 if how == "dropped" else None))
    above = Above()
    link = Link(ours, above, "client")
    link.start()
    wire = RawPeer(theirs)
    greeted = asyncio.ensure_future(link.initialize(ClientHello()))
    wire.say({"id": (await wire.hear())["id"], "result": greeting(2)})
    await greeted
    calls = [asyncio.ensure_future(link.ask(Extension("_a"))) for _ in range(200)]
    await settled()
    if how == "EOF":
        wire.end()
    elif how == "closed":
        await link.close()
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(end) for end in ends} == {LinkClosed}
    await link.wait_until_closed()
    with pytest.raises(LinkClosed):
        await link.ask(Extension("_a"))
    with pytest.raises(LinkClosed):
        await link.send_notification(ExtensionNote("_a"))
    assert (len(above.closed), link.closed) == (1, True)
    await link.close()
    await link.close()


async def test_after_eof_what_was_asked_before_it_is_still_answered() -> None:
    async with agent_link() as end:
        going = asyncio.Event()

        async def later(request: Request) -> Reply:
            await going.wait()
            return ExtensionResult("still")

        end.above.answer = later
        end.wire.say(*[ping(n) for n in range(1, 6)])
        end.wire.end()
        await until(lambda: bool(end.above.closed))
        going.set()
        await until(lambda: end.wire.lost == [None])
        assert [m["result"] for m in end.wire.heard[1:]] == ["still"] * 5


async def test_after_eof_a_handler_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EOF_ANSWER_SECONDS", 0.02)
    async with agent_link() as end:
        end.above.answer = wait_for_ever
        end.wire.say(ping(1))
        end.wire.end()
        await end.link.wait_until_closed()
        assert end.link.closed


async def test_a_loss_drops_what_waits_and_cancels_what_runs() -> None:
    ours, theirs = memory_pair(PIPE, to_left=Faults(dropped_after=600))
    above = Above()
    ended = []

    async def work(request: Request) -> Reply:
        try:
            return await wait_for_ever(request)
        except asyncio.CancelledError:
            ended.append(1)
            raise

    above.answer = work
    link = Link(ours, above, "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say(hello(1), ping(1))
    await until(lambda: bool(above.log))
    wire.say(ping(2, pad="x" * 600))
    await link.wait_until_closed()
    assert (ended, len(above.closed), link.closed) == ([1], 1, True)


async def test_finishing_answers_what_was_asked_and_hears_no_more() -> None:
    async with agent_link() as end:
        going = asyncio.Event()

        async def later(request: Request) -> Reply:
            await going.wait()
            return ExtensionResult("answered")

        end.above.answer = later
        end.wire.say(ping(1))
        await until(lambda: len(end.above.log) == 1)
        finishing = asyncio.ensure_future(end.link.finish())
        await settled()
        end.wire.say(ping(2))
        await settled()
        going.set()
        await finishing
        await until(lambda: end.wire.lost == [None])
        assert [m["id"] for m in end.wire.heard] == [0, 1]
        assert len(end.above.log) == 1


async def test_closing_says_what_waits_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async with client_link(capacity=100) as end:
        await end.link.send_notification(ExtensionNote("_last", {"x": "x" * 10_000}))
        await end.link.close()
        await until(lambda: "_last" in {m.get("method") for m in end.wire.heard})
    monkeypatch.setattr(limits, "CLOSE_FLUSH_SECONDS", 0.02)
    async with client_link(capacity=100) as end:
        end.wire.pause()
        await end.link.send_notification(ExtensionNote("_last", {"x": "x" * 10_000}))
        await end.link.close()
        assert end.link.closed


async def test_a_hello_that_is_ready_after_the_end_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """The link is closed before its transport is, and the handler that makes the hello is cancelled behind that."""
    ours, theirs = memory_pair(PIPE)
    above, ready = Above(), asyncio.get_running_loop().create_future()
    above.on_initialize = lambda hello: ready  # type: ignore[method-assign]
    link = Link(ours, above, "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say(hello(2))
    await until(lambda: link.state.value == "greeting")
    close = ours.close

    async def close_late() -> None:
        ready.set_result(AgentHello(Implementation("late", "1")))
        await settled()
        await close()

    monkeypatch.setattr(ours, "close", close_late)
    await link.close()
    assert (above.bugs, wire.heard, len(above.closed)) == ([], [], 1)
    await wire.leave()
