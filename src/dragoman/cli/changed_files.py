"""Find the files that tool calls have changed: for the result of `dragoman run --json`, and for a hand-off."""

from collections.abc import Iterable

from dragoman.vocabulary.events import AnyEvent, ToolCallUpdate
from dragoman.vocabulary.tools import Diff, FileChange

# Calls with these have changed nothing that is known.
_WITHOUT_EFFECT = ("failed", "cancelled", "pending")


def changed_files(events: Iterable[AnyEvent]) -> dict[str, str]:
    """Return the path of each file that a call has changed, with what it came to; the last that was changed is last."""
    changed: dict[str, str] = {}
    for event in events:
        if not isinstance(event, ToolCallUpdate) or event.status in _WITHOUT_EFFECT:
            continue
        for item in event.content or []:
            for change in item.changes if isinstance(item, Diff) else ():
                if isinstance(change, FileChange):
                    before, now = changed.pop(change.path, ""), change.operation
                    # Added and then changed again: before the first of these calls there was no such file.
                    changed[change.path] = before if (before, now) == ("add", "modify") else now
    return changed
