"""What a store cannot do, as the client is told of it: a code, a sentence, and a reason that a program can read."""

from collections.abc import Awaitable
from typing import TypeVar

from dragoman.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, RequestFailed
from dragoman.store.contract import BadCursor, SessionDamaged, SessionHeld, SessionMissing, StoreFailed

T = TypeVar("T")


async def told(session_id: str, work: Awaitable[T]) -> T:
    """What the store does; if it fails, `RequestFailed` with what the client is told."""
    try:
        return await work
    except StoreFailed as error:
        raise as_told(session_id, error) from error


def as_told(session_id: str, error: StoreFailed) -> RequestFailed:
    """One failure of a store, in the client's words."""
    match error:
        case SessionMissing():
            return missing(session_id)
        case SessionHeld():
            return RequestFailed(INVALID_REQUEST, "The session is open in another process", {"reason": "held"})
        case SessionDamaged():
            return RequestFailed(INTERNAL_ERROR, "The session cannot be read", {"reason": "damaged"})
        case BadCursor():
            return RequestFailed(INVALID_PARAMS, "Bad cursor")
        case _:
            return RequestFailed(INTERNAL_ERROR, str(error).capitalize(), {"reason": "store"})


def missing(session_id: str) -> RequestFailed:
    """Nobody knows a session of that id."""
    return RequestFailed(NOT_FOUND, "Session not found", {"sessionId": session_id})
