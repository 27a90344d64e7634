"""Which parts of a conversation can get shorter. Pure: items in, places and items out; `compaction` does it.

`limit` is always a number of tokens in our own estimate; the shares are parts of it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from dragoman.coder.context import (
    ContextAssistantMessage,
    ContextSummary,
    ContextToolResult,
    ContextUserMessage,
    Item,
    is_prompt,
    media_of,
    shorten_result,
    with_markers,
)
from dragoman.coder.token_estimate import BYTES_A_TOKEN, tokens_of
from dragoman.coder.tools.result_text import cut
from dragoman.vocabulary.content import Text, text_of

# Parts of the window that may stay word for word beside a summary: earlier prompts, the last steps of the turn, and
# results that the model has not seen yet.
PROMPTS_SHARE: Final = 0.2
PROMPTS_TOKENS: Final = 20_000  # of a large window, earlier prompts get no more than this
RECENT_SHARE: Final = 0.25
UNSEEN_SHARE: Final = 0.4
# A result this short is not worth trimming.
SHORT_RESULT: Final = 400
# A request for a summary has to leave room for the summary.
_REQUEST_SHARE: Final = 0.85
_ASK: Final = (
    "Sum up the conversation so far for yourself, so that you can go on without it: what the user wants, what was "
    "decided, which files matter and what is in them, what was done, what is still to do. Be exact and brief. "
    "Answer with the summary alone and call no tools."
)
_ASK_FOR_LESS: Final = "Your summary was too long last time and was cut off: use at most 300 words."
# The tool whose last call is the plan.
UPDATE_PLAN: Final = "update_plan"
_LEFT_OUT: Final = "[The beginning of the conversation is left out here.]"


class Cut(NamedTuple):
    """Results to be cut, and how many characters each may keep."""

    results: list[ContextToolResult]
    keep: int


def answered_results(items: Sequence[Item]) -> list[ContextToolResult]:
    """Return long results that the model has answered to already: it has seen them, and can look again."""
    seen_by_model = items[: last_response(items)]
    return [
        item
        for item in seen_by_model
        if isinstance(item, ContextToolResult) and (len(item.text) > SHORT_RESULT or media_of(item))
    ]


def unseen_results(items: Sequence[Item], limit: float) -> Cut:
    """Return results that the model has not answered to, if they are over their share; each keeps an equal part."""
    unseen = [item for item in items[last_response(items) :] if isinstance(item, ContextToolResult)]
    share = UNSEEN_SHARE * limit
    if tokens_of(unseen) <= share:
        return Cut([], 0)
    keep = max(int(share * BYTES_A_TOKEN) // len(unseen), SHORT_RESULT)
    return Cut([item for item in unseen if len(item.text) > keep], keep)


def split_for_summary(items: Sequence[Item], running: int, limit: float) -> int:
    """Return how many items to sum up. The rest are the last steps, and always the results without an answer."""
    if 0 < running < len(items) and tokens_of(items[running:]) <= RECENT_SHARE * limit:
        return running
    last = last_response(items)
    waits = last < len(items) and any(isinstance(item, ContextToolResult) for item in items[last:])
    split = last if waits else len(items)
    room = RECENT_SHARE * limit - tokens_of(items[split:])
    for index in range(split - 1, running, -1):
        room -= tokens_of([items[index]])
        if room < 0:
            break
        if isinstance(items[index], ContextAssistantMessage):
            split = index
    return split


def verbatim_prompts(items: Sequence[Item], split: int, running: int, limit: float) -> list[ContextUserMessage]:
    """Return the prompts before `split` that stay word for word: all of the running turn, earlier ones in a share."""
    prompts_of_turn = [item for item in items[running:split] if is_prompt(item)]
    room = min(PROMPTS_SHARE * limit, PROMPTS_TOKENS)
    for item in reversed(items[: min(running, split)]):
        if is_prompt(item):
            room -= tokens_of([item])
            if room < 0:
                break
            prompts_of_turn.insert(0, item)
    return prompts_of_turn


def plan_to_keep(items: Sequence[Item], split: int) -> str:
    """Return the steps of the plan as the model wrote it last, if that goes with the items before `split`."""
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        for call in reversed(item.calls) if isinstance(item, ContextAssistantMessage) else ():
            if call.tool == UPDATE_PLAN:
                return _plan_text(call.input.get("entries")) if at < split else ""
    return ""


def _plan_text(entries: object) -> str:
    steps = [step for step in entries if isinstance(step, dict)] if isinstance(entries, list) else []
    return "\n".join(f"- [{step.get('status', 'pending')}] {step.get('content', '')}" for step in steps)


# -- the request for a summary ---------------------------------------------------------------------------------------


def asking_for_summary(items: Sequence[Item], *, is_brief: bool = False, focus: str = "") -> list[Item]:
    """Return the items, with the request for a summary at the end; a brief one where a summary was too long.

    `focus`: what the user wants the summary to be about above all.
    """
    ask = f"{_ASK} {_ASK_FOR_LESS}" if is_brief else _ASK
    ask += f" The user wants it to keep above all: {focus}" if focus else ""
    return [*items, ContextUserMessage("", [Text(ask)])]


def fits(items: Sequence[Item], room: int | None) -> bool:
    """Return whether a request with these items fits so many tokens, with room for the answer."""
    return room is None or room <= 0 or tokens_of(items) <= _REQUEST_SHARE * room


def shorter(items: Sequence[Item]) -> list[Item] | None:
    """Return fewer or shorter items for a request that is too long; None: it does not get shorter.

    First the long results go and the pictures, then the older half, and of a last item its middle.
    """
    plain = [_plain(item) for item in items]
    if plain != list(items):
        return plain
    if len(items) > 2:
        return [ContextUserMessage("", [Text(_LEFT_OUT)]), *_newer_half(items)]
    longest = max(items, key=lambda item: tokens_of([item]), default=None)
    if longest is None or tokens_of([longest]) * BYTES_A_TOKEN <= SHORT_RESULT:
        return None
    return [_halve(item) if item is longest else item for item in items]


def _newer_half(items: Sequence[Item]) -> list[Item]:
    """Return the items after the older half; no results without their call."""
    left = tokens_of(items)
    half = left // 2
    for index, item in enumerate(items):
        # A marker takes the place of what goes, so at least two items go.
        if index >= 2 and left <= half and not isinstance(item, ContextToolResult):
            return list(items[index:])
        left -= tokens_of([item])
    return list(items[-1:])


def _plain(item: Item) -> Item:
    if isinstance(item, ContextToolResult):
        return shorten_result(item, 0) if len(item.text) > SHORT_RESULT or media_of(item) else item
    return with_markers(item, len(media_of(item)), "left out here")


def _halve(item: Item) -> Item:
    match item:
        case ContextUserMessage():
            text = text_of(item.content)
            return replace(item, content=[Text(cut(text, len(text) // 2))])
        case ContextAssistantMessage():
            text = item.text or item.thought
            return ContextAssistantMessage(cut(text, len(text) // 2))
        case ContextToolResult() | ContextSummary():
            return replace(item, text=cut(item.text, len(item.text) // 2))


def last_response(items: Sequence[Item]) -> int:
    """Return the index of the model's last response; the number of items where there is none."""
    for index in range(len(items) - 1, -1, -1):
        if isinstance(items[index], ContextAssistantMessage):
            return index
    return len(items)
