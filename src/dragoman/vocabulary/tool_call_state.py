"""Own the state of one tool call: fold its events (`ToolCallState`) into one `ToolCallUpdate`. Pure.

The first event with an id creates the call, whatever its kind is. A `ToolCallUpdate` patches it as `patches` says; a
`ToolCallContentChunk` appends one item to the content. The `_meta` of a chunk belongs to the chunk and not to the call.

The owner of a state chooses what is kept of a call:

- `fields` names the fields that are folded beside the content, so that a reader which needs only the status does not
  hold the input and output of every call;
- `bounded` limits the content, for a reader that must not grow with what a peer sends, and *marks* what is missing: the
  value then ends in an item of the kind `INCOMPLETE`. A permission that is judged by a call must know that there was
  more; without the mark a peer could push a diff out of sight by sending much text after it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.vocabulary.content import Resource, Text, TextResource
from dragoman.vocabulary.events import ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.patches import apply_patch
from dragoman.vocabulary.tools import FINAL_STATUSES, ContentItem, Diff, FileChange, Patch, ToolContent, UnknownItem
from dragoman.vocabulary.word import Extras

# A call has some dozen items at most; an agent that streams a file line by line has some thousands.
CONTENT_ITEMS: Final = 4_096
# Two versions of the largest file that a client lends. A flood of chunks does not fit.
CONTENT_CHARACTERS: Final = 32 * 1024 * 1024
# The kind of the item that stands for what was not kept.
INCOMPLETE: Final = "dragoman/incomplete"

# Content is not patched like the others: chunks append to it, so it is kept apart and joined when the value is read.
ALL_FIELDS: Final = tuple(name for name in ToolCallUpdate.__struct_fields__ if name != "content")

# Fields by which a call is judged; a dialect leaves one among the extras if something of it was malformed.
_READ_BY_JUDGES: Final = frozenset({"content", "locations", "changes", "patch"})


# Not walked by the garbage collector: it holds JSON values only, and a log may have 100,000 calls.
class ToolCallState(msgspec.Struct, gc=False):
    """The state of one tool call: `apply` its events in order, and read `value`.

    `apply` changes the state in place. What `value` and `content` return is not changed by later events.
    """

    tool_call_id: str
    fields: Sequence[str] = ALL_FIELDS
    bounded: bool = False
    _call: ToolCallUpdate | None = None  # without its content; None: no field is known
    _content: list[ToolContent] | None = None  # None: no event has named it, or it was cleared
    _size: int = 0
    _incomplete: bool = False  # content was sent that is not in `_content`
    _has_unread_locations: bool = False  # beside those in `_call`

    def __repr__(self) -> str:
        items, is_incomplete = len(self._content or ()), self._incomplete or self._has_unread_locations
        return f"<ToolCallState {self.tool_call_id!r} items={items} incomplete={is_incomplete}>"

    def apply(self, event: ToolCallUpdate | ToolCallContentChunk) -> None:
        """Fold one event of this call into the state."""
        if isinstance(event, ToolCallContentChunk):
            self._append(event.content)
            return
        self._call = apply_patch(self._call or ToolCallUpdate(self.tool_call_id), event, self.fields)
        if event.content is not UNSET:
            self._content, self._size, self._incomplete = None, 0, False
            if event.content is not None:
                self._content = []
                for item in event.content:
                    self._append(item)
        # Each mark stays until its own field is sent again: a new content says nothing about where the call works.
        if event.locations is not UNSET:
            self._has_unread_locations = False
        if self.bounded and isinstance(event.extras, Extras):
            unread = _READ_BY_JUDGES.intersection(event.extras.fields)
            self._has_unread_locations |= "locations" in unread
            self._incomplete |= bool(unread - {"locations"})

    @property
    def size(self) -> int:
        """How much content is kept, in characters, about. Counted for a bounded state only."""
        return self._size

    @property
    def is_final(self) -> bool:
        """Whether the call has ended: completed, failed or cancelled."""
        return self._call is not None and self._call.status in FINAL_STATUSES

    @property
    def header(self) -> ToolCallUpdate:
        """The call as one update, without its content."""
        return self._call or ToolCallUpdate(self.tool_call_id)

    @property
    def content(self) -> tuple[ToolContent, ...]:
        """The content that is kept, without a mark of what is missing."""
        return tuple(self._content or ())

    @property
    def value(self) -> ToolCallUpdate:
        """The call as one update; a field that no event has named, or that was cleared, is UNSET."""
        if self._incomplete or self._has_unread_locations:
            return replace(self.header, content=[*(self._content or ()), incomplete()])
        return self.header if self._content is None else replace(self.header, content=list(self._content))

    def _append(self, item: ToolContent) -> None:
        if self.bounded:
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
    """Return the item that stands for content that was sent and is not known any more."""
    return UnknownItem(INCOMPLETE, {})


def _size_of(item: ToolContent) -> int:
    """Return about how many characters of text an item has."""
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
    fields = (change.path, change.old_text, change.new_text)
    return [text for text in fields if isinstance(text, str)]
