"""Leaves out of a conversation what a provider has probably meant when it refused the whole as invalid.

A provider seldom says which part of a request it refuses. What it accepted before is fine; of what came since, an image
or other media is the likely cause, and a marker takes its place. Text is not left out on a guess that could cost work:
only a prompt whose turn has no answer yet goes, because the model has done nothing for it. Where tools have run since,
the prompt, the calls and their results stay, and the user is told what can be done. The log keeps all of it.
"""

from collections.abc import Sequence
from typing import Final

from dragoman.coder.context import (
    Context,
    ContextAssistantMessage,
    ContextSummary,
    ContextUserMessage,
    Item,
    is_prompt,
    media_of,
    media_type,
)
from dragoman.coder.models.contract import ModelFailed
from dragoman.coder.models.request_failures import (
    MediaRejected,
    OverMinuteLimit,
    ProviderCrashed,
    RequestRejected,
    RequestTooLarge,
)
from dragoman.coder.shortening import last_response

# Media types that are named; of more there is only the count.
_SHOWN: Final = 3
_WAYS_OUT: Final = "/compact sums the conversation up, /clear lets the model forget it, /model chooses another model"


async def leave_out_rejected(
    context: Context, prompt: ContextUserMessage, model: str, failure: ModelFailed, *, is_first_call: bool
) -> str:
    """Leave out of the context what `model` has refused; return a sentence for the user that says what that is.

    The sentence is empty where the failure is not about what the request holds, or where a shorter conversation is the
    remedy. `is_first_call`: the model has not answered in this turn, so no work is lost with its prompt.
    """
    if isinstance(failure, OverMinuteLimit):
        return ""
    if suspects := _suspect_media(context, model, failure):
        await context.leave_out_media(suspects)
        kinds = [media_type(block) for item in suspects for block in media_of(item)]
        left_out = f"The model does not see {_media_text(kinds)} any more; your text stays in the conversation"
        if isinstance(failure, ProviderCrashed):
            return f"What was attached may be the cause. {left_out}. Send it again if the failure had another cause"
        return left_out
    if not isinstance(failure, RequestRejected):
        return ""
    if not is_first_call or isinstance(failure, MediaRejected):
        return (
            "Nothing was removed from the conversation: your message and all that was done since are still there. If "
            f"{model} refuses the next message as well: {_WAYS_OUT}"
        )
    await context.forget(prompt.message_id)
    before = [item for item in context.items if is_prompt(item) or not isinstance(item, ContextUserMessage)]
    if _is_unanswered(before):
        # The turn before was refused, or stopped before the model has seen its results.
        return (
            f"Your message was left out of the conversation, and nothing else. {model} has not accepted what stands "
            f"before it either: {_WAYS_OUT}. Then send your message again"
        )
    left_out = "Your message was left out of the conversation, so that the next one does not fail as well"
    if not before or context.accepted_by == model:
        return left_out
    return f"{left_out}; if it does, {model} refuses what was said before: {_WAYS_OUT}"


def _suspect_media(context: Context, model: str, failure: ModelFailed) -> list[Item]:
    """Return the items with media that may be why a request failed."""
    if not isinstance(failure, RequestRejected | RequestTooLarge | ProviderCrashed):
        return []
    if new := [item for item in _since_accepted(context.items) if media_of(item)]:
        return new
    # Another model has accepted what stands there; this one may see no pictures, or not these.
    is_new_to_model = context.accepted_by != model and (
        isinstance(failure, RequestRejected) or context.accepted_by != ""
    )
    if is_new_to_model or isinstance(failure, MediaRejected | RequestTooLarge):
        return [item for item in context.items if media_of(item)]
    return []


def _since_accepted(items: Sequence[Item]) -> list[Item]:
    """Return the items after the last response: the provider has answered to those before it."""
    at = last_response(items)
    return list(items[at + 1 :] if at < len(items) else items)


def _is_unanswered(items: Sequence[Item]) -> bool:
    """Return whether the conversation ends with something that is neither an answer nor a summary."""
    return bool(items) and not isinstance(items[-1], ContextAssistantMessage | ContextSummary)


def _media_text(kinds: Sequence[str]) -> str:
    shown = ", ".join(kinds[:_SHOWN]) + (", …" if len(kinds) > _SHOWN else "")
    return f"1 file ({shown})" if len(kinds) == 1 else f"{len(kinds)} files ({shown})"
