"""Turns a version 1 replay into one of version 2: whole messages, in order, each before anything appended to it.

Version 1 replays a conversation in chunks. A reader of version 2 expects `user_message`, `agent_message` or
`agent_thought` for every message of a replay, so the chunks of one message are gathered and told as one event when
the next event comes, or when the replay ends. What is gathered is bounded: a message that grows past `WHOLE_CHARACTERS`
is told as far as it has come, and the rest of it in chunks, which append. So is a message of which a chunk carries
something of its own (`_meta`, unknown fields), because a whole message has no place for that.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET

from dragoman.vocabulary import events
from dragoman.vocabulary.content import Content, Text

# Of one message. Line readers with a limit of 64 KiB exist, and the agent may have cut its chunks for them.
WHOLE_CHARACTERS: Final = 16 * 1024
# Messages that chunks may still come for, behind other events.
_REMEMBERED: Final = 4096
_WHOLE: Final[dict[type, Any]] = {
    events.UserMessageChunk: events.UserMessage,
    events.AgentMessageChunk: events.AgentMessage,
    events.AgentThoughtChunk: events.AgentThought,
}


class ReplayedMessages:
    """The messages of one replay, fed with its events in order."""

    def __init__(self) -> None:
        self._kind: Any = None  # the class of the message that is being gathered
        self._id = ""
        self._texts: list[str] = []
        self._size = 0
        # Messages that were told, in order. Agents exist that give a message and its thought one id.
        self._begun: dict[tuple[Any, str], None] = {}
        self._unnamed = 0

    def new_id(self) -> str:
        """Return the id of the next message that the agent has given none: the same at every replay."""
        self._unnamed += 1
        return f"replayed-{self._unnamed}"

    def feed(self, event: events.AnyEvent) -> list[events.AnyEvent]:
        """Return the events that can be sent on, now that this one has come."""
        if not isinstance(event, events.Chunk):
            told = self.take()
            if isinstance(event, events.Message):
                self._remember(type(event), event.message_id)
            return [*told, event]
        kind = _WHOLE[type(event)]
        told = self.take() if (kind, event.message_id) != (self._kind, self._id) else []
        if (kind, event.message_id) in self._begun:
            return [*told, *self.take(), event]
        self._kind, self._id = kind, event.message_id
        if not _is_bare(event):
            return [*told, self._whole(()), event]
        if not _is_text(event.content):
            return [*told, self._whole((event.content,))]
        if event.text or not self._texts:
            self._texts.append(event.text)
        self._size += len(event.text)
        return [*told, self._whole(())] if self._size > WHOLE_CHARACTERS else told

    def is_told(self, kind: type[events.Chunk], message_id: str) -> bool:
        """Return whether a chunk of this message can be sent at once: its message was sent, and nothing is gathered."""
        return not self._texts and (_WHOLE[kind], message_id) in self._begun

    def take(self) -> list[events.AnyEvent]:
        """Return the message that is being gathered, if there is one; nothing of it is held any more."""
        return [self._whole(())] if self._texts else []

    def _whole(self, more: Sequence[Content]) -> events.AnyEvent:
        text = "".join(self._texts)
        whole: events.AnyEvent = self._kind(self._id, [*([Text(text)] if text else ()), *more])
        self._remember(self._kind, self._id)
        self._kind, self._id, self._size = None, "", 0
        self._texts.clear()
        return whole

    def _remember(self, kind: Any, message_id: str) -> None:
        self._begun[kind, message_id] = None
        if len(self._begun) > _REMEMBERED:
            del self._begun[next(iter(self._begun))]


def _is_bare(chunk: events.Chunk) -> bool:
    return chunk.meta is chunk.extras is chunk.outer is UNSET


def _is_text(block: Content) -> bool:
    return type(block) is Text and block.annotations is block.meta is block.extras is UNSET
