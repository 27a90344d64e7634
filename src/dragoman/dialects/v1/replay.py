"""Turn a version 1 replay into one of version 2: whole messages, in order, each before anything appended to it.

Version 1 replays a conversation in chunks. A reader of version 2 expects `user_message`, `agent_message` or
`agent_thought` for every message of a replay, so the chunks of one message are gathered and sent as one event when
the next event comes, or when the replay ends. What is gathered is bounded: a message that grows past `WHOLE_CHARACTERS`
is sent as far as it has come, and the rest of it in chunks, which append. So is a message of which a chunk carries
something of its own (`_meta`, unknown fields), because a whole message has no place for that.
"""

from typing import Final

from msgspec import UNSET

from dragoman.vocabulary import events
from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.state import MESSAGE_OF_CHUNK, AnyMessage, MessageState

# Of one message. Line readers with a limit of 64 KiB exist, and the agent may have cut its chunks for them.
WHOLE_CHARACTERS: Final = 16 * 1024
# Messages that chunks may still come for, behind other events.
_REMEMBERED: Final = 4096


class ReplayedMessages:
    """The messages of one replay: feed it the events in order, and send on what it returns."""

    def __init__(self) -> None:
        self._gathered: MessageState | None = None  # the message that is being gathered
        self._size = 0  # characters of it
        # Messages that were sent, in order. Agents exist that give a message and its thought one id.
        self._begun: dict[tuple[type[AnyMessage], str], None] = {}
        self._unnamed = 0

    def __repr__(self) -> str:
        return f"<ReplayedMessages begun={len(self._begun)} gathered={self._gathered!r}>"

    def new_id(self) -> str:
        """Return the id of the next message that the agent has given none: the same at every replay."""
        self._unnamed += 1
        return f"replayed-{self._unnamed}"

    def feed(self, event: events.AnyEvent) -> list[events.AnyEvent]:
        """Return the events that can be sent on, now that this one has come."""
        if not isinstance(event, events.Chunk):
            before = self.take()
            if isinstance(event, events.Message):
                self._remember(type(event), event.message_id)
            return [*before, event]
        kind = MESSAGE_OF_CHUNK[type(event)]
        message = self._gathered
        is_same = message is not None and (message.kind, message.message_id) == (kind, event.message_id)
        before = [] if is_same else self.take()
        if (kind, event.message_id) in self._begun:
            return [*before, event]
        if self._gathered is None:
            self._gathered = MessageState(kind, event.message_id)
        if not _is_bare(event):
            return [*before, *self.take(), event]
        self._gathered.append(event.content)
        self._size += len(event.text)
        is_complete = self._size > WHOLE_CHARACTERS or not _is_text(event.content)
        return [*before, *self.take()] if is_complete else before

    def is_sent(self, kind: type[events.Chunk], message_id: str) -> bool:
        """Return whether a chunk of this message can be sent at once: its message was sent, and nothing is gathered."""
        return self._gathered is None and (MESSAGE_OF_CHUNK[kind], message_id) in self._begun

    def take(self) -> list[events.AnyEvent]:
        """Return the message that is being gathered, if there is one; nothing of it is held any more."""
        message, self._gathered, self._size = self._gathered, None, 0
        if message is None:
            return []
        self._remember(message.kind, message.message_id)
        return [message.value]

    def _remember(self, kind: type[AnyMessage], message_id: str) -> None:
        self._begun[kind, message_id] = None
        if len(self._begun) > _REMEMBERED:
            del self._begun[next(iter(self._begun))]


def _is_bare(chunk: events.Chunk) -> bool:
    return chunk.meta is chunk.extras is chunk.outer is UNSET


def _is_text(block: Content) -> bool:
    return type(block) is Text and block.annotations is block.meta is block.extras is UNSET
