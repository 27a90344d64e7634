"""The order in which one client is sent its replies, and the events and notifications of the agents between them.

A reply is known when the agent's link receives it, and sent later, by the task of its request; events and notifications
are sent by the step that receives them. So what comes behind a reply that is known has to wait until that is sent, and
a reply has to wait for what came before it: else a client that loads two sessions at once gets the end of one history
behind the reply that says that it is complete.

    reply A is known   ──►  place of A                      nothing is sent before A is
    event 1            ──►  place of A, event 1
    reply B is known   ──►  place of A, event 1, place of B     B waits, though its task may be ready first
    A is sent          ──►  event 1 is sent; B may be

Replies with nothing between their places may be sent in any order.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final


class ReplyOrder:
    """What waits for replies that are known and not sent yet, in order; nothing, almost always."""

    __slots__ = ("_places", "_queue")

    def __init__(self) -> None:
        self._queue: deque[_ReplyPlace | Callable[[], None]] | None = None  # None: nothing waits
        self._places: Final[dict[asyncio.Task[Any], _ReplyPlace]] = {}

    def __repr__(self) -> str:
        return f"<ReplyOrder replies={len(self._places)} waiting={len(self._queue or ())}>"

    @property
    def must_wait(self) -> bool:
        """Return whether what is sent now would overtake something: it has to go through `append`."""
        return self._queue is not None

    def append(self, send: Callable[[], None]) -> None:
        """Call `send` when everything before it is sent."""
        if self._queue is None:
            send()
        else:
            self._queue.append(send)

    def add_reply(self, task: "asyncio.Task[Any]") -> None:
        """Give the reply that `task` is going to send its place: behind everything so far. It is sent when the task is
        done. A second call for a task moves its place to the end."""
        place = _ReplyPlace()
        former = self._places.get(task)
        self._places[task] = place
        if self._queue is None:
            self._queue = deque()
        self._queue.append(place)
        if former is None:
            task.add_done_callback(self._on_sent)
        else:
            former.is_over = True
            self._send_ready()

    async def wait_for_place(self, task: "asyncio.Task[Any] | None") -> None:
        """Wait until everything before the reply of `task` is sent. Returns at once where it has no place."""
        place = None if task is None else self._places.get(task)
        if place is None or self._queue is None:
            return
        for one in self._queue:
            if one is place:
                return
            if not isinstance(one, _ReplyPlace):
                break
        place.ready = asyncio.get_running_loop().create_future()
        await place.ready

    def _on_sent(self, task: "asyncio.Task[Any]") -> None:
        self._places.pop(task).is_over = True
        self._send_ready()

    def _send_ready(self) -> None:
        """Send what no reply is before, and let the replies go on that only other replies are before."""
        queue = self._queue
        while queue:
            first = queue[0]
            if not isinstance(first, _ReplyPlace):
                queue.popleft()
                first()
            elif first.is_over:
                queue.popleft()
            else:
                break
        for one in queue or ():
            if not isinstance(one, _ReplyPlace):
                break
            if one.ready is not None and not one.ready.done():
                one.ready.set_result(None)
        if not queue:
            self._queue = None


class _ReplyPlace:
    """Where a reply stands: `ready` is done when its task may send it (None: the task does not wait), `is_over` says
    that it was sent."""

    __slots__ = ("is_over", "ready")

    def __init__(self) -> None:
        self.is_over = False
        self.ready: asyncio.Future[None] | None = None
