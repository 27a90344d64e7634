"""Own the end of a replay, for a user who opens a session again: the last messages, shortened.

Nothing is folded here: a replay may have 100,000 messages, so only the start of the last few is kept.
"""

from collections import deque
from typing import Final

from dragoman.cli.terminal.event_text import first_lines
from dragoman.cli.terminal.sanitize import sanitize
from dragoman.vocabulary import events
from dragoman.vocabulary.content import text_of

# Messages shown, lines of each, and characters kept of one.
MESSAGES: Final = 4
LINES: Final = 8
LENGTH: Final = 4000


class Recap:
    """The last messages of a replay."""

    def __init__(self) -> None:
        self._messages: deque[list[str]] = deque(maxlen=MESSAGES)
        self._last = ("", "")
        self.count = 0

    def apply(self, event: events.AnyEvent) -> None:
        """Note the next event of the replay."""
        match event:
            case events.UserMessageChunk() | events.UserMessage():
                self._add("You", event.message_id, event)
            case events.AgentMessageChunk() | events.AgentMessage():
                self._add("Agent", event.message_id, event)
            case events.ToolCallUpdate():
                self._last = ("", "")
            case _:
                pass

    def messages(self) -> list[tuple[str, str]]:
        """Return the author and the first lines of each of the last messages."""
        return [
            (who, "\n".join(first_lines(sanitize(text).strip().split("\n"), LINES))) for who, text in self._messages
        ]

    def _add(self, who: str, message_id: str, event: events.Chunk | events.Message) -> None:
        if isinstance(event, events.Chunk):
            text = text_of((event.content,))
            if self._last == (who, message_id) and self._messages:
                if len(self._messages[-1][1]) < LENGTH:
                    self._messages[-1][1] += text
                return
        else:
            text = text_of(event.content or ())
        self._last = (who, message_id)
        self.count += 1
        self._messages.append([who, text[:LENGTH]])
