"""Text that is passed on without being decoded: which frames carry it, and between which bytes it stands.

A relay passes on chunks of text by the hundred thousand, and of each only the text differs from the one before. So a
frame is proven once (`learn`), down to its last key; what comes after it is compared with it byte by byte up to the
text and behind it, and the text itself has to be one JSON string. So such a frame means what the proven one meant, with
another text: no other session, no key twice, nothing beside it. Any frame that differs takes the long way.
"""

from typing import Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from dragoman import limits
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import CHUNK_TYPES, AgentMessageChunk, AgentThoughtChunk, UserMessageChunk
from dragoman.wire.envelope import unique_members

# The kinds of text that an agent sends by the hundred thousand. A user's own message may be an echo of the prompt.
AnyText: TypeAlias = UserMessageChunk | AgentMessageChunk | AgentThoughtChunk
_RELAYED: Final = (AgentMessageChunk, AgentThoughtChunk)
_NAMES: Final = {kind: name for name, kind in CHUNK_TYPES.items()}
_FIELD: Final = b'"text":'
_SPACE: Final = ord(" ")
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
# Larger frames are rare and worth the checks of the long way.
_SHORT: Final = 8192
# Messages of a link that are known at once: one for each session that streams, and some more.
_KNOWN: Final = 512

_decode_string: Final = msgspec.json.Decoder(str).decode


class TextMessage:
    """A message whose text comes in pieces. Each object is one message: it is compared by identity."""

    __slots__ = ("id", "kind", "session_id")

    def __init__(self, session_id: str, kind: type[AnyText], id: str) -> None:
        self.session_id: Final = session_id
        self.kind: Final = kind
        self.id: Final = id

    def __repr__(self) -> str:
        return f"<TextMessage {self.name} {self.id!r}>"

    @property
    def name(self) -> str:
        """Return the kind of the message as the wire calls it."""
        return _NAMES[self.kind]


class RelayedText(Struct, frozen=True, gc=False):
    """A piece of a message, as it came: `text` is a JSON string, proven to be one."""

    message: TextMessage
    text: bytes

    @property
    def size(self) -> int:
        """Return about how many bytes it takes in memory."""
        return len(self.text) + _OVERHEAD

    def event(self) -> AnyText:
        """Return the event that the long way would have made of the frame."""
        return self.message.kind(Text(_decode_string(self.text)), self.message.id)


# What a piece takes beside its text, about.
_OVERHEAD: Final = 256


class TextFrames:
    """The frames of the messages that come in pieces now, as far as they are proven."""

    def __init__(self) -> None:
        # By the bytes before the text: the message, and the bytes behind the text.
        self._known: dict[bytes, tuple[TextMessage, bytes]] = {}
        self._last_head = b""

    def __repr__(self) -> str:
        return f"<TextFrames known={len(self._known)}>"

    def find(self, frame: bytes) -> RelayedText | None:
        """Return the text of a frame of a known message; None for every other frame."""
        # What `_FIELD` finds first may stand in another place than the text: then no message is known by those bytes.
        start = frame.find(_FIELD) + len(_FIELD)
        if frame[start : start + 1] == b" ":
            start += 1
        known = self._known.get(frame[:start])
        if known is None:
            return None
        message, tail = known
        text = frame[start : -len(tail)]
        # A frame that is shorter than head and tail together has no text left, and no string is that short.
        if len(frame) > _SHORT or not frame.endswith(tail) or len(text) < 2 or text[-1] != _QUOTE:
            return None
        try:
            _decode_string(text)  # whole: also its UTF-8, its escapes and its surrogates
        except ValueError:
            return None
        return RelayedText(message, text)

    def learn(self, frame: bytes, session_id: str, chunk: AnyText) -> None:
        """Learn the message of a frame that was decoded to `chunk`, if the frame has nothing but that.

        Only when a second frame begins as the one before: proving costs more than decoding, and many messages come in
        one piece.
        """
        start = frame.find(_FIELD) + len(_FIELD)
        if frame[start : start + 1] == b" ":
            start += 1
        head = frame[:start]
        if head != self._last_head:
            self._last_head = head
            return
        tail = frame[_end_of_string(frame, start) :]
        if type(chunk) in _RELAYED and _is_only(head + b'""' + tail, session_id, chunk):
            self._known.pop(head, None)  # the message that had these bytes before is over
            self._known[head] = (TextMessage(session_id, type(chunk), chunk.message_id), tail)
            limits.evict_oldest(self._known, _KNOWN)


def _end_of_string(frame: bytes, start: int) -> int:
    """Return where the JSON string that begins at `start` has ended."""
    end = frame.find(b'"', start + 1)
    while end > 0:
        before = end - 1
        while frame[before] == _BACKSLASH:
            before -= 1
        if (end - before) % 2:
            return end + 1
        end = frame.find(b'"', end + 1)
    return len(frame)


def _is_only(frame: bytes, session_id: str, chunk: AnyText) -> bool:
    """Return whether a frame with an empty text is `chunk` and nothing else, with each key once at every depth."""
    outer = unique_members(frame) or {}
    params = unique_members(outer.get("params", _NONE)) or {}
    update = unique_members(params.get("update", _NONE)) or {}
    content = unique_members(update.get("content", _NONE)) or {}
    message_id = update.pop("messageId", None)
    return (
        outer.keys() == {"jsonrpc", "method", "params"}
        and _text(outer["jsonrpc"]) == "2.0"
        and _text(outer["method"]) == "session/update"
        and params.keys() == {"sessionId", "update"}
        and _text(params["sessionId"]) == session_id
        and update.keys() == {"sessionUpdate", "content"}
        and _text(update["sessionUpdate"]) == _NAMES[type(chunk)]
        and content.keys() == {"type", "text"}
        and _text(content["type"]) == "text"
        and _text(content["text"]) == ""
        and (message_id is None or _text(message_id) == chunk.message_id)
    )


_NONE: Final = Raw(b"null")


def _text(raw: Raw) -> str:
    """Return a JSON string as text, and something that no field has to be for any other value."""
    try:
        return _decode_string(raw)
    except ValueError:
        return "\0"
