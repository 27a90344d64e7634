"""The conversation in what a model is given: prompts, responses and results, without what the agent tells by itself."""

from collections.abc import Sequence

from dragoman.coder.context import ContextUserMessage, Item

# How every message begins that the agent sends on the user's side (`coder/briefing.py`).
TOLD = "[This is Dragoman, not the user.] "


def conversation(items: Sequence[Item]) -> list[Item]:
    """The items without environment, mode and notes of the project."""
    return [item for item in items if not told(item)]


def briefing(items: Sequence[Item]) -> dict[str, str]:
    """What the model was told last of each source, without the mark."""
    told_items = [item for item in items if isinstance(item, ContextUserMessage) and item.source]
    return {item.source: text(item).removeprefix(TOLD) for item in told_items}


def told(item: Item) -> bool:
    return isinstance(item, ContextUserMessage) and bool(item.source)


def text(item: ContextUserMessage) -> str:
    return "".join(getattr(block, "text", "") for block in item.content)
