"""The session a message names, and the same message with another name for it. Pure.

A session has two names where its agent's ids are not ours: one for clients, one for the agent. Between them every
message that names a session is told with the other one.
"""

from typing import TypeVar

from msgspec.structs import replace

from dragoman.vocabulary.asking import Extension, ExtensionNote, Note, Request
from dragoman.vocabulary.services import Elicit, SessionScope

Named = TypeVar("Named", bound=Request | Note)


def session_of(message: Request | Note) -> str | None:
    """The session a message names."""
    match message:
        case Extension() | ExtensionNote():
            found = message.params.get("sessionId") if isinstance(message.params, dict) else None
        case Elicit():
            found = getattr(message.scope, "session_id", None)
        case _:
            found = getattr(message, "session_id", None)
    return found if isinstance(found, str) else None


def with_session(message: Named, session_id: str) -> Named:
    """The message about this session, if it is about one."""
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
