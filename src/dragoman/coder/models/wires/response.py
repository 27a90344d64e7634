"""What is known only at the end of a response: its usage, its form for the log, its tool calls, and why it ended."""

from uuid import uuid4

import msgspec

from dragoman.coder.context import ContextAssistantMessage
from dragoman.coder.models.contract import (
    ModelFailed,
    ModelFinished,
    ModelRequest,
    Piece,
    RawResponse,
    TokenCounts,
    ToolCallRequested,
    UsageReported,
)
from dragoman.coder.models.wires.contract import FullResponse
from dragoman.coder.models.wires.stored import StoredCall, StoredMessage, StoredPart, encode_stored
from dragoman.coder.token_estimate import BYTES_A_TOKEN, tokens_of, tokens_of_setting


def pieces_at_end(response: FullResponse, request: ModelRequest, provider: str, cost: float | None) -> list[Piece]:
    """Return the last pieces of a response. Raises `ModelFailed` where it did not end well."""
    if response.stop == "error":
        raise ModelFailed("server", f"{provider} failed in the middle of its answer")
    parts, calls = _calls(response, request, provider)
    pieces: list[Piece] = []
    if response.tokens.input or response.tokens.output or cost is not None:
        used = response.tokens
        pieces.append(UsageReported(used.input, used.output, cost, used.cache_read, used.cache_write))
    message = StoredMessage(parts, model_name=response.model or msgspec.UNSET, provider_name=provider)
    pieces.append(RawResponse(encode_stored(message, provider)))
    if request.purpose == "search":
        pieces.append(response.search)
    return [*pieces, ModelFinished(response.stop)] if response.stop else [*pieces, *calls]


def estimated_tokens(request: ModelRequest, response: FullResponse) -> TokenCounts:
    """Return about what a call has used whose provider reports nothing: it is not free for that."""
    sent = tokens_of(request.items) + tokens_of_setting(request.system, request.tools)
    return TokenCounts(sent, len(msgspec.json.encode(response.parts)) // BYTES_A_TOKEN)


def _calls(
    response: FullResponse, request: ModelRequest, provider: str
) -> tuple[list[StoredPart], list[ToolCallRequested]]:
    """Return the parts and the calls among them, each call with an id of its own in this session.

    Of an answer that was cut off the calls that are not whole are left out.
    """
    used_ids = {call.id for item in request.items if isinstance(item, ContextAssistantMessage) for call in item.calls}
    parts: list[StoredPart] = []
    calls: list[ToolCallRequested] = []
    for part in response.parts:
        if isinstance(part, StoredCall):
            arguments = part.arguments()
            if arguments is None or not part.tool_name:
                if not response.stop:
                    raise ModelFailed("garbage", f"{provider} called a tool with arguments that cannot be read")
                continue
            part.tool_call_id = _fresh(part.tool_call_id, used_ids)
            used_ids.add(part.tool_call_id)
            calls.append(ToolCallRequested(part.tool_name, arguments, part.tool_call_id))
        parts.append(part)
    return parts, calls


def _fresh(call_id: str, used_ids: set[str]) -> str:
    """Return an id that no other call has: some servers number the calls of every answer from 0, some give none."""
    call_id = call_id or f"call_{uuid4().hex}"
    number, fresh = 1, call_id
    while fresh in used_ids:
        number += 1
        fresh = f"{call_id}-{number}"
    return fresh
