"""Tool calls and plans that were sent to a client as they came, before what depends on them is known.

What `updates` remembers of a call (that it was announced, its content) is needed when an update is encoded, or a
question about the call. Most calls that pass as they came are over before that: of those the id is enough. So they are
kept as bytes, and decoded only where something of the session is encoded while they run.
"""

from collections.abc import Sequence
from typing import Final

from dragoman.dialects.codec.relayed_updates import RelayedUpdate
from dragoman.vocabulary import events
from dragoman.vocabulary.tools import FINAL_STATUSES

# Of one session; past this what is over is remembered by its id alone.
_BYTES: Final = 512 * 1024
_UPDATES: Final = 1024


class RelayedCalls:
    """What was sent as it came, by session, until it is read."""

    def __init__(self) -> None:
        self._updates: dict[str, list[RelayedUpdate]] = {}
        self._sizes: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<RelayedCalls sessions={len(self._updates)}>"

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._updates

    def add(self, session_id: str, update: RelayedUpdate) -> bool:
        """Keep an update; return whether there are now so many that `take_ends` is called for."""
        held = self._updates.setdefault(session_id, [])
        held.append(update)
        size = self._sizes[session_id] = self._sizes.get(session_id, 0) + update.size
        return size > _BYTES or len(held) > _UPDATES

    def take(self, session_id: str) -> Sequence[events.AnyEvent]:
        """Return the events of what was kept, and keep it no more."""
        self._sizes.pop(session_id, None)
        found = [update.event() for update in self._updates.pop(session_id, ())]
        return [event for event in found if event is not None]

    def take_ends(self, session_id: str) -> Sequence[events.AnyEvent]:
        """Return, and keep no more: the events of calls that go on; of those that are over, that they are."""
        self._sizes.pop(session_id, None)
        held = [(update, update.tool_call()) for update in self._updates.pop(session_id, ())]
        last = {call_id: status for _, (call_id, status) in held if call_id and status}
        over = [call_id for call_id, status in last.items() if status in FINAL_STATUSES]
        going_on = [update.event() for update, (call_id, _) in held if call_id and call_id not in over]
        ends = [events.ToolCallUpdate(call_id, status=last[call_id]) for call_id in over]
        return [*ends, *(event for event in going_on if event is not None)]
