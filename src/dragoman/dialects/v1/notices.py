"""Notices for a version 1 client that does not name `session.notices`: a finished tool call of kind `other`.

The schema forbids the `notice` update for such a client and leaves the rest to the agent. Of the three updates that
every client shows, a tool call is the one that does least harm:
- An agent message is what scripts take for the answer (`acpx --format quiet`), and clients that do not look at message
  ids join it to the text before and behind it.
- A thought is folded by some clients, and joined to other thoughts. acpx prints it with the update that follows, which
  is after the wait that it is about.
- A tool call is printed at once, by its title, and is joined to nothing.

It is sent in a turn only, because clients drop or misplace what comes between two: a notice that comes there waits for
the next turn. Nothing of it reaches the log, a replay or a model: those have the notice, and this is its form on one
wire.
"""

from typing import Any, Final

from msgspec import UNSET

from dragoman.vocabulary import events
from dragoman.wire import v1 as w

# Notices that wait for the next turn; of more than these the oldest are dropped: they are live news, not history.
WAITING: Final = 16
_PREFIXES: Final = {"warning": "Warning: ", "error": "Error: "}


def as_call(notice: events.Notice, call_id: str) -> w.ToolCall:
    """Return the tool call that shows a notice: its words as the title, the description as content."""
    content: Any = UNSET
    if isinstance(notice.description, str) and notice.description:
        content = (w.Content(content=w.TextContent(text=notice.description)),)
    # Announced in its last state: a call that only this update tells of must not look as if it went on.
    return w.ToolCall(
        tool_call_id=call_id,
        title=_PREFIXES.get(notice.severity, "") + notice.title,
        kind="other",
        status="failed" if notice.severity == "error" else "completed",
        content=content,
        meta=notice.meta,
    )


def text_of(notice: events.Notice) -> str:
    """Return all the words of a notice, for dialects that have no better place than a text."""
    return f"{notice.title}: {notice.description}" if isinstance(notice.description, str) else notice.title


def of_compaction(update: events.CompactionUpdate) -> events.Notice | None:
    """Return what a compaction comes to for a client that does not know compactions; None while it goes on."""
    # A cancelled one needs no words: the user has cancelled it. One in progress will end with one of these.
    if update.status == "completed":
        return events.Notice("info", "The conversation was summarised to fit the model's context")
    if update.status == "failed":
        why = update.error if isinstance(update.error, str) else UNSET
        return events.Notice("warning", "The conversation could not be summarised", why)
    return None
