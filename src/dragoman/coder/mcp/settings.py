"""The terms on which a session has servers: where they run, who is told what, how long anything may take."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from dragoman import limits
from dragoman.coder.mcp.config import Config
from dragoman.host.guardian import Guardian

# Waits before a server that was lost is connected again.
PAUSES: Final = (0.5, 2.0, 8.0)


class McpTimeouts(NamedTuple):
    """How long anything may take, in seconds."""

    # A search over the network does not take longer; who needs more can say so.
    call: float = 120.0
    # A server that is fetched with npx first may need so long.
    start: float = limits.START_SECONDS
    pauses: tuple[float, ...] = PAUSES
    # A server that stayed for so long may be lost as often as a new one.
    steady: float = 60.0


class McpEnvironment(NamedTuple):
    """Where servers are started, and what they may know."""

    cwd: str
    environment: Mapping[str, str]
    roots: Sequence[str]
    guardian: Guardian
    # Whether a server came with a request whose sender may have nothing started or called on this machine.
    is_strange: Callable[[Config], bool] = lambda config: False
    # The folder of kept logins; empty: servers are called without.
    logins: str = ""


class Notify(Protocol):
    """Tells the user a sentence, and what belongs to it."""

    def __call__(self, text: str, description: str = "") -> Awaitable[None]: ...


class McpCallbacks(NamedTuple):
    """How servers are treated."""

    notice: Notify
    changed: Callable[[], None]
    # Asked before every start, the first and those after a server was lost.
    allow: Callable[[Config], Awaitable[bool]]
    bounds: McpTimeouts
