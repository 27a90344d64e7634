"""Peers and handlers that do not read: what waits, and what goes on."""

import asyncio
import json
import tracemalloc
from collections.abc import Callable

import pytest

from dragoman import limits
from dragoman.errors import (
    LinkClosed,
)
from dragoman.link import Link
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult, Reply
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk
from dragoman.vocabulary.hello import ClientHello
from dragoman.vocabulary.requests import CancelTurn, ListSessions, SessionInfo, SessionList
from tests.support.links import (
    Above,
    agent_link,
    chunk,
    client_link,
    codes,
    next_call_of,
    ping,
)
from tests.support.messages import Message
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("D1")
async def test_a_client_that_never_reads_pauses_the_producer_and_it_goes_on_when_it_reads() -> None:
    async with agent_link() as end:
        end.wire.pause()
        told = 0

        async def stream() -> None:
            nonlocal told
            text = end.link.text_stream("s", "agent_message_chunk", "m")
            for _ in range(8_000):
                if text.put("x" * 1000):
                    await text.wait_for_room()
                told += 1

        producing = asyncio.ensure_future(stream())
        await settled()
        paused_at = told
        assert end.link.outbox.size <= limits.OUTBOX_BYTES + 2000
        await settled()
        assert (told, producing.done()) == (paused_at, False)
        end.wire.say(ping(1))  # what is heard is still heard
        await until(lambda: len(end.above.log) == 1)
        end.wire.resume()
        await producing
        await until(lambda: len([m for m in end.wire.heard if "method" in m]) == 8_000)


@pytest.mark.requirement("D1")
async def test_many_producers_together_hold_no_more_than_one() -> None:
    async with agent_link() as end:
        end.wire.pause()

        async def stream(session_id: str) -> None:
            for _ in range(1000):
                await end.link.send_event(session_id, AgentMessageChunk(Text("x" * 1000), message_id="m"))

        tracemalloc.start()
        producing = [asyncio.ensure_future(stream(f"s{n}")) for n in range(100)]
        before = tracemalloc.get_traced_memory()[0]
        await settled()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert end.link.outbox.size <= limits.OUTBOX_BYTES
        assert held < limits.OUTBOX_BYTES + 2 * limits.MIB
        for one in producing:
            one.cancel()
        await asyncio.wait(producing)


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    ("flood", "refuses"),
    [
        pytest.param(ping, True, id="requests that are answered at once"),
        pytest.param(lambda n: {"id": n, "method": "session/list", "params": {}}, False, id="requests without a limit"),
        pytest.param(lambda n: {"id": n, "method": "no/such"}, True, id="unknown methods"),
        pytest.param(lambda n: {"id": n, "method": 7}, True, id="no requests at all"),
    ],
)
async def test_a_client_that_floods_and_never_reads_is_not_read_either_until_it_reads(
    flood: Callable[[int], Message], refuses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REFUSAL_BYTES", limits.REFUSAL_BYTES // 16)  # so that a smaller flood is one
    count = 3_000
    async with agent_link(capacity=16 * limits.KIB) as end:
        end.above.answer = lambda request: (
            SessionList([SessionInfo("s" * 4000, "/")])
            if isinstance(request, ListSessions)
            else ExtensionResult("x" * 4000)
        )
        lines = b"".join(json.dumps({"jsonrpc": "2.0", **flood(n)}).encode() + b"\n" for n in range(1, count + 1))
        end.wire.pause()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        end.wire.write(lines)
        await settled()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        unread = end.wire.unsent
        assert unread > 0
        assert held < 8 * limits.MIB
        await settled()
        assert end.wire.unsent == unread
        end.wire.resume()
        await until(lambda: len(end.wire.heard) == count + 1)
        ids = [m["id"] for m in end.wire.heard[1:]]
        assert sorted(ids) == list(range(1, count + 1))
        assert (codes(end.wire.heard) != []) == refuses


@pytest.mark.requirement("D2")
async def test_a_refusal_above_a_large_frame_does_not_stop_the_reader() -> None:
    async with agent_link() as end:
        end.wire.pause()
        await end.link.send_event("s", AgentMessageChunk(Text("x" * (3 * limits.OUTBOX_BYTES)), message_id="m"))
        end.wire.say({"id": 1, "method": "no/such"}, {"method": "session/cancel", "params": {"sessionId": "s"}})
        await until(lambda: CancelTurn("s") in end.above.log)


@pytest.mark.requirement("D2")
async def test_a_cancel_is_heard_while_the_outbox_is_full_and_128_requests_wait() -> None:
    async with agent_link() as end:
        end.wire.pause()
        end.above.answer = lambda request: ExtensionResult("x" * 100_000)
        end.wire.say(*[ping(n) for n in range(1, 1000)], {"method": "session/cancel", "params": {"sessionId": "s"}})
        await until(lambda: CancelTurn("s") in end.above.log)
        assert end.link.outbox.size <= limits.OUTBOX_BYTES + limits.REFUSAL_BYTES


@pytest.mark.requirement("D3")
async def test_a_sender_waits_for_an_agent_that_never_reads() -> None:
    async with client_link() as end:
        end.wire.pause()
        said = 0

        async def send() -> None:
            nonlocal said
            for _ in range(2_000):
                await end.link.send_notification(ExtensionNote("_note", {"x": "x" * 4000}))
                said += 1

        sending = asyncio.ensure_future(send())
        await settled()
        assert end.link.outbox.size <= limits.OUTBOX_BYTES and said < 1250
        end.wire.say(chunk("still heard"))
        await until(lambda: len(end.above.log) == 1)
        end.wire.resume()
        await sending
        await until(lambda: sum(m.get("method") == "_note" for m in end.wire.heard) == 2_000)


@pytest.mark.requirement("D4")
async def test_two_of_our_links_that_both_write_before_they_read_make_progress() -> None:
    left, right = memory_pair(4_000)
    front, back = Above(), Above()
    agent, client = Link(left, back, "agent"), Link(right, front, "client")
    agent.start()
    client.start()
    await client.initialize(ClientHello())
    size = 3 * limits.OUTBOX_BYTES // 100  # forty of them are more than an outbox holds
    back.answer = front.answer = lambda request: ExtensionResult("y" * size)

    async def ask(link: Link) -> Reply:
        return await link.ask(Extension("_big", {"x": "x" * size}))

    async with asyncio.timeout(30):
        answers = await asyncio.gather(*(ask(link) for link in [agent, client] * 40))
    assert answers == [ExtensionResult("y" * size)] * 80
    await client.close()
    await agent.close()


async def test_a_layer_that_does_not_take_what_it_is_told_makes_the_peer_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INBOX_BYTES", 100_000)
    async with client_link() as end:
        end.wire.say(*[chunk("x" * 1000) for _ in range(1000)])
        await settled()
        heard = len(end.above.log)
        assert 90 < heard < 300
        end.link.consume()
        await settled()
        assert heard < len(end.above.log) < 2 * heard + 100
        # While a call waits for an answer it is read, whatever lies before it.
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        end.wire.say({"id": (await next_call_of(end.wire, "_a"))["id"], "result": 1})
        assert await call == ExtensionResult(1)
        assert len(end.above.log) == 1000


async def test_an_unread_flood_while_a_response_is_awaited_ends_the_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.link.link._FLOOD_BYTES", 500_000)
    monkeypatch.setattr(limits, "INBOX_BYTES", 100_000)
    async with client_link() as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        await next_call_of(end.wire, "_a")
        end.wire.say(*[chunk("x" * 1000) for _ in range(1000)])
        with pytest.raises(LinkClosed, match="more than was consumed"):
            await call
        assert len(end.above.log) < 700
