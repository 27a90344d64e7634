"""One hosted model, connected: requests out, pieces in. Loaded together with the SDKs, never before.

Only the library's direct API is used: it translates, and decides nothing. Retries are the loop's, so the SDKs make
none. Promise: leaving `respond` early closes the connection, so the provider stops an answer that is not read; a tool
call is yielded only when its arguments are complete and the answer has ended well; it raises only `ModelFailed`.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ContentFilterError, ModelRequestRejectedError
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from dragoman.coder.context import ContextAssistantMessage
from dragoman.coder.models.contract import (
    ModelFailed,
    ModelFinished,
    ModelRequest,
    Piece,
    RawResponse,
    TextDelta,
    ThoughtDelta,
    TokenCounts,
    ToolCallRequested,
    ToolSpec,
    UsageReported,
)
from dragoman.coder.models.descriptions import OFF
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.failures import Encoded, ResponseTooLarge, explain_failure
from dragoman.coder.models.prices import cost_of, window_of
from dragoman.coder.models.provider_messages import messages_of, stored_response
from dragoman.coder.models.timeouts import ANSWER_BYTES, ModelTimeouts
from dragoman.host.tls import verify_for

# Some servers of the OpenAI kind want a key and look at none.
_NO_KEY: Final = "none"
_HERE: Final = ("localhost", "127.0.0.1", "::1")
_STOPS: Final = {"length": "max_tokens", "content_filter": "refusal"}


_log = logging.getLogger(__name__)


class ProviderConnection:
    """A model and the connection to it, for one call at a time. Made in a thread: a TLS context alone takes 50 ms."""

    def __init__(self, endpoint: Endpoint, known: ModelFacts, patience: ModelTimeouts) -> None:
        self._endpoint = endpoint
        self._facts = known
        self._timeouts = patience
        # Answers that are not closed yet. Google's SDK leaves them so when it is left.
        self._open: set[_Bounded] = set()
        self._client = _client(endpoint, patience, self._open)
        self._model = _model(endpoint, self._client)
        # OpenAI refuses to tell some accounts what its models think.
        self._summaries = bool(known.thought_levels)
        self.window = known.window or window_of(endpoint)

    def __repr__(self) -> str:
        return f"<ProviderConnection {self._endpoint.provider}/{self._endpoint.model}, {len(self._open)} open answers>"

    async def close(self) -> None:
        """Close the connection to the provider."""
        await self._client.aclose()

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Make one model call and yield its pieces. Raises `ModelFailed` and nothing else."""
        began = time.monotonic()
        name = f"{self._endpoint.provider}/{self._endpoint.model}"
        outcome = "left before its end"
        try:
            async with AsyncExitStack() as stack:
                stream = await self._ask(stack, request)
                _log.debug("%s: first bytes after %.2f s", name, time.monotonic() - began)
                events = aiter(stream)
                end = asyncio.get_running_loop().time() + self._timeouts.answer
                while (event := await self._next(events, end)) is not None:
                    match event:
                        case (
                            PartDeltaEvent(delta=TextPartDelta(content_delta=text))
                            | PartStartEvent(part=TextPart(text))
                        ) if text:
                            yield TextDelta(text)
                        case (
                            PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
                            | PartStartEvent(part=ThinkingPart(text))
                        ) if text:
                            yield ThoughtDelta(text)
                        case _:
                            pass
                answer = stream.get()
            for piece in self._ending(answer, request):
                yield piece
            outcome = "done"
        except ModelFailed as failure:
            outcome = failure.kind
            raise
        except ContentFilterError:
            outcome = "refusal"
            yield ModelFinished("refusal")
        except Exception as error:
            # Not `from error`: the SDKs' exceptions carry the request, and the request carries the key.
            explanation = explain_failure(error, self._endpoint)
            outcome = explanation.kind
            raise explanation from None
        finally:
            _log.debug("%s: %s after %.2f s", name, outcome, time.monotonic() - began)
            for body in tuple(self._open):
                await body.aclose()

    async def _ask(self, stack: AsyncExitStack, request: ModelRequest) -> StreamedResponse:
        """Send the request; comes back with the beginning of the answer."""
        endpoint = self._endpoint
        messages = messages_of(
            request.items, system=request.system, provider=endpoint.provider, images=self._facts.images
        )
        parameters = ModelRequestParameters(function_tools=[_tool(card) for card in request.tools])
        while True:
            settings = self._settings(request.thought_level)
            asked = model_request_stream(
                self._model, messages, model_settings=settings, model_request_parameters=parameters, instrument=False
            )
            try:
                async with asyncio.timeout(self._timeouts.piece):
                    return await stack.enter_async_context(asked)
            except ModelRequestRejectedError as error:
                if not self._summaries or "summar" not in str(error.body).lower():
                    raise
                self._summaries = False

    async def _next(self, events: AsyncIterator[Any], end: float) -> Any:
        """Return what the stream brings next, in its time; None: nothing more."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout_at(min(end, loop.time() + self._timeouts.piece)):
            return await anext(events, None)

    def _ending(self, answer: ModelResponse, request: ModelRequest) -> list[Piece]:
        """Return the pieces that are known only at the end of an answer."""
        provider_name = self._endpoint.provider
        finish = answer.finish_reason
        if answer.state == "interrupted" or not (answer.provider_details or {}).get("finish_reason", finish):
            raise ModelFailed("network", f"{provider_name} broke off in the middle of its answer")
        if finish == "error":
            raise ModelFailed("server", f"{provider_name} failed in the middle of its answer")
        stop = _STOPS.get(finish or "")
        calls = _calls(answer, request, provider_name, cut_off=stop is not None)
        pieces: list[Piece] = []
        usage = answer.usage
        if usage.input_tokens or usage.output_tokens:
            pieces.append(UsageReported(usage.input_tokens, usage.output_tokens, self._cost(answer)))
        pieces += [RawResponse(stored_response(answer, provider_name)), *calls]
        return [*pieces, ModelFinished(stop)] if stop else pieces

    def _cost(self, answer: ModelResponse) -> float | None:
        """Return the cost in dollars; None: unknown."""
        usage = answer.usage
        if usage.cost is not None:  # some providers say it themselves
            return float(usage.cost)
        used = TokenCounts(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
        return cost_of(self._endpoint, used, answer.model_name or "", answer.provider_details)

    def _settings(self, level: str) -> ModelSettings:
        settings: dict[str, Any] = {"max_retries": 0}
        family = self._endpoint.family
        if level in self._facts.thought_levels and family in ("anthropic", "google"):
            settings["thinking"] = False if level == OFF else level
        elif level in self._facts.thought_levels:
            # By its own name: of a model that it does not know the library would not send the level.
            settings["openai_reasoning_effort"] = "none" if level == OFF else level
        if self._facts.max_output is not None:
            settings["max_tokens"] = self._facts.max_output
        if family in ("anthropic", "openai"):
            # The conversation is sent again with every call; from the provider's cache it costs a tenth.
            settings["cache"] = True
        if family == "openai":
            # Conversations are stored in our session log, not at the provider.
            settings["openai_store"] = False
            if self._summaries and level != OFF:
                settings["openai_reasoning_summary"] = "auto"
        if family == "google" and self._facts.thought_levels and not level:
            # With a level the library asks for the thoughts itself.
            settings["google_thinking_config"] = {"include_thoughts": True}
        return cast(ModelSettings, settings)


def _calls(
    answer: ModelResponse, request: ModelRequest, provider_name: str, *, cut_off: bool
) -> list[ToolCallRequested]:
    """Return the calls, each with an id of its own in this session; the answer's parts are given the same ids."""
    used_ids = {call.id for item in request.items if isinstance(item, ContextAssistantMessage) for call in item.calls}
    calls: list[ToolCallRequested] = []
    for part in [part for part in answer.parts if isinstance(part, ToolCallPart)]:
        arguments = _arguments(part.args)
        if arguments is None or not part.tool_name:
            if not cut_off:
                raise ModelFailed("garbage", f"{provider_name} called a tool with arguments that cannot be read")
            answer.parts = [other for other in answer.parts if other is not part]
            continue
        part.tool_call_id = _fresh(part.tool_call_id, used_ids)
        used_ids.add(part.tool_call_id)
        calls.append(ToolCallRequested(part.tool_name, arguments, part.tool_call_id))
    return [] if cut_off else calls


def _arguments(args: object) -> dict[str, object] | None:
    if isinstance(args, str) and args.strip():
        try:
            args = json.loads(args, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None
    elif not args:
        return {}
    return cast(dict[str, object], args) if isinstance(args, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _fresh(call_id: str, used_ids: set[str]) -> str:
    """Some servers number the calls of every answer from 0."""
    number, fresh = 1, call_id
    while fresh in used_ids:
        number += 1
        fresh = f"{call_id}-{number}"
    return fresh


def _tool(card: ToolSpec) -> ToolDefinition:
    return ToolDefinition(name=card.name, description=card.description, parameters_json_schema=card.schema)


# -- the connection --------------------------------------------------------------------------------------------------


def _client(endpoint: Endpoint, patience: ModelTimeouts, opened: "set[_Bounded]") -> httpx2.AsyncClient:
    """Return an HTTP client of ours: those of the SDKs have other timeouts, and follow redirects with the key."""
    phases = {"connect": patience.connect, "read": patience.chunk, "write": patience.chunk, "pool": patience.connect}

    async def be_patient(request: httpx2.Request) -> None:
        request.extensions = {**request.extensions, "timeout": phases}

    async def be_bounded(response: httpx2.Response) -> None:
        # A few compressed bytes can be gigabytes of answer, and our request asked for no compression.
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise Encoded
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, opened)

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(**phases),
        headers={"accept-encoding": "identity"},
        follow_redirects=False,
        verify=verify_for(endpoint.base_url),
        # The owner's proxy leads to the world, not back to this machine.
        trust_env=urlsplit(endpoint.base_url).hostname not in _HERE,
        event_hooks={"request": [be_patient], "response": [be_bounded]},
    )


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


def _model(endpoint: Endpoint, client: httpx2.AsyncClient) -> LibraryModel:
    """Return the library's model for this place. With every setting, so that it reads no environment variable."""
    name, url = endpoint.model, endpoint.base_url
    key = endpoint.key.reveal() if endpoint.key else _NO_KEY
    match endpoint.family:
        case "openai":
            from pydantic_ai.models.openai import OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            return OpenAIResponsesModel(name, provider=OpenAIProvider(base_url=url, api_key=key, http_client=client))
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key=key, http_client=client))
        case "google":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(name, provider=GoogleProvider(base_url=url, api_key=key, http_client=client))
        case "ollama":
            from pydantic_ai.models.ollama import OllamaModel
            from pydantic_ai.providers.ollama import OllamaProvider

            return OllamaModel(
                name, provider=OllamaProvider(base_url=url, api_key=key, http_client=client), profile=_WHOLE
            )
        case "compatible":
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

            provider = OpenAICompatibleProvider(
                name=endpoint.provider, base_url=url, api_key=key, http_client=client, profile=_WHOLE
            )
            return OpenAIChatModel(name, provider=provider)


# A stream that just ends has broken off.
_WHOLE: Final[Any] = {"openai_chat_streaming_requires_finish_reason": True}
