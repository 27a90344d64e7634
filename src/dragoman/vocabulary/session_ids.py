"""The session that a request or a note names, and the same message with another id for it. Pure.

A session may have two ids, one on each hop: a gateway gives clients ids of its own where an agent's processes count
theirs. Every message that names a session then passes `with_session`.

`SessionMessage` is the list of the messages with a field `session_id`; a test fails if one is missing. An elicitation
names a session in its scope, an extension in its params, and both may name none.
"""

from typing import TypeVar, get_args

from msgspec.structs import replace

from dragoman.vocabulary import requests, services
from dragoman.vocabulary.asking import Extension, ExtensionNote, Note, Request
from dragoman.vocabulary.services import Elicit, SessionScope

SessionMessage = (
    requests.ResumeSession
    | requests.ForkSession
    | requests.CloseSession
    | requests.DeleteSession
    | requests.ArchiveSession
    | requests.UnarchiveSession
    | requests.GetSessionStatus
    | requests.SetTitle
    | requests.SetOption
    | requests.RecordNote
    | requests.PromptRequest
    | requests.SteerTurn
    | requests.RewindSession
    | requests.CancelToolCall
    | requests.CancelTerminal
    | requests.CancelTurn
    | services.RequestPermission
    | services.ReadTextFile
    | services.WriteTextFile
    | services.CreateTerminal
    | services.GetTerminalOutput
    | services.WaitForTerminalExit
    | services.KillTerminal
    | services.ReleaseTerminal
)

# A tuple of classes is what `isinstance` is fast with: this runs for every request that passes a gateway.
_SESSION_MESSAGES: tuple[type[SessionMessage], ...] = get_args(SessionMessage)

Named = TypeVar("Named", bound=Request | Note)


def session_of(message: Request | Note) -> str | None:
    """Return the id of the session that a message names; None if it names none."""
    if isinstance(message, _SESSION_MESSAGES):
        return message.session_id
    match message:
        case Elicit(scope=SessionScope(session_id=session_id)):
            return session_id
        case Extension(params=dict() as params) | ExtensionNote(params=dict() as params):
            # Params of an extension are plain JSON: whatever stands there may be no string.
            found = params.get("sessionId")
            return found if isinstance(found, str) else None
        case _:
            return None


def with_session(message: Named, session_id: str) -> Named:
    """Return the message about the session `session_id`; the message itself if it names no session, or this one."""
    named = session_of(message)
    if named is None or named == session_id:
        return message
    if isinstance(message, (Extension, ExtensionNote)):
        assert isinstance(message.params, dict)
        return replace(message, params={**message.params, "sessionId": session_id})
    if isinstance(message, Elicit):
        assert isinstance(message.scope, SessionScope)
        return replace(message, scope=replace(message.scope, session_id=session_id))
    return replace(message, session_id=session_id)
