"""The failure of a turn as a record in the transcript, for clients that declare `sessionFailure` (`handshake/air`).

Such a client shows the record beside the messages of the turn, with buttons for what may help; to it the turn has
ended. The record has an id of its own, what kind of trouble it is, and a title that says everything.
"""

from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.dialects.handshake.air import SESSION_FAILURE, with_air
from dragoman.errors import AUTH_REQUIRED
from dragoman.vocabulary import events

# By the reason that a failure carries: the category, which decides the icon, and what may help, in order.
_KINDS: Final[dict[object, tuple[str, tuple[str, ...]]]] = {
    "auth": ("access", ("login",)),
    "rate_limit": ("limit", ("retry",)),
    "network": ("connection", ("retry",)),
}
# An unknown failure is one of the service, and never a success.
_OTHER: Final = ("service", ("retry",))


def recorded_end(end: events.Idle, turn: str) -> events.Idle:
    """Return the end of the turn `turn`, which has failed, as one that is over and has the record in its `_meta`."""
    failure = end.error if isinstance(end.error, events.Failure) else None
    data = failure.data if failure is not None else UNSET
    reason = data.get("reason") if isinstance(data, dict) else None
    if failure is not None and failure.code == AUTH_REQUIRED:
        reason = "auth"
    category, actions = _KINDS.get(reason if isinstance(reason, str) else None, _OTHER)
    record: dict[str, Any] = {
        "id": f"{turn}:error",
        "revision": 1,
        "category": category,
        "severity": "error",
        "title": (failure.message if failure is not None else "") or "The turn has failed.",
        "actions": list(actions),
    }
    meta = with_air(end.meta or None, SESSION_FAILURE, record)
    return replace(end, stop_reason="end_turn", error=UNSET, meta=meta)
