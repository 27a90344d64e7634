"""Keeping the conversation inside the model's window: old tool results are trimmed first, then all of it is summed up.

The log keeps everything; only what the model sees gets shorter.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

import msgspec

from dragoman.agent.identity import new_id
from dragoman.coder.context import Context, Item, ModelSaid, Summed, ToolSaid, UserSaid
from dragoman.coder.models.contract import Inquiry, Model, ModelFailed, Said
from dragoman.vocabulary.content import Text, text_of
from dragoman.vocabulary.events import AnyEvent, CompactionSummaryChunk, CompactionUpdate

# Parts of the window: where it gets tight, and what trimming has to reach to be worth it.
TIGHT: Final = 0.8
ROOMY: Final = 0.6
# A result this short is not worth trimming.
SHORT_RESULT: Final = 400
# Nobody's tokenizer, and close enough to everybody's.
_CHARACTERS_A_TOKEN: Final = 4
# A summary of more is no summary.
_SUMMARY_CHARACTERS: Final = 40_000
_ASK: Final = (
    "Sum up the conversation so far for yourself, so that you can go on without it: what the user wants, what was "
    "decided, which files matter and what is in them, what was done, what is still to do. Be exact and brief."
)
LEFT_OUT: Final = "[The beginning of the conversation was left out; it could not be summed up.]"

Tell = Callable[[AnyEvent], Awaitable[None]]


class Room:
    """How full the window is."""

    def __init__(self, context: Context, tell: Tell) -> None:
        # The tokens of the last model call, as it told them; 0: it has not.
        self.used = 0
        self._context = context
        self._tell = tell

    def tokens(self) -> int:
        """About what the next model call is going to see."""
        return self.used or estimate(self._context.items)

    def is_tight(self, model: Model) -> bool:
        """Whether something should be done before the next call."""
        return model.window is not None and self.tokens() > TIGHT * model.window

    async def make(self, model: Model) -> None:
        """Do what has to be done, if it has to."""
        if not self.is_tight(model):
            return
        assert model.window is not None
        items = self._context.items
        freed = sum(len(item.text) for item in _trimmable(items)) // _CHARACTERS_A_TOKEN
        if self.tokens() - freed <= ROOMY * model.window and freed:
            await self._context.trim([item.call_id for item in _trimmable(items)])
            self.used = max(self.tokens() - freed, 1)
            return
        await self.sum_up(model, kept=_since_the_prompt(items, model.window))

    async def sum_up(self, model: Model, *, kept: int = 0) -> None:
        """Replace all but the last items by a summary."""
        compaction = new_id("compaction")
        await self._tell(CompactionUpdate(compaction, "in_progress"))
        try:
            summary = await self._summary(model, compaction, kept)
        except ModelFailed as failure:
            await self._tell(CompactionUpdate(compaction, "failed", error=str(failure)))
            summary = LEFT_OUT
        except BaseException:
            await self._tell(CompactionUpdate(compaction, "cancelled"))
            raise
        else:
            await self._tell(CompactionUpdate(compaction, "completed", summary=[Text(summary)]))
        await self._context.add(Summed(summary, kept))
        self.used = 0

    async def _summary(self, model: Model, compaction: str, kept: int) -> str:
        items = self._context.items
        inquiry = Inquiry([*items[: len(items) - kept], UserSaid("", [Text(_ASK)])], purpose="summary")
        pieces: list[str] = []
        length = 0
        async with aclosing(model.respond(inquiry)) as answer:
            async for piece in answer:
                if isinstance(piece, Said) and length < _SUMMARY_CHARACTERS:
                    length += len(piece.text)
                    pieces.append(piece.text)
                    await self._tell(CompactionSummaryChunk(compaction, Text(piece.text)))
        if not length:
            raise ModelFailed("garbage", "The model gave no summary")
        return "".join(pieces)


def estimate(items: Sequence[Item]) -> int:
    """The tokens of these items, roughly."""
    return sum(_length(item) for item in items) // _CHARACTERS_A_TOKEN


def _length(item: Item) -> int:
    match item:
        case UserSaid():
            return len(text_of(item.content))
        case ModelSaid():
            calls = sum(len(call.tool) + len(msgspec.json.encode(call.input)) for call in item.calls)
            return len(item.text) + len(item.thought) + calls
        case ToolSaid() | Summed():
            return len(item.text)


def _trimmable(items: Sequence[Item]) -> list[ToolSaid]:
    """Long results that the model has answered to already: it has seen them, and can look again."""
    last = max((index for index, item in enumerate(items) if isinstance(item, ModelSaid)), default=0)
    return [item for item in items[:last] if isinstance(item, ToolSaid) and len(item.text) > SHORT_RESULT]


def _since_the_prompt(items: Sequence[Item], window: int) -> int:
    """How many items at the end to keep as they are: those since the last prompt, if they are not the trouble."""
    for index in range(len(items) - 1, -1, -1):
        if isinstance(items[index], UserSaid):
            recent = items[index:]
            return len(recent) if index > 0 and estimate(recent) < window // 4 else 0
    return 0
