"""Values for starting an agent's process again: the errors for its clients, the wait, the options to set. Pure.

`AgentSide.ensure_ready` (`agent_side`) starts the process.
"""

from typing import Final

from dragoman import limits
from dragoman.errors import (
    INTERNAL_ERROR,
    NOT_FOUND,
    UNSUPPORTED_VERSION,
    LinkClosed,
    PeerError,
    RequestFailed,
    StartFailed,
    VersionMismatch,
    echo,
)
from dragoman.vocabulary.options import Select, Toggle
from dragoman.vocabulary.requests import SessionOpened, SetOption

GONE: Final = "The agent is gone"
ID_IN_USE: Final = "The agent has given the session an id that another one has; it was not opened"
AMBIGUOUS: Final = "The agent has used the id of this session for another one; it cannot be opened again"
CHANGED: Final = "The agent was started again, and its options are not what they were; look at them and try again"
BACKOFF_SECONDS: Final = limits.RESTART_SECONDS


def backoff(failures: int) -> float:
    """Return how many seconds to wait before a process that has failed so often in a row is started again."""
    return min(BACKOFF_SECONDS * 2.0 ** (failures - 1), limits.LONGEST_RESTART_SECONDS) if failures else 0.0


def missing(session_id: str) -> RequestFailed:
    """Return the error for a session that there is not for this client."""
    # The same words whether it belongs to another principal or never was: which of the two must not show.
    return RequestFailed(NOT_FOUND, "Session not found", {"sessionId": echo(session_id)})


def start_failure(error: BaseException) -> BaseException:
    """Return the error that a client gets for an agent that cannot be started, or does not answer `initialize`."""
    # In our own words: an exception of a start has paths and arguments in it, which are none of the client's.
    match error:
        case RequestFailed():
            return error
        case VersionMismatch():
            return RequestFailed(UNSUPPORTED_VERSION, "The agent speaks another protocol version")
        case PeerError():
            return RequestFailed(INTERNAL_ERROR, "The agent gave an answer that cannot be read")
        case StartFailed():
            return RequestFailed(INTERNAL_ERROR, "The agent cannot be started")
        case LinkClosed():
            return RequestFailed(INTERNAL_ERROR, GONE)
        case TimeoutError():
            return RequestFailed(INTERNAL_ERROR, "The agent did not answer in time")
        # A bug, or a cancel: the caller raises it as it is.
        case _:
            return error


def changed_options(session_id: str, before: SessionOpened, now: SessionOpened) -> list[SetOption]:
    """Return the requests that make the options of a session what they were `before`."""
    values = {option.config_id: option.current_value for option in _known(now)}
    return [
        SetOption(session_id, option.config_id, option.current_value)
        for option in _known(before)
        # An option that the new process does not have any more is left out: nothing could set it.
        if option.config_id in values and values[option.config_id] != option.current_value
    ]


def _known(opened: SessionOpened) -> list[Select | Toggle]:
    return [option for option in opened.config_options or () if isinstance(option, (Select, Toggle))]
