"""Own the events of a running turn, for clients that join it: bounded, and sent to them as the state they make.

A client that joins needs what the turn has brought so far, not how it came: a message of a thousand chunks is sent as
one message, a tool call once, in its last state. The events are held as they came and folded (`SessionState`) only when
a client joins: most turns are joined by no client, and text comes by the hundred thousand chunks. The bound counts
bytes as they came, so what is sent never exceeds it.

A client may have been here before and know older values of what the turn has cleared. So what was cleared is sent as
null and a plan that was removed as its removal, where to the reducer both are as if they had never been.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman import limits
from dragoman.dialects.codec.relayed_text import RelayedText
from dragoman.dialects.codec.relayed_updates import RelayedUpdate
from dragoman.vocabulary.events import (
    AnyEvent,
    CompactionUpdate,
    PlanRemoved,
    PlanUpdate,
    SessionInfoChanged,
    TerminalUpdate,
    ToolCallUpdate,
)
from dragoman.vocabulary.state import SessionState, plan_id

# Held of a running turn. Fifty turns at once hold fifty times this.
TURN_BYTES: Final = limits.MIB
# Between turns: the prompt that begins the next one, and not much more.
_BETWEEN_BYTES: Final = 16 * limits.KIB


class TurnBuffer:
    """The last events of a session since its turn began; `missing` of them are not held any more."""

    def __init__(self) -> None:
        self.missing = 0
        self._events: deque[tuple[AnyEvent | RelayedText | RelayedUpdate, int]] | None = None  # None: none are held
        self._size = 0
        self._limit = _BETWEEN_BYTES

    def __repr__(self) -> str:
        return f"<TurnBuffer events={len(self._events or ())} bytes={self._size} missing={self.missing}>"

    def begin(self) -> None:
        """Begin a turn: the events that led to it, such as its prompt, are part of it."""
        # The events from between the turns stay, but not the count of those that were dropped there: they were of no
        # turn.
        self._limit = TURN_BYTES
        self.missing = 0

    def append(self, event: AnyEvent | RelayedText | RelayedUpdate, size: int) -> None:
        """Hold an event of about `size` bytes; the oldest ones go where there is no room, and the last one stays."""
        events = self._events
        if events is None:
            events = self._events = deque()
        events.append((event, size))
        self._size += size
        # The last one stays, whatever its size: a turn of one large event is still sent to a client that joins.
        while self._size > self._limit and len(events) > 1:
            _, freed = events.popleft()
            self._size -= freed
            self.missing += 1

    def clear(self) -> None:
        """Hold nothing any more: the turn is over."""
        # Not an empty deque, which takes 700 bytes: most sessions are idle.
        self._events = None
        self._size = self.missing = 0
        self._limit = _BETWEEN_BYTES

    def snapshot(self) -> Iterator[AnyEvent]:
        """Yield the state that the held events make, as events, without the state of the turn itself.

        What was patched before the oldest held event is missing in it, as it would be among the events.
        """
        state, cleared = SessionState(), _Cleared()
        for kept, _ in self._events or ():
            event = kept.event() if isinstance(kept, RelayedText | RelayedUpdate) else kept
            if event is None:
                continue
            state.apply(event)
            cleared.apply(event)
        for event in state.snapshot():
            yield cleared.add_to(event)
        yield from cleared.removed_plans()


class _Cleared:
    """What the events of a turn have cleared and not set again."""

    def __init__(self) -> None:
        self._fields: dict[tuple[type, str], set[str]] = {}
        self._meta: dict[tuple[type, str], set[str]] = {}  # keys of `_meta`
        self._plans: dict[str, PlanRemoved] = {}

    def apply(self, event: AnyEvent) -> None:
        if isinstance(event, PlanRemoved):
            self._plans[event.plan_id] = event
        elif isinstance(event, PlanUpdate):
            self._plans.pop(plan_id(event.plan), None)
        key = _patched(event)
        if key is None:
            return
        # Values that are set again need no note: `add_to` fills in only what the state lacks.
        null = {name for name in event.__struct_fields__ if getattr(event, name) is None}
        if null:
            self._fields.setdefault(key, set()).update(null)
        if isinstance(event.meta, dict):
            removed = {name for name, value in event.meta.items() if value is None}
            if removed:
                self._meta.setdefault(key, set()).update(removed)

    def add_to(self, event: AnyEvent) -> AnyEvent:
        """Return an event of the state with null for what was cleared."""
        key = _patched(event)
        if key is None or (key not in self._fields and key not in self._meta):
            return event
        changes: dict[str, object] = {name: None for name in self._fields.get(key, ()) if getattr(event, name) is UNSET}
        # Where all of `_meta` was cleared, null says that of each key.
        if key in self._meta and "meta" not in changes:
            changes["meta"] = {**dict.fromkeys(sorted(self._meta[key])), **(event.meta or {})}
        return replace(event, **changes)

    def removed_plans(self) -> Iterator[PlanRemoved]:
        yield from self._plans.values()


def _patched(event: AnyEvent) -> tuple[type, str] | None:
    """Return the kind and id of what an event patches by field; None for other events, and for messages, whose content
    the state always has."""
    match event:
        case ToolCallUpdate(tool_call_id=id) | TerminalUpdate(terminal_id=id) | CompactionUpdate(compaction_id=id):
            return type(event), id
        case SessionInfoChanged():
            return SessionInfoChanged, ""
        case _:
            return None
