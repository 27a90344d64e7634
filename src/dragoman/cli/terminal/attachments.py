"""A prompt as a person writes it: words, and `@path` for files that go with them.

A file goes along whole where the agent takes that and it is text of ordinary length, or a picture where it takes
pictures; else as a link. What is no file stays a word: people write of @decorators too. A file with the name of a
picture that no model could look at stops the prompt: sent, it would be refused, or spoil the conversation.
"""

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.host.decoding import decode_text
from dragoman.host.media import MEDIA_BYTES, MediaBudget, MediaRefused, picture_type
from dragoman.host.regular_file import read_regular
from dragoman.vocabulary.content import Content, Image, Resource, ResourceLink, Text, TextResource
from dragoman.vocabulary.hello import AgentCapabilities

# Longer text is better read by the agent itself, in parts.
EMBEDDED_BYTES: Final = 256 * 1024
FILES: Final = 100
_AT: Final = re.compile(r'(?:(?<=\s)|^)@(?:"([^"\n]+)"|(\S+))')
# `server:uri`, a resource of an MCP server: the agent reads it, and we do not know which it has.
_OF_SERVER: Final = re.compile(r"[A-Za-z0-9_-]+:\S")
_PICTURE_NAMES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")


class PromptWithFiles(NamedTuple):
    """What is sent, the names that look like files and are none, and why it must not be sent as it is."""

    blocks: list[Content]
    missing: list[str]
    problems: list[str]


def prompt_with_files(text: str, folder: str, able: AgentCapabilities, *, typed: str | None = None) -> PromptWithFiles:
    """Return the text, and the files named in it; in `typed` alone, where some of the text was written by others."""
    blocks: list[Content] = [Text(text)]
    missing: list[str] = []
    problems: list[str] = []
    attached_paths: set[str] = set()
    budget = MediaBudget()
    for named in _named(text if typed is None else typed):
        path = _file(named, folder)
        if path is None:
            if not _OF_SERVER.match(named) and ("/" in named or "." in named.strip(".")):
                missing.append(named)
        elif path not in attached_paths and len(attached_paths) < FILES:
            attached_paths.add(path)
            try:
                blocks.append(_block(path, named, able, budget))
            except MediaRefused as refusal:
                problems.append(f"@{named}: the image {refusal}")
    return PromptWithFiles(blocks, missing, problems)


def _named(text: str) -> Iterator[str]:
    for found in _AT.finditer(text):
        yield found[1] or found[2]


def _file(named: str, folder: str) -> str | None:
    """Return the file or folder that is meant; a comma or a full stop may belong to the sentence."""
    for candidate in dict.fromkeys((named, named.rstrip(".,;:!?)]'\""))):
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(candidate)))
        try:
            if candidate and os.path.exists(path):
                return path
        except ValueError:
            return None
    return None


def _block(path: str, named: str, able: AgentCapabilities, budget: MediaBudget) -> Content:
    """Return the content block for a file; `MediaRefused` for a picture that is none, or one too many."""
    uri = Path(path).as_uri()
    is_picture = os.path.splitext(path)[1].lower() in _PICTURE_NAMES
    if is_picture and able.image and (data := _read(path, MEDIA_BYTES)) is not None:
        # By its bytes: many a photograph is called .png.
        kind = picture_type(data)
        encoded = base64.b64encode(data).decode()
        if kind is None:
            raise MediaRefused("is empty" if not data else "is no PNG, JPEG, GIF or WebP")
        budget.check(encoded, kind)
        return Image(encoded, kind, uri)
    if not is_picture and able.embedded_context and (data := _read(path, EMBEDDED_BYTES)) is not None:
        decoded = decode_text(data)
        if decoded is not None and decoded.is_exact:
            return Resource(TextResource(decoded.text, uri))
    return ResourceLink(os.path.basename(path) or named, uri)


def _read(path: str, most: int) -> bytes | None:
    """Return the bytes of an ordinary file that is not too long."""
    try:
        data = read_regular(path, most + 1)
    except OSError:
        return None
    return data if len(data) <= most else None
