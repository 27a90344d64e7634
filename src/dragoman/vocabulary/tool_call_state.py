"""One tool call as its events have told it so far. Pure: events in, one `ToolCallUpdate` out.

The rules of patching by id stand here in code: an absent field (UNSET) leaves what was known, null (None) clears it, a
value replaces it, and a `ToolCallContentChunk` appends one item to the content. The first event with an id creates the
call, whatever its kind is. `_meta` and unknown fields belong to an event and not to the state.

What is kept of one call is bounded. What does not fit is not forgotten silently: the value ends in an item of the kind
`INCOMPLETE`, so that a judge knows that there was more.
"""

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.vocabulary.content import Resource, Text, TextResource
from dragoman.vocabulary.events import ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.tools import ContentItem, Diff, FileChange, Patch, ToolContent, UnknownItem
from dragoman.vocabulary.word import Extras

# A call has some dozen items at most; an agent that streams a file line by line has some thousands.
CONTENT_ITEMS: Final = 4_096
# Two versions of the largest file that a client lends. A flood of chunks does not fit.
CONTENT_CHARACTERS: Final = 32 * 1024 * 1024
# The kind of the item that stands for what was not kept.
INCOMPLETE: Final = "dragoman/incomplete"

_PATCHED: Final = ("name", "title", "kind", "status", "locations", "raw_input", "raw_output", "capabilities")

# Fields by which a call is judged; a dialect leaves one among the extras if something of it was malformed.
_READ_BY_JUDGES: Final = frozenset({"content", "locations", "changes", "patch"})


class ToolCallState:
    """The state of one tool call: `apply` its events in order, and read `value`."""

    def __init__(self, tool_call_id: str) -> None:
        self._call = ToolCallUpdate(tool_call_id)
        self._content: list[ToolContent] | None = None
        self._has_content = False
        self._size = 0
        self._incomplete = False

    def __repr__(self) -> str:
        items = len(self._content or ())
        return f"<ToolCallState {self._call.tool_call_id!r} items={items} incomplete={self._incomplete}>"

    def apply(self, event: ToolCallUpdate | ToolCallContentChunk) -> None:
        """Fold one event of this call into the state."""
        if isinstance(event, ToolCallContentChunk):
            self._append(event.content)
            return
        if has_unread_parts(event):
            self._has_content = self._incomplete = True
        given = {name: value for name in _PATCHED if (value := getattr(event, name)) is not UNSET}
        self._call = replace(self._call, **given)
        if event.content is not UNSET:
            self._has_content, self._incomplete, self._size = True, has_unread_parts(event), 0
            self._content = None if event.content is None else []
            for item in event.content or ():
                self._append(item)

    @property
    def size(self) -> int:
        """How much content is kept, in characters, about."""
        return self._size

    @property
    def value(self) -> ToolCallUpdate:
        """The call as one update; a field that no event has named is UNSET."""
        if not self._has_content:
            return self._call
        content = None if self._content is None else list(self._content)
        if self._incomplete:
            content = [*(content or []), incomplete()]
        return replace(self._call, content=content)

    def _append(self, item: ToolContent) -> None:
        self._has_content = True
        size = self._size + _size_of(item)
        if len(self._content or ()) >= CONTENT_ITEMS or size > CONTENT_CHARACTERS:
            self._incomplete = True
            return
        self._size = size
        if self._content is None:
            self._content = []
        self._content.append(item)


def has_unread_parts(word: ToolCallUpdate | Diff) -> bool:
    """Return whether a call or a diff came with unreadable parts: a known field is among its extras then."""
    return isinstance(word.extras, Extras) and not _READ_BY_JUDGES.isdisjoint(word.extras.fields)


def incomplete() -> UnknownItem:
    """Return the item that stands for content that was told and is not known any more."""
    return UnknownItem(INCOMPLETE, {})


def _size_of(item: ToolContent) -> int:
    """Characters of text in an item, about."""
    match item:
        case ContentItem(content=Text(text=text)):
            return len(text)
        case ContentItem(content=Resource(resource=TextResource(text=text))):
            return len(text)
        case Diff(changes=changes, patch=patch):
            texts = [text for change in changes if isinstance(change, FileChange) for text in _texts(change)]
            return sum(map(len, texts)) + (len(patch.text) if isinstance(patch, Patch) else 0)
        case _:
            return 256


def _texts(change: FileChange) -> list[str]:
    told = (change.path, change.old_text, change.new_text)
    return [text for text in told if isinstance(text, str)]
