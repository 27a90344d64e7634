"""Events of sessions we do not know yet: agents tell of a session before they have answered with its name.

They are kept for a while, within bounds. Events whose session was not opened in that time are dropped, and reported by
`on_noise`.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from dragoman import limits
from dragoman.vocabulary.events import AnyEvent


class _Kept(NamedTuple):
    since: float
    session_id: str
    event: AnyEvent
    size: int


class EarlyEvents:
    """Holds events until their session is known, or for `limits.EARLY_UPDATE_SECONDS`."""

    def __init__(self, on_noise: Callable[[str], None]) -> None:
        self._on_noise = on_noise
        self._kept: deque[_Kept] = deque()
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        # Whether any event was not kept: then what is kept may not be all that was told.
        self.has_lost = False

    def keep(self, session_id: str, event: AnyEvent, size: int) -> None:
        """Hold an event for a while; report it where there is no room."""
        if self._size + size > limits.EARLY_UPDATE_BYTES:
            self.has_lost = True
            self._on_noise("an update for a session that was never opened")
            return
        loop = asyncio.get_running_loop()
        self._kept.append(_Kept(loop.time(), session_id, event, size))
        self._size += size
        if self._timer is None:
            self._timer = loop.call_later(limits.EARLY_UPDATE_SECONDS, self._expire)

    def heard(self, session_id: str) -> list[AnyEvent]:
        """What is kept for a session, in order; it stays here."""
        return [kept.event for kept in self._kept if kept.session_id == session_id]

    def take(self, session_id: str) -> list[AnyEvent]:
        """What was kept for a session, in order."""
        found = self.heard(session_id)
        if found:
            self._kept = deque(kept for kept in self._kept if kept.session_id != session_id)
            self._size = sum(kept.size for kept in self._kept)
        return found

    def close(self) -> None:
        """Drop all events and stop the timer, without a report."""
        self._kept.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._kept and loop.time() - self._kept[0].since >= limits.EARLY_UPDATE_SECONDS:
            self._size -= self._kept.popleft().size
            self.has_lost = True
            self._on_noise("an update for a session that was never opened")
        if self._kept:
            self._timer = loop.call_at(self._kept[0].since + limits.EARLY_UPDATE_SECONDS, self._expire)
