"""Estimates how many tokens something has, where no provider has counted it."""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.coder.context import (
    ContextAssistantMessage,
    ContextSummary,
    ContextToolResult,
    ContextUserMessage,
    Item,
    is_media,
    media_bytes,
)
from dragoman.coder.models.contract import ToolSpec
from dragoman.vocabulary.content import Content, Resource, text_of

# Rough average for English and code; letters of other scripts have several bytes, and about as many tokens for them.
BYTES_A_TOKEN: Final = 4
# What providers count for a large picture: they scale it down first, so its bytes say nothing.
_MEDIA_TOKENS: Final = 1_500
# A page of a document is counted as its text and a picture of it, some 2,500 tokens, and has some tens of kilobytes.
_BYTES_A_DOCUMENT_TOKEN: Final = 20
_DOCUMENT_TOKENS: Final = 150_000

# Sorts of items, in the order in which a request has most of them.
TOLD: Final = "environment, notes and skills"
SUMMARY: Final = "summary of what was before"
PROMPTS: Final = "what you have said, with attached files"
ANSWERS: Final = "answers and tool calls"
RESULTS: Final = "results of tools"
_SORTS: Final = (TOLD, SUMMARY, PROMPTS, ANSWERS, RESULTS)


def tokens_of(items: Sequence[Item]) -> int:
    """Return the tokens of these items, roughly."""
    return sum(_bytes(item) for item in items) // BYTES_A_TOKEN


def tokens_of_setting(system: str, tools: Sequence[ToolSpec]) -> int:
    """Return the tokens that come with every request, roughly: the system prompt and the tools."""
    cards = sum(len(tool.name) + _size(tool.description) + len(json.dumps(tool.schema)) for tool in tools)
    return (_size(system) + cards) // BYTES_A_TOKEN


def shares_of(items: Sequence[Item]) -> dict[str, int]:
    """Return roughly how many tokens each sort of items has, by what a user calls it; without those that have none."""
    sorts: dict[str, list[Item]] = {}
    for item in items:
        sorts.setdefault(_sort(item), []).append(item)
    return {sort: tokens for sort in _SORTS if (tokens := tokens_of(sorts.get(sort, [])))}


def _sort(item: Item) -> str:
    match item:
        case ContextUserMessage():
            return TOLD if item.source else PROMPTS
        case ContextAssistantMessage():
            return ANSWERS
        case ContextToolResult():
            return RESULTS
        case ContextSummary():
            return SUMMARY


def _bytes(item: Item) -> int:
    match item:
        case ContextUserMessage():
            return _content(item.content)
        case ContextAssistantMessage():
            calls = sum(len(call.tool) + len(msgspec.json.encode(call.input)) for call in item.calls)
            return _size(item.text) + _size(item.thought) + calls
        case ContextToolResult():
            return _size(item.text) + _content(item.content)
        case ContextSummary():
            return _size(item.text)


def _content(blocks: list[Content]) -> int:
    media = sum(_media_tokens(block) for block in blocks if is_media(block))
    return media * BYTES_A_TOKEN + _size(text_of([block for block in blocks if not is_media(block)]))


def _media_tokens(block: Content) -> int:
    if isinstance(block, Resource):
        return min(max(media_bytes(block) // _BYTES_A_DOCUMENT_TOKEN, _MEDIA_TOKENS), _DOCUMENT_TOKENS)
    return _MEDIA_TOKENS


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
