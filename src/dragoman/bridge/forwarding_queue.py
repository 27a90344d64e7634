"""One way across a bridge: steps that are taken one after the other, each when the one before it has left."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from dragoman import limits
from dragoman.bridge.failures import TOO_LARGE
from dragoman.errors import LinkClosed, UsageError
from dragoman.link import Link

Step = Callable[[], Awaitable[None]]


class ForwardingQueue:
    """What one side has said, on its way to the other. Whenever nothing is left of it, `on_idle` is called."""

    def __init__(
        self, on_idle: Callable[[], None], on_noise: Callable[[str], None], on_bug: Callable[[Exception], None]
    ) -> None:
        self.idle = True
        self._on_idle = on_idle
        self._on_noise = on_noise
        self._on_bug = on_bug
        self._steps: deque[Step] = deque()
        self._taken = 0
        self._open = asyncio.Event()
        self._more = asyncio.Event()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def put(self, step: Step) -> None:
        """The next step."""
        self._steps.append(step)
        self.idle = False
        self._more.set()

    def open(self) -> None:
        """Let `run` begin, from the next turn of the loop on: `initialize` is answered, or nothing more will come."""
        self._open.set()

    def end(self) -> None:
        """Nothing more will be heard."""

        async def over() -> None:
            if not self._ended.done():
                self._ended.set_result(None)

        self.put(over)
        self.open()

    async def run(self) -> None:
        """Run the steps in order, until cancelled.

        A step that raises `LinkClosed` is over: the closed link reports itself by `on_closed`. `UsageError` goes to
        `on_noise`, any other exception to `on_bug`.
        """
        await self._open.wait()
        while True:
            while self._steps:
                step = self._steps.popleft()
                self._taken += 1
                try:
                    await step()
                except LinkClosed:
                    pass
                except UsageError:
                    self._on_noise(TOO_LARGE)
                except Exception as error:
                    self._on_bug(error)
            self.idle = True
            self._on_idle()
            self._more.clear()
            await self._more.wait()

    async def emptied(self, reader: Link) -> None:
        """Wait until all steps ran and `reader` has written them, or made no progress in `CLOSE_FLUSH_SECONDS`."""
        before = None
        while before != (before := (self._taken, reader.outbox.written)):
            if self._ended.done():
                await reader.outbox.drained(limits.CLOSE_FLUSH_SECONDS)
            else:
                await asyncio.wait([self._ended], timeout=limits.CLOSE_FLUSH_SECONDS)
