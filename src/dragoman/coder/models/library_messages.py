"""The conversation in the words of pydantic-ai, and its responses in ours. Loaded together with it, never before."""

import base64
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from dragoman.coder.context import Item
from dragoman.coder.models.contract import TokenCounts
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.wires.contract import FullResponse, StopReason
from dragoman.coder.models.wires.conversation import Blocks, ModelTurn, ToolOutput, UserTurn, UserWords, turns_of
from dragoman.coder.models.wires.errors import BrokenOff
from dragoman.coder.models.wires.stored import StoredMessage

_STOPS: Final[dict[str, StopReason]] = {"length": "max_tokens", "content_filter": "refusal", "error": "error"}


def messages_of(items: Sequence[Item], *, system: str, provider: str, known: ModelFacts) -> list[ModelMessage]:
    """Return the items as messages; neighbouring ones of ours are one request."""
    messages: list[ModelMessage] = []
    for turn in turns_of(items, provider=provider, known=known):
        match turn:
            case UserTurn():
                messages.append(ModelRequest([_part(part) for part in turn.parts]))
            case ModelTurn():
                stored = StoredMessage(turn.parts, provider_name=provider if turn.is_original else msgspec.UNSET)
                messages += ModelMessagesTypeAdapter.validate_python([msgspec.to_builtins(stored)])
    # The library takes the system prompt from the last request.
    last = messages.pop() if messages and isinstance(messages[-1], ModelRequest) else ModelRequest([])
    assert isinstance(last, ModelRequest)
    return [*messages, ModelRequest(last.parts, instructions=system or None)]


def full_response(answer: ModelResponse) -> FullResponse:
    """Return a response as those of the wire forms, or raise `BrokenOff`."""
    finish = answer.finish_reason
    if answer.state == "interrupted" or not (answer.provider_details or {}).get("finish_reason", finish):
        raise BrokenOff
    [message] = ModelMessagesTypeAdapter.dump_python([answer], mode="json", exclude_none=True)
    tokens = TokenCounts(
        answer.usage.input_tokens,
        answer.usage.output_tokens,
        answer.usage.cache_read_tokens,
        answer.usage.cache_write_tokens,
    )
    parts = msgspec.convert(message, StoredMessage).parts
    return FullResponse(parts, _STOPS.get(finish or "", ""), tokens, answer.model_name or "")


def _part(part: UserWords | ToolOutput) -> ModelRequestPart:
    if isinstance(part, UserWords):
        return UserPromptPart(_content(part.blocks))
    outcome: Any = "failed" if part.failed else "success"
    return ToolReturnPart(part.tool, cast(Any, _content(part.blocks)), part.call_id, outcome=outcome)


def _content(blocks: Blocks) -> str | list[UserContent]:
    """Return one text where there is nothing but text."""
    content: list[UserContent] = [
        block if isinstance(block, str) else BinaryContent(base64.b64decode(block.data), media_type=block.media_type)
        for block in blocks
    ]
    return content[0] if len(content) == 1 and isinstance(content[0], str) else content
