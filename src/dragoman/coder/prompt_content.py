"""A prompt as the model is given it: links inside the roots are read, what the model cannot see is a marker."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeGuard
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from dragoman.coder.tagged_text import wrap_in_tag
from dragoman.coder.tools.result_text import cut
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.host.decoding import decode_text, describe_binary, is_binary_text
from dragoman.host.media import PDF_TYPE, MediaBudget, MediaRefused, normal_type
from dragoman.host.paths import PathRefused, Roots, facts_of, read_bytes
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
# Text that a client embeds in one prompt, all of it together: more does not fit into any model's window.
EMBEDDED_CHARACTERS: Final = 2 * 1024 * 1024


def check_media(content: Sequence[Content]) -> None:
    """Refuse a prompt with a picture, sound or blob that no provider would take: `RequestFailed` with its index."""
    budget = MediaBudget()
    for index, block in enumerate(content):
        try:
            match block:
                case Image():
                    what = "image"
                    budget.check(block.data, block.mime_type)
                case Audio():
                    what = "audio"
                    budget.check(block.data)
                case Resource(resource=BlobResource(blob=data, mime_type=kind)):
                    what = "blob of the resource"
                    budget.check(data, kind if _is_picture(kind) else None)
        except MediaRefused as refusal:
            raise RequestFailed(INVALID_PARAMS, f"prompt[{index}]: the {what} {refusal}", {"index": index}) from None


def unseen_notice(content: Sequence[Content], model: str, sees: frozenset[str]) -> str:
    """Say that a model cannot look at the images, or hear the audio, of a prompt; empty: it can, or there is none."""
    unseen = [
        name
        for name, kind in (("images", Image), ("audio", Audio))
        if name.rstrip("s") not in sees and any(isinstance(block, kind) for block in content)
    ]
    return f"{model} takes no {' and no '.join(unseen)}; it is only told that there is some." if unseen else ""


def _is_picture(kind: object) -> TypeGuard[str]:
    return isinstance(kind, str) and normal_type(kind).startswith("image/")


async def content_for_model(
    content: Sequence[Content], roots: Roots, sees: frozenset[str], is_withheld: Callable[[str], bool]
) -> list[Content]:
    """Return what the model gets.

    A link to a file that `is_withheld` is named only: the tool that reads it asks the user.
    """
    reader = _Reader(roots, is_withheld)
    return [await _block_for_model(block, reader, sees) for block in content]


async def _block_for_model(block: Content, reader: "_Reader", sees: frozenset[str]) -> Content:
    match block:
        case Image() if "image" not in sees:
            return Text(f"[image: {normal_type(block.mime_type)}]")
        case Audio() if "audio" not in sees:
            return Text(f"[audio: {visible_line(normal_type(block.mime_type))}]")
        case Image():
            return replace(block, mime_type=normal_type(block.mime_type))
        case ResourceLink():
            return await reader.linked_file(block)
        case Resource(resource=TextResource() as resource):
            return reader.embedded_text(resource)
        case Resource(resource=BlobResource() as resource):
            if "image" in sees and _is_picture(resource.mime_type):
                return Image(resource.blob, normal_type(resource.mime_type))
            if (
                "document" in sees
                and isinstance(resource.mime_type, str)
                and normal_type(resource.mime_type) == PDF_TYPE
            ):
                return block
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
        self._characters = EMBEDDED_CHARACTERS

    def embedded_text(self, resource: TextResource) -> Text:
        """Return the text that a client has put into the prompt, without its middle where it is over the bound."""
        if is_binary_text(resource.text):
            return Text(f"[resource: {visible_line(resource.uri)}, not text, {len(resource.text):,} characters]")
        text = cut(resource.text, self._characters)
        self._characters = max(0, self._characters - len(text))
        return Text(_quoted(resource.uri, text))

    async def linked_file(self, link: ResourceLink) -> Text:
        """Return the file a link leads to, where that is inside the roots; else the link alone."""
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
        decoded = decode_text(data, is_cut=more)
        if decoded is None:
            size = (await asyncio.to_thread(facts_of, place)).st_size if more else len(data)
            return Text(f"{named.text} (not text: {describe_binary(data, size)})")
        self._bytes -= len(data)
        text = decoded.text + ("\n[… there is more …]" if more else "")
        return Text(_quoted(link.uri, text))


def _quoted(uri: str, text: str) -> str:
    """Return the text of a resource in a tag: it is data, and no words of the user."""
    address = visible_line(uri).replace('"', "%22").replace("<", "%3C").replace(">", "%3E")
    return wrap_in_tag("resource", text, f' uri="{address}"')
