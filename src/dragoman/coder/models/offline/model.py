"""`offline`: a model of fixed rules, for when there is no other. It reaches no network.

Each call reads the whole context, walks through what the user asked, and goes on where the last result left it. All it
knows of files and commands comes through the tools, and so through the permissions.
"""

import re
import traceback
from collections.abc import AsyncGenerator, Iterator
from typing import Final

from dragoman.agent.author_handlers import warn
from dragoman.coder.context import ContextAssistantMessage, ContextSummary, ContextToolResult, ContextUserMessage, Item
from dragoman.coder.models.contract import (
    ModelRequest,
    Piece,
    TextDelta,
    ThoughtDelta,
    ToolCallRequested,
    UsageReported,
)
from dragoman.vocabulary.content import text_of

NAME: Final = "offline"
# It could read more; this is what editors show as the room there is.
WINDOW: Final = 32_000
_CHARACTERS_A_TOKEN: Final = 4
_STUMBLED: Final = "I stumbled over this: a mistake in my own rules. Nothing more was done.\n"


class OfflineModel:
    """The rules, as a model."""

    name = NAME
    window: int | None = WINDOW
    sees: frozenset[str] = frozenset()

    def __init__(self) -> None:
        # The message this turn began with: what is said into the turn comes behind it. All else is in the context.
        self._prompt_id: str | None = None
        self._begins = False

    def begin_turn(self) -> None:
        """A prompt has come."""
        self._begins = True

    def assistant(self, name: str) -> "OfflineModel":
        """Return a new model with these rules, for a sub-agent."""
        return OfflineModel()

    def retry_seconds(self, attempt: int) -> float:
        """It does not fail."""
        return 0.0

    async def respond(self, inquiry: ModelRequest) -> AsyncGenerator[Piece, None]:
        """The next step."""
        written = 0
        for piece in self._pieces(inquiry):
            written += _size(piece)
            yield piece
        read = len(inquiry.system) + sum(_weight(item) for item in inquiry.items)
        yield UsageReported(-(-read // _CHARACTERS_A_TOKEN), -(-written // _CHARACTERS_A_TOKEN))

    def _pieces(self, inquiry: ModelRequest) -> Iterator[Piece]:
        # Most sessions are opened and never asked: the rules are read in when they are.
        from dragoman.coder.models.offline import conversation, steps
        from dragoman.coder.models.offline.walk import up_to_call

        if inquiry.purpose == "summary":
            yield TextDelta(steps.summed(inquiry.items[:-1]))
            return
        if self._begins:
            self._prompt_id, self._begins = conversation.opening(inquiry.items), False
        try:
            for action in up_to_call(steps.answer(conversation.situation(inquiry, self._prompt_id))):
                if isinstance(action, TextDelta):
                    yield from (TextDelta(text) for text in streamed(action.text))
                else:
                    yield action
        except Exception as error:
            warn("".join(traceback.format_exception(error)))
            yield TextDelta(_STUMBLED)


def streamed(text: str) -> Iterator[str]:
    """A text in the pieces it is sent in: prose by words, blocks by lines."""
    in_block = False
    for line in text.splitlines(keepends=True):
        if line.startswith("```"):
            in_block = not in_block
        yield from [line] if in_block or line.startswith("```") else re.findall(r"\s*\S+\s*|\s+", line)


def _size(piece: Piece) -> int:
    match piece:
        case TextDelta(text) | ThoughtDelta(text):
            return len(text)
        case ToolCallRequested():
            return len(piece.tool) + sum(len(key) + len(str(value)) for key, value in piece.input.items())
        case _:
            return 0


def _weight(item: Item) -> int:
    match item:
        case ContextUserMessage():
            return len(text_of(item.content))
        case ContextAssistantMessage():
            return len(item.text) + len(item.thought) + sum(len(str(call.input)) for call in item.calls)
        case ContextToolResult() | ContextSummary():
            return len(item.text)
