"""A hosted model that no wire form of ours speaks to, through pydantic-ai. Loaded together with it, never before.

Only the library's direct API is used: it translates, and decides nothing. Retries are the loop's, so the SDKs make
none. It keeps the promises of `ProviderConnection`, at more than a second of imports and ten times its work for a word.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any, cast

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ContentFilterError
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from dragoman.coder.models.contract import (
    ModelFailed,
    ModelFinished,
    ModelRequest,
    Piece,
    TextDelta,
    ThoughtDelta,
    TokenCounts,
)
from dragoman.coder.models.descriptions import OFF
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.failures import explain_failure
from dragoman.coder.models.library_failures import explicable
from dragoman.coder.models.library_messages import full_response, messages_of
from dragoman.coder.models.prices import cost_of, has_price, window_of
from dragoman.coder.models.timeouts import ANSWER_BYTES, ModelTimeouts
from dragoman.coder.models.wires.errors import Encoded, ResponseTooLarge
from dragoman.coder.models.wires.http import new_client
from dragoman.coder.models.wires.response import estimated_tokens, pieces_at_end

# Makes the library's model for a place, with an HTTP client of ours.
MakeLibraryModel = Callable[[Endpoint, httpx2.AsyncClient], LibraryModel]

_log = logging.getLogger(__name__)


class LibraryConnection:
    """A model of the library and the connection to it, for one call at a time. Made in a thread."""

    def __init__(
        self,
        endpoint: Endpoint,
        known: ModelFacts,
        timeouts: ModelTimeouts,
        make_model: MakeLibraryModel,
        *,
        tells_retries: bool = True,
    ) -> None:
        """`tells_retries`: whether the library is asked with each request to try once."""
        self._tells_retries = tells_retries
        self._endpoint = endpoint
        self._facts = known
        self._timeouts = timeouts
        # Answers that are not closed yet. Some SDKs leave them so when they are left.
        self._open: set[_Bounded] = set()
        self._client = _client(endpoint, timeouts, self._open)
        self._model = make_model(endpoint, self._client)
        self.window = known.window or self._model.context_window or window_of(endpoint)

    def __repr__(self) -> str:
        return f"<LibraryConnection {self._endpoint.provider}/{self._endpoint.model}, {len(self._open)} open answers>"

    async def find_window(self) -> int | None:
        """Return the model's window, which was found out when the library was loaded; None: unknown."""
        return self.window

    async def has_price(self) -> bool:
        """Return whether it is known what a call costs."""
        return has_price(self._endpoint)

    async def close(self) -> None:
        """Close the connection to the provider."""
        await self._client.aclose()

    async def respond(self, request: ModelRequest) -> AsyncGenerator[list[Piece], None]:
        """Make one model call and yield its pieces. Raises `ModelFailed` and nothing else."""
        began = time.monotonic()
        try:
            async with AsyncExitStack() as stack:
                stream = await self._ask(stack, request)
                events = aiter(stream)
                end = asyncio.get_running_loop().time() + self._timeouts.answer
                while (event := await self._next(events, end)) is not None:
                    piece = _piece(event)
                    if piece is not None:
                        yield [piece]
                answer = stream.get()
            response = full_response(answer)
            tokens = response.tokens if any(response.tokens) else estimated_tokens(request, response)
            yield pieces_at_end(response, request, self._endpoint.provider, self._cost(answer, tokens))
        except ModelFailed:
            raise
        except ContentFilterError:
            yield [ModelFinished("refusal")]
        except Exception as error:
            # Not `from error`: the SDKs' exceptions carry the request, and the request carries the key.
            raise explain_failure(explicable(error), self._endpoint) from None
        finally:
            _log.debug("%s/%s: %.2f s", self._endpoint.provider, self._endpoint.model, time.monotonic() - began)
            for body in tuple(self._open):
                await body.aclose()

    async def _ask(self, stack: AsyncExitStack, request: ModelRequest) -> StreamedResponse:
        """Send the request; comes back with the beginning of the answer."""
        endpoint = self._endpoint
        asked = model_request_stream(
            self._model,
            messages_of(request.items, system=request.system, provider=endpoint.provider, known=self._facts),
            model_settings=self._settings(request.thought_level),
            model_request_parameters=ModelRequestParameters(
                function_tools=[
                    ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema)
                    for tool in request.tools
                ]
            ),
            instrument=False,
        )
        async with asyncio.timeout(self._timeouts.piece):
            return await stack.enter_async_context(asked)

    async def _next(self, events: AsyncIterator[Any], end: float) -> Any:
        """Return what the stream brings next, in its time; None: nothing more."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout_at(min(end, loop.time() + self._timeouts.piece)):
            return await anext(events, None)

    def _cost(self, answer: ModelResponse, tokens: TokenCounts) -> float | None:
        """Return the cost in dollars; None: unknown."""
        if answer.usage.cost is not None:  # some providers say it themselves
            return float(answer.usage.cost)
        return cost_of(self._endpoint, tokens, answer.model_name or "", answer.provider_details)

    def _settings(self, level: str) -> ModelSettings:
        settings: dict[str, Any] = {"max_retries": 0} if self._tells_retries else {}
        if level in self._facts.thought_levels:
            settings["thinking"] = False if level == OFF else level
        if self._facts.max_output is not None:
            settings["max_tokens"] = self._facts.max_output
        return cast(ModelSettings, settings)


def _piece(event: object) -> Piece | None:
    match event:
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) | PartStartEvent(part=TextPart(text)) if text:
            return TextDelta(text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)) | PartStartEvent(part=ThinkingPart(text)) if (
            text
        ):
            return ThoughtDelta(text)
        case _:
            return None


def _client(endpoint: Endpoint, timeouts: ModelTimeouts, opened: "set[_Bounded]") -> httpx2.AsyncClient:
    """Return an HTTP client of ours: those of the SDKs have other timeouts, and follow redirects with the key."""
    client = new_client(endpoint.base_url, timeouts)
    phases = client.timeout.as_dict()

    async def be_patient(request: httpx2.Request) -> None:
        request.extensions = {**request.extensions, "timeout": phases}

    async def be_bounded(response: httpx2.Response) -> None:
        # A few compressed bytes can be gigabytes of answer, and our request asked for no compression.
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise Encoded
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, opened)

    client.event_hooks = {"request": [be_patient], "response": [be_bounded]}
    return client


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with a failure where it is too long. The SDKs would buffer a line without an end."""

    def __init__(self, stream: httpx2.AsyncByteStream, opened: "set[_Bounded]") -> None:
        self._stream = stream
        self._opened = opened
        opened.add(self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for data in self._stream:
            size += len(data)
            if size > ANSWER_BYTES:
                raise ResponseTooLarge
            yield data

    async def aclose(self) -> None:
        self._opened.discard(self)
        await self._stream.aclose()
