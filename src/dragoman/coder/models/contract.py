"""The contract of a model: one call, a stream of pieces, and failures with a kind."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol, runtime_checkable

from dragoman.coder.context import Item

FailureKind = Literal["auth", "rate_limit", "network", "server", "garbage"]
FAILURE_KINDS: Final[tuple[FailureKind, ...]] = ("auth", "rate_limit", "network", "server", "garbage")


class ToolSpec(NamedTuple):
    """The description of a tool for the model. `schema` is the JSON Schema of its input."""

    name: str
    description: str
    schema: dict[str, Any]


class ModelRequest(NamedTuple):
    """Everything a model call is given."""

    items: Sequence[Item]
    tools: Sequence[ToolSpec] = ()
    system: str = ""
    # How hard to think, one of the model's `thought_levels`; empty: as it likes.
    thought_level: str = ""
    # `summary`: not a part of the conversation, but its content in short. `search`: a query for the web search of the
    # provider, for models that are `SearchesWeb`; its response has a `SearchReport`.
    purpose: Literal["turn", "summary", "search"] = "turn"


class TextDelta(NamedTuple):
    """A piece of the answer."""

    text: str


class ThoughtDelta(NamedTuple):
    """A piece of a thought."""

    text: str


class ToolCallRequested(NamedTuple):
    """A tool the model wants to use. The id is the provider's; where it has none, the loop gives one."""

    tool: str
    input: dict[str, object]
    id: str = ""


class TokenCounts(NamedTuple):
    """The tokens of one call. `input` counts all of them, also those that the provider's cache has read or written."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


class UsageReported(NamedTuple):
    """Tokens of this model call, and what it cost in dollars where that is known.

    `input` counts all of them, also those that the provider's cache has read or written.
    """

    input: int
    output: int
    cost: float | None = None
    cache_read: int = 0
    cache_write: int = 0


class RawResponse(NamedTuple):
    """The response in the provider's own form, as plain JSON, to be handed back in `ContextAssistantMessage.raw`."""

    raw: object


class SearchSource(NamedTuple):
    """A page that a web search has found."""

    url: str
    title: str = ""


class SearchReport(NamedTuple):
    """What the provider's web search did for one call: how many searches it bills, and the pages it named.

    `failure` is the provider's word for why a search failed; empty: none did.
    """

    searches: int = 0
    sources: tuple[SearchSource, ...] = ()
    failure: str = ""


class ModelFinished(NamedTuple):
    """Why the model stopped, where it is more than being done: an end of a turn. Nothing comes after it."""

    reason: str


Piece = TextDelta | ThoughtDelta | ToolCallRequested | UsageReported | RawResponse | SearchReport | ModelFinished


class ModelFailed(Exception):
    """A model call failed. `kind` decides whether trying again helps; the text is fit for the user."""

    def __init__(self, kind: FailureKind, message: str, retry_seconds: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        # What the other side asked us to wait, if it did.
        self.retry_seconds = retry_seconds


class Model(Protocol):
    """A language model. One object per session: a scripted one remembers where it is."""

    # As the user knows it, and without a path.
    name: str
    # Its context window in tokens; None: unknown.
    window: int | None

    # Content it can see besides text: "image", "audio", "document" (PDF). The rest is given to it as a marker.
    sees: frozenset[str]

    def begin_turn(self) -> None:
        """Begin the turn of a new prompt."""

    def assistant(self, name: str) -> "Model":
        """Return a model for a sub-agent of this name."""

    def retry_seconds(self, attempt: int) -> float:
        """Return the seconds to wait before trying again; `attempt` is 1 before the second try."""

    def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Make one model call and yield its pieces. Closing the generator ends the call.

        It raises `ModelFailed` and no more.
        """


@runtime_checkable
class HasHelperKinds(Protocol):
    """A model whose helpers are of several kinds: `assistant` knows them by these names."""

    helper_kinds: tuple[str, ...]


@runtime_checkable
class HasThoughtLevels(Protocol):
    """A model that can be told how hard to think: one of these levels."""

    thought_levels: tuple[str, ...]


@runtime_checkable
class SearchesWeb(Protocol):
    """A model whose provider searches the web for it. `search_host` is where a query goes; empty: nowhere."""

    search_host: str


@runtime_checkable
class HasPrice(Protocol):
    """A model whose calls may cost money. Of any other the cost is what its calls report."""

    async def find_price(self) -> Literal["known", "free", "unknown"]:
        """Return whether it is known what a call costs; may load what knows. Raises `ModelFailed`."""


@runtime_checkable
class Preparing(Protocol):
    """A model that takes a while to load."""

    async def prepare(self) -> None:
        """Load, off the loop."""


@runtime_checkable
class FindsWindow(Protocol):
    """A model whose window may be known only once something is loaded."""

    async def find_window(self) -> None:
        """Set `window`, if it can be known. Raises `ModelFailed`."""


@runtime_checkable
class Closing(Protocol):
    """A model that holds something: a connection, a process."""

    async def close(self) -> None:
        """Release it."""
