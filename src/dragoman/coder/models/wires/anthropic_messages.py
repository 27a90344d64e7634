"""Messages of Anthropic.

Thinking is asked for in one of two ways: models since Claude 4.6 think as much as they find right within an effort,
older ones within a budget of tokens. Thoughts come back signed, or redacted, and are sent again as they came. The
newest models bind a thought to the conversation before it; where that has changed (a summary, another set of tools) the
API refuses the request, and is then asked to leave such thoughts out.
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
from dragoman.coder.models.wires.contract import (
    SEARCH_TOKENS,
    SEARCHES,
    Delta,
    FullResponse,
    HttpRequest,
    StopReason,
    bearer,
)
from dragoman.coder.models.wires.conversation import Media, ModelTurn, ToolOutput, UserTurn, UserWords, turns_of
from dragoman.coder.models.wires.errors import BrokenOff, ProviderError, anthropic_error, error_fields
from dragoman.coder.models.wires.json_text import decode_json
from dragoman.coder.models.wires.stored import StoredCall, StoredPart, StoredText, StoredThought
from dragoman.coder.models.wires.token_counts import count_of, usage_of

_PATH: Final = "/v1/messages"
_VERSION: Final = "2026-10-21"
# The conversation is sent again with every call; what the cache holds costs a tenth. One mark stands behind the tools,
# one behind the instructions, and one, which the API moves by itself, behind the last message.
_CACHED: Final = {"type": "ephemeral", "ttl": "5m"}
# By this a thought that was redacted is known again in a log.
_REDACTED: Final = "redacted_thinking"
_BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
_BOUND_WORDS: Final = "bound to a different conversation"
_SEARCH: Final = {"type": "web_search_20250305", "name": "web_search", "max_uses": SEARCHES}

# -- what models accept, by their names; a name that no line fits is taken for an older model ------------------------

_ADAPTIVE: Final = re.compile(r"claude-(fable-5|mythos-(5|preview)|sonnet-(4-6|5)|opus-(4-[6-8]|5)|haiku-5-5)")
_WITH_EFFORT: Final = re.compile(rf"{_ADAPTIVE.pattern}|claude-opus-4-5")
_ALWAYS_THINKS: Final = re.compile(r"claude-(fable-5|mythos-(5|preview)|opus-5-5)")
_THINKS_UNASKED: Final = re.compile(rf"{_ALWAYS_THINKS.pattern}|claude-(opus-5|sonnet-5|haiku-5-5)")
# It refuses to be told "disabled", and writes between tool calls without thinking first.
_THINKS_BETWEEN_TOOLS: Final = re.compile(r"claude-sonnet-5-5")
# The API's own least is also the least that we ask for.
_SMALLEST_BUDGET: Final = 1_024
_BUDGETS: Final = {"minimal": _SMALLEST_BUDGET, "low": 2_048, "medium": 10_000, "high": 16_384}
_LARGEST_BUDGET: Final = 32_768
# Levels that the API names otherwise.
_EFFORTS: Final = {"minimal": "low"}

# The longest answers that are asked for. The API wants a number, and older models refuse one that does not fit into
# their window beside the conversation.
_ANSWER_TOKENS: Final = (
    (_ADAPTIVE, 128_000),
    (re.compile(r"claude-(haiku|opus|sonnet)-4-5"), 64_000),
    (re.compile(r"claude-(3|4-|(opus|sonnet)-4($|-[012]|@))"), 4_096),
    (re.compile(r""), 16_384),
)
# What is left for the words beside a budget for thoughts.
_WORD_TOKENS: Final = 4_096

_STOPS: Final[dict[str, StopReason]] = {
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}


class AnthropicWire:
    """Messages, for one model at one address."""

    def __init__(self, endpoint: Endpoint, known: ModelFacts) -> None:
        self._endpoint = endpoint
        self._known = known
        self._drops_bound_thoughts = False

    def encode(self, request: ModelRequest) -> HttpRequest:
        """Return the request as it is posted."""
        model = self._endpoint.model
        most = self._known.max_output or next(tokens for names, tokens in _ANSWER_TOKENS if names.match(model))
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": most,
            "stream": True,
            "cache_control": _CACHED,
            "messages": self._messages(request),
        }
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in request.tools
            ]
            body["tools"][-1]["cache_control"] = _CACHED
            body["tool_choice"] = {"type": "auto"}
        if request.purpose == "search":
            body |= {"tools": [_SEARCH], "max_tokens": min(most, SEARCH_TOKENS)}
        if request.thought_level in self._known.thought_levels:
            _think(body, request.thought_level, is_bound=self._known.max_output is not None)
        headers = bearer(self._endpoint) | {"anthropic-version": _VERSION}
        if self._drops_bound_thoughts:
            body["thinking"] = body.get("thinking", {"type": "adaptive"}) | {
                "block_binding": {"prefix_mismatch_behavior": "drop_block"}
            }
            headers["anthropic-beta"] = _BINDING_BETA
        return HttpRequest(_PATH, headers, msgspec.json.encode(body))

    def decoder(self) -> "_MessageDecoder":
        """Return a decoder for one response."""
        return _MessageDecoder()

    def error(self, status: int, body: object) -> ProviderError:
        """Return what an HTTP status with this body stands for."""
        return anthropic_error(status, body)

    def adapt(self, error: ProviderError) -> bool:
        """Have thoughts left out whose conversation has changed, if that was the reason; once."""
        words = str(error_fields(error.body).get("message", ""))
        if error.status != 400 or _BOUND_WORDS not in words or self._drops_bound_thoughts:
            return False
        self._drops_bound_thoughts = True
        return True

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        turns = turns_of(request.items, provider=self._endpoint.provider, known=self._known)
        messages: list[dict[str, Any]] = []
        for turn in turns:
            match turn:
                case UserTurn():
                    messages.append({"role": "user", "content": _asked(turn.parts)})
                case ModelTurn():
                    messages.append({"role": "assistant", "content": _answered(turn.parts)})
        return messages


def _think(body: dict[str, Any], level: str, *, is_bound: bool) -> None:
    """Put the level into a request. `is_bound`: the user has said how long an answer may be, thoughts included."""
    model = body["model"]
    if level == OFF:
        if _THINKS_UNASKED.match(model) and not _ALWAYS_THINKS.match(model):
            is_between = _THINKS_BETWEEN_TOOLS.match(model) is not None
            body["thinking"] = {"type": "between_tools" if is_between else "disabled"}
        return
    if _WITH_EFFORT.match(model):
        body["output_config"] = {"effort": _EFFORTS.get(level, level)}
    if _ADAPTIVE.match(model):
        body["thinking"] = {"type": "adaptive"}
        return
    budget = _BUDGETS.get(level, _LARGEST_BUDGET)
    if is_bound:
        budget = max(_SMALLEST_BUDGET, min(budget, body["max_tokens"] // 2))
    else:
        body["max_tokens"] = max(body["max_tokens"], budget + _WORD_TOKENS)
    body["thinking"] = {"type": "enabled", "budget_tokens": budget}


# -- messages --------------------------------------------------------------------------------------------------------


def _asked(parts: Sequence[UserWords | ToolOutput]) -> list[dict[str, Any]]:
    """Return the blocks of a turn; results have to stand before everything else."""
    blocks: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": part.call_id,
            "content": [_block(block) for block in part.blocks],
            "is_error": part.failed,
        }
        for part in parts
        if isinstance(part, ToolOutput)
    ]
    for part in parts:
        if isinstance(part, UserWords):
            blocks += [_block(block) for block in part.blocks]
    return blocks


def _block(block: str | Media) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if block.is_document:
        source = {"type": "base64", "media_type": block.media_type, "data": block.data}
        return {"type": "document", "source": source, "title": block.name}
    return {"type": "image", "source": {"type": "base64", "media_type": block.media_type, "data": block.data}}


def _answered(parts: Sequence[StoredPart]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case StoredThought(id=id, signature=str(seal)) if id == _REDACTED:
                blocks.append({"type": "redacted_thinking", "data": seal})
            case StoredThought(signature=str(seal)):
                blocks.append({"type": "thinking", "thinking": part.content, "signature": seal})
            case StoredThought():
                pass  # an unsigned thought is refused
            case StoredText():
                blocks.append({"type": "text", "text": part.content})
            case StoredCall():
                use = {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name}
                blocks.append({**use, "input": part.arguments() or {}})
    return blocks


# -- events ----------------------------------------------------------------------------------------------------------


class _ServerToolUse(msgspec.Struct):
    web_search_requests: Any = None


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    server_tool_use: Any = None


class _Message(msgspec.Struct):
    model: str | None = None
    usage: Any = None


class _Block(msgspec.Struct):
    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: dict[str, Any] | None = None
    # Of a search: its results, or an error.
    content: Any = None


class _Citation(msgspec.Struct):
    url: str | None = None
    title: str | None = None


class _BlockDelta(msgspec.Struct):
    """A delta of a block, or of the message: then it has a reason for its end."""

    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None
    citation: _Citation | None = None


class _Event(msgspec.Struct):
    """Any event. Those of a kind that is not known have a field of these or none."""

    type: str
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _BlockDelta | None = None
    usage: Any = None
    error: Any = None


_events: Final = msgspec.json.Decoder(_Event)


class _OpenBlock:
    """A block that is still coming."""

    def __init__(self, start: _Block) -> None:
        self.start = start
        self.signature = start.signature
        self.written: list[str] = [start.thinking if start.type == "thinking" else start.text]

    def stored(self) -> StoredPart | None:
        written = "".join(self.written)
        match self.start.type:
            case "text" if written:
                return StoredText(content=written)
            case "thinking":
                return StoredThought(content=written, signature=self.signature or None)
            case "redacted_thinking":
                return StoredThought(id=_REDACTED, content="", signature=self.start.data)
            case "tool_use":
                args = written or self.start.input
                return StoredCall(tool_name=self.start.name, args=args, tool_call_id=self.start.id)
            case _:
                return None


class _MessageDecoder:
    """Reads the events of one message."""

    def __init__(self) -> None:
        self.is_complete = False
        self._blocks: dict[int, _OpenBlock] = {}
        self._stop = ""
        self._model = ""
        self._used = _Usage()
        self._cited: list[SearchSource] = []
        self._found: list[SearchSource] = []
        self._search_failure = ""

    def decode(self, data: bytes) -> list[Delta] | None:
        """Return what an event adds. Raises `ProviderError` for one that tells of an error."""
        event = decode_json(_events, data)
        match event.type:
            case "content_block_delta":
                return self._add(event)
            case "content_block_start" if event.content_block is not None:
                block = self._blocks[event.index] = _OpenBlock(event.content_block)
                if block.start.type == "web_search_tool_result":
                    self._add_search(block.start.content)
                return _shown(block.start.type, "".join(block.written))
            case "message_start" if event.message is not None:
                self._model = event.message.model or ""
                self._count(event.message.usage)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None:
                    self._stop = event.delta.stop_reason or self._stop
            case "message_stop":
                self.is_complete = True
            case "error":
                raise anthropic_error(0, {"error": event.error}, in_stream=True)
            case "ping":
                return None
            case _:
                pass
        return []

    def end(self) -> FullResponse:
        """Return the response; a message without a reason for its end has broken off."""
        if not self._stop:
            raise BrokenOff
        used = self._used
        read, written = count_of(used.cache_read_input_tokens), count_of(used.cache_creation_input_tokens)
        # Anthropic counts beside each other what others count together.
        tokens = TokenCounts(count_of(used.input_tokens) + read + written, count_of(used.output_tokens), read, written)
        parts = [part for _, block in sorted(self._blocks.items()) if (part := block.stored()) is not None]
        return FullResponse(parts, _STOPS.get(self._stop, ""), tokens, self._model, search=self._search())

    def _add(self, event: _Event) -> list[Delta]:
        block, delta = self._blocks.get(event.index), event.delta
        if block is None or delta is None:
            return []
        if delta.citation is not None and delta.citation.url:
            self._cited.append(SearchSource(delta.citation.url, delta.citation.title or ""))
        if delta.signature is not None:
            block.signature += delta.signature
        written = delta.text or delta.thinking or delta.partial_json or ""
        block.written.append(written)
        return _shown(block.start.type, written)

    def _add_search(self, content: object) -> None:
        """Keep what a search has found, or the code of its error."""
        if isinstance(content, dict):
            self._search_failure = str(content.get("error_code") or "unknown")
        for result in content if isinstance(content, list) else ():
            if isinstance(result, dict) and isinstance(result.get("url"), str):
                self._found.append(SearchSource(result["url"], str(result.get("title") or "")))

    def _search(self) -> SearchReport:
        """Return the pages that the answer cites, or else all that were found."""
        used = usage_of(self._used.server_tool_use, _ServerToolUse)
        sources = tuple(dict.fromkeys(self._cited or self._found))
        return SearchReport(count_of(used.web_search_requests if used else None), sources, self._search_failure)

    def _count(self, reported: object) -> None:
        """Take the counts of an event: a later one replaces what it names, and only that."""
        if (usage := usage_of(reported, _Usage)) is not None:
            changed = {name: count for name, count in msgspec.structs.asdict(usage).items() if count is not None}
            self._used = msgspec.structs.replace(self._used, **changed)


def _shown(kind: str, written: str) -> list[Delta]:
    if not written:
        return []
    return [TextDelta(written)] if kind == "text" else [ThoughtDelta(written)] if kind == "thinking" else []
