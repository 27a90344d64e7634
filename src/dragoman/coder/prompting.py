"""A prompt as the model is given it: links inside the roots are read, what the model cannot see is a marker."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from dragoman.coder.quoting import boxed
from dragoman.host.paths import PathRefused, Roots, read_bytes
from dragoman.host.text import visible_line
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

# What is read of one linked file. The model can read the rest with a tool.
LINK_BYTES: Final = 256 * 1024
# Of one prompt: links that are read, and what they may come to; the others are named.
READ_LINKS: Final = 100
LINKED_BYTES: Final = 2 * 1024 * 1024
# A picture or a sound as base64. No provider takes a larger one.
MEDIA_CHARACTERS: Final = 24 * 1024 * 1024


async def seen(
    content: Sequence[Content], roots: Roots, sees: frozenset[str], is_withheld: Callable[[str], bool]
) -> list[Content]:
    """What the model gets. A link to a file that `is_withheld` is named only: the tool that reads it asks the user."""
    reader = _Reader(roots, is_withheld)
    return [await _seen(block, reader, sees) for block in content]


async def _seen(block: Content, reader: "_Reader", sees: frozenset[str]) -> Content:
    match block:
        case Image() if "image" not in sees:
            return Text(f"[image: {block.mime_type}]")
        case Audio() if "audio" not in sees:
            return Text(f"[audio: {block.mime_type}]")
        case Image() | Audio() if len(block.data) > MEDIA_CHARACTERS:
            kind = "image" if isinstance(block, Image) else "audio"
            return Text(f"[{kind}: {block.mime_type}, too large to be seen]")
        case ResourceLink():
            return await reader.linked(block)
        case Resource(resource=TextResource() as resource):
            return Text(_quoted(resource.uri, resource.text))
        case Resource(resource=BlobResource() as resource):
            return Text(f"[resource: {resource.uri}]")
        case UnknownContent():
            return Text(f"[{block.kind}]")
        case _:
            return block


class _Reader:
    """Reads what the links of one prompt lead to, up to a bound."""

    def __init__(self, roots: Roots, is_withheld: Callable[[str], bool]) -> None:
        self._roots = roots
        self._is_withheld = is_withheld
        self._links = READ_LINKS
        self._bytes = LINKED_BYTES

    async def linked(self, link: ResourceLink) -> Text:
        """The file a link leads to, where that is inside the roots; else the link alone."""
        named = Text(f"[{link.name}]({link.uri})")
        try:
            address = urlsplit(link.uri)
        except ValueError:  # brackets that close nothing
            return named
        if address.scheme != "file" or address.netloc not in ("", "localhost") or not self._links or not self._bytes:
            return named
        self._links -= 1
        try:
            place = self._roots.place(unquote(address.path))
            if self._is_withheld(place.path):
                return Text(f"{named.text} (not read here, because it may hold credentials; read_file asks the user)")
            data, more = await asyncio.to_thread(read_bytes, place, min(LINK_BYTES, self._bytes))
        except (PathRefused, ValueError):
            return named
        if b"\0" in data:
            return named
        self._bytes -= len(data)
        text = data.decode("utf-8", "replace") + ("\n[… there is more …]" if more else "")
        return Text(_quoted(link.uri, text))


def _quoted(uri: str, text: str) -> str:
    """Text of a resource, marked as such: it is data, not what the user said."""
    address = visible_line(uri).replace('"', "%22").replace("<", "%3C").replace(">", "%3E")
    return boxed("resource", text, f' uri="{address}"')
