"""The error tree: whose mistake it was decides what a caller can do about it.

    DragomanError
    ├── UsageError            our caller's mistake; the message names the fix
    ├── PeerError             the other side's doing
    │   ├── PeerMistake       it sent what the protocol does not allow; carries the code we answer with
    │   │   └── FrameTooLarge it sent more than a frame may hold
    │   │       └── LargeFrameHead  ... and this is how the frame began
    │   ├── RequestFailed     it answered our request with an error
    │   │   ├── AuthRequired  ... because a login is needed first (-32000)
    │   │   └── RequestCancelled  ... because the request was cancelled (-32800)
    │   └── VersionMismatch   it speaks no protocol version that we speak
    └── WorldError            neither side's mistake
        ├── LinkClosed        the connection ended before the answer came
        │   └── ChildExited   ... because the agent's process did; with its exit code and stderr
        ├── StartFailed       a process could not be started
        ├── AgentFailed       an agent of the registry was started as often as it may be
        └── TimedOut          a wait reached its bound

Errors of one part (a store, a configuration file, a permission rule) stand with that part, as subclasses of these.

`wire_error` is the one place where an exception becomes an error on the wire. No exception text, path or
traceback passes it, unless that text was written for the peer: `PeerMistake` and `RequestFailed`.
"""

from typing import Final, NamedTuple

from dragoman import limits

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
AUTH_REQUIRED: Final = -32000
TOO_MANY_IN_FLIGHT: Final = -32001
NOT_FOUND: Final = -32002
NODE_AWAY: Final = -32010
LIMIT_REACHED: Final = -32011
UNSUPPORTED_VERSION: Final = -32022
CANCELLED: Final = -32800


class DragomanError(Exception):
    """The base of everything that this package raises on purpose."""


class UsageError(DragomanError):
    """The API was used in a way that cannot work; the message names the fix."""


class PeerError(DragomanError):
    """The other side broke the protocol, or refused."""


class PeerMistake(PeerError):
    """The peer sent something we must refuse with `code`; `message` and `data` are written for the wire."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class FrameTooLarge(PeerMistake):
    """A frame was larger than the limit; its bytes were skipped, not kept. `head` is how it began."""

    head = b""


class LargeFrameHead(FrameTooLarge):
    """How a frame began that was refused before, when only its length was known. It is not refused again."""


class RequestFailed(PeerError):
    """A JSON-RPC error: received as the answer to our request, or raised by a handler as the answer to theirs.

    `code` is that of JSON-RPC or ACP, `message` a sentence for people, `data` any JSON with details, or None.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class AuthRequired(RequestFailed):
    """The agent wants a login before it serves the request (-32000): `client.login`, then try again."""


class RequestCancelled(RequestFailed):
    """The request was cancelled before it was done (-32800)."""


class VersionMismatch(PeerError):
    """The peer speaks no protocol version that we speak."""


class WorldError(DragomanError):
    """Something outside of both programs failed: the network, a process, a disk."""


class LinkClosed(WorldError):
    """The connection ended; every call that waited for a reply fails with this, once."""


class ChildExited(LinkClosed):
    """The agent's process has ended, or has closed its pipes.

    `exit_code` is negative for a signal, and None if the process still runs. `stderr_tail` is the end of what it wrote
    to stderr; the `message` has its last lines.
    """

    def __init__(self, message: str, exit_code: int | None, stderr_tail: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


class AgentFailed(WorldError):
    """An agent of the registry cannot be used; the text says why, and what to do about it."""


class StartFailed(WorldError):
    """A child process could not be started."""


class TimedOut(WorldError):
    """A wait reached its bound."""


def how_to_install(*extras: str) -> str:
    """Return what to type to install optional packages (`extras`): from an index, and from a clone."""
    names = ",".join(extras)
    return f"pip install 'dragoman[{names}]' (from a clone: pip install '.[{names}]')"


class WireError(NamedTuple):
    """An error as it stands in a JSON-RPC response."""

    code: int
    message: str
    data: object = None


def request_failed(code: int, message: str, data: object = None) -> RequestFailed:
    """Return the exception for an error reply with this `code`, `message` and `data`; the code decides its class."""
    if code == AUTH_REQUIRED:
        return AuthRequired(code, message, data)
    if code == CANCELLED:
        return RequestCancelled(code, message, data)
    return RequestFailed(code, message, data)


def echo(text: str) -> str:
    """Return a text of the peer's as it may stand in an error: its beginning, if it is long."""
    return text if len(text) <= limits.ECHO_CHARACTERS else f"{text[: limits.ECHO_CHARACTERS]}…"


def echo_in_words(text: str) -> str:
    """Return the beginning of a peer's text as it may stand in a sentence: `?` for what a terminal cannot print."""
    most = limits.WORDS_ECHO_CHARACTERS
    short = "".join(letter if letter.isprintable() else "?" for letter in text[:most])
    return f"{short}…" if len(text) > most else short


def wire_error(error: BaseException) -> WireError:
    """Return the error reply for an exception: its own text only if that was written for the peer."""
    if isinstance(error, (PeerMistake, RequestFailed)):
        return WireError(error.code, error.message, error.data)
    return WireError(INTERNAL_ERROR, "Internal error")
