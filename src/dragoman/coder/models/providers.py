"""A hosted model behind our own `Model`. Cheap to make: what connects is loaded with the first call, off the loop.

One object per session. Between calls it keeps its connection for a while, then hangs up by itself.
"""

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Final, Literal, Protocol

from dragoman.background import call_in_background
from dragoman.coder.models.contract import ModelFailed, ModelRequest, Piece
from dragoman.coder.models.descriptions import NOTHING, ModelDescription
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.facts import ModelFacts, model_facts
from dragoman.coder.models.known_providers import KNOWN_PROVIDERS, LIBRARY_EXTRAS, Family
from dragoman.coder.models.loading import loading
from dragoman.coder.models.request_failures import NEVER
from dragoman.coder.models.timeouts import ModelTimeouts
from dragoman.errors import how_to_install

# Before the first retry; then twice as long each time.
_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 30.0
INSTALL: Final = f"Hosted models need more packages: {how_to_install('models')}"


# What each of the families that a library speaks needs beside the others.
_LIBRARIES: Final[Mapping[Family, tuple[str, ...]]] = {
    "bedrock": ("pydantic_ai", "boto3"),
    "vertex": ("pydantic_ai", "google", "google.auth", "google.genai"),
}


def how_to_have(family: Family) -> str:
    """Return what to install for models of this family, in a sentence; empty: it is there. Loads nothing of it."""
    if not _are_installed("httpx2", "genai_prices"):
        return INSTALL
    if _are_installed(*_LIBRARIES.get(family, ())):
        return ""
    extra = LIBRARY_EXTRAS[family]
    return f"Models of {KNOWN_PROVIDERS[family].title} need more packages: {how_to_install(extra)}"


def _are_installed(*names: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in names)


class ModelConnection(Protocol):
    """A connection to one model, for one call at a time."""

    # The model's context window in tokens; None: unknown.
    window: int | None

    def respond(self, request: ModelRequest) -> AsyncGenerator[list[Piece], None]:
        """Make one model call and yield its pieces, those that came together in one list; raise `ModelFailed` alone."""

    async def find_window(self) -> int | None:
        """Return the window, which may need a package to be loaded; None: unknown."""

    async def has_price(self) -> bool:
        """Return whether it is known what a call costs; may load the price list."""

    async def close(self) -> None:
        """Close the connection."""


# Called in a thread. Where libraries are missing it raises `ImportError`.
Connect = Callable[[Endpoint, ModelFacts, ModelTimeouts], ModelConnection]


class ProviderModel:
    """A model of a provider: by a wire form of ours, or by a library where the family is one of `LIBRARY_EXTRAS`."""

    def __init__(
        self,
        endpoint: Endpoint,
        patience: ModelTimeouts | None = None,
        listed: ModelDescription = NOTHING,
        connect: Connect | None = None,
    ) -> None:
        """`listed` is what the provider's list says of the model; `connect` reaches it in another way."""
        known = model_facts(endpoint, listed)
        self.name = f"{endpoint.provider}/{endpoint.model}"
        self.window = known.window
        self.thought_levels = known.thought_levels
        seen = (("image", known.images), ("document", known.documents))
        self.sees = frozenset(kind for kind, is_seen in seen if is_seen)
        by_library = endpoint.family in LIBRARY_EXTRAS
        # Another connection knows nothing of searches.
        self.search_host = endpoint.host if known.web_search and connect is None and not by_library else ""
        self._facts = known
        self._endpoint = endpoint
        self._timeouts = patience or ModelTimeouts()
        self._connect = connect or (_connect_by_library if by_library else _connect)
        # Connections without a call in progress.
        self._idle: list[ModelConnection] = []
        self._hanging_up: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    def begin_turn(self) -> None:
        """Do nothing: the conversation comes with every call."""

    def assistant(self, name: str) -> "ProviderModel":
        """Return this model itself: it keeps no conversation, and every call has a connection of its own."""
        return self

    def retry_seconds(self, attempt: int) -> float:
        """Longer each time."""
        return min(_RETRY_SECONDS * 2.0 ** (attempt - 1), _LONGEST_RETRY_SECONDS)

    async def prepare(self) -> None:
        """Load what connects now, so that the first prompt need not wait for it (about 0.1 s of work in a thread)."""
        self._rest(await self._line())

    async def find_window(self) -> None:
        """Find out the model's window where nothing but the price list knows it. Waits until that is loaded."""
        line = await self._line()
        try:
            self.window = await line.find_window()
        finally:
            self._rest(line)

    async def find_price(self) -> Literal["known", "free", "unknown"]:
        """Return whether it is known what a call costs. An Ollama on this machine costs nothing."""
        if self._endpoint.description.prices is not None:
            return "known"
        if self._endpoint.family == "ollama":
            return "free" if self._endpoint.is_here else "unknown"
        line = await self._line()
        try:
            return "known" if await line.has_price() else "unknown"
        finally:
            self._rest(line)

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Make one model call and yield its pieces."""
        line = await self._line()
        try:
            async with aclosing(line.respond(request)) as batches:
                async for batch in batches:
                    for piece in batch:
                        yield piece
        finally:
            self._rest(line)

    async def close(self) -> None:
        """Close the idle connections. Calls in progress go on; the next call connects again."""
        if self._hanging_up is not None:
            self._hanging_up.cancel()
            self._hanging_up = None
        while self._idle:
            await self._idle.pop().close()

    async def _line(self) -> ModelConnection:
        """Return a line for one call."""
        if self._idle:
            return self._idle.pop()
        try:
            line = await call_in_background(self._connect, self._endpoint, self._facts, self._timeouts)
        except ImportError:
            raise ModelFailed("server", INSTALL, NEVER) from None
        self.window = line.window
        return line

    def _rest(self, line: ModelConnection) -> None:
        self.window = line.window
        self._idle.append(line)
        if self._hanging_up is not None:
            self._hanging_up.cancel()
        self._hanging_up = asyncio.get_running_loop().call_later(self._timeouts.idle, self._hang_up)

    def _hang_up(self) -> None:
        self._hanging_up = None
        self._closing = asyncio.create_task(self.close())


def _connect(endpoint: Endpoint, known: ModelFacts, timeouts: ModelTimeouts) -> ModelConnection:
    with loading():
        from dragoman.coder.models.provider_connection import ProviderConnection
    return ProviderConnection(endpoint, known, timeouts)


def _connect_by_library(endpoint: Endpoint, known: ModelFacts, timeouts: ModelTimeouts) -> ModelConnection:
    with loading():
        from dragoman.coder.models.library_models import connect_by_library
    return connect_by_library(endpoint, known, timeouts)
