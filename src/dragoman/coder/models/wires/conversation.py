"""A conversation in turns, as every wire form has them: what is asked, and what was answered.

A response goes back to the provider that made it as it came (`ContextAssistantMessage.raw`), so that signed thoughts
survive; to other providers, and where that form cannot be read, as text and calls. Of its own form the provider gets
back only what it reads again: blank text, calls that were not run (the answer was cut off), and thoughts whose text or
call is not there would each make every later request of the session invalid.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from dragoman.coder.context import ContextAssistantMessage, ContextSummary, ContextToolResult, ContextUserMessage, Item
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.wires.stored import StoredCall, StoredPart, StoredText, StoredThought, decode_stored
from dragoman.host.media import PDF_BEGINS, PDF_TYPE, MediaRefused, check_picture, decode_media, normal_type
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
# Of the name of a document, and what is in the way in one: Bedrock takes the fewest signs.
_NAME_CHARACTERS: Final = 100
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Media(NamedTuple):
    """A picture that the model looks at, or a PDF file that it reads; `data` is plain base64."""

    data: str
    media_type: str
    # Of a file.
    name: str = ""

    @property
    def is_document(self) -> bool:
        """Whether it is a PDF file."""
        return self.media_type == PDF_TYPE

    @property
    def url(self) -> str:
        """The whole of it as a data URL."""
        return f"data:{self.media_type};base64,{self.data}"


# Either at least one picture or document is among it, or it is one text.
Blocks = list[str | Media]


class UserWords(NamedTuple):
    """Words of the user, or a summary."""

    blocks: Blocks


class ToolOutput(NamedTuple):
    """What came of a call."""

    call_id: str
    tool: str
    blocks: Blocks
    failed: bool

    @property
    def text(self) -> str:
        """The words of it; never empty."""
        return "\n\n".join(block for block in self.blocks if isinstance(block, str)) or _NOTHING

    @property
    def marked_text(self) -> str:
        """The words of it, for an API that cannot be told in another way that the call has failed."""
        return msgspec.json.encode({"error": self.text}).decode() if self.failed else self.text

    @property
    def media(self) -> list[Media]:
        """The pictures and documents of it."""
        return [block for block in self.blocks if not isinstance(block, str)]


class UserTurn(NamedTuple):
    """One turn of our side."""

    parts: list[UserWords | ToolOutput]


class ModelTurn(NamedTuple):
    """One turn of the model's side. `is_original`: in the form in which this provider sent it."""

    parts: list[StoredPart]
    is_original: bool


def turns_of(
    items: Iterable[Item], *, provider: str, known: ModelFacts, one_thought: bool = False
) -> list[UserTurn | ModelTurn]:
    """Return the items as turns, with the media that the model is known to see; neighbouring ones of our side are one.

    `one_thought`: before a text or a call the provider reads one thought again and refuses more.
    """
    turns: list[UserTurn | ModelTurn] = []
    asking: list[UserWords | ToolOutput] = []
    for item in items:
        if isinstance(item, ContextAssistantMessage):
            answered = _answered(item, provider, one_thought=one_thought)
            if answered is not None:
                turns += [UserTurn(asking), answered] if asking else [answered]
                asking = []
        else:
            asking.append(_asked(item, known))
    return [*turns, UserTurn(asking)] if asking else turns


# -- what was answered -----------------------------------------------------------------------------------------------


def _answered(item: ContextAssistantMessage, provider: str, *, one_thought: bool) -> ModelTurn | None:
    original = _original(item, provider, one_thought=one_thought)
    if original:
        return ModelTurn(original, is_original=True)
    parts: list[StoredPart] = [StoredText(content=item.text)] if item.text.strip() else []
    parts += [StoredCall(tool_name=call.tool, args=call.input, tool_call_id=call.id) for call in item.calls]
    return ModelTurn(parts, is_original=False) if parts else None


def _original(item: ContextAssistantMessage, provider: str, *, one_thought: bool) -> list[StoredPart]:
    """Return the response as it came; empty: another provider's, unreadable, or without the calls that were run."""
    message = decode_stored(item.raw, provider)
    if message is None:
        return []
    run = {call.id for call in item.calls}
    parts = _readable(message.parts, run, one_thought=one_thought)
    return parts if {part.tool_call_id for part in parts if isinstance(part, StoredCall)} == run else []


def _readable(parts: Sequence[StoredPart], run: set[str], *, one_thought: bool) -> list[StoredPart]:
    """Return the parts that the provider reads again: text, the calls in `run`, and the thoughts right before these."""
    readable: list[StoredPart] = []
    thoughts: list[StoredPart] = []
    for part in parts:
        if isinstance(part, StoredThought):
            # Several thoughts before one answer are normal at Anthropic, which wants them unchanged. OpenAI's models
            # make them at times, and its API refuses all but the last (openai/codex#1235). Thoughts of one id are one.
            if one_thought and thoughts and thoughts[-1].id != part.id:
                thoughts = []
            thoughts.append(part)
        elif not (isinstance(part, StoredText) and not part.content.strip()):
            if not isinstance(part, StoredCall) or part.tool_call_id in run:
                readable += [*thoughts, part]
            thoughts = []
    return readable


# -- what is asked ---------------------------------------------------------------------------------------------------


def _asked(item: ContextUserMessage | ContextToolResult | ContextSummary, known: ModelFacts) -> UserWords | ToolOutput:
    match item:
        case ContextUserMessage():
            return UserWords(_joined(_blocks(item.content, known)))
        case ContextSummary():
            return UserWords([f"A summary of the conversation so far:\n\n{item.text}"])
        case ContextToolResult():
            content = [item.text, *_blocks(item.content, known)]
            return ToolOutput(item.call_id, item.tool, _joined(content), item.failed)


def _joined(blocks: Blocks) -> Blocks:
    """Leave out blank text. One text where there is nothing but text: not every server takes a list."""
    filled = [block for block in blocks if not isinstance(block, str) or block.strip()]
    texts = [block for block in filled if isinstance(block, str)]
    return filled if len(texts) < len(filled) else ["\n\n".join(texts) or _NOTHING]


def _blocks(content: Iterable[Content], known: ModelFacts) -> Blocks:
    return [_block(block, known) for block in content]


def _block(block: Content, known: ModelFacts) -> str | Media:
    match block:
        case Text():
            return block.text
        case Image():
            return _picture(block.data, block.mime_type, images=known.images) or f"[image: {block.mime_type}]"
        case Audio():
            return f"[audio: {block.mime_type}]"
        case ResourceLink():
            return f"[{block.name}]({block.uri})"
        case Resource():
            return _resource(block.resource, known)
        case UnknownContent():
            return "[something this agent does not know]"


def _resource(resource: TextResource | BlobResource, known: ModelFacts) -> str | Media:
    if isinstance(resource, TextResource):
        return f"{resource.uri}:\n\n{resource.text}"
    kind = resource.mime_type if isinstance(resource.mime_type, str) else "application/octet-stream"
    shown: Media | None = _picture(resource.blob, kind, images=known.images)
    if known.documents and normal_type(kind) == PDF_TYPE:
        shown = _document(resource.blob, resource.uri)
    return shown or f"[file: {kind}] {resource.uri}"


def _document(data: str, uri: str) -> Media | None:
    """Return a PDF file; None where its bytes are none."""
    try:
        if not decode_media(data).startswith(PDF_BEGINS):
            return None
    except MediaRefused:
        return None
    return Media(data, PDF_TYPE, _NO_NAME.sub("-", uri.rpartition("/")[2])[-_NAME_CHARACTERS:] or "file.pdf")


def _picture(data: str, kind: str, *, images: bool) -> Media | None:
    """Return a picture for a model that looks at it; None where it cannot."""
    if not images:
        return None
    try:
        # Checked when it came; a session of an earlier release may hold one that was not.
        check_picture(decode_media(data), kind)
    except MediaRefused:
        return None
    return Media(data, normal_type(kind))
