"""The one way to a model: every request, a turn's or a summary's, is opened here and tried again by one policy.

Providers refuse a whole conversation, for good, where one call has no result, one result has no call, or an assistant's
message is empty. `Context` keeps its items in order by itself; `open_call` looks once more at what is about to be sent,
so that a mistake of ours costs a line in the log and not the session. It also bounds the media of a request: each
prompt and result is bounded where it comes, and a conversation has any number of them.
"""

import logging
import math
from collections.abc import AsyncGenerator, Sequence
from typing import Final, NamedTuple

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
from dragoman.coder.models.contract import Model, ModelFailed, ModelRequest, Piece
from dragoman.host.media import ALL_MEDIA_BYTES, MEDIA_COUNT
from dragoman.vocabulary.events import Notice

# Tries after the first one, for failures that pass by themselves.
RETRIES: Final = 3
_PASSING: Final = ("rate_limit", "network", "server", "garbage")
# A longer wait is not waited for: the user is told instead.
_LONGEST_WAIT: Final = 60.0

_NO_ROOM: Final = "left out here: the conversation has more images than a request can hold"

_log = logging.getLogger(__name__)


def open_call(model: Model, request: ModelRequest) -> AsyncGenerator[Piece, None]:
    """Start a model call with a history that every provider accepts; close the generator to end the call."""
    items, mended = well_formed(request.items)
    if mended:
        _log.debug("mended the history of a model call in %d places", mended)
    _log.debug("call of %s (%s): %d items, %d tools", model.name, request.purpose, len(items), len(request.tools))
    return model.respond(request._replace(items=with_newest_media(items)))


class Pause(NamedTuple):
    """How long to wait before the next try, and the notice for the user."""

    seconds: float
    notice: Notice


class Retries:
    """Counts the failures of one model call and says whether to try it again."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._failures = 0

    def after(self, failure: ModelFailed) -> Pause | None:
        """Return the pause before the next try; None: trying again does not help, or was done often enough."""
        self._failures += 1
        asked = failure.retry_seconds
        seconds = self._model.retry_seconds(self._failures) if asked is None else asked
        if failure.kind not in _PASSING or self._failures > RETRIES or seconds > _LONGEST_WAIT:
            _log.info("call of %s failed (%s), and is not tried again", self._model.name, failure.kind)
            return None
        _log.info(
            "call of %s failed (%s); try %d of %d in %.1f s",
            *(self._model.name, failure.kind, self._failures, RETRIES, seconds),
        )
        return Pause(
            seconds, Notice("warning", f"{failure}; trying again{_in_seconds(seconds)} ({self._failures} of {RETRIES})")
        )


def _in_seconds(wait: float) -> str:
    """Name a wait that a user would notice; a shorter one is not worth a word."""
    return f" in {math.ceil(wait)} s" if wait >= 1 else ""


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
