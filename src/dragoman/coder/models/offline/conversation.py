"""Where the conversation stands: what the user wants now, what has been done about it, and what can be used.

Only the user's own text is read for wishes. What was attached is data under its path or address.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from dragoman.coder.context import INTERRUPTED, Asked, Item, ModelSaid, Summed, ToolSaid, UserSaid
from dragoman.coder.models.contract import Inquiry
from dragoman.coder.models.offline.phrases import Chunk, Phrase, phrase
from dragoman.vocabulary.content import Content, Resource, ResourceLink, Text, TextResource

_FOLDER: Final = re.compile(r"working folder is (/.*?)\.(?:\s|$)")


class Done(NamedTuple):
    """A call of this turn, and what came of it."""

    call: Asked
    result: ToolSaid


class Situation(NamedTuple):
    """Everything the rules go by."""

    wish: Phrase | None
    # What was attached, by path or address; None where only the address is known.
    attached: Mapping[str, str | None]
    done: Sequence[Done]
    is_first: bool
    offered: frozenset[str]
    folder: str
    before: Sequence[Item]


def situation(inquiry: Inquiry) -> Situation:
    """Read the items."""
    items = list(inquiry.items)
    place = max((n for n, item in enumerate(items) if isinstance(item, UserSaid)), default=None)
    found = _FOLDER.search(inquiry.system)
    offered = frozenset(card.name for card in inquiry.tools)
    folder = found[1] if found else ""
    if place is None:
        return Situation(None, {}, [], False, offered, folder, items)
    said = items[place]
    assert isinstance(said, UserSaid)
    attached: dict[str, str | None] = {}
    before = items[:place]
    is_first = not any(isinstance(item, Summed) or (isinstance(item, ModelSaid) and item.text) for item in before)
    wish = phrase([part for block in said.content for part in _parts(block, attached)])
    return Situation(wish, attached, _done(items[place + 1 :]), is_first, offered, folder, before)


def text_of_request(said: UserSaid) -> str:
    """The user's own words, in one line."""
    return " ".join(" ".join(block.text for block in said.content if isinstance(block, Text)).split())


def _done(items: Sequence[Item]) -> list[Done]:
    results = {item.call_id: item for item in items if isinstance(item, ToolSaid)}
    calls = [call for item in items if isinstance(item, ModelSaid) for call in item.calls]
    lost = ToolSaid("", "", INTERRUPTED, failed=True)
    return [Done(call, results.get(call.id, lost)) for call in calls]


def _parts(block: Content, attached: dict[str, str | None]) -> list[str | Chunk]:
    match block:
        case Text():
            return [block.text]
        case Resource(resource=resource):
            key = _key(resource.uri)
            attached[key] = resource.text if isinstance(resource, TextResource) else None
        case ResourceLink():
            key = _key(block.uri)
            attached.setdefault(key, None)
        case _:
            return []
    return [Chunk("mention", f"`{key}`", key)]


def _key(uri: str) -> str:
    """A path for a file, else the address itself."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    return unquote(parts.path) if parts.scheme == "file" else uri
