"""Where the conversation stands: what the user wants now, what has been done about it, and what can be used.

Only the user's own text is read for wishes. What was attached is data under its path or address.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from dragoman.coder.context import (
    INTERRUPTED,
    ContextAssistantMessage,
    ContextSummary,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
    Item,
)
from dragoman.coder.models.contract import ModelRequest
from dragoman.coder.models.offline.wishes.phrases import Phrase, PhraseChunk, phrase
from dragoman.vocabulary.content import Content, Resource, ResourceLink, Text, TextResource

_FOLDER: Final = re.compile(r"^The working folder is (/.*?)\.(?: Paths|\s*$)", re.MULTILINE)
_MODE: Final = re.compile(r'^The mode is "([\w-]+)"', re.MULTILINE)
# What is made of attachments before a model sees them: each is a text block of its own, and none of it is the user's.
# Names and addresses in it may hold anything, line ends and brackets included, so the whole block counts.
_RESOURCE: Final = re.compile(r'<resource uri="(?P<uri>[^"]*)">\n(?P<text>.*)\n</resource>\s*', re.DOTALL)
_LINK: Final = re.compile(r"\[.*\]\((?P<uri>.*)\)", re.DOTALL)
_MARKER: Final = re.compile(r"\[.*\]", re.DOTALL)
# A file named in the words, as terminals and editors complete it.
_MENTION: Final = re.compile(r"(?<!\S)@([^\s,;:!?]*[^\s,;:!?.])")


class DoneCall(NamedTuple):
    """A call, and what came of it."""

    call: ContextToolCall
    result: ContextToolResult


class ConversationMessage(NamedTuple):
    """One message of the user, and what was done after it and before the next. `finished`: it had its answer."""

    wish: Phrase
    # What was attached, by path or address; None where only the address is known.
    attached: Mapping[str, str | None]
    done: Sequence[DoneCall]
    finished: bool


class Situation(NamedTuple):
    """Everything the rules go by. `messages` are those of this turn: the prompt, and what was said into it."""

    messages: Sequence[ConversationMessage]
    is_first: bool
    offered: frozenset[str]
    folder: str
    mode: str
    before: Sequence[Item]


def situation(inquiry: ModelRequest, prompt_id: str | None = None) -> Situation:
    """Read the items. `prompt_id` is the message that began this turn; unknown: the last one did."""
    items = list(inquiry.items)
    said = [n for n, item in enumerate(items) if isinstance(item, ContextUserMessage)]
    first = next((n for n in said if _id(items[n]) == prompt_id), said[-1] if said else len(items))
    places = [n for n in said if n >= first]
    messages = [_message(items[n:end]) for n, end in zip(places, [*places[1:], len(items)], strict=True)]
    before = items[:first]
    is_first = not any(
        isinstance(item, ContextSummary) or (isinstance(item, ContextAssistantMessage) and item.text) for item in before
    )
    offered = frozenset(card.name for card in inquiry.tools)
    folder, mode = _FOLDER.search(inquiry.system), _MODE.search(inquiry.system)
    return Situation(messages, is_first, offered, folder[1] if folder else "", mode[1] if mode else "", before)


def opening(items: Sequence[Item]) -> str | None:
    """The id of the message that begins the turn, when nothing has been answered in it yet."""
    place = len(items)
    while place and isinstance(items[place - 1], ContextUserMessage):
        place -= 1
    return _id(items[place]) if place < len(items) else None


def text_of_request(said: ContextUserMessage) -> str:
    """The user's own words, in one line."""
    parts = [part for block in said.content for part in _parts(block, {})]
    return " ".join(" ".join(part if isinstance(part, str) else part.raw for part in parts).split())


def _id(item: Item) -> str | None:
    return item.message_id if isinstance(item, ContextUserMessage) else None


def _message(items: Sequence[Item]) -> ConversationMessage:
    said = items[0]
    assert isinstance(said, ContextUserMessage)
    attached: dict[str, str | None] = {}
    parts = [part for block in said.content for part in _parts(block, attached)]
    wish = phrase(_mentioned(parts, attached))
    results = {item.call_id: item for item in items if isinstance(item, ContextToolResult)}
    answers = [item for item in items if isinstance(item, ContextAssistantMessage)]
    lost = ContextToolResult("", "", INTERRUPTED, failed=True)
    done = [DoneCall(call, results.get(call.id, lost)) for answer in answers for call in answer.calls]
    return ConversationMessage(wish, attached, done, finished=bool(answers) and not answers[-1].calls)


def _mentioned(parts: Sequence[str | PhraseChunk], attached: Mapping[str, str | None]) -> list[str | PhraseChunk]:
    """Return the parts, with a file that is both mentioned (`@calc.py`) and attached as one part and not two."""
    named: set[str] = set()

    def mention(found: re.Match[str]) -> str:
        keys = [key for key in attached if key == found[1] or key.endswith(f"/{found[1]}")]
        named.update(keys)
        return found[1] if keys else found[0]

    words = [_MENTION.sub(mention, part) if isinstance(part, str) else part for part in parts]
    return [part for part in words if isinstance(part, str) or part.value not in named]


def _parts(block: Content, attached: dict[str, str | None]) -> list[str | PhraseChunk]:
    match block:
        case Text(text=text):
            quoted = _RESOURCE.fullmatch(text)
            found = quoted or _LINK.fullmatch(text)
            if found is None:
                return [] if _MARKER.fullmatch(text) else [text]
            key = _key(found["uri"])
            attached[key] = quoted["text"] if quoted is not None else attached.get(key)
        case Resource(resource=resource):
            key = _key(resource.uri)
            attached[key] = resource.text if isinstance(resource, TextResource) else None
        case ResourceLink():
            key = _key(block.uri)
            attached.setdefault(key, None)
        case _:
            return []
    return [PhraseChunk("mention", f"`{key}`", key)]


def _key(uri: str) -> str:
    """A path for a file, else the address itself."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    return unquote(parts.path) if parts.scheme == "file" else uri
