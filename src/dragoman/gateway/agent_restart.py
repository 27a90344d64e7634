"""An agent's process is started again: what its clients are told if that fails, and what the new one is told first."""

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
    """How long to wait before a process that has failed so often in a row is started again."""
    return min(BACKOFF_SECONDS * 2.0 ** (failures - 1), limits.LONGEST_RESTART_SECONDS) if failures else 0.0


def missing(session_id: str) -> RequestFailed:
    """There is no such session for this client."""
    return RequestFailed(NOT_FOUND, "Session not found", {"sessionId": echo(session_id)})


def start_failure(error: BaseException) -> BaseException:
    """What a client is told of an agent that cannot be started."""
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
        case _:
            return error


def changed_options(session_id: str, before: SessionOpened, now: SessionOpened) -> list[SetOption]:
    """What makes the options of a session what they were."""
    values = {option.config_id: option.current_value for option in _known(now)}
    return [
        SetOption(session_id, option.config_id, option.current_value)
        for option in _known(before)
        if option.config_id in values and values[option.config_id] != option.current_value
    ]


def _known(opened: SessionOpened) -> list[Select | Toggle]:
    return [option for option in opened.config_options or () if isinstance(option, (Select, Toggle))]
