"""Own the events of a running turn, for clients that join it: bounded, and sent to them as the state they make.

A client that joins needs what the turn has brought so far, not how it came: a message of a thousand chunks is sent as
one message, a tool call once, in its last state. The events are held as they came and folded (`SessionState`) only when
a client joins: most turns are joined by no client, and text comes by the hundred thousand chunks. The bound counts
bytes as they came, so what is sent never exceeds it.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from dragoman import limits
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.state import SessionState

# Held of a running turn. Fifty turns at once hold fifty times this.
TURN_BYTES: Final = limits.MIB
# Between turns: the prompt that begins the next one, and not much more.
_BETWEEN_BYTES: Final = 16 * limits.KIB


class TurnBuffer:
    """The last events of a session since its turn began; `missing` of them are not held any more."""

    def __init__(self) -> None:
        self.missing = 0
        self._events: deque[tuple[AnyEvent, int]] = deque()
        self._size = 0
        self._limit = _BETWEEN_BYTES

    def __repr__(self) -> str:
        return f"<TurnBuffer events={len(self._events)} bytes={self._size} missing={self.missing}>"

    def begin(self) -> None:
        """Begin a turn: the events that led to it, such as its prompt, are part of it."""
        self._limit = TURN_BYTES
        self.missing = 0

    def append(self, event: AnyEvent, size: int) -> None:
        """Hold an event of about `size` bytes; the oldest ones go where there is no room, and the last one stays."""
        self._events.append((event, size))
        self._size += size
        while self._size > self._limit and len(self._events) > 1:
            _, freed = self._events.popleft()
            self._size -= freed
            self.missing += 1

    def clear(self) -> None:
        """Hold nothing any more: the turn is over."""
        self._events.clear()
        self._size = self.missing = 0
        self._limit = _BETWEEN_BYTES

    def snapshot(self) -> Iterator[AnyEvent]:
        """Yield the state that the held events make, as events, without the state of the turn itself.

        What was patched before the oldest held event is missing in it, as it would be among the events.
        """
        state = SessionState()
        for event, _ in self._events:
            state.apply(event)
        return state.snapshot()
