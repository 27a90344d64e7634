"""Rewinding a session, by an extension of ours that agents advertise in `_meta` of `initialize`.

No version of the protocol has a method for it yet. `_session/rewind` takes the id of the prompt to go back before and a
scope; with `preview` it says what would happen and changes nothing, with `undo` it takes the last rewind back. An agent
without it has the method as any other extension.
"""

from typing import Final

from msgspec import UNSET, UnsetType

from dragoman.dialects.codec.dialect_base import Route
from dragoman.vocabulary.hello import AgentHello
from dragoman.vocabulary.requests import RewindSession, RewoundFile, SessionRewound
from dragoman.wire import types as wire

METHOD: Final = "_session/rewind"


class RewindRequest(wire.MetaWire, frozen=True, kw_only=True):
    """The params."""

    session_id: str
    # The prompt to go back before, as a replay of the session names it. Absent: the last one; a client of version 1
    # is told no ids of its own prompts before it loads the session.
    message_id: str | UnsetType = UNSET
    # both, files or conversation. Not a closed type: the agent names those that it knows in its refusal.
    scope: str | UnsetType = UNSET
    preview: bool | UnsetType = UNSET
    undo: bool | UnsetType = UNSET


class RewindResponseFile(wire.MetaWire, frozen=True, kw_only=True):
    """One file of the answer."""

    # A name that is no text has its odd bytes replaced: JSON has no way to say them.
    path: str
    # restore, delete or change.
    action: str
    # Why the file is left alone; empty: it is not.
    trouble: str = ""
    diff: str = ""


class RewindResponse(wire.MetaWire, frozen=True, kw_only=True):
    """The answer."""

    applied: bool
    scope: str
    files: list[RewindResponseFile]
    prompts: int
    message_id: str | UnsetType = UNSET
    number: int | UnsetType = UNSET
    not_covered: list[str] | UnsetType = UNSET


# By hand in both directions: the files are objects of no schema, which the transcriber of a version does not know.


def _encode(reply: SessionRewound) -> RewindResponse:
    files = [RewindResponseFile(path=f.path, action=f.action, trouble=f.trouble, diff=f.diff) for f in reply.files]
    return RewindResponse(
        applied=reply.applied,
        scope=reply.scope,
        files=files,
        prompts=reply.prompts,
        message_id=reply.message_id,
        number=reply.number,
        not_covered=reply.not_covered,
    )


def _decode(value: RewindResponse) -> SessionRewound:
    files = [RewoundFile(file.path, file.action, file.trouble, file.diff) for file in value.files]
    return SessionRewound(
        value.applied, value.scope, files, value.prompts, value.message_id, value.number, value.not_covered
    )


REWIND: Final = Route(
    METHOD,
    RewindSession,
    RewindRequest,
    RewindResponse,
    SessionRewound,
    needs="rewind",
    encode_result=_encode,
    decode_result=_decode,
)


def rewind_routes(agent: AgentHello) -> list[Route]:
    """Return the route for the agent's side: none for an agent that cannot, whose author may serve the method."""
    return [REWIND] if agent.capabilities.rewind else []
