"""Own the content blocks that messages, prompts and tool calls are made of, and their plain text (`text_of`)."""

from typing import Literal

from msgspec import UNSET, UnsetType

from dragoman.vocabulary.word import Unknown, Word

Role = Literal["assistant", "user"]


class Annotations(Word, frozen=True, gc=False):
    """Hints for display. None of them changes what a block means."""

    audience: list[str] | None | UnsetType = UNSET
    last_modified: str | None | UnsetType = UNSET
    priority: float | None | UnsetType = UNSET


class Icon(Word, frozen=True, gc=False):
    """A picture for a resource link."""

    src: str
    mime_type: str | None | UnsetType = UNSET
    sizes: list[str] | None | UnsetType = UNSET
    theme: str | None | UnsetType = UNSET


class Text(Word, frozen=True, gc=False, tag_field="type", tag="text"):
    """Plain text, or Markdown."""

    text: str
    annotations: Annotations | None | UnsetType = UNSET


class Image(Word, frozen=True, gc=False, tag_field="type", tag="image"):
    """A picture; `data` is base64."""

    data: str
    mime_type: str
    uri: str | None | UnsetType = UNSET
    annotations: Annotations | None | UnsetType = UNSET


class Audio(Word, frozen=True, gc=False, tag_field="type", tag="audio"):
    """A sound; `data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | None | UnsetType = UNSET


class ResourceLink(Word, frozen=True, gc=False, tag_field="type", tag="resource_link"):
    """A pointer to something the reader may fetch."""

    name: str
    uri: str
    title: str | None | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    icons: list[Icon] | None | UnsetType = UNSET
    mime_type: str | None | UnsetType = UNSET
    size: int | None | UnsetType = UNSET
    annotations: Annotations | None | UnsetType = UNSET


class TextResource(Word, frozen=True, gc=False, tag_field="form", tag="text"):
    """The text of an embedded resource."""

    text: str
    uri: str
    mime_type: str | None | UnsetType = UNSET


class BlobResource(Word, frozen=True, gc=False, tag_field="form", tag="blob"):
    """The bytes of an embedded resource, as base64."""

    blob: str
    uri: str
    mime_type: str | None | UnsetType = UNSET


class Resource(Word, frozen=True, gc=False, tag_field="type", tag="resource"):
    """A resource carried along with the message."""

    resource: TextResource | BlobResource
    annotations: Annotations | None | UnsetType = UNSET


class UnknownContent(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """A block of a kind this release does not know."""


Content = Text | Image | Audio | ResourceLink | Resource | UnknownContent


def text_of(blocks: "list[Content] | tuple[Content, ...]") -> str:
    """Return the text of the blocks, in order; resources give their text, links their uri, media a marker."""
    return "".join(_text(block) for block in blocks)


def _text(block: Content) -> str:
    match block:
        case Text():
            return block.text
        case Resource(resource=TextResource(text=text)):
            return text
        case Resource(resource=resource):
            return f"[resource: {resource.uri}]"
        case ResourceLink():
            return f"[{block.name}]({block.uri})"
        case Image():
            return f"[image: {block.mime_type}]"
        case Audio():
            return f"[audio: {block.mime_type}]"
        case UnknownContent():
            return f"[{block.kind}]"
