"""The turn of the coding agent: model calls in, events out. An async generator, so cancelling is closing it.

Promise: the last event is the turn's end, and there is one: a model that fails is an end too, never an exception.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final, Protocol, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agent.identity import new_id
from dragoman.coder.compaction import Room
from dragoman.coder.context import Asked, Context, ModelSaid, ToolSaid, UserSaid
from dragoman.coder.models.contract import (
    Called,
    Inquiry,
    Kept,
    Model,
    ModelFailed,
    Said,
    Stopped,
    Thought,
    ToolCard,
    Used,
)
from dragoman.coder.models.overflow import ContextFull
from dragoman.coder.setup import MODEL_CALLS
from dragoman.errors import AUTH_REQUIRED, INTERNAL_ERROR
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AnyEvent,
    Cost,
    Failure,
    Idle,
    Notice,
    Usage,
    UsageChanged,
)

# Tries after the first one, for failures that pass by themselves.
RETRIES: Final = 3
_PASSING: Final = ("rate_limit", "network", "server", "garbage")
# Whoever asks us to wait longer than this is told to the user instead.
_LONGEST_WAIT: Final = 60.0
# Characters of one response, thoughts among them. Models end after a hundredth of it; a server may never end.
RESPONSE_CHARACTERS: Final = 16 * 1024 * 1024


class Hands(Protocol):
    """What runs the calls of a model."""

    def cards(self) -> Sequence[ToolCard]:
        """The tools there are now."""

    async def run(self, calls: Sequence[Asked]) -> Sequence[ToolSaid]:
        """Run the calls of one response; a result for each."""


async def turn(
    model: Model,
    context: Context,
    hands: Hands,
    prompt: UserSaid,
    *,
    system: str = "",
    thought_level: str = "",
    model_calls: int = MODEL_CALLS,
    room: Room | None = None,
    interjected: Callable[[], Awaitable[Sequence[UserSaid]]] | None = None,
) -> AsyncGenerator[AnyEvent, None]:
    """Everything that happens in one turn; the last event is its end."""
    tally = _Tally()
    summed_up = False
    await context.add(prompt)
    for _ in range(model_calls):
        for said in await interjected() if interjected is not None else ():
            await context.add(said)
        if room is not None:
            await room.make(model)
        response = _Response()
        inquiry = Inquiry(context.items, hands.cards(), system, thought_level)
        async with aclosing(_response(model, inquiry, response)) as events:
            async for event in events:
                yield event
        tally.add(response)
        if response.used and room is not None:
            room.used = response.used.input + response.used.output
        if response.used and model.window is not None:
            yield UsageChanged(response.used.input + response.used.output, model.window, tally.cost())
        if isinstance(response.failure, ContextFull) and room is not None and not summed_up:
            # It holds less than it says, or we counted wrong.
            summed_up = True
            await room.sum_up(model)
            continue
        if response.failure is not None:
            yield Idle(stop_reason="error", error=_explained(response.failure), usage=tally.usage())
            return
        if response.reason == "refusal":
            # The model will not hear of it again, or it would refuse everything that follows.
            await context.forget(prompt.message_id)
        elif not response.is_empty():
            await context.add(response.said())
        if not response.reason and not response.calls and interjected is not None:
            heard = await interjected()
            for said in heard:
                await context.add(said)
            if heard:
                continue
        if response.reason or not response.calls:
            yield _end(response.reason or "end_turn", tally)
            return
        for result in await hands.run(response.calls):
            await context.add(result)
    yield Idle(stop_reason="max_turn_requests", usage=tally.usage())


class _Response:
    """One model call, as far as it has come."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.thought: list[str] = []
        self.calls: list[Asked] = []
        self.used: Used | None = None
        self.raw: object = None
        self.reason = ""
        self.failure: ModelFailed | None = None

    def is_empty(self) -> bool:
        return not (self.text or self.thought or self.calls)

    def said(self) -> ModelSaid:
        return ModelSaid("".join(self.text), "".join(self.thought), self.calls, self.raw)


async def _response(model: Model, inquiry: Inquiry, response: _Response) -> AsyncGenerator[AnyEvent, None]:
    """One response, tried again where that helps. What was said before a failure stays said."""
    failures = 0
    left = RESPONSE_CHARACTERS
    keep = response.text.append
    while True:
        try:
            async with aclosing(model.respond(inquiry)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Said):  # by the hundred thousand, and `match` is slow
                        text = piece[0]
                        left -= len(text)
                        if left < 0:
                            break
                        keep(text)
                        yield AgentMessageChunk(Text(text))
                        continue
                    match piece:
                        case Thought(text):
                            left -= len(text)
                            if left < 0:
                                break
                            response.thought.append(text)
                            yield AgentThoughtChunk(Text(text))
                        case Called():
                            response.calls.append(Asked(piece.id or new_id("call"), piece.tool, _writable(piece.input)))
                        case Used():
                            response.used = _sum(response.used, piece)
                        case Kept():
                            response.raw = piece.raw
                        case Stopped():
                            response.reason = piece.reason
                        case _:
                            assert_never(piece)
            if left < 0:
                yield Notice(
                    "warning", f"The model said more than {RESPONSE_CHARACTERS:,} characters; the rest was cut"
                )
                response.calls.clear()
                response.reason = "max_tokens"
            return
        except ModelFailed as failure:
            failures += 1
            wait = model.retry_seconds(failures) if failure.retry_seconds is None else failure.retry_seconds
            if failure.kind not in _PASSING or failures > RETRIES or wait > _LONGEST_WAIT:
                response.failure = failure
                return
            # A call that came before the failure is not run: the next try makes its own.
            response.calls.clear()
            yield Notice("warning", f"{failure}; trying again ({failures} of {RETRIES})")
            await asyncio.sleep(wait)


def _writable(given: dict[str, object]) -> dict[str, object]:
    """An input as a log can hold it: half of a surrogate pair is no text."""
    try:
        msgspec.json.encode(given)
        return given
    except (UnicodeEncodeError, TypeError, ValueError):
        text = json.dumps(given, ensure_ascii=False, default=str)
        cleaned: dict[str, object] = json.loads(text.encode("utf-8", "replace"))
        return cleaned


def _end(reason: str, tally: "_Tally") -> Idle:
    error = UNSET if reason != "error" else _explained(ModelFailed("server", "The model ended in an error"))
    return Idle(stop_reason=reason, error=error, usage=tally.usage())


def _explained(failure: ModelFailed) -> Failure:
    code = AUTH_REQUIRED if failure.kind == "auth" else INTERNAL_ERROR
    return Failure(code, str(failure), {"reason": failure.kind})


def _sum(before: Used | None, more: Used) -> Used:
    if before is None:
        return more
    cost = None if before.cost is None and more.cost is None else (before.cost or 0) + (more.cost or 0)
    return Used(before.input + more.input, before.output + more.output, cost)


class _Tally:
    """The tokens of a turn, over all its model calls. Nothing is claimed where the model told nothing."""

    def __init__(self) -> None:
        self._used: Used | None = None

    def add(self, response: _Response) -> None:
        if response.used is not None:
            self._used = _sum(self._used, response.used)

    def usage(self) -> Usage | UnsetType:
        used = self._used
        return UNSET if used is None else Usage(used.input + used.output, used.input, used.output)

    def cost(self) -> Cost | UnsetType:
        return UNSET if self._used is None or self._used.cost is None else Cost(self._used.cost, "USD")
