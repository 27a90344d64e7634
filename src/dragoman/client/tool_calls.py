"""Own the open tool calls of a session, as their events have described them: agents ask about a call by its id alone.

Promise: a question is judged and shown with everything that is known of its call. The question may add to that and not
take away: where both name something, both stay. What was sent and is not kept any more is marked (`INCOMPLETE`).
"""

from collections import OrderedDict
from typing import Final, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman.vocabulary.events import ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.services import RequestPermission, ToolCallSubject
from dragoman.vocabulary.tool_call_state import ToolCallState, incomplete
from dragoman.vocabulary.tools import FINAL_STATUSES

# Open at the same time, in one session. Real agents have a handful.
_MOST: Final = 256
# Content of all open calls together, in characters.
_CHARACTERS: Final = 64 * 1024 * 1024
# Comparisons to find out which items a question repeats.
_COMPARED: Final = 100_000
# From the most to the least serious. What is not here, or not said, is not known to be harmless.
_KINDS: Final = ("execute", "fetch", "delete", "move", "edit", "search", "read", "think")
_UNKNOWN_KIND: Final = _KINDS.index("fetch") + 0.5
# What is kept of a call, beside its content. Output and `_meta` decide nothing, and a peer may send any amount of them.
_FIELDS: Final = ("name", "title", "kind", "locations", "raw_input")

_Item = TypeVar("_Item")


class ToolCalls:
    """The open calls of one session."""

    def __init__(self, *, lost: bool = False) -> None:
        """Begin without calls. `lost`: events of calls may have been lost before."""
        self._open: OrderedDict[str, ToolCallState] = OrderedDict()
        self._size = 0
        self._has_evicted = False
        self._lost = lost

    def __repr__(self) -> str:
        return f"<ToolCalls open={len(self._open)} size={self._size} evicted={self._has_evicted}>"

    def apply(self, event: ToolCallUpdate | ToolCallContentChunk) -> None:
        """Fold an event into the call it is about."""
        if isinstance(event, ToolCallUpdate) and event.status in FINAL_STATUSES:
            self._remove(event.tool_call_id)
            return
        state = self._open.get(event.tool_call_id)
        if state is None:
            state = self._open[event.tool_call_id] = ToolCallState(event.tool_call_id, _FIELDS, bounded=True)
        before = state.size
        state.apply(event)
        self._size += state.size - before
        while len(self._open) > 1 and (len(self._open) > _MOST or self._size > _CHARACTERS):
            self._remove(next(iter(self._open)))
            self._has_evicted = True

    def clear(self) -> None:
        """Forget all calls: the turn is over."""
        self._open.clear()
        self._size = 0
        self._has_evicted = False

    def whole(self, request: RequestPermission) -> RequestPermission:
        """Return the question with everything that is known of its call."""
        if not isinstance(request.subject, ToolCallSubject):
            return request
        call = request.subject.tool_call
        state = self._open.get(call.tool_call_id)
        merged = call if state is None else _merged(state.value, call)
        if self._lost or (state is None and self._has_evicted):
            merged = replace(merged, content=[*(merged.content or ()), incomplete()])
        if merged is call:
            return request
        return replace(request, subject=replace(request.subject, tool_call=merged))

    def _remove(self, tool_call_id: str) -> None:
        state = self._open.pop(tool_call_id, None)
        if state is not None:
            self._size -= state.size


def _merged(before: ToolCallUpdate, asked: ToolCallUpdate) -> ToolCallUpdate:
    """Return the call of a question, with what is known of it and the question leaves out or says otherwise."""
    return replace(
        asked,
        name=before.name if asked.name is UNSET else asked.name,
        title=before.title if asked.title is UNSET else asked.title,
        kind=_kind(before.kind, asked.kind),
        content=_both(before.content, asked.content),
        locations=_both(before.locations, asked.locations),
        raw_input=_input(before.raw_input, asked.raw_input),
    )


def _kind(before: "str | None | UnsetType", asked: "str | None | UnsetType") -> "str | None | UnsetType":
    """Return the more serious of two kinds: a question does not make a call harmless that had another kind before."""
    kinds = [kind for kind in (asked, before) if isinstance(kind, str)]
    if not kinds:
        return before if asked is UNSET else asked
    return min(kinds, key=lambda kind: _KINDS.index(kind) if kind in _KINDS else _UNKNOWN_KIND)


def _both(
    before: "list[_Item] | None | UnsetType", asked: "list[_Item] | None | UnsetType"
) -> "list[_Item] | None | UnsetType":
    if not before:
        return before if asked is UNSET else asked
    if not asked or asked == before:
        return before
    if len(asked) * len(before) > _COMPARED:
        return [*asked, *before]
    return [*asked, *(item for item in before if item not in asked)]


def _input(before: object, asked: object) -> object:
    """Return both inputs in one: the fields of both, or a list of the two where they say different things."""
    if asked is UNSET or asked is None or asked == before:
        return asked if before is UNSET else before
    if before is UNSET or before is None or before in ({}, [], ""):
        return asked
    if not isinstance(before, dict) or not isinstance(asked, dict):
        return [asked, before]
    agree = all(name not in asked or asked[name] == value for name, value in before.items())
    return {**asked, **before} if agree else [asked, before]
