"""Events and sessions as programs read them: version 2's JSON, which has the vocabulary's meaning, whichever version
they were lived in."""

from dragoman.dialects.codec.git_patches import git_patch
from dragoman.dialects.v2.codec import CODEC, encode_event
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.requests import SessionInfo
from dragoman.vocabulary.tools import Diff, FileChange, Patch
from dragoman.wire import types as wire


def update_json(event: AnyEvent) -> bytes | None:
    """Return an event as an update, `{"sessionUpdate": ...}` on one line; None where it has no name of its own."""
    update = encode_event(event)
    return None if update is None else wire.encode(update)


def info_json(info: SessionInfo) -> bytes:
    """Return a session as a list shows it, on one line."""
    return wire.encode(CODEC.encode(info))


def patch_text(diff: Diff) -> str:
    """Return file changes as a readable patch; a change without known texts is one line, operation and path."""
    # A patch that an agent has sent is shown as it is: it may say more than the texts.
    if isinstance(diff.patch, Patch):
        return diff.patch.text
    return "".join(
        (git_patch(change) or f"{change.operation} {change.path}\n")
        if isinstance(change, FileChange)
        else f"{change.kind}\n"
        for change in diff.changes
    )
