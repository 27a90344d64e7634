"""The order in which one client is sent its replies, and the events and notifications of the agents between them.

A reply is known when the agent's link receives it, and sent later, by the task of its request; events and notifications
are sent by the step that receives them. So what comes behind a reply that is known has to wait until that is sent, and
a reply has to wait for what came before it: else a client that loads a session gets the end of its history behind the
reply that says that it is complete.

    reply A is known   ──►  place of A                      nothing is sent before A is
    event 1            ──►  place of A, event 1
    reply B is known   ──►  place of A, event 1, place of B     B waits, though its task may be ready first
    A is sent          ──►  event 1 is sent; B may be

That holds within a session: one whose reply waits for the disk holds no other session up. Replies with nothing between
their places may be sent in any order.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final


class ReplyOrder:
    """What waits for replies that are known and not sent yet, by session, in order; nothing, almost always."""

    __slots__ = ("_places", "_queues")

    def __init__(self) -> None:
        self._queues: Final[dict[str, deque[_ReplyPlace | Callable[[], None]]]] = {}  # none is empty
        self._places: Final[dict[asyncio.Task[Any], _ReplyPlace]] = {}

    def __repr__(self) -> str:
        return f"<ReplyOrder replies={len(self._places)} waiting={sum(map(len, self._queues.values()))}>"

    def must_wait(self, session_id: str) -> bool:
        """Return whether what is sent now about a session would overtake something: it has to go through `append`."""
        return session_id in self._queues

    def append(self, session_id: str, send: Callable[[], None]) -> None:
        """Call `send` when everything before it in its session is sent."""
        queue = self._queues.get(session_id)
        if queue is None:
            send()
        else:
            queue.append(send)

    def add_reply(self, task: "asyncio.Task[Any]", session_id: str) -> None:
        """Give the reply that `task` is going to send its place: behind everything so far of its session. It is sent
        when the task is done. A task has one place: a second call takes the first one back."""
        former = self._places.get(task)
        place = self._places[task] = _ReplyPlace(session_id)
        self._queues.setdefault(session_id, deque()).append(place)
        if former is None:
            task.add_done_callback(self._on_sent)
        else:
            self._remove(former)

    async def wait_for_place(self, task: "asyncio.Task[Any] | None") -> None:
        """Wait until everything before the reply of `task` is sent. Returns at once where it has no place."""
        place = None if task is None else self._places.get(task)
        if place is None:
            return
        for one in self._queues[place.session_id]:
            if one is place:
                return
            if not isinstance(one, _ReplyPlace):
                break
        place.ready = asyncio.get_running_loop().create_future()
        await place.ready

    def _on_sent(self, task: "asyncio.Task[Any]") -> None:
        self._remove(self._places.pop(task))

    def _remove(self, place: "_ReplyPlace") -> None:
        """Send what no other reply is before now, and let the replies go on that only other replies are before."""
        place.is_over = True
        queue = self._queues[place.session_id]
        while queue:
            first = queue[0]
            if not isinstance(first, _ReplyPlace):
                queue.popleft()
                first()
            elif first.is_over:
                queue.popleft()
            else:
                break
        for one in queue:
            if not isinstance(one, _ReplyPlace):
                break
            if one.ready is not None and not one.ready.done():
                one.ready.set_result(None)
        if not queue:
            del self._queues[place.session_id]


class _ReplyPlace:
    """Where a reply stands: `ready` is done when its task may send it (None: the task does not wait), `is_over` says
    that it was sent."""

    __slots__ = ("is_over", "ready", "session_id")

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.is_over = False
        self.ready: asyncio.Future[None] | None = None
