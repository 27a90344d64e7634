"""No frame is sent that is longer than the limit, counted whole; one that just fits is sent as it is."""

import asyncio
from collections.abc import Callable
from typing import Literal

import pytest

from dragoman import limits
from dragoman.errors import RequestFailed, UsageError
from dragoman.link import Link
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult, Reply, Request
from tests.support.links import Above, ping
from tests.support.messages import Message, hello
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.waiting import until

LIMIT = 1000
AROUND = range(LIMIT - 300, LIMIT + 50)
IDS = [1, 123456789, "one", "ü" * 20, None]


class Sender:
    """An agent's link whose frames are counted, and the raw wire at its other end."""

    def __init__(self) -> None:
        ours, theirs = memory_pair(PIPE)
        self.sizes: list[int] = []
        self.above = Above()
        self.link = Link(ours, self.above, "agent", trace=self._count)
        self.wire = RawPeer(theirs)
        self.link.start()

    def _count(self, direction: Literal["in", "out"], frame: bytes) -> None:
        if direction == "out":
            self.sizes.append(len(frame))

    async def open(self) -> None:
        self.wire.say(hello(1))
        await self.wire.hear()
        self.sizes.clear()


@pytest.fixture
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FRAME_BYTES", LIMIT)


def result(size: int) -> Callable[[Request], Reply]:
    return lambda request: ExtensionResult("d" * size)


def failure(size: int) -> Callable[[Request], Reply]:
    def fail(request: Request) -> Reply:
        raise RequestFailed(-32042, "no", "d" * size)

    return fail


@pytest.mark.parametrize("id", IDS, ids=map(str, range(len(IDS))))
@pytest.mark.parametrize("answer", [result, failure])
async def test_no_answer_is_longer_than_the_limit(
    answer: Callable[[int], Callable[[Request], Reply]], id: int | str | None, small_frames: None
) -> None:
    sender = Sender()
    await sender.open()
    whole: list[Message] = []
    for size in AROUND:
        sender.above.answer = answer(size)
        sender.wire.say(ping(id))
        message = await sender.wire.hear()
        if "d" * size in str(message):
            whole.append(message)
    assert max(sender.sizes) == LIMIT
    assert sender.sizes[: len(whole)] == list(range(LIMIT - len(whole) + 1, LIMIT + 1))
    await sender.link.close()


@pytest.mark.parametrize("method", ["_a", "_ü" * 40])
async def test_no_notification_is_longer_than_the_limit(method: str, small_frames: None) -> None:
    sender = Sender()
    await sender.open()
    refused = 0
    for size in AROUND:
        try:
            await sender.link.send_notification(ExtensionNote(method, "d" * size))
        except UsageError:
            refused += 1
    await sender.link.outbox.wait_until_drained(1)
    assert max(sender.sizes) == LIMIT
    assert len(sender.sizes) == len(AROUND) - refused
    await sender.link.close()


@pytest.mark.parametrize("method", ["_a", "_ü" * 40])
async def test_no_request_is_longer_than_the_limit(method: str, small_frames: None) -> None:
    sender = Sender()
    await sender.open()
    refused = 0
    for size in AROUND:
        asked = asyncio.ensure_future(sender.link.ask(Extension(method, "d" * size)))
        sent = len(sender.sizes)
        await until(lambda asked=asked, sent=sent: asked.done() or len(sender.sizes) > sent)  # type: ignore[misc]
        if asked.done():
            assert isinstance(asked.exception(), UsageError)
            refused += 1
        else:
            sender.wire.say({"id": len(sender.sizes), "result": {}})
            await asked
    assert max(sender.sizes) == LIMIT
    assert len(sender.sizes) == len(AROUND) - refused
    await sender.link.close()
