"""Leaves out of a conversation what a provider has probably meant when it refused the whole as invalid.

A provider does not say which part of a request it refuses. What it accepted before is fine; of what came since, an
image or other media is the likely cause, and without media it is the message itself. The log keeps all of it.
"""

from collections.abc import Sequence
from typing import Final

from dragoman.coder.context import Context, ContextUserMessage, Item, media_of, media_type
from dragoman.coder.shortening import last_response

# Media types that are named; of more there is only the count.
_SHOWN: Final = 3


async def leave_out_rejected(context: Context, prompt: ContextUserMessage, model: str) -> str:
    """Leave out of the context what `model` has refused; return a sentence for the user that says what that is."""
    suspects = [item for item in _since_accepted(context.items) if media_of(item)]
    if not suspects and context.accepted_by != model:
        # Another model has accepted what stands there; this one may see no pictures, or not these.
        suspects = [item for item in context.items if media_of(item)]
    if suspects:
        await context.leave_out_media(suspects)
        kinds = [media_type(block) for item in suspects for block in media_of(item)]
        return f"The model does not see {_media_text(kinds)} any more; your text stays in the conversation"
    await context.forget(prompt.message_id)
    left_out = "Your message was left out of the conversation, so that the next one does not fail as well"
    if not context.items or context.accepted_by == model:
        return left_out
    return f"{left_out}; if it does, {model} refuses what was said before: /compact sums that up, /clear leaves it out"


def _since_accepted(items: Sequence[Item]) -> list[Item]:
    """Return the items after the last response: the provider has answered to those before it."""
    at = last_response(items)
    return list(items[at + 1 :] if at < len(items) else items)


def _media_text(kinds: Sequence[str]) -> str:
    shown = ", ".join(kinds[:_SHOWN]) + (", …" if len(kinds) > _SHOWN else "")
    return f"1 file ({shown})" if len(kinds) == 1 else f"{len(kinds)} files ({shown})"
