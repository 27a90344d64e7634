"""The Responses API of OpenAI.

Nothing is stored there: conversations are in our own log, so thoughts come sealed (`reasoning.encrypted_content`) and
go back with the items that they were thought for, under the ids that they came with. Some accounts may not see
summaries of thoughts; they are asked for until that is refused.
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
from dragoman.coder.models.wires.errors import BrokenOff, ProviderError, openai_error
from dragoman.coder.models.wires.json_text import decode_json
from dragoman.coder.models.wires.stored import StoredCall, StoredPart, StoredText, StoredThought
from dragoman.coder.models.wires.token_counts import count_of, usage_of

_PATH: Final = "/responses"
_SEALED: Final = "reasoning.encrypted_content"
_SOURCES: Final = "web_search_call.action.sources"
_PHASE: Final = "phase"
_RAW: Final = "raw_content"

# -- what models accept, by their names ------------------------------------------------------------------------------

_REASONS: Final = re.compile(r"o\d|gpt-5(?!-chat)|gpt-[6-9]")
# Thoughts of earlier turns are kept in view.
_KEEPS_THOUGHTS: Final = re.compile(r"gpt-5\.[4-9]|gpt-[6-9]")
# Messages are marked as comments on the way or as the answer.
_HAS_PHASES: Final = re.compile(rf"gpt-5\.3-codex|{_KEEPS_THOUGHTS.pattern}")
# The cache holds up to a mark that is set behind the instructions, and to one that the API sets behind the last item.
_HAS_CACHE_MARKS: Final = re.compile(r"gpt-5\.[6-9]|gpt-[6-9]")
_CACHE_OPTIONS: Final = {"mode": "implicit", "ttl": "30m"}

_STOPS: Final[dict[str, StopReason]] = {
    "max_output_tokens": "max_tokens",
    "content_filter": "refusal",
    "cancelled": "error",
    "failed": "error",
}


class OpenAIResponsesWire:
    """Responses, for one model at one address."""

    def __init__(self, endpoint: Endpoint, known: ModelFacts) -> None:
        self._endpoint = endpoint
        self._known = known
        self._reasons = _REASONS.match(endpoint.model) is not None
        self._has_summaries = bool(known.thought_levels)
        self._headers = bearer(endpoint)

    def encode(self, request: ModelRequest) -> HttpRequest:
        """Return the request as it is posted."""
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "input": self._input(request),
            "stream": True,
            "store": False,
        }
        if request.system:
            self._instruct(body, request.system)
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    # Otherwise the API makes every optional argument a required one.
                    "strict": False,
                }
                for tool in request.tools
            ]
            body["tool_choice"] = "auto"
        if self._reasons:
            body["include"] = [_SEALED]
        if self._known.max_output is not None:
            body["max_output_tokens"] = self._known.max_output
        reasoning = self._reasoning(request.thought_level)
        if reasoning:
            body["reasoning"] = reasoning
        if request.purpose == "search":
            body |= {"tools": [{"type": "web_search"}], "max_tool_calls": SEARCHES}
            body["include"] = [*body.get("include", ()), _SOURCES]
            body["max_output_tokens"] = min(self._known.max_output or SEARCH_TOKENS, SEARCH_TOKENS)
        return HttpRequest(_PATH, self._headers, msgspec.json.encode(body))

    def decoder(self) -> "_ResponseDecoder":
        """Return a decoder for one response."""
        return _ResponseDecoder()

    def error(self, status: int, body: object) -> ProviderError:
        """Return what an HTTP status with this body stands for."""
        return openai_error(status, body)

    def adapt(self, error: ProviderError) -> bool:
        """Ask for summaries no more, if these were refused; once."""
        if error.category != "rejected" or not self._has_summaries or "summar" not in str(error.body).lower():
            return False
        self._has_summaries = False
        return True

    def _instruct(self, body: dict[str, Any], system: str) -> None:
        """Put the instructions into a request: as a message where it is to be marked for the cache."""
        if not _HAS_CACHE_MARKS.match(self._endpoint.model):
            body["instructions"] = system
            return
        marked = {"type": "input_text", "text": system, "prompt_cache_breakpoint": {"mode": "explicit"}}
        body["input"] = [{"role": "system", "content": [marked]}, *body["input"]]
        body["prompt_cache_options"] = _CACHE_OPTIONS

    def _reasoning(self, level: str) -> dict[str, Any]:
        reasoning: dict[str, Any] = {}
        if level in self._known.thought_levels:
            reasoning["effort"] = "none" if level == OFF else level
        if self._reasons and _KEEPS_THOUGHTS.match(self._endpoint.model):
            reasoning["context"] = "all_turns"
        if self._has_summaries and level != OFF:
            reasoning["summary"] = "auto"
        return reasoning

    def _input(self, request: ModelRequest) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        turns = turns_of(request.items, provider=self._endpoint.provider, known=self._known, one_thought=True)
        for turn in turns:
            match turn:
                case UserTurn():
                    items += [_asked(part) for part in turn.parts]
                case ModelTurn():
                    items += self._answered(turn.parts)
        return items

    def _answered(self, parts: Sequence[StoredPart]) -> list[dict[str, Any]]:
        """Return the items of a response. A model that does not reason knows no thoughts, and no ids beside them."""
        items: list[dict[str, Any]] = []
        for part in parts:
            item = self._item(part)
            if item is None:
                continue
            before = items[-1] if items else {}
            if before.get("type") == item.get("type") and before.get("id") and before["id"] == item.get("id"):
                # One item that came in parts: several summaries of a thought, or several texts of a message.
                for field in ("summary", "content"):
                    if isinstance(item.get(field), list):
                        before[field] = [*before.get(field, []), *item[field]]
                before["encrypted_content"] = before.get("encrypted_content") or item.get("encrypted_content")
                if before["encrypted_content"] is None:
                    del before["encrypted_content"]
                continue
            items.append(item)
        # A thought that came without its seal is not known there any more.
        return [item for item in items if item.get("type") != "reasoning" or item.get("encrypted_content")]

    def _item(self, part: StoredPart) -> dict[str, Any] | None:
        match part:
            case StoredThought(id=str(item_id)) if self._reasons:
                return _thought(part, item_id)
            case StoredThought():
                return None
            case StoredText(id=str(item_id)) if self._reasons:
                content = [{"type": "output_text", "text": part.content, "annotations": []}]
                message = {"type": "message", "role": "assistant", "id": item_id, "status": "completed"}
                return self._with_phase(message | {"content": content}, part)
            case StoredText():
                return self._with_phase({"role": "assistant", "content": part.content}, part)
            case StoredCall():
                called = {"type": "function_call", "call_id": part.tool_call_id, "name": part.tool_name}
                called["arguments"] = part.arguments_text()
                return called | {"id": part.id} if part.id and self._reasons else called

    def _with_phase(self, message: dict[str, Any], part: StoredText) -> dict[str, Any]:
        phase = part.detail(_PHASE)
        return message | {"phase": phase} if phase and _HAS_PHASES.match(self._endpoint.model) else message


# -- items -----------------------------------------------------------------------------------------------------------


def _asked(part: UserWords | ToolOutput) -> dict[str, Any]:
    if isinstance(part, ToolOutput):
        output: object = part.marked_text
        if part.media:
            output = [{"type": "input_text", "text": part.marked_text}, *map(_block, part.media)]
        return {"type": "function_call_output", "call_id": part.call_id, "output": output}
    only = part.blocks[0] if len(part.blocks) == 1 else None
    return {"role": "user", "content": only if isinstance(only, str) else [_block(block) for block in part.blocks]}


def _block(block: str | Media) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "input_text", "text": block}
    if block.is_document:
        return {"type": "input_file", "filename": block.name, "file_data": block.url}
    return {"type": "input_image", "image_url": block.url, "detail": "auto"}


def _thought(part: StoredThought, item_id: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": part.content}] if part.content else []
    item: dict[str, Any] = {"type": "reasoning", "id": item_id, "summary": summary}
    if part.signature:
        item["encrypted_content"] = part.signature
    raw = (part.provider_details or {}).get(_RAW)
    if isinstance(raw, list):
        item["content"] = [{"type": "reasoning_text", "text": text} for text in raw]
    return item


# -- events ----------------------------------------------------------------------------------------------------------


class _Source(msgspec.Struct):
    """A citation in a text, or a page that a search has looked at."""

    url: str | None = None
    title: str | None = None


class _SearchAction(msgspec.Struct):
    type: str = ""
    sources: list[_Source] | None = None


class _TextPart(msgspec.Struct):
    type: str = ""
    text: str = ""
    annotations: list[_Source] | None = None


class _OutputItem(msgspec.Struct):
    type: str
    id: str | None = None
    call_id: str = ""
    name: str = ""
    arguments: str | None = None
    content: list[_TextPart] | None = None
    summary: list[_TextPart] | None = None
    encrypted_content: str | None = None
    phase: str | None = None
    status: str | None = None
    action: _SearchAction | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: Any = None


class _ResponseUsage(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    input_tokens_details: Any = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _ResponseError(msgspec.Struct):
    code: str | None = None
    message: str | None = None


class _Response(msgspec.Struct):
    status: str | None = None
    model: str | None = None
    service_tier: str | None = None
    usage: Any = None
    incomplete_details: _Incomplete | None = None
    error: _ResponseError | None = None


class _Kind(msgspec.Struct):
    type: str


class _DeltaEvent(msgspec.Struct):
    delta: str | None = None
    item_id: str = ""
    output_index: int = 0
    summary_index: int = 0


class _ItemEvent(msgspec.Struct):
    item: _OutputItem
    output_index: int = 0


class _StatusEvent(msgspec.Struct):
    response: _Response


class _ErrorEvent(msgspec.Struct):
    code: str | None = None
    message: str | None = None
    error: _ResponseError | None = None


_kinds: Final = msgspec.json.Decoder(_Kind)
_deltas: Final = msgspec.json.Decoder(_DeltaEvent)
_items: Final = msgspec.json.Decoder(_ItemEvent)
_statuses: Final = msgspec.json.Decoder(_StatusEvent)
_errors: Final = msgspec.json.Decoder(_ErrorEvent)


class _ResponseDecoder:
    """Reads the events of one response. What an item is, its last event says; deltas are what is shown of it."""

    def __init__(self) -> None:
        self.is_complete = False
        # By the place of its item: what was shown of a text, or has come of a call's arguments.
        self._written: dict[int, list[str]] = {}
        self._open: dict[int, _OutputItem] = {}
        self._parts: list[StoredPart] = []
        self._is_refused = False
        self._last: _Response | None = None
        self._searches: list[_OutputItem] = []
        self._cited: list[_Source] = []

    def decode(self, data: bytes) -> list[Delta] | None:
        """Return what an event adds. Raises `ProviderError` for one that tells of an error."""
        match decode_json(_kinds, data).type:
            case "response.output_text.delta":
                return self._show(decode_json(_deltas, data))
            case "response.function_call_arguments.delta":
                self._write(decode_json(_deltas, data))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                text = decode_json(_deltas, data).delta
                return [ThoughtDelta(text)] if text else []
            case "response.reasoning_summary_part.added":
                # Summaries are paragraphs.
                return [ThoughtDelta("\n\n")] if decode_json(_deltas, data).summary_index else []
            case "response.output_item.added":
                event = decode_json(_items, data)
                self._open[event.output_index] = event.item
            case "response.output_item.done":
                return self._finish(decode_json(_items, data))
            case "response.refusal.delta" | "response.refusal.done":
                self._is_refused = True
            case "response.completed" | "response.incomplete":
                self._last = decode_json(_statuses, data).response
                self.is_complete = True
            case "response.failed":
                self._fail(decode_json(_statuses, data).response)
            case "error":
                event_error = decode_json(_errors, data)
                raise _in_stream(event_error.error or _ResponseError(event_error.code, event_error.message))
            case "keepalive":
                return None
            case _:
                pass
        return []

    def end(self) -> FullResponse:
        """Return the response; a stream without the event of its end has broken off."""
        last = self._last
        if last is None:
            raise BrokenOff
        # An item that was cut off may have no last event.
        for place, item in sorted(self._open.items()):
            self._keep(item, "".join(self._written.get(place, ())))
        reason = (last.incomplete_details.reason if last.incomplete_details else None) or last.status or ""
        stop = "refusal" if self._is_refused else _STOPS.get(reason, "")
        tokens, search = _tokens(last.usage), self._search()
        return FullResponse(self._parts, stop, tokens, last.model or "", last.service_tier or "", search)

    def _show(self, event: _DeltaEvent) -> list[Delta]:
        self._write(event)
        return [TextDelta(event.delta)] if event.delta else []

    def _write(self, event: _DeltaEvent) -> None:
        if event.delta:
            self._written.setdefault(event.output_index, []).append(event.delta)

    def _finish(self, event: _ItemEvent) -> list[Delta]:
        """Keep a whole item. Some servers send an item without deltas; its text is shown now."""
        item = event.item
        self._open.pop(event.output_index, None)
        written = "".join(self._written.pop(event.output_index, ()))
        if item.type == "message" and not written:
            written = "".join(part.text for part in item.content or () if part.type == "output_text")
            self._keep(item, written)
            return [TextDelta(written)] if written else []
        self._keep(item, written)
        return []

    def _keep(self, item: _OutputItem, written: str) -> None:
        match item.type:
            case "message":
                texts = [part.text for part in item.content or () if part.type == "output_text"] or [written]
                details = {_PHASE: item.phase} if item.phase else None
                self._parts += [StoredText(id=item.id, content=text, provider_details=details) for text in texts]
                self._cited += [one for part in item.content or () for one in part.annotations or ()]
            case "web_search_call":
                self._searches.append(item)
            case "reasoning":
                self._keep_thought(item)
            case "function_call":
                args = item.arguments or written
                self._parts.append(StoredCall(id=item.id, tool_name=item.name, args=args, tool_call_id=item.call_id))
            case _:
                pass

    def _keep_thought(self, item: _OutputItem) -> None:
        """Keep a thought as a part for each of its summaries; the first has the seal."""
        summaries = [part.text for part in item.summary or ()] or [""]
        raw = [part.text for part in item.content or ()]
        for number, summary in enumerate(summaries):
            is_first = number == 0
            self._parts.append(
                StoredThought(
                    id=item.id,
                    content=summary,
                    signature=item.encrypted_content if is_first else None,
                    provider_details={_RAW: raw} if raw and is_first else None,
                )
            )

    def _search(self) -> SearchReport:
        """Return the pages that the answer cites, or else all that were looked at. Opening a page is no search."""
        searches = [item for item in self._searches if item.action is None or item.action.type in ("", "search")]
        looked_at = [one for item in searches if item.action for one in item.action.sources or ()]
        sources = dict.fromkeys(SearchSource(one.url, one.title or "") for one in self._cited or looked_at if one.url)
        has_failed = bool(searches) and all(item.status == "failed" for item in searches)
        return SearchReport(len(searches), tuple(sources), "failed" if has_failed else "")

    def _fail(self, response: _Response) -> None:
        if response.error is not None:
            raise _in_stream(response.error)
        self._last = msgspec.structs.replace(response, status="failed")
        self.is_complete = True


def _in_stream(error: _ResponseError) -> ProviderError:
    fields = {"code": error.code, "message": error.message}
    message = ": ".join(text for text in (error.code, error.message) if text)
    return openai_error(0, fields, in_stream=True, message=message)


def _tokens(reported: object) -> TokenCounts:
    usage = usage_of(reported, _ResponseUsage)
    if usage is None:
        return TokenCounts(0, 0)
    details = usage_of(usage.input_tokens_details, _InputDetails)
    cached = count_of(details.cached_tokens if details else None)
    return TokenCounts(count_of(usage.input_tokens), count_of(usage.output_tokens), cached)
