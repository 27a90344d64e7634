"""The turn of the coding agent: model calls in, events out. An async generator, so cancelling is closing it.

Promise: the last event is the turn's end, and there is one: a model that fails is an end too, never an exception.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, assert_never

from msgspec import UNSET, UnsetType

from dragoman.agent.identity import new_id
from dragoman.coder.models.contract import Called, Model, ModelFailed, Said, Stopped, Thought, Used
from dragoman.errors import AUTH_REQUIRED, INTERNAL_ERROR
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AnyEvent,
    Failure,
    Idle,
    Notice,
    ToolCallUpdate,
    Usage,
)
from dragoman.vocabulary.tools import ContentItem

# Tries after the first one, for failures that pass by themselves.
RETRIES: Final = 3
_PASSING: Final = ("rate_limit", "network", "server", "garbage")


async def turn(model: Model, prompt: str) -> AsyncGenerator[AnyEvent, None]:
    """Everything that happens in one turn; the last event is its end."""
    tally = _Tally()
    reason = ""
    calling = True
    failures = 0
    while calling and not reason:
        calling = False
        try:
            async with aclosing(model.respond(prompt)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Said):  # by the hundred thousand, and `match` is slow
                        yield AgentMessageChunk(Text(piece.text))
                        continue
                    match piece:
                        case Thought(text):
                            yield AgentThoughtChunk(Text(text))
                        case Called():
                            calling = True
                            yield _unknown_tool(piece)
                        case Used():
                            tally.add(piece)
                        case Stopped():
                            reason = piece.reason
                        case _:
                            assert_never(piece)
            failures = 0
        except ModelFailed as failure:
            failures += 1
            if failure.kind not in _PASSING or failures > RETRIES:
                yield Idle(stop_reason="error", error=_explained(failure), usage=tally.usage())
                return
            yield Notice("warning", f"{failure}; trying again ({failures} of {RETRIES})")
            await asyncio.sleep(model.retry_seconds(failures))
            calling = True
    error = UNSET if reason != "error" else _explained(ModelFailed("server", "The model ended in an error"))
    yield Idle(stop_reason=reason or "end_turn", error=error, usage=tally.usage())


def _explained(failure: ModelFailed) -> Failure:
    code = AUTH_REQUIRED if failure.kind == "auth" else INTERNAL_ERROR
    return Failure(code, str(failure), {"reason": failure.kind})


class _Tally:
    """The tokens of a turn, over all its model calls. Nothing is claimed where the model told nothing."""

    def __init__(self) -> None:
        self._told = False
        self._input = self._output = 0

    def add(self, used: Used) -> None:
        self._told = True
        self._input += used.input
        self._output += used.output

    def usage(self) -> Usage | UnsetType:
        return Usage(self._input + self._output, self._input, self._output) if self._told else UNSET


def _unknown_tool(call: Called) -> ToolCallUpdate:
    return ToolCallUpdate(
        new_id("call"),
        title=call.tool,
        kind="other",
        status="failed",
        content=[ContentItem(Text(f"There is no tool {call.tool}."))],
        raw_input=call.input,
    )
