"""Replies of one client, and what is sent between them, in the order in which they were known."""

import asyncio

import pytest

from dragoman.gateway.reply_order import ReplyOrder
from tests.support.waiting import settled

pytestmark = pytest.mark.anyio


class Sent:
    """What was sent, with a task for each reply, which sends it once it may."""

    def __init__(self) -> None:
        self.order = ReplyOrder()
        self.names: list[str] = []
        self._may: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def event(self, name: str, session_id: str = "s0") -> None:
        self.order.append(session_id, lambda: self.names.append(name))

    async def reply(self, name: str, session_id: str = "s0") -> None:
        """A reply is known; its task goes on with `go_on`."""
        if name not in self._tasks:
            self._may[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._send(name))
        self.order.add_reply(self._tasks[name], session_id)

    async def go_on(self, name: str) -> None:
        self._may[name].set()
        await settled()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await settled()

    async def _send(self, name: str) -> None:
        await self._may[name].wait()
        await self.order.wait_for_place(asyncio.current_task())
        self.names.append(name)


async def test_without_a_reply_on_its_way_everything_is_sent_at_once() -> None:
    sent = Sent()
    sent.event("1")
    assert (sent.names, sent.order.must_wait("s0")) == (["1"], False)


async def test_a_reply_waits_for_what_came_before_it_and_that_for_the_reply_before() -> None:
    sent = Sent()
    await sent.reply("A")
    sent.event("1")
    await sent.reply("B")
    sent.event("2")
    await sent.go_on("B")
    assert sent.names == []
    await sent.go_on("A")
    assert (sent.names, sent.order.must_wait("s0")) == (["A", "1", "B", "2"], False)


async def test_replies_with_nothing_between_them_do_not_wait_for_each_other() -> None:
    sent = Sent()
    await sent.reply("A")
    await sent.reply("B")
    sent.event("1")
    await sent.go_on("B")
    assert sent.names == ["B"]
    await sent.go_on("A")
    assert sent.names == ["B", "A", "1"]


async def test_a_reply_that_is_slow_holds_no_other_session_up() -> None:
    sent = Sent()
    await sent.reply("A")
    sent.event("1", "s1")
    await sent.reply("B", "s1")
    sent.event("2", "s1")
    await sent.go_on("B")
    assert (sent.names, sent.order.must_wait("s0"), sent.order.must_wait("s1")) == (["1", "B", "2"], True, False)
    await sent.cancel("A")


async def test_a_request_that_is_cancelled_holds_nothing_back() -> None:
    sent = Sent()
    await sent.reply("A")
    sent.event("1")
    await sent.reply("B")
    await sent.go_on("B")
    await sent.cancel("A")
    assert (sent.names, sent.order.must_wait("s0")) == (["1", "B"], False)


async def test_a_task_that_waits_for_a_second_reply_gives_its_first_place_up() -> None:
    sent = Sent()
    await sent.reply("A")
    sent.event("1")
    await sent.reply("A")
    sent.event("2")
    assert sent.names == ["1"]
    await sent.go_on("A")
    assert sent.names == ["1", "A", "2"]
