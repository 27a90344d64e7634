"""The one way to a model: every request, a turn's or a summary's, is opened here, within the spend caps.

Providers refuse a whole conversation, for good, where one call has no result, one result has no call, or an assistant's
message is empty. `Context` keeps its items in order by itself; `open_call` looks once more at what is about to be sent,
so that a mistake of ours costs a line in the log and not the session. It also bounds the media of a request: each
prompt and result is bounded where it comes, and a conversation has any number of them.
"""

import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from dragoman.coder.context import (
    ContextAssistantMessage,
    ContextToolCall,
    ContextToolResult,
    Item,
    interrupted_result,
    media_bytes,
    media_of,
    with_markers,
)
from dragoman.coder.models.contract import Model, ModelRequest, Piece
from dragoman.coder.retries import Retries, RetryPolicy
from dragoman.coder.spending import Spending
from dragoman.host.media import ALL_MEDIA_BYTES, MEDIA_COUNT

_NO_ROOM: Final = "left out here: the conversation has more images than a request can hold"

_log = logging.getLogger(__name__)


def open_call(model: Model, request: ModelRequest) -> AsyncGenerator[Piece, None]:
    """Start a model call with a history that every provider accepts; close the generator to end the call."""
    items, mended = well_formed(request.items)
    if mended:
        _log.debug("mended the history of a model call in %d places", mended)
    _log.debug("call of %s (%s): %d items, %d tools", model.name, request.purpose, len(items), len(request.tools))
    return model.respond(request._replace(items=with_newest_media(items)))


class ModelCalls:
    """How the model calls of a session are made: within its spend caps, and tried again by one policy."""

    def __init__(self, spending: Spending | None = None, policy: RetryPolicy | None = None) -> None:
        self.spending: Final = spending or Spending()
        self._policy = policy or RetryPolicy()

    def __repr__(self) -> str:
        return f"<ModelCalls {self.spending!r}>"

    async def open(self, model: Model, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Start a model call as `open_call` does; raises `SpendCapReached` where no more may be spent.

        The caller adds every `UsageReported` among the pieces to `spending`.
        """
        await self.spending.check(model)
        return open_call(model, request)

    def retries(self, model: Model, *, has_fallback: bool = False) -> Retries:
        """Return the account of one call's failures; `has_fallback`: another model can answer instead."""
        return Retries(model, self._policy, has_fallback=has_fallback)


def old_media(items: Sequence[Item]) -> dict[int, int]:
    """Return by the index of an item how many of its first media are left out: the oldest that do not fit."""
    count, room = MEDIA_COUNT, ALL_MEDIA_BYTES
    lost: dict[int, int] = {}
    for place in range(len(items) - 1, -1, -1):
        media = media_of(items[place])
        for index in range(len(media) - 1, -1, -1):
            count -= 1
            room -= media_bytes(media[index])
            if count < 0 or room < 0:
                count = -1  # nothing older is shown either, however small
                lost[place] = index + 1
                break
    return lost


def with_newest_media(items: Sequence[Item]) -> list[Item]:
    """Return the items with the newest media that fit one request; older ones are markers."""
    lost = old_media(items)
    return [with_markers(item, lost.get(place, 0), _NO_ROOM) for place, item in enumerate(items)]


def well_formed(items: Sequence[Item]) -> tuple[list[Item], int]:
    """Return the items as providers accept them, and how many were added or taken out for it.

    Each call has one result, right behind its response; no result is without a call. A response of thoughts alone is
    not sent, which counts as no mistake.
    """
    result: list[Item] = []
    waiting: dict[str, ContextToolCall] = {}
    mended = 0
    for item in items:
        if isinstance(item, ContextToolResult):
            if waiting.pop(item.call_id, None) is None:
                mended += 1
            else:
                result.append(item)
            continue
        result += map(interrupted_result, waiting.values())
        mended += len(waiting)
        waiting = {call.id: call for call in item.calls} if isinstance(item, ContextAssistantMessage) else {}
        if not (isinstance(item, ContextAssistantMessage) and not item.text.strip() and not item.calls):
            result.append(item)
    return [*result, *map(interrupted_result, waiting.values())], mended + len(waiting)
