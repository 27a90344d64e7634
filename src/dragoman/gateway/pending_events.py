"""Events of a session whose id is not known yet, because the agent's reply that holds the id comes after them.

Held only while a session is being opened, and bounded in sessions, in events of each, and in bytes of all; an event
past a bound is dropped.
"""

from typing import Final

from dragoman import limits
from dragoman.vocabulary.events import AnyEvent

Sized = tuple[AnyEvent, int]


class PendingEvents:
    """The pending events of one agent, by the id it has given the session."""

    def __init__(self) -> None:
        self.size = 0  # bytes, about
        self.held: Final[dict[str, list[Sized]]] = {}

    def hold(self, session_id: str, event: AnyEvent, size: int) -> None:
        """Hold an event, if there is room."""
        events = self.held.get(session_id)
        if events is None:
            if len(self.held) >= limits.IN_FLIGHT:  # so many can be opened at once
                return
            events = self.held[session_id] = []
        if len(events) < limits.EARLY_UPDATES and self.size + size <= limits.EARLY_UPDATE_BYTES:
            events.append((event, size))
            self.size += size

    def take(self, session_id: str) -> list[Sized]:
        """What was held of a session, which has become known."""
        events = self.held.pop(session_id, [])
        self.size -= sum(size for _, size in events)
        return events

    def forget(self) -> None:
        """Drop all held events: no session is being opened, or the agent has ended."""
        self.held.clear()
        self.size = 0
