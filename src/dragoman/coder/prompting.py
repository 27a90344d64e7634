"""A prompt as the model is given it: links inside the roots are read, what the model cannot see is a marker."""

import asyncio
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from dragoman.host.paths import PathRefused, Roots, read_bytes
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


async def seen(content: Sequence[Content], roots: Roots, sees: frozenset[str]) -> list[Content]:
    """What the model gets."""
    return [await _seen(block, roots, sees) for block in content]


async def _seen(block: Content, roots: Roots, sees: frozenset[str]) -> Content:
    match block:
        case Image() if "image" not in sees:
            return Text(f"[image: {block.mime_type}]")
        case Audio() if "audio" not in sees:
            return Text(f"[audio: {block.mime_type}]")
        case ResourceLink():
            return await _linked(block, roots)
        case Resource(resource=TextResource() as resource):
            return Text(_quoted(resource.uri, resource.text))
        case Resource(resource=BlobResource() as resource):
            return Text(f"[resource: {resource.uri}]")
        case UnknownContent():
            return Text(f"[{block.kind}]")
        case _:
            return block


async def _linked(link: ResourceLink, roots: Roots) -> Text:
    """The file a link leads to, where that is inside the roots; else the link alone."""
    named = Text(f"[{link.name}]({link.uri})")
    address = urlsplit(link.uri)
    if address.scheme != "file" or address.netloc not in ("", "localhost"):
        return named
    try:
        place = roots.place(unquote(address.path))
        data, more = await asyncio.to_thread(read_bytes, place, LINK_BYTES)
    except (PathRefused, ValueError):
        return named
    if b"\0" in data:
        return named
    text = data.decode("utf-8", "replace") + ("\n[… there is more …]" if more else "")
    return Text(_quoted(link.uri, text))


def _quoted(uri: str, text: str) -> str:
    """Text of a resource, marked as such: it is data, not what the user said."""
    return f'<resource uri="{uri.replace(chr(34), "%22")}">\n{text}\n</resource>\n'
