"""The tool calls of a turn as they have been told so far: agents ask about a call by its id alone."""

from collections import OrderedDict
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import RequestPermission, ToolCallSubject
from dragoman.vocabulary.tools import FINAL_STATUSES

# Open at the same time, in one session. Real agents have a handful.
_MOST: Final = 256
_KEPT: Final = ("name", "title", "kind", "content", "locations", "raw_input")


class Calls:
    """The open calls of one session."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, ToolCallUpdate] = OrderedDict()

    def note(self, update: ToolCallUpdate) -> None:
        """A call was told of."""
        if update.status in FINAL_STATUSES:
            self._open.pop(update.tool_call_id, None)
            return
        before = self._open.get(update.tool_call_id, ToolCallUpdate(update.tool_call_id))
        self._open[update.tool_call_id] = _patched(before, update)
        if len(self._open) > _MOST:
            self._open.popitem(last=False)

    def clear(self) -> None:
        """The turn is over."""
        self._open.clear()

    def whole(self, request: RequestPermission) -> RequestPermission:
        """A question with everything that is known of the call it is about; what the question says itself counts."""
        if not isinstance(request.subject, ToolCallSubject):
            return request
        call = request.subject.tool_call
        before = self._open.get(call.tool_call_id)
        if before is None:
            return request
        missing = {name: getattr(before, name) for name in _KEPT if getattr(call, name) is UNSET}
        return replace(request, subject=replace(request.subject, tool_call=replace(call, **missing)))


def _patched(before: ToolCallUpdate, update: ToolCallUpdate) -> ToolCallUpdate:
    given = {name: value for name in _KEPT if (value := getattr(update, name)) is not UNSET}
    return replace(before, **given)
