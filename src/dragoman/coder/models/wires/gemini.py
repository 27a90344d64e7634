"""`streamGenerateContent` of Gemini.

A stream has no last event: it is complete when a candidate has told a reason for its end and the stream has ended.
Thoughts are summaries; what carries them on are signatures at texts and calls, which go back where they stood.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from dragoman.coder.models.contract import (
    ModelRequest,
    SearchReport,
    SearchSource,
    TextDelta,
    ThoughtDelta,
    TokenCounts,
)
from dragoman.coder.models.descriptions import OFF
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.wires.contract import SEARCH_TOKENS, Delta, FullResponse, HttpRequest, StopReason
from dragoman.coder.models.wires.conversation import Media, ModelTurn, ToolOutput, UserTurn, UserWords, turns_of
from dragoman.coder.models.wires.errors import BrokenOff, ProviderError, google_error
from dragoman.coder.models.wires.json_text import decode_json
from dragoman.coder.models.wires.stored import StoredCall, StoredPart, StoredText, StoredThought
from dragoman.coder.models.wires.token_counts import count_of, usage_of

_SIGNATURE: Final = "thought_signature"
# Stands for the signature of a call that Gemini has not made: "skip_thought_signature_validator" in base64.
_NO_SIGNATURE: Final = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

# -- what models accept, by their names ------------------------------------------------------------------------------

_DOES_NOT_THINK: Final = re.compile(r".*(gemma|gemini-1|gemini-2\.[0-4]|gemini-pro$|gemini-2\.5-flash-image)")
_WITH_BUDGET: Final = re.compile(r".*gemini-2\.5")
_BUDGETS: Final = {OFF: 0, "minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 24_576}

# Before Gemini 3 a request that searches is billed once, and since then each of its searches.
_BILLS_REQUESTS: Final = re.compile(r".*gemini-2")

# Levels that it does not know, as the nearest that it does.
_LEVELS: Final = {"xhigh": "HIGH", "max": "HIGH"}

_STOPS: Final[dict[str, StopReason]] = {
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"), "refusal"),
    **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"), "refusal"),
    **dict.fromkeys(("LANGUAGE", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "NO_IMAGE"), "error"),
}


class GeminiWire:
    """`streamGenerateContent`, for one model at one address."""

    def __init__(self, endpoint: Endpoint, known: ModelFacts) -> None:
        self._endpoint = endpoint
        self._known = known
        self._thinks = _DOES_NOT_THINK.match(endpoint.model) is None
        self._headers = {"x-goog-api-key": endpoint.key.reveal()} if endpoint.key else {}
        self._path = f"/v1/models/{endpoint.model.removeprefix('models/')}:streamGenerateContent?alt=sse"

    def encode(self, request: ModelRequest) -> HttpRequest:
        """Return the request as it is posted."""
        generation: dict[str, Any] = {"responseModalities": ["TEXT"]}
        if self._known.max_output is not None:
            generation["maxOutputTokens"] = self._known.max_output
        thinking = self._thinking(request.thought_level)
        if thinking:
            generation["thinkingConfig"] = thinking
        body: dict[str, Any] = {"contents": self._contents(request), "generationConfig": generation}
        if request.system:
            body["systemInstruction"] = {"role": "user", "parts": [{"text": request.system}]}
        if request.tools:
            functions = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
                for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": functions}]
            # Arguments then keep to their schema; models that do not think do not know this mode.
            mode = "VALIDATED" if self._thinks else "AUTO"
            body["toolConfig"] = {"functionCallingConfig": {"mode": mode}}
        if request.purpose == "search":
            body["tools"] = [{"googleSearch": {}}]
            generation["maxOutputTokens"] = min(self._known.max_output or SEARCH_TOKENS, SEARCH_TOKENS)
        return HttpRequest(self._path, self._headers, msgspec.json.encode(body))

    def decoder(self) -> "_ContentDecoder":
        """Return a decoder for one response."""
        return _ContentDecoder(bills_requests=_BILLS_REQUESTS.match(self._endpoint.model) is not None)

    def error(self, status: int, body: object) -> ProviderError:
        """Return what an HTTP status with this body stands for."""
        return google_error(status, body)

    def adapt(self, error: ProviderError) -> bool:
        """Return False: nothing is sent that Gemini could do without."""
        return False

    def _thinking(self, level: str) -> dict[str, Any]:
        levels = self._known.thought_levels
        if not levels or (level and level not in levels):
            return {}
        if level == OFF:
            return {"thinkingBudget": 0}
        if not level:
            return {"includeThoughts": True}
        if _WITH_BUDGET.match(self._endpoint.model):
            return {"includeThoughts": True, "thinkingBudget": _BUDGETS.get(level, _BUDGETS["high"])}
        return {"includeThoughts": True, "thinkingLevel": _LEVELS.get(level, level.upper())}

    def _contents(self, request: ModelRequest) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = []
        for turn in turns_of(request.items, provider=self._endpoint.provider, known=self._known):
            match turn:
                case UserTurn():
                    contents += [{"role": "user", "parts": parts} for parts in _asked(turn.parts) if parts]
                case ModelTurn():
                    contents.append({"role": "model", "parts": _answered(turn.parts)})
        return contents


# -- contents --------------------------------------------------------------------------------------------------------


def _asked(parts: Sequence[UserWords | ToolOutput]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the results of a turn, and what stands behind them: the media among them, and the user's words."""
    results: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, UserWords):
            continue
        response = {"error" if part.failed else "return_value": part.text}
        results.append({"functionResponse": {"id": part.call_id, "name": part.tool, "response": response}})
        if part.media:
            words.append({"text": f"What {part.tool} (call {part.call_id}) returned:"})
            words += map(_part, part.media)
    for part in parts:
        if isinstance(part, UserWords):
            words += [_part(block) for block in part.blocks]
    return results, words


def _part(block: str | Media) -> dict[str, Any]:
    if isinstance(block, str):
        return {"text": block}
    return {"inlineData": {"mimeType": block.media_type, "data": block.data}}


def _answered(stored: Sequence[StoredPart]) -> list[dict[str, Any]]:
    """Return the parts of a response. Gemini wants a signature at the first call of each, and at no other."""
    parts: list[dict[str, Any]] = []
    is_first_call = True
    for one in stored:
        part: dict[str, Any]
        signature = one.detail(_SIGNATURE)
        match one:
            case StoredThought():
                part = {"text": one.content, "thought": True}
            case StoredText():
                part = {"text": one.content}
            case StoredCall():
                call = {"id": one.tool_call_id, "name": one.tool_name, "args": one.arguments() or {}}
                part = {"functionCall": call}
                signature = signature or (_NO_SIGNATURE if is_first_call else "")
                is_first_call = False
        parts.append(part | {"thoughtSignature": signature} if signature else part)
    return parts


# -- events ----------------------------------------------------------------------------------------------------------


class _FunctionCall(msgspec.Struct):
    name: str = ""
    id: str | None = None
    args: dict[str, Any] | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Page(msgspec.Struct):
    uri: str | None = None
    title: str | None = None


class _GroundingChunk(msgspec.Struct):
    web: _Page | None = None


class _Grounding(msgspec.Struct, rename="camel"):
    web_search_queries: list[str] | None = None
    grounding_chunks: list[_GroundingChunk] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    grounding_metadata: _Grounding | None = None


class _PromptFeedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _UsageMetadata(msgspec.Struct, rename="camel"):
    prompt_token_count: Any = None
    candidates_token_count: Any = None
    thoughts_token_count: Any = None
    cached_content_token_count: Any = None
    tool_use_prompt_token_count: Any = None


class _GeminiChunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: Any = None
    prompt_feedback: _PromptFeedback | None = None
    model_version: str | None = None
    error: Any = None


_chunks: Final = msgspec.json.Decoder(_GeminiChunk)


class _ContentDecoder:
    """Reads the chunks of one response."""

    def __init__(self, *, bills_requests: bool) -> None:
        self._bills_requests = bills_requests
        self._queries: list[str] = []
        self._pages: list[SearchSource] = []
        # Never: what follows the last chunk is the end of the stream.
        self.is_complete = False
        self._parts: list[StoredPart] = []
        self._finish = ""
        self._tokens = TokenCounts(0, 0)
        self._model = ""

    def decode(self, data: bytes) -> list[Delta] | None:
        """Return what a chunk adds. Raises `ProviderError` for one that holds an error."""
        chunk = decode_json(_chunks, data)
        if chunk.error:
            raise google_error(0, {"error": chunk.error}, in_stream=True)
        self._model = chunk.model_version or self._model
        if (usage := usage_of(chunk.usage_metadata, _UsageMetadata)) is not None:
            self._count(usage)
        if not chunk.candidates:
            if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
                self._finish = "SAFETY"
            return []
        candidate = chunk.candidates[0]
        self._finish = candidate.finish_reason or self._finish
        if candidate.grounding_metadata is not None:
            self._ground(candidate.grounding_metadata)
        parts = (candidate.content.parts if candidate.content else None) or ()
        return [delta for part in parts for delta in self._add(part)]

    def end(self) -> FullResponse:
        """Return the response; a stream without a reason for its end has broken off."""
        if not self._finish:
            raise BrokenOff
        count = min(len(self._queries), 1) if self._bills_requests else len(self._queries)
        search = SearchReport(count, tuple(dict.fromkeys(self._pages)))
        return FullResponse(self._parts, _STOPS.get(self._finish, ""), self._tokens, self._model, search=search)

    def _ground(self, grounding: _Grounding) -> None:
        """Keep what was searched and found. A later chunk has everything again, or what came since."""
        self._queries += [one for one in grounding.web_search_queries or () if one not in self._queries]
        pages = [chunk.web for chunk in grounding.grounding_chunks or () if chunk.web is not None]
        self._pages += [SearchSource(page.uri, page.title or "") for page in pages if page.uri]

    def _add(self, part: _Part) -> list[Delta]:
        details = {_SIGNATURE: part.thought_signature} if part.thought_signature else None
        if part.function_call is not None:
            call = part.function_call
            self._parts.append(
                StoredCall(
                    tool_name=call.name, args=call.args or {}, tool_call_id=call.id or "", provider_details=details
                )
            )
        elif part.text is not None and (part.text or details):
            self._add_text(part.text, details, is_thought=bool(part.thought))
            if part.text:
                return [ThoughtDelta(part.text) if part.thought else TextDelta(part.text)]
        return []

    def _add_text(self, text: str, details: dict[str, Any] | None, *, is_thought: bool) -> None:
        """Add to the text or thought that is being written; one with a signature is written no further."""
        kind = StoredThought if is_thought else StoredText
        last = self._parts[-1] if self._parts else None
        if isinstance(last, kind) and not last.provider_details:
            last.content += text
            last.provider_details = details
        else:
            self._parts.append(kind(content=text, provider_details=details))

    def _count(self, usage: _UsageMetadata) -> None:
        given = count_of(usage.prompt_token_count) + count_of(usage.tool_use_prompt_token_count)
        made = count_of(usage.candidates_token_count) + count_of(usage.thoughts_token_count)
        self._tokens = TokenCounts(given, made, count_of(usage.cached_content_token_count))
