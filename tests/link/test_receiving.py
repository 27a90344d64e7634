"""Receiving: in order, whatever the pieces; nothing before `initialize`."""

import asyncio
import json

import pytest

from dragoman.errors import (
    PeerError,
    RequestFailed,
    UsageError,
    VersionMismatch,
)
from dragoman.link import Link
from dragoman.transports.memory import Faults, memory_pair
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult, Reply, Request
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk
from dragoman.vocabulary.hello import AgentHello, ClientHello, Implementation
from tests.support.links import Above, agent_link, chunk, client_link, ping
from tests.support.messages import Message, greeting, hello
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


@both_versions
async def test_what_is_heard_is_handed_up_in_its_order(version: int) -> None:
    async with client_link(version) as end:
        asked = asyncio.ensure_future(end.link.ask(Extension("_a")))
        number = (await end.wire.hear())["id"]
        at_the_answer: list[int] = []
        asked.add_done_callback(lambda _: at_the_answer.append(len(end.above.log)))
        many = [chunk(str(n)) for n in range(1000)]
        end.wire.say(*many, {"method": "_note", "params": {}}, {"id": number, "result": 1})
        assert await asked == ExtensionResult(1)
        assert at_the_answer == [1001]
        expected = [("s", AgentMessageChunk(Text(str(n)), message_id="m")) for n in range(1000)]
        assert end.above.log[:-1] == expected
        assert end.above.log[-1] == ExtensionNote("_note", {})


@both_versions
async def test_an_answer_is_told_at_its_place_among_the_events(version: int) -> None:
    async with client_link(version) as end:
        log = end.above.log
        asked = asyncio.ensure_future(end.link.ask(Extension("_a"), on_reply=log.append))
        number = (await end.wire.hear())["id"]
        end.wire.say(chunk("before"), {"id": number, "result": 1}, chunk("after"))
        await asked
        await until(lambda: len(log) == 3)
        assert [type(one) for one in log] == [tuple, ExtensionResult, tuple]


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("pieces", [1, 7, 4096])
async def test_torn_bytes_are_heard_like_whole_ones(pieces: int) -> None:
    ours, theirs = memory_pair(PIPE, to_left=Faults(pieces=pieces))
    above = Above()
    link = Link(ours, above, "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say(hello(1), ping(1), ping(2, text="ü" * 50), {"method": "_note", "params": {}})
    assert (await wire.answer(2))["result"] == "done"
    await until(lambda: len(above.log) == 3)
    assert above.log == [Extension("_ping", {}), Extension("_ping", {"text": "ü" * 50}), ExtensionNote("_note", {})]
    await link.close()


async def test_content_length_is_answered_in_kind() -> None:
    ours, theirs = memory_pair(PIPE)
    link = Link(ours, Above(), "agent")
    link.start()
    received = bytearray()

    class Bytes(RawPeer):
        def data_received(self, data: bytes) -> None:
            received.extend(data)

    wire = Bytes(theirs)
    body = json.dumps({"jsonrpc": "2.0", **hello(1)}).encode()
    wire.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    await until(lambda: b'"protocolVersion":1' in received)
    assert received.startswith(b"Content-Length: ")
    await link.close()


@pytest.mark.requirement("C1")
async def test_nothing_is_done_before_initialize_and_a_second_one_is_refused() -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    link = Link(ours, above, "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say(ping(1), {"method": "_note", "params": {}}, hello(1), {**hello(1), "id": 2}, ping(3))
    await wire.answer(3)
    assert [(m["id"], m.get("error", {}).get("code")) for m in wire.heard] == [
        (1, -32600),
        (0, None),
        (2, -32600),
        (3, None),
    ]
    assert above.log == [Extension("_ping", {})]
    with pytest.raises(UsageError, match="before initialize"):
        Link(memory_pair(1)[0], above, "agent").text_stream("s", "agent_message_chunk", "m")
    await link.close()


async def test_an_agent_that_asks_before_it_has_answered_initialize_is_refused() -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    link = Link(ours, above, "client")
    link.start()
    wire = RawPeer(theirs)
    wire.say(ping(1))
    assert (await wire.answer(1))["error"]["code"] == -32600
    assert above.bugs == []
    await link.close()


async def test_what_follows_the_answer_to_initialize_in_the_same_breath_is_heard() -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    link = Link(ours, above, "client")
    link.start()
    wire = RawPeer(theirs)
    greeted = asyncio.ensure_future(link.initialize(ClientHello()))
    number = (await wire.hear())["id"]
    wire.say({"id": number, "result": greeting(2)}, {"method": "_note", "params": {}}, chunk("x"))
    await greeted
    assert above.log == [ExtensionNote("_note", {}), ("s", AgentMessageChunk(Text("x"), message_id="m"))]
    await link.close()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"result": greeting(2)}, VersionMismatch),
        ({"result": {"protocolVersion": "x"}}, PeerError),
        ({"result": 5}, PeerError),
        ({"error": {"code": -32022, "message": "Unsupported protocol version"}}, VersionMismatch),
        ({"error": {"code": -32603, "message": "Internal error"}}, RequestFailed),
    ],
)
async def test_an_agent_that_cannot_be_spoken_with_says_so_once(answer: Message, error: type[Exception]) -> None:
    ours, theirs = memory_pair(PIPE)
    link = Link(ours, Above(), "client", spoken=(1,))
    link.start()
    wire = RawPeer(theirs)
    greeted = asyncio.ensure_future(link.initialize(ClientHello()))
    wire.say({"id": (await wire.hear())["id"], **answer})
    with pytest.raises(error):
        await greeted
    await link.close()


async def test_while_our_own_hello_is_awaited_what_is_heard_waits_in_order() -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    ready: asyncio.Future[AgentHello] = asyncio.get_running_loop().create_future()
    above.on_initialize = lambda hello: ready  # type: ignore[method-assign]
    link = Link(ours, above, "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say(hello(1), ping(1), *[{"method": "_note", "params": {}}] * 300)
    await settled()
    assert (wire.heard, above.log) == ([], [])
    ready.set_result(AgentHello(Implementation("late", "1")))
    await until(lambda: len(above.log) == 301)
    await wire.answer(1)
    assert [m["id"] for m in wire.heard] == [0, 1]
    await link.close()


async def test_a_peer_that_asks_much_at_once_gets_its_first_replies_while_the_rest_is_handled() -> None:
    async with agent_link() as end:
        written_before: list[int] = []

        def answer(request: Request) -> Reply:
            written_before.append(end.link.outbox.written)
            return ExtensionResult("done")

        end.above.answer = answer
        end.wire.say(*({"id": number, "method": "_test/echo", "params": {}} for number in range(1, 41)))
        await end.wire.answer(40)
        answered = [message["id"] for message in end.wire.heard if message.get("id")]
        assert answered == list(range(1, 41))
        # Three batches: the written bytes grow behind the 16th and the 32nd request, and nowhere else.
        grown = [at for at in range(1, 40) if written_before[at] > written_before[at - 1]]
        assert grown == [16, 32]


@pytest.mark.parametrize("count", [1, 2])
async def test_a_reply_that_no_other_request_waits_beside_is_written_in_the_step_that_gives_it(count: int) -> None:
    async with agent_link() as end:
        go = asyncio.get_running_loop().create_future()
        written_after: list[int] = []

        async def answer(request: Request) -> Reply:
            await go
            asyncio.get_running_loop().call_soon(lambda: written_after.append(end.link.outbox.written))
            return ExtensionResult("done")

        end.above.answer = answer
        end.wire.say(*(ping(number) for number in range(1, count + 1)))
        await until(lambda: len(end.above.log) == count)
        before = end.link.outbox.written
        go.set_result(None)
        await end.wire.answer(count)
        # Of several the first waits for those that are given in the same turn of the loop.
        assert [written > before for written in written_after] == ([True] if count == 1 else [False, True])
