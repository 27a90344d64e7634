"""Chat Completions as Mistral speaks them: an unknown field is refused, and the id of a call has nine signs.

Where it differs from OpenAI's form: the usage comes without being asked for; thoughts are blocks of the content, in
both directions; and between a result and the words of a user stands an answer of the model.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Final

from dragoman.coder.models.contract import ModelRequest
from dragoman.coder.models.wires.openai_chat import THOUGHT_BLOCKS, OpenAIChatWire, answered_message
from dragoman.coder.models.wires.stored import StoredPart, StoredThought

# The template of its models has ids of exactly this form, and some models refuse every other.
_CALL_ID: Final = re.compile(r"[A-Za-z0-9]{9}")
# Said between a result and what the user has added to it: "Unexpected role 'user' after role 'tool'" otherwise.
_BETWEEN: Final = {"role": "assistant", "content": "OK"}


class MistralWire(OpenAIChatWire):
    """Mistral's Chat Completions."""

    asks_for_usage = False

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        for message in super()._messages(request):
            if message["role"] == "user" and messages and messages[-1]["role"] == "tool":
                messages.append(_BETWEEN)
            messages.append(_with_short_ids(_with_document_urls(message)))
        return messages

    def _answered(self, parts: Sequence[StoredPart]) -> dict[str, Any]:
        message = answered_message(parts)
        thoughts = [part.content for part in parts if isinstance(part, StoredThought) and part.id == THOUGHT_BLOCKS]
        if thoughts:
            blocks = [{"type": "thinking", "thinking": [{"type": "text", "text": text}]} for text in thoughts]
            words = [{"type": "text", "text": message["content"]}] if message["content"] else []
            message["content"] = [*blocks, *words]
        elif message["content"] is None:
            message["content"] = ""
        return message


def _with_document_urls(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose documents are addresses, as Mistral has them."""
    if not isinstance(message.get("content"), list):
        return message
    blocks = [
        {"type": "document_url", "document_url": block["file"]["file_data"], "document_name": block["file"]["filename"]}
        if block["type"] == "file"
        else block
        for block in message["content"]
    ]
    return {**message, "content": blocks}


def _with_short_ids(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose calls, or whose call, have ids that Mistral takes: the same one for the same id."""
    if "tool_call_id" in message:
        return {**message, "tool_call_id": _short_id(message["tool_call_id"])}
    if "tool_calls" in message:
        return {**message, "tool_calls": [{**call, "id": _short_id(call["id"])} for call in message["tool_calls"]]}
    return message


def _short_id(call_id: str) -> str:
    return call_id if _CALL_ID.fullmatch(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:9]
