"""The terms on which a session has servers: where they run, who is told what, how long anything may take."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from dragoman import limits
from dragoman.coder.mcp.config import Config
from dragoman.host.guardian import Guardian
from dragoman.vocabulary.services import ElicitationAnswer, Form, Url

if TYPE_CHECKING:
    from dragoman.agent.lent_servers import LentServers

# What a server lists, and says to have changed.
Listed = Literal["tools", "prompts", "resources"]

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
    # How servers are called that the client lends; None: they are not.
    lent: "LentServers | None" = None


class Notify(Protocol):
    """Tells the user a sentence, and what belongs to it."""

    def __call__(self, text: str, description: str = "") -> Awaitable[None]: ...


class ServerEvents(Protocol):
    """What a connection hands to the one that holds it."""

    def on_change(self, what: Listed) -> None:
        """Notice that the server lists something else now."""

    async def ask_user(self, message: str, mode: Form | Url) -> ElicitationAnswer:
        """Ask the user what the server wants to know, and wait for the answer."""

    async def page_done(self, elicitation_id: str) -> None:
        """Notice that what the user did on a page of the server is done."""


class UserQuestions(Protocol):
    """How a server's questions reach the user. `server` is its name, for people."""

    async def ask(self, server: str, message: str, mode: Form | Url) -> ElicitationAnswer:
        """Ask, and wait for the answer; what cannot be asked is declined."""

    async def done(self, elicitation_id: str) -> None:
        """Tell the client that what the user did on a page is done."""


class NoQuestions:
    """Declines every question: there is no user."""

    async def ask(self, server: str, message: str, mode: Form | Url) -> ElicitationAnswer:
        return ElicitationAnswer("decline")

    async def done(self, elicitation_id: str) -> None:
        """Tell no one."""


class McpCallbacks(NamedTuple):
    """How servers are treated."""

    notice: Notify
    changed: Callable[[], None]
    # Asked before every start, the first and those after a server was lost.
    allow: Callable[[Config], Awaitable[bool]]
    bounds: McpTimeouts
    questions: UserQuestions = NoQuestions()
