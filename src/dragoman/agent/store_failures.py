"""What a store cannot do, as the client is told of it: a code, a sentence, and a reason that a program can read."""

from collections.abc import Awaitable
from typing import TypeVar

from dragoman.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, RequestFailed, echo
from dragoman.store.contract import (
    BadCursor,
    SessionDamaged,
    SessionHeld,
    SessionMissing,
    SessionOpenHere,
    StoreFailed,
)

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
        case SessionOpenHere():
            return open_here("The session is already open in this process, on another connection: close it there first")
        case SessionHeld():
            message = "The session is open in another process: close it there first"
            return RequestFailed(INVALID_REQUEST, message, {"reason": "held"})
        case SessionDamaged():
            return RequestFailed(INTERNAL_ERROR, "The session cannot be read", {"reason": "damaged"})
        case BadCursor():
            return RequestFailed(INVALID_PARAMS, "Bad cursor")
        case _:
            return RequestFailed(INTERNAL_ERROR, str(error).capitalize(), {"reason": "store"})


def open_here(message: str) -> RequestFailed:
    """Return the error for a session that is open, opening or closing here; `message` says where and what to do."""
    return RequestFailed(INVALID_REQUEST, message, {"reason": "open"})


def missing(session_id: str) -> RequestFailed:
    """Return the error for a session id that is neither open nor stored."""
    return RequestFailed(NOT_FOUND, "Session not found", {"sessionId": echo(session_id)})
