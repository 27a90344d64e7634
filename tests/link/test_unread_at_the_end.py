"""What was framed before the end is heard and answered, also if it waits for our own answer to `initialize`."""

import asyncio
from collections.abc import Awaitable

import pytest

from dragoman.link import Link
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.asking import Extension, ExtensionResult
from dragoman.vocabulary.hello import AgentHello, ClientHello, Implementation
from tests.support.content_length import ABSURD, Blocks, announced, block
from tests.support.links import Above, ping
from tests.support.messages import hello
from tests.support.raw_peer import PIPE
from tests.support.waiting import until


class SlowToGreet(Above):
    """A layer above that has to ask elsewhere before it can answer `initialize`, as a bridge has."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.ready = asyncio.Event()

    def on_initialize(self, hello: ClientHello) -> Awaitable[AgentHello]:
        self.asked.set()
        return self._greet()

    async def _greet(self) -> AgentHello:
        await self.ready.wait()
        return AgentHello(Implementation("above", "1"))


def slow_end() -> tuple[Link, SlowToGreet, Blocks]:
    ours, theirs = memory_pair(PIPE)
    above = SlowToGreet()
    link = Link(ours, above, "agent")
    link.start()
    return link, above, Blocks(theirs)


@pytest.mark.parametrize("reads", ["one read", "two reads"])
async def test_what_cannot_be_skipped_is_refused_behind_the_greeting_and_the_requests_before_it(reads: str) -> None:
    link, above, far = slow_end()
    if reads == "two reads":
        far.write(block(hello(1)))
        await above.asked.wait()
        far.write(block(ping(1)) + announced(ABSURD[0]) + block(ping(2)))
    else:
        far.write(block(hello(1)) + block(ping(1)) + announced(ABSURD[0]) + block(ping(2)))
    await until(lambda: link._framer.broken != "")
    above.ready.set()
    await link.wait_until_closed()
    assert [(message["id"], message.get("error", {}).get("code")) for message in far.heard] == [
        (0, None),
        (1, None),
        (None, -32600),
    ]
    assert above.log == [Extension("_ping", {})]
    assert "announced" in str(link.fault)
    assert len(above.noises) == 1


async def test_what_was_asked_before_the_end_of_input_is_answered_although_the_greeting_came_later() -> None:
    link, above, far = slow_end()
    may_answer = asyncio.Event()

    async def answer_later() -> ExtensionResult:
        await may_answer.wait()
        return ExtensionResult("late")

    above.answer = lambda request: answer_later()
    far.write(block(hello(1)) + block(ping(1)))
    far.close_writing()
    await until(lambda: bool(above.closed))
    above.ready.set()
    await far.answer(0)
    may_answer.set()
    await link.wait_until_closed()
    assert [message.get("result") for message in far.heard[1:]] == ["late"]
