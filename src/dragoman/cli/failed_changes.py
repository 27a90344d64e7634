"""The changes of files that an agent tried in a turn and that failed for good, for a run that shows only the answer.

A change that failed and was made later by another call has not failed for good. Of a call its name, its files and the
first words of its text are kept, and no content; all of it is bounded.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from dragoman.vocabulary.events import ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.tools import FINAL_STATUSES, ContentItem, Diff, FileChange, ToolContent

_CHANGING: Final = ("edit", "delete", "move")
# Calls that are open at the same time, and failures that are kept.
_MOST: Final = 256
# Of one call.
_FILES: Final = 64
_TITLE_CHARACTERS: Final = 500


class _Call:
    """What is known of one call."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.changes = False
        self.reason = ""
        self.paths: set[str] = set()

    @property
    def subjects(self) -> set[str]:
        """The files that it is about; its title where it names none."""
        return self.paths or {self.title}


class FailedChanges:
    """Follows the tool calls of one turn."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, _Call] = OrderedDict()
        self._failed: list[_Call] = []

    def __repr__(self) -> str:
        return f"<FailedChanges open={len(self._open)} failed={len(self._failed)}>"

    def apply(self, event: ToolCallUpdate | ToolCallContentChunk) -> None:
        """Fold an event into the call that it is about."""
        call = self._open.get(event.tool_call_id)
        if call is None:
            call = self._open[event.tool_call_id] = _Call(event.tool_call_id[:_TITLE_CHARACTERS])
        if isinstance(event, ToolCallContentChunk):
            _note_content(call, [event.content])
            return
        _note(call, event)
        if event.status in FINAL_STATUSES:
            del self._open[event.tool_call_id]
            self._end(call, str(event.status))
        elif len(self._open) > _MOST:
            self._open.popitem(last=False)

    def sentences(self) -> list[str]:
        """Say what failed, and why if the agent has said so."""
        return [f"{call.title}{call.reason}" for call in self._failed]

    def _end(self, call: _Call, status: str) -> None:
        if status == "completed":
            self._failed = [one for one in self._failed if not call.subjects & one.subjects]
        elif status == "failed" and call.changes and len(self._failed) < _MOST:
            self._failed.append(call)


def _note(call: _Call, event: ToolCallUpdate) -> None:
    named = event.title or event.name
    if named:
        call.title = named[:_TITLE_CHARACTERS]
    if isinstance(event.kind, str):
        call.changes = call.changes or event.kind in _CHANGING
    for location in event.locations or ():
        _note_path(call, location.path)
    if event.content:
        call.reason = ""
        _note_content(call, event.content)


def _note_content(call: _Call, items: Sequence[ToolContent]) -> None:
    from dragoman.cli.terminal.event_text import failure_reason

    for item in items:
        if isinstance(item, Diff):
            call.changes = True
            for change in item.changes:
                if isinstance(change, FileChange):
                    _note_path(call, change.path)
        elif isinstance(item, ContentItem) and not call.reason:
            call.reason = failure_reason([item])


def _note_path(call: _Call, path: str) -> None:
    if len(call.paths) < _FILES:
        call.paths.add(path)
