"""Frames at and over the limit, in both directions."""

import asyncio
import json
import tracemalloc
from typing import Any

import pytest

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.dialects.handshake.first_bytes import answer_initialize
from dragoman.dialects.handshake.initialize import SPOKEN
from dragoman.errors import (
    RequestFailed,
    UsageError,
)
from dragoman.link import Link
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.asking import Extension, ExtensionResult
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk
from dragoman.vocabulary.hello import AgentHello, Implementation
from tests.support.links import (
    Above,
    agent_link,
    client_link,
    codes,
    next_call,
    ping,
)
from tests.support.messages import hello
from tests.support.raw_peer import PIPE
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("early", [False, True], ids=["by the link", "before there was a link"])
async def test_a_link_that_is_told_no_limit_takes_frames_of_64_mib(early: bool) -> None:
    """However `initialize` is answered, and in both framings."""
    line = json.dumps({"jsonrpc": "2.0", **hello(2)}).encode() + b"\n"
    greeted = answer_initialize(line, SPOKEN, lambda: AgentHello(Implementation("above", "1"))) if early else None
    assert (greeted is not None) == early
    ours, _ = memory_pair(PIPE)
    link = Link(ours, Above(), "agent", greeted=greeted)
    framer = link._framer
    assert framer._lines._limit == framer._blocks._limit == limits.FRAME_BYTES == 64 * limits.MIB
    await link.close()


@pytest.mark.parametrize(
    ("passes", "limit", "refused"), [(7, 8, 9), pytest.param(60, 64, 65, marks=pytest.mark.slow)], ids=str
)
async def test_what_is_under_the_limit_passes_and_what_is_over_is_refused_with_a_code_without_being_kept(
    passes: int, limit: int, refused: int
) -> None:
    """Of the limit that there is, 64 MiB, and of a smaller one."""
    async with agent_link(capacity=limits.MIB, frame_limit=limit * limits.MIB) as end:
        end.above.answer = lambda request: ExtensionResult(len(str(request.params)))  # type: ignore[attr-defined]
        head, tail = b'{"jsonrpc":"2.0","id":1,"method":"_big","params":{"text":"', b'"}}\n'
        end.wire.write(head + b"x" * (passes * limits.MIB) + tail)
        assert (await end.wire.answer(1))["result"] > passes * limits.MIB
        end.above.log.clear()
        tracemalloc.start()
        sent = b"x" * limits.MIB
        before = tracemalloc.get_traced_memory()[0]
        end.wire.write(head.replace(b"1,", b"2,"))
        for _ in range(refused):
            end.wire.write(sent)
            await until(lambda: not end.wire.unsent)
        end.wire.write(tail)
        end.wire.say(ping(3))
        assert (await end.wire.answer(3))["result"] < 100
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        assert codes(end.wire.heard) == [-32600]
        # What an unfinished line holds is a bytearray, which grows by an eighth at a time.
        assert peak < (limit * 9 / 8 + 8) * limits.MIB


@pytest.mark.parametrize("size", [3 * limits.OUTBOX_BYTES, pytest.param(60 * limits.MIB, marks=pytest.mark.slow)])
async def test_an_empty_outbox_takes_a_frame_much_larger_than_itself(size: int) -> None:
    """Any frame that a peer takes, however little the outbox holds otherwise."""
    async with agent_link(capacity=limits.MIB) as end:
        await end.link.send_event("s", AgentMessageChunk(Text("x" * size), message_id="m"))
        assert end.link.outbox.size > size - limits.MIB
        await until(lambda: len(end.wire.heard) == 2)
        assert len(end.wire.heard[1]["params"]["update"]["content"]["text"]) == size


async def test_what_no_peer_would_take_is_our_callers_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FRAME_BYTES", 1000)
    async with agent_link() as end:
        with pytest.raises(UsageError, match="split it"):
            await end.link.send_event("s", AgentMessageChunk(Text("x" * 1001), message_id="m"))
        with pytest.raises(UsageError, match="split it"):
            await end.link.ask(Extension("_a", {"x": "x" * 1001}))
        end.above.answer = lambda request: ExtensionResult("x" * 1001)
        end.wire.say(ping(1))
        assert (await end.wire.answer(1))["error"] == {"code": -32603, "message": "The answer is too large"}
        assert not end.link.busy


@pytest.mark.requirement("A14")
async def test_json_of_others_that_has_newlines_leaves_on_one_line() -> None:
    async with agent_link() as end:
        dialect = end.link.dialect
        dialect.encode_reply = lambda id, request, reply: [dialect_answer(id)]  # type: ignore[method-assign]
        end.wire.say(ping(1))
        assert (await end.wire.answer(1))["result"] == {"a": "b\nc"}


def dialect_answer(id: Id) -> Any:
    from dragoman.dialects.contract import ResultMessage

    return ResultMessage(id, b'{\r\n "a":\n "b\\nc"\n}')


async def test_an_answer_that_is_too_large_fails_its_call_with_a_code() -> None:
    async with client_link(frame_limit=10_000) as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        number = (await next_call(end.wire))["id"]
        end.wire.write(b'{"jsonrpc":"2.0","id":%d,"result":"%b"}\n' % (number, b"x" * 10_000))
        with pytest.raises(RequestFailed) as caught:
            await call
        assert (caught.value.code, caught.value.message) == (-32600, "The answer is too large")
        assert caught.value.data == {"limit": 10_000}
        # And the link goes on.
        again = asyncio.ensure_future(end.link.ask(Extension("_b")))
        end.wire.say({"id": (await next_call(end.wire))["id"], "result": 1})
        assert await again == ExtensionResult(1)
        assert [message for message in end.wire.heard if "error" in message] == []
