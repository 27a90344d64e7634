"""The conversation, in the words of the model library. Loaded together with the SDKs, never before.

A response goes back to the provider that made it in its own form (`ContextAssistantMessage.raw`), so that signed
thoughts survive; to other providers, and where that form cannot be read, as text and calls.

Of its own form the provider gets back only what it reads again. Blank text, calls that were not run (the answer was cut
off), and thoughts whose text or call is not there: each of them makes every later request of the session invalid.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from dragoman.coder.context import ContextAssistantMessage, ContextSummary, ContextToolResult, ContextUserMessage, Item
from dragoman.host.media import MediaRefused, check_picture, decode_media, normal_type
from dragoman.vocabulary.content import (
    Audio,
    BlobResource,
    Content,
    Image,
    Resource,
    ResourceLink,
    Text,
    TextResource,
    UnknownContent,
)

# No provider takes an empty result.
_NOTHING: Final = "(no output)"
# Served by the Responses API, where a thought belongs to the one item that follows it.
_OPENAI: Final = "openai"


def messages_of(items: Sequence[Item], *, system: str, provider: str, images: bool) -> list[ModelMessage]:
    """Return the items as messages; neighbouring ones of ours are one request."""
    messages: list[ModelMessage] = []
    asking: list[ModelRequestPart] = []
    for item in items:
        if isinstance(item, ContextAssistantMessage):
            response_message = _response(item, provider)
            if response_message is not None:
                if asking:
                    messages.append(ModelRequest(asking))
                asking = []
                messages.append(response_message)
        else:
            asking.append(_part(item, images=images))
    # The library takes the system prompt from the last request.
    messages.append(ModelRequest(asking, instructions=system or None))
    return messages


def stored_response(response: ModelResponse, provider: str) -> dict[str, Any]:
    """Return a response in the provider's own form, as plain JSON."""
    message = ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)[0]
    message.pop("usage", None)
    return {"by": provider, "message": message}


def _response(item: ContextAssistantMessage, provider: str) -> ModelResponse | None:
    original = _original(item, provider)
    if original is not None:
        return original
    parts: list[ModelResponsePart] = [TextPart(item.text)] if item.text.strip() else []
    parts += [ToolCallPart(call.tool, call.input, call.id) for call in item.calls]
    return ModelResponse(parts) if parts else None


def _original(item: ContextAssistantMessage, provider: str) -> ModelResponse | None:
    """Return the response as it came, if it came from this provider, can be read, and has the calls that were run."""
    raw = item.raw
    if not isinstance(raw, dict) or raw.get("by") != provider:
        return None
    try:
        [message] = ModelMessagesTypeAdapter.validate_python([raw.get("message")])
    except ValueError:
        return None
    if not isinstance(message, ModelResponse):
        return None
    run = {call.id for call in item.calls}
    message.parts = _readable(message.parts, run, provider)
    there = {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
    return message if there == run and message.parts else None


def _readable(parts: Sequence[ModelResponsePart], run: set[str], provider: str) -> list[ModelResponsePart]:
    """Return the parts that the provider reads again: text, the calls in `run`, and the thoughts right before these."""
    readable: list[ModelResponsePart] = []
    thoughts: list[ThinkingPart] = []
    for part in parts:
        if isinstance(part, ThinkingPart):
            # Several thoughts before one answer are normal at Anthropic, which wants them unchanged. OpenAI's models
            # make them at times, and its API refuses all but the last (openai/codex#1235). Thoughts of one id are one.
            if provider == _OPENAI and thoughts and thoughts[-1].id != part.id:
                thoughts = []
            thoughts.append(part)
        elif not (isinstance(part, TextPart) and not part.content.strip()):
            if not isinstance(part, ToolCallPart) or part.tool_call_id in run:
                readable += [*thoughts, part]
            thoughts = []
    return readable


def _part(item: ContextUserMessage | ContextToolResult | ContextSummary, *, images: bool) -> ModelRequestPart:
    match item:
        case ContextUserMessage():
            return UserPromptPart(_joined(_content(item.content, images=images)))
        case ContextSummary():
            return UserPromptPart(f"A summary of the conversation so far:\n\n{item.text}")
        case ContextToolResult():
            content = [item.text, *_content(item.content, images=images)]
            outcome: Any = "failed" if item.failed else "success"
            return ToolReturnPart(item.tool, cast(Any, _joined(content)), item.call_id, outcome=outcome)


def _joined(content: list[UserContent]) -> str | list[UserContent]:
    """Leave out blank text. One text where there is nothing but text: not every server takes a list."""
    filled = [block for block in content if not isinstance(block, str) or block.strip()]
    texts = [block for block in filled if isinstance(block, str)]
    return filled if len(texts) < len(filled) else "\n\n".join(texts) or _NOTHING


def _content(blocks: Iterable[Content], *, images: bool) -> list[UserContent]:
    return [_block(block, images=images) for block in blocks]


def _block(block: Content, *, images: bool) -> UserContent:
    match block:
        case Text():
            return block.text
        case Image():
            return _picture(block.data, block.mime_type, images=images) or f"[image: {block.mime_type}]"
        case Audio():
            return f"[audio: {block.mime_type}]"
        case ResourceLink():
            return f"[{block.name}]({block.uri})"
        case Resource():
            return _resource(block.resource, images=images)
        case UnknownContent():
            return "[something this agent does not know]"


def _resource(resource: TextResource | BlobResource, *, images: bool) -> UserContent:
    if isinstance(resource, TextResource):
        return f"{resource.uri}:\n\n{resource.text}"
    kind = resource.mime_type if isinstance(resource.mime_type, str) else "application/octet-stream"
    return _picture(resource.blob, kind, images=images) or f"[file: {kind}] {resource.uri}"


def _picture(data: str, kind: str, *, images: bool) -> BinaryContent | None:
    """Return a picture for a model that looks at it; None where it cannot."""
    if not images:
        return None
    try:
        # Checked when it came; a session of an earlier release may hold one that was not.
        decoded = decode_media(data)
        check_picture(decoded, kind)
    except MediaRefused:
        return None
    return BinaryContent(decoded, media_type=normal_type(kind))
