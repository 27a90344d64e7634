"""Our own calls on a link: who waits for an answer, and how many may at a time."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from dragoman.link.contract import Watch
from dragoman.vocabulary.asking import Done, Reply, Request

# In place of an answer: it is to be asked under another name.
AGAIN: Final = Done()


class PendingCall(Struct, eq=False):
    """One call of ours; no request means it is `initialize`."""

    request: Request | None
    future: "asyncio.Future[Reply]"
    watch: Watch | None = None
    on_reply: Callable[[Reply], None] | None = None
    # The name it was asked under, where it may be asked once more under another.
    name: str = ""

    def resolve(self, reply: Reply) -> None:
        if not self.future.done():
            if self.on_reply is not None:
                self.on_reply(reply)
            self.future.set_result(reply)
            if self.watch is not None:
                self.tell()

    def reject(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            self.tell()

    def ask_again(self) -> None:
        """Resolve with `AGAIN`: the caller asks under another name. `on_reply` and `watch` are not called."""
        if not self.future.done():
            self.future.set_result(AGAIN)

    def tell(self) -> None:
        """Call `watch.on_reply()` at most once."""
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.on_reply()


class InFlightLimit:
    """At most `count` requests in flight; later callers wait in line, first come, first served."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._line: deque[asyncio.Future[None]] = deque()  # empty while a slot is free

    @property
    def free(self) -> bool:
        return self._free > 0

    def take(self) -> bool:
        """Take a slot if one is free. False: `wait` for one."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def wait(self) -> None:
        """Stand in line and take a slot."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it had just become ours
            raise

    def give_back(self) -> None:
        """Pass the slot to the first caller that still waits in line, or free it."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


def seen(future: "asyncio.Future[Reply]") -> None:
    """Retrieve the exception of a call without a waiter, so that asyncio does not report it."""
    if not future.cancelled():
        future.exception()
