"""The turn of the coding agent: model calls in, events out. An async generator, so cancelling is closing it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from dragoman.agent.identity import new_id
from dragoman.coder.models.contract import Called, Model, ModelFailed, Piece, Said, Stopped, Thought, Used
from dragoman.errors import AUTH_REQUIRED, INTERNAL_ERROR, RequestFailed
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AnyEvent,
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
    used_input = used_output = 0
    reason = ""
    calling = True
    while calling and not reason:
        calling = False
        async for piece in _patiently(model, prompt):
            match piece:
                case Said(text):
                    yield AgentMessageChunk(Text(text))
                case Thought(text):
                    yield AgentThoughtChunk(Text(text))
                case Called():
                    calling = True
                    yield _unknown_tool(piece)
                case Used():
                    used_input += piece.input
                    used_output += piece.output
                case Stopped():
                    reason = piece.reason
                case Notice():
                    yield piece
    usage = Usage(used_input + used_output, used_input, used_output)
    if reason == "error":
        raise RequestFailed(INTERNAL_ERROR, "The model ended in an error", {"reason": "server"})
    yield Idle(stop_reason=reason or "end_turn", usage=usage)


async def _patiently(
    model: Model, prompt: str
) -> AsyncGenerator[Said | Thought | Called | Used | Stopped | Notice, None]:
    """One response of the model. A failure that may pass is tried again, and the user sees it."""
    attempt = 0
    while True:
        try:
            async for piece in model.respond(prompt):
                yield piece
            return
        except ModelFailed as failure:
            attempt += 1
            if failure.kind not in _PASSING or attempt > RETRIES:
                code = AUTH_REQUIRED if failure.kind == "auth" else INTERNAL_ERROR
                raise RequestFailed(code, str(failure), {"reason": failure.kind}) from failure
            yield Notice("warning", f"{failure}; trying again ({attempt} of {RETRIES})")
            await asyncio.sleep(model.retry_seconds(attempt))


def _unknown_tool(call: Called) -> ToolCallUpdate:
    return ToolCallUpdate(
        new_id("call"),
        title=call.tool,
        kind="other",
        status="failed",
        content=[ContentItem(Text(f"There is no tool {call.tool}."))],
        raw_input=call.input,
    )
