"""Events of a session whose id is not known yet, because the reply that names the session comes after them.

Agents send options, commands and even text before they have answered `session/new`. A client, or a gateway, cannot
tell those from events of a session that will never be: it holds them for a while, within bounds that its owner gives,
and drops the rest.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from dragoman.vocabulary.events import AnyEvent


class PendingEvent(NamedTuple):
    """A held event: about how many bytes it takes, and since when it is held, by the loop's clock."""

    event: AnyEvent
    size: int
    since: float


class PendingEvents:
    """Hold events by session id.

    At most `max_bytes` are held in all, `max_each` events of one session, of `max_sessions` sessions; an event past a
    bound is dropped. With `seconds`, an event whose session was not taken in that time is dropped too. `on_drop` is
    called once for each dropped event, but not for those that `clear` removes.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        max_each: int | None = None,
        max_sessions: int | None = None,
        seconds: float | None = None,
        on_drop: Callable[[], None] | None = None,
    ) -> None:
        self.size = 0  # bytes of all held events, about
        # Once true: what is held of a session may not be all that was sent of it.
        self.has_dropped = False
        self._max_bytes: Final = max_bytes
        self._max_each: Final = max_each
        self._max_sessions: Final = max_sessions
        self._seconds: Final = seconds
        self._on_drop = on_drop
        # Never an empty queue, so the number of keys is the number of sessions.
        self._held: dict[str, deque[PendingEvent]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        events = sum(map(len, self._held.values()))
        return f"<PendingEvents sessions={len(self._held)} events={events} bytes={self.size}>"

    @property
    def sessions(self) -> int:
        """Return of how many sessions events are held."""
        return len(self._held)

    def hold(self, session_id: str, event: AnyEvent, size: int) -> None:
        """Hold an event of about `size` bytes, or drop it where a bound is reached."""
        events = self._held.get(session_id)
        is_one_too_many = events is None and self._max_sessions is not None and len(self._held) >= self._max_sessions
        is_too_long = events is not None and self._max_each is not None and len(events) >= self._max_each
        if is_one_too_many or is_too_long or self.size + size > self._max_bytes:
            self._drop()
            return
        if events is None:
            events = self._held[session_id] = deque()
        loop = asyncio.get_running_loop()  # not before: a `Client` may be made outside of a loop
        events.append(PendingEvent(event, size, loop.time()))
        self.size += size
        if self._seconds is not None and self._timer is None:
            self._timer = loop.call_later(self._seconds, self._expire)

    def peek(self, session_id: str) -> list[AnyEvent]:
        """Return the held events of a session, in order; they stay held."""
        return [held.event for held in self._held.get(session_id, ())]

    def take(self, session_id: str) -> list[PendingEvent]:
        """Remove and return the held events of a session, in order: its id has become known."""
        events = list(self._held.pop(session_id, ()))
        self.size -= sum(held.size for held in events)
        return events

    def clear(self) -> None:
        """Remove all events without a report, and stop the timer: no session is being opened, or the peer is gone."""
        self._held.clear()
        self.size = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop(self) -> None:
        self.has_dropped = True
        if self._on_drop is not None:
            self._on_drop()

    def _expire(self) -> None:
        assert self._seconds is not None
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        oldest = None
        for session_id, events in list(self._held.items()):
            while events and now - events[0].since >= self._seconds:
                self.size -= events.popleft().size
                self._drop()
            if not events:
                del self._held[session_id]
            elif oldest is None or events[0].since < oldest:
                oldest = events[0].since
        # `_on_drop` may have held another event meanwhile, and begun a timer of its own.
        if oldest is not None and self._timer is None:
            self._timer = loop.call_at(oldest + self._seconds, self._expire)
