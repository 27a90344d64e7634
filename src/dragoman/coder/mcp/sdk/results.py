"""What a server answered to a call, as an outcome. It is data: cut, escaped, and never anything but the result."""

from typing import Any, Final, assert_never

import msgspec
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from dragoman import limits
from dragoman.coder.mcp.definition import deeper_than
from dragoman.coder.mcp.server_text import one_line
from dragoman.coder.tagged_text import wrap_in_tag
from dragoman.coder.tools.contract import ToolOutcome
from dragoman.coder.tools.result_text import RESULT_CHARACTERS, cut
from dragoman.host.decoding import is_flood
from dragoman.host.media import MediaBudget, MediaRefused, normal_type
from dragoman.host.text import harmless
from dragoman.vocabulary import content as words

# For programs; what is larger has its text.
RAW_BYTES: Final = 64 * limits.KIB
RAW_DEPTH: Final = 32
_URI_CHARACTERS: Final = 2_000
_TYPE_CHARACTERS: Final = 100


def outcome_of(result: CallToolResult) -> ToolOutcome:
    """Return the outcome of a call that was answered."""
    reading = _Reading()
    for block in result.content:
        reading.take(block)
    text = "\n".join(reading.texts)
    raw = _raw(result.structured_content)
    if not text and not reading.content and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    return ToolOutcome(_bounded(text), failed=result.is_error, raw=raw, content=reading.content)


def outcome_of_resource(result: ReadResourceResult) -> ToolOutcome:
    """Return what a resource holds; what of it cannot be passed on is named in the text."""
    reading = _Reading()
    for part in result.contents:
        reading.take_resource(part)
    return ToolOutcome(_bounded("\n".join(reading.texts)), content=reading.content)


def outcome_of_prompt(result: GetPromptResult) -> ToolOutcome:
    """Return the messages of a prompt, in their order. Words that are the assistant's are in a box that says so."""
    reading = _Reading()
    for message in result.messages:
        if isinstance(message.content, TextContent):
            reading.take_words(message.content.text, is_users=message.role == "user")
        else:
            reading.take(message.content)
    return ToolOutcome(_bounded("\n".join(reading.texts)), content=reading.content)


class _Reading:
    """Goes through the parts of a result, as long as there is room."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.content: list[words.Content] = []
        self._media = MediaBudget()
        self._characters = RESULT_CHARACTERS

    def take(self, block: TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource) -> None:
        match block:
            case TextContent():
                self.texts.append(block.text)
            case ImageContent():
                if self._is_taken("image", block.data, block.mime_type):
                    self.content.append(words.Image(block.data, normal_type(block.mime_type)))
            case AudioContent():
                if self._is_taken("sound", block.data):
                    self.content.append(words.Audio(block.data, _short(block.mime_type)))
            case ResourceLink():
                self.content.append(words.ResourceLink(_short(block.name), _uri(block.uri)))
            case EmbeddedResource():
                self.take_resource(block.resource)
            case _:
                assert_never(block)

    def take_words(self, text: str, *, is_users: bool) -> None:
        """Take a message of a prompt, as long as there is room for its words."""
        words_left = _bounded(text, self._characters) if self._characters else ""
        self._characters = max(0, self._characters - len(words_left))
        if not words_left:
            return
        self.content.append(words.Text(words_left if is_users else wrap_in_tag("assistant", words_left)))

    def take_resource(self, resource: TextResourceContents | BlobResourceContents) -> None:
        uri, kind = _uri(resource.uri), _short(resource.mime_type or "")
        if isinstance(resource, BlobResourceContents):
            if self._is_taken("resource", resource.blob, kind if kind.startswith("image/") else None):
                blob = words.BlobResource(resource.blob, uri, kind or msgspec.UNSET)
                self.content.append(words.Resource(blob))
            return
        if not self._characters:
            self.texts.append(f"[resource {uri} left out: the result is too long]")
            return
        text = _bounded(resource.text, self._characters)
        self._characters = max(0, self._characters - len(text))
        self.content.append(words.Resource(words.TextResource(text, uri, kind or msgspec.UNSET)))

    def _is_taken(self, what: str, data: str, picture_type: str | None = None) -> bool:
        """Return whether data can be passed on; if not, say so in the texts. One bad picture spoils a conversation."""
        try:
            self._media.check(data, picture_type)
        except MediaRefused as refusal:
            self.texts.append(f"[{what} left out: it {harmless(str(refusal))}]")
            return False
        return True


def _bounded(text: str, limit: int = RESULT_CHARACTERS) -> str:
    if is_flood(text):
        return f"[binary data left out: {len(text):,} characters]"
    # Twice: before, so that a huge text is not gone through; after, because writing out makes it longer.
    return cut(harmless(cut(text, limit)), limit)


def _short(text: str) -> str:
    return one_line(text, _TYPE_CHARACTERS)


def _uri(uri: Any) -> str:
    return one_line(str(uri), _URI_CHARACTERS)


def _raw(structured: object) -> object:
    if structured is None or deeper_than(structured, RAW_DEPTH):
        return None
    try:
        return structured if len(msgspec.json.encode(structured)) <= RAW_BYTES else None
    except (msgspec.MsgspecError, UnicodeError):
        return None
