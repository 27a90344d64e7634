"""Our own calls on a link: what waits for each reply, and how many may be in flight at a time."""

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from dragoman.dialects.contract import DecodedReply
from dragoman.link.contract import Watch
from dragoman.vocabulary.asking import Reply, Request


class PendingCall(Struct, eq=False):
    """One call of ours that has no reply yet. Without a request it is `initialize`."""

    request: Request | None
    future: "asyncio.Future[Any]"
    watch: Watch | None = None
    on_reply: Callable[[Any], None] | None = None

    def resolve(self, reply: Reply | object) -> None:
        """Give the caller its reply. `on_reply` comes first: it sees the reply before any later event is handled."""
        if not self.future.done():
            if self.on_reply is not None:
                self.on_reply(reply)
            self.future.set_result(reply)
            if self.watch is not None:
                self.notify_watch()

    def settle(self, replied: DecodedReply) -> None:
        """Give the caller its reply, unless it went on with an early one: then it waits no more."""
        if replied.reply is not None:
            self.resolve(replied.reply)
        elif not self.future.done():
            self.future.cancel()

    def fail(self, error: Exception) -> None:
        """Raise `error` in the caller."""
        if not self.future.done():
            self.future.set_exception(error)
            self.notify_watch()

    def notify_watch(self) -> None:
        """Call `watch.on_reply()` at most once."""
        # Once: a call with an early reply has told its watch when it was sent, and is settled again at its turn's end.
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.on_reply()


class InFlightLimit:
    """At most `count` requests in flight; later callers wait, first come, first served."""

    def __init__(self, count: int) -> None:
        self._free = count
        # Empty while a slot is free; in order. A dict, because an empty deque takes ten times its memory.
        self._waiting: dict[asyncio.Future[None], None] = {}

    @property
    def free(self) -> bool:
        """Whether a slot can be acquired without waiting."""
        return self._free > 0

    def acquire(self) -> bool:
        """Acquire a slot if one is free. False: `wait` for one."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def wait(self) -> None:
        """Wait for a slot, behind everything that waits already, and acquire it."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[granted] = None
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release()  # it had just become ours
            raise

    def release(self) -> None:
        """Pass the slot to the first caller that still waits, or free it."""
        while self._waiting:
            granted = next(iter(self._waiting))
            del self._waiting[granted]
            if not granted.done():
                granted.set_result(None)
                return
        self._free += 1


def retrieve_exception(future: "asyncio.Future[Any]") -> None:
    """Mark the exception of a call without a caller as retrieved, so that asyncio does not report it."""
    if not future.cancelled():
        future.exception()
