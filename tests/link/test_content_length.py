"""A Content-Length is judged when its header comes: ten tebibytes are not waited for."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from dragoman import limits
from dragoman.errors import LinkClosed, RequestFailed
from dragoman.link import Link
from dragoman.transports.memory import MemoryTransport, memory_pair
from dragoman.vocabulary.asking import Extension
from dragoman.vocabulary.hello import ClientHello
from tests.support.content_length import ABSURD, Blocks, announced, block
from tests.support.links import Above, ping
from tests.support.messages import Message, greeting, hello
from tests.support.raw_peer import PIPE
from tests.support.waiting import until

AGENT = """
from dragoman import Agent
agent = Agent("x")
@agent.prompt
async def work(session, prompt): ...
agent.run()
"""


def line(message: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def agent_end() -> tuple[Link, Above, Blocks]:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    link = Link(ours, above, "agent", frame_limit=1000)
    link.start()
    return link, above, Blocks(theirs)


async def test_a_body_above_the_limit_is_refused_with_its_header_and_skipped() -> None:
    link, _, far = agent_end()
    far.write(block(hello(1)) + announced(b"1001"))
    refusal = await far.answer(None)
    assert refusal["error"] == {"code": -32600, "message": "Message too large", "data": {"limit": 1000}}
    far.write(b"x" * 1001 + block(ping(1)))
    assert "result" in await far.answer(1)
    assert [m for m in far.heard if m["id"] is None] == [refusal]
    assert link.fault is None
    await link.close()


@pytest.mark.parametrize("length", ABSURD, ids=["10 TiB", "18 digits", "5000 digits"])
async def test_what_cannot_be_skipped_is_refused_and_ends_the_link_with_a_reason(length: bytes) -> None:
    link, above, far = agent_end()
    answered = asyncio.Event()

    async def answer_later(request: object) -> object:
        await answered.wait()
        raise RequestFailed(-32042, "late")

    above.answer = answer_later  # type: ignore[assignment]
    far.write(block(hello(1)) + block(ping(1)) + announced(length) + block(ping(2)))
    assert (await far.answer(None))["error"]["code"] == -32600
    answered.set()  # what was asked before is still answered
    assert (await far.answer(1))["error"]["code"] == -32042
    await link.wait_until_closed()
    assert "announced" in str(link.fault)
    assert above.noises and "announced" in above.noises[0]
    assert above.log == [Extension("_ping", {})]
    assert far.lost == [None]


async def greeted(
    link: Link, theirs: MemoryTransport, framed: Callable[[Message], bytes] = block
) -> "tuple[Blocks, list[bytes]]":
    """Start a client's link and answer its hello; what the agent receives is in the list."""
    link.start()
    received: list[bytes] = []
    far = Blocks(theirs)
    far.data_received = received.append  # type: ignore[method-assign, assignment]
    hello_sent = asyncio.ensure_future(link.initialize(ClientHello()))
    await until(lambda: bool(received))
    far.write(framed({"id": 1, "result": greeting(2)}))
    await hello_sent
    return far, received


async def test_a_client_whose_agent_announces_too_much_says_why_it_has_ended() -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    link = Link(ours, above, "client")
    far, _ = await greeted(link, theirs)
    asked = asyncio.ensure_future(link.ask(Extension("_ping", {})))
    far.write(announced(ABSURD[0]))
    with pytest.raises(LinkClosed, match="announced"):
        await asked
    await link.wait_until_closed()
    assert [str(error) for error in above.closed] == [str(link.fault)]


async def test_an_answer_that_is_too_large_fails_its_call_although_its_length_was_refused_before() -> None:
    ours, theirs = memory_pair(PIPE)
    link = Link(ours, Above(), "client", frame_limit=1000)
    far, received = await greeted(link, theirs)
    asked = asyncio.ensure_future(link.ask(Extension("_ping", {})))
    await until(lambda: b"_ping" in b"".join(received))
    far.write(announced(b"2000"))
    far.write(b'{"jsonrpc":"2.0","id":2,"result":"' + b"x" * (2000 - 36) + b'"}')
    with pytest.raises(RequestFailed, match="too large"):
        await asked
    await link.close()


@pytest.mark.parametrize("framing", ["content-length", "lines"])
async def test_a_client_is_told_that_a_message_of_its_agent_was_skipped(framing: str) -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    link = Link(ours, above, "client", frame_limit=1000)
    update = b'{"jsonrpc":"2.0","method":"session/update","params":"' + b"x" * 2000 + b'"}'
    note = {"method": "_note", "params": {}}
    in_lines = framing == "lines"
    far, _ = await greeted(link, theirs, line if in_lines else block)
    far.write(update + b"\n" + line(note) if in_lines else announced(b"%d" % len(update)) + update + block(note))
    await until(lambda: bool(above.log))  # what comes behind it is heard
    assert above.noises == ["a message that was too large"]
    await link.close()


BROKEN = {
    "negative": b"Content-Length: -5\r\n\r\n",
    "no number": b"Content-Length: five\r\n\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    "no length": b"Content-Type: x\r\n\r\n",
    "many headers": b"X-A: b\r\n" * 2000 + b"\r\n",
    "a long header": b"X-A: " + b"b" * limits.HEADER_BYTES + b"\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_header_that_makes_no_sense_is_refused_and_the_next_message_is_heard(name: str) -> None:
    link, _, far = agent_end()
    far.write(block(hello(1)) + BROKEN[name])
    assert (await far.answer(None))["error"]["code"] == -32700
    far.write(b"{}" + block(ping(1)))
    assert "result" in await far.answer(1)
    assert len([m for m in far.heard if m["id"] is None]) == 1
    await link.close()


async def test_a_header_without_an_end_is_refused_while_it_comes() -> None:
    link, _, far = agent_end()
    far.write(block(hello(1)) + b"X-A: " + b"b" * (limits.HEADER_BYTES + 1))
    assert (await far.answer(None))["error"]["code"] == -32700
    await link.close()


async def test_a_body_that_ends_too_early_is_not_heard_and_ends_the_link_cleanly() -> None:
    link, above, far = agent_end()
    far.write(block(hello(1)) + block(ping(1))[:-1])
    await far.answer(0)
    far._transport.close_writing()
    await link.wait_until_closed()
    assert (above.noises, above.log, link.fault) == ([], [], None)


@pytest.mark.parametrize("greeted", [True, False], ids=["after initialize", "at once"])
def test_a_process_that_is_announced_ten_tebibytes_says_so_and_exits_with_1(greeted: bool) -> None:
    """Its stdin stays open: nothing but the announcement ends it."""
    with subprocess.Popen(
        [sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write((block(hello(1)) if greeted else b"") + announced(ABSURD[0]))
        process.stdin.flush()
        assert b'"error":{"code":-32600,' in process.stdout.read()
        assert process.wait(30) == 1
        assert b"announced" in process.stderr.read()
