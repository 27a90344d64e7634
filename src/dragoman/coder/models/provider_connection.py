"""One hosted model, connected: requests out, pieces in. Loaded off the loop, never before the first session.

A wire form translates, an HTTP connection transports, and this joins them for one call at a time. Retries are the
loop's, so none is made here, but for a request that the wire form can do with less. Promise: leaving `respond` early
closes the connection, so the provider stops an answer that is not read; a tool call is yielded only when its arguments
are complete and the answer has ended well; it raises only `ModelFailed`.
"""

import asyncio
import importlib
import logging
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import ModuleType
from typing import Final

import msgspec

from dragoman.background import call_in_background, start_in_background
from dragoman.coder.models.contract import ModelFailed, ModelRequest, Piece
from dragoman.coder.models.endpoints import Endpoint, Family
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.failures import explain_failure
from dragoman.coder.models.loading import loading
from dragoman.coder.models.timeouts import ANSWER_BYTES, ModelTimeouts
from dragoman.coder.models.wires.anthropic_messages import AnthropicWire
from dragoman.coder.models.wires.azure import AzureWire
from dragoman.coder.models.wires.contract import StreamDecoder, WireForm
from dragoman.coder.models.wires.errors import ProviderError
from dragoman.coder.models.wires.gemini import GeminiWire
from dragoman.coder.models.wires.http import ErrorStatus, HttpConnection
from dragoman.coder.models.wires.mistral import MistralWire
from dragoman.coder.models.wires.openai_chat import OpenAIChatWire
from dragoman.coder.models.wires.openai_responses import OpenAIResponsesWire
from dragoman.coder.models.wires.response import estimated_tokens, pieces_at_end
from dragoman.coder.models.wires.wait_hints import wait_from_headers

WIRES: Final[dict[Family, Callable[[Endpoint, ModelFacts], WireForm]]] = {
    "openai": OpenAIResponsesWire,
    "anthropic": AnthropicWire,
    "google": GeminiWire,
    "ollama": OpenAIChatWire,
    "compatible": OpenAIChatWire,
    "mistral": MistralWire,
    "azure": AzureWire,
}
# How long the end of a stream may come after the end of its response, so that the connection can be used again.
_END_SECONDS: Final = 0.05

_PRICES: Final = "dragoman.coder.models.prices"
_PRICES_SECONDS: Final = 0.02

_log = logging.getLogger(__name__)


class ProviderConnection:
    """A model and the connection to it. Made in a thread: a TLS context alone takes 50 ms."""

    def __init__(self, endpoint: Endpoint, known: ModelFacts, timeouts: ModelTimeouts) -> None:
        self._endpoint = endpoint
        self._name = f"{endpoint.provider}/{endpoint.model}"
        self._timeouts = timeouts
        self._wire = WIRES[endpoint.family](endpoint, known)
        self._http = HttpConnection(endpoint.base_url, timeouts, ANSWER_BYTES, endpoint.sent_headers)
        self.window = known.window

    def __repr__(self) -> str:
        return f"<ProviderConnection {self._name}>"

    async def close(self) -> None:
        """Close the connection to the provider."""
        await self._http.close()

    async def respond(self, request: ModelRequest) -> AsyncGenerator[list[Piece], None]:
        """Make one model call and yield its pieces, those that came together in one list.

        Raises `ModelFailed` and nothing else.
        """
        began = time.monotonic()
        outcome = "left before its end"
        try:
            async with aclosing(self._respond(request)) as batches:
                async for batch in batches:
                    yield batch
            outcome = "done"
        except ModelFailed as failure:
            outcome = failure.kind
            raise
        except Exception as error:
            # Not `from error`: what is underneath may hold the request, and the request holds the key.
            explanation = explain_failure(error, self._endpoint)
            outcome = explanation.kind
            raise explanation from None
        finally:
            _log.debug("%s: %s after %.2f s", self._name, outcome, time.monotonic() - began)

    async def _respond(self, request: ModelRequest) -> AsyncGenerator[list[Piece], None]:
        while True:
            try:
                async with aclosing(self._call(request)) as batches:
                    async for batch in batches:
                        yield batch
                return
            except ErrorStatus as answer:
                error = self._error(answer)
                if not self._wire.adapt(error):
                    raise error from None

    async def _call(self, request: ModelRequest) -> AsyncGenerator[list[Piece], None]:
        loop = asyncio.get_running_loop()
        decoder = self._wire.decoder()
        end = loop.time() + self._timeouts.answer
        due = loop.time() + self._timeouts.piece
        # While the provider thinks: importing the price list takes 0.1 s, and the request should not wait for it.
        loop.call_later(_PRICES_SECONDS, _begin_loading_prices)
        async with aclosing(self._http.events(self._wire.encode(request))) as reads:
            while not decoder.is_complete:
                async with asyncio.timeout_at(min(due, end)):
                    events = await anext(reads, None)
                if events is None:
                    break
                pieces, is_alive = _decode(decoder, events)
                if pieces:
                    yield pieces
                if is_alive:
                    due = loop.time() + self._timeouts.piece
            response = decoder.end()
            details = {"service_tier": response.service_tier} if response.service_tier else None
            prices = await load_prices()
            self.window = self.window or prices.window_of(self._endpoint)
            tokens = response.tokens if any(response.tokens) else estimated_tokens(request, response)
            cost = prices.cost_of(self._endpoint, tokens, response.model, details, searches=response.search.searches)
            yield pieces_at_end(response, request, self._endpoint.provider, cost)
            await _drain(reads)

    async def find_window(self) -> int | None:
        """Return the model's window, also by the price list; None: unknown. Waits for that list."""
        self.window = self.window or (await load_prices()).window_of(self._endpoint)
        return self.window

    async def has_price(self) -> bool:
        """Return whether it is known what a call costs. Waits for the price list."""
        known: bool = (await load_prices()).has_price(self._endpoint)
        return known

    def _error(self, answer: ErrorStatus) -> ProviderError:
        try:
            body: object = msgspec.json.decode(answer.body)
        except msgspec.DecodeError:
            body = answer.body.decode(errors="replace")
        error = self._wire.error(answer.status, body)
        error.retry_after = wait_from_headers(answer.headers, time.time())
        return error


async def load_prices() -> ModuleType:
    """Return the module `prices`, imported in a thread at the first call; waits for that."""
    loaded = sys.modules.get(_PRICES)
    if loaded is not None and hasattr(loaded, "cost_of"):
        return loaded
    return await call_in_background(_import_prices)


def _import_prices() -> ModuleType:
    with loading():
        return importlib.import_module(_PRICES)


def _begin_loading_prices() -> None:
    if _PRICES not in sys.modules:
        start_in_background(_import_prices)


def _decode(decoder: StreamDecoder, events: list[bytes]) -> tuple[list[Piece], bool]:
    """Return what the events of one read add, and whether one of them was more than a sign of life."""
    pieces: list[Piece] = []
    is_alive = False
    for event in events:
        deltas = decoder.decode(event)
        if deltas is not None:
            is_alive = True
            pieces += deltas
    return pieces, is_alive


async def _drain(reads: AsyncGenerator[list[bytes], None]) -> None:
    """Read the end of a stream whose response is whole. A server that does not end it loses the connection."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            async for _ in reads:
                pass
    except Exception:
        _log.debug("the end of a stream did not come")
