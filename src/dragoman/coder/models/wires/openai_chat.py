"""Chat Completions of OpenAI, as Ollama and most other servers of models speak it.

Servers differ in what they leave out and what they repeat, so every field is optional here, and a stream is complete
when a reason for its end has come, with or without `[DONE]`.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from dragoman.coder.models.contract import ModelRequest, TextDelta, ThoughtDelta, TokenCounts
from dragoman.coder.models.descriptions import OFF
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.wires.contract import Delta, FullResponse, HttpRequest, StopReason, bearer
from dragoman.coder.models.wires.conversation import Media, ModelTurn, ToolOutput, UserTurn, UserWords, turns_of
from dragoman.coder.models.wires.errors import BrokenOff, ProviderError, openai_error
from dragoman.coder.models.wires.json_text import decode_json
from dragoman.coder.models.wires.stored import StoredCall, StoredPart, StoredText, StoredThought
from dragoman.coder.models.wires.token_counts import count_of, usage_of

_PATH: Final = "/chat/completions"
_DONE: Final = b"[DONE]"
# Where servers put thoughts. A thought goes back in the field it came in.
_THOUGHT_FIELDS: Final = ("reasoning", "reasoning_content")
# The mark of a thought that came in blocks of the content.
THOUGHT_BLOCKS: Final = "content"
# What a model writes around its thoughts where the server leaves them in the text; a token of its own each.
_THINK, _END_THINK = "<think>", "</think>"
_STOPS: Final[dict[str, StopReason]] = {"length": "max_tokens", "content_filter": "refusal", "error": "error"}


# What a server is named in its refusal for, and what is done without it from then on.
_USAGE_OPTION: Final = "stream_options"
_MAX_TOKENS, _MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
# At OpenRouter a level is a field of an object.
_REASONING_OBJECT: Final = frozenset({"openrouter"})


class OpenAIChatWire:
    """Chat Completions, for one model at one address. Those that differ from it override what does."""

    path = _PATH
    # Whether the usage has to be asked for; and what bounds an answer.
    asks_for_usage = True
    bound = _MAX_TOKENS

    def __init__(self, endpoint: Endpoint, known: ModelFacts) -> None:
        self._endpoint = endpoint
        self._known = known
        self._headers = bearer(endpoint)

    def encode(self, request: ModelRequest) -> HttpRequest:
        """Return the request as it is posted."""
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": self._messages(request),
            "stream": True,
        }
        if self.asks_for_usage:
            body[_USAGE_OPTION] = {"include_usage": True}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in request.tools
            ]
            body["tool_choice"] = "auto"
        if request.thought_level in self._known.thought_levels:
            effort = "none" if request.thought_level == OFF else request.thought_level
            is_object = self._endpoint.provider in _REASONING_OBJECT
            body |= {"reasoning": {"effort": effort}} if is_object else {"reasoning_effort": effort}
        if self._known.max_output is not None:
            body[self.bound] = self._known.max_output
        return HttpRequest(self.path, self._headers, msgspec.json.encode(body))

    def decoder(self) -> "_ChatDecoder":
        """Return a decoder for one response."""
        return _ChatDecoder()

    def error(self, status: int, body: object) -> ProviderError:
        """Return what an HTTP status with this body stands for."""
        return openai_error(status, body)

    def adapt(self, error: ProviderError) -> bool:
        """Do without the option for the usage, or name the bound of an answer in the other way, if that was refused."""
        if error.status not in (400, 422):
            return False
        words = repr(error.body)
        if self.asks_for_usage and _USAGE_OPTION in words:
            self.asks_for_usage = False
            return True
        if self.bound == _MAX_TOKENS and _MAX_COMPLETION_TOKENS in words:
            self.bound = _MAX_COMPLETION_TOKENS
            return True
        return False

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        if request.system:
            messages.append({"role": "system", "content": request.system})
        for turn in turns_of(request.items, provider=self._endpoint.provider, known=self._known):
            match turn:
                case UserTurn():
                    messages += asked_messages(turn.parts)
                case ModelTurn():
                    messages.append(self._answered(turn.parts))
        return messages

    def _answered(self, parts: Sequence[StoredPart]) -> dict[str, Any]:
        """Return a turn of the model's side as a message."""
        return answered_message(parts)


# -- messages --------------------------------------------------------------------------------------------------------


def asked_messages(parts: Sequence[UserWords | ToolOutput]) -> list[dict[str, Any]]:
    """Return the messages of a turn: results first, then the media among them, which only a user may send."""
    outputs = [part for part in parts if isinstance(part, ToolOutput)]
    messages: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": output.call_id, "content": output.marked_text} for output in outputs
    ]
    media: list[str | Media] = []
    for output in outputs:
        if output.media:
            media += [f"What {output.tool} (call {output.call_id}) returned:", *output.media]
    if media:
        messages.append({"role": "user", "content": [_block(block) for block in media]})
    for part in parts:
        if isinstance(part, UserWords):
            only = part.blocks[0] if len(part.blocks) == 1 else None
            content = only if isinstance(only, str) else [_block(block) for block in part.blocks]
            messages.append({"role": "user", "content": content})
    return messages


def _block(block: str | Media) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if block.is_document:
        return {"type": "file", "file": {"filename": block.name, "file_data": block.url}}
    return {"type": "image_url", "image_url": {"url": block.url}}


def answered_message(parts: Sequence[StoredPart]) -> dict[str, Any]:
    """Return a turn of the model's side: thoughts in the field that they came in, its words, its calls."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: list[dict[str, Any]] = []
    texts: list[str] = []
    for part in parts:
        match part:
            case StoredThought(id=field) if field in _THOUGHT_FIELDS:
                message[field] = message.get(field, "") + part.content
            case StoredThought():
                pass  # the tags that a model wrote around it are for us, and no server reads them again
            case StoredText():
                texts.append(part.content)
            case StoredCall():
                function = {"name": part.tool_name, "arguments": part.arguments_text()}
                calls.append({"id": part.tool_call_id, "type": "function", "function": function})
    if texts:
        message["content"] = "\n\n".join(texts)
    if calls:
        message["tool_calls"] = calls
    return message


# -- events ----------------------------------------------------------------------------------------------------------


class _Function(msgspec.Struct):
    name: str | None = None
    # An object at some servers.
    arguments: str | dict[str, Any] | None = None


class _CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _TextBlock(msgspec.Struct):
    text: str = ""
    # A thought, in blocks of its own, at Mistral.
    thinking: "list[_TextBlock] | str | None" = None

    @property
    def thought(self) -> str:
        inner = self.thinking
        return inner if isinstance(inner, str) else "".join(block.text for block in inner or ())


class _ChatDelta(msgspec.Struct):
    # A list of blocks at some servers.
    content: str | list[_TextBlock] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _ChatDelta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: Any = None


class _ChatUsage(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    model: str | None = None
    service_tier: str | None = None
    error: Any = None


_chunks: Final = msgspec.json.Decoder(_Chunk)


class _OpenCall:
    """A call whose arguments are still coming."""

    def __init__(self, index: int | None, call_id: str) -> None:
        self.index = index
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []
        self.object: dict[str, Any] | None = None

    def add(self, function: _Function) -> None:
        self.name = self.name or function.name or ""
        if isinstance(function.arguments, str):
            self.arguments.append(function.arguments)
        elif function.arguments:
            self.object = function.arguments

    def stored(self) -> StoredCall:
        args = "".join(self.arguments) if self.object is None else self.object
        return StoredCall(tool_name=self.name, args=args, tool_call_id=self.id)


class _ChatDecoder:
    """Reads the chunks of one completion."""

    def __init__(self) -> None:
        self.is_complete = False
        self._text: list[str] = []
        self._thought: list[str] = []
        self._thought_field: str | None = None
        # Whether the text is a thought, since the model has opened a tag and not closed it.
        self._is_in_tag = False
        self._calls: list[_OpenCall] = []
        self._finish = ""
        self._is_refused = False
        self._tokens = TokenCounts(0, 0)
        self._model = self._tier = ""

    def decode(self, data: bytes) -> list[Delta] | None:
        """Return what a chunk adds. Raises `ProviderError` for one that holds an error."""
        if data == _DONE:
            self.is_complete = True
            return []
        chunk = decode_json(_chunks, data)
        if chunk.error:
            raise openai_error(0, chunk.error, in_stream=True)
        if (usage := usage_of(chunk.usage, _ChatUsage)) is not None:
            self._count(usage)
        self._model = chunk.model or self._model
        self._tier = chunk.service_tier or self._tier
        if not chunk.choices:
            return []
        choice = chunk.choices[0]
        self._finish = choice.finish_reason or self._finish
        return [] if choice.delta is None else self._add(choice.delta)

    def end(self) -> FullResponse:
        """Return the response; a stream without a reason for its end has broken off."""
        if not self._finish and not self._is_refused:
            raise BrokenOff
        thought, text = "".join(self._thought), "".join(self._text)
        parts: list[StoredPart] = [StoredThought(content=thought, id=self._thought_field)] if thought else []
        parts += [StoredText(content=text)] if text else []
        parts += [call.stored() for call in self._calls]
        stop = "refusal" if self._is_refused else _STOPS.get(self._finish, "")
        return FullResponse(parts, stop, self._tokens, self._model, self._tier)

    def _add(self, delta: _ChatDelta) -> list[Delta]:
        deltas: list[Delta] = []
        thought, field = delta.reasoning or delta.reasoning_content, "reasoning_content"
        if delta.reasoning:
            field = "reasoning"
        text = delta.content
        if isinstance(text, list):
            thought, field = (thought, field) if thought else ("".join(block.thought for block in text), THOUGHT_BLOCKS)
            text = "".join(block.text for block in text)
        if thought:
            self._thought_field = field
            self._thought.append(thought)
            deltas.append(ThoughtDelta(thought))
        if text:
            deltas += self._add_text(text)
        if delta.refusal:
            self._is_refused = True
        for call in delta.tool_calls or ():
            self._add_call(call)
        return deltas

    def _add_text(self, text: str) -> list[Delta]:
        """Add a text, or a thought that the model has written between tags at the beginning of its answer."""
        if self._is_in_tag:
            if text == _END_THINK:
                self._is_in_tag = False
                return []
            self._thought.append(text)
            return [ThoughtDelta(text)]
        if text == _THINK and not "".join(self._text).strip():
            self._is_in_tag = True
            return []
        self._text.append(text)
        return [TextDelta(text)]

    def _add_call(self, delta: _CallDelta) -> None:
        """Add to the call of this index. Some servers send all calls with one index, and some send none."""
        call = next((call for call in reversed(self._calls) if call.index == delta.index), None)
        if call is None or call.object is not None or (call.id and delta.id and delta.id != call.id):
            call = _OpenCall(delta.index, delta.id or "")
            self._calls.append(call)
        call.id = call.id or delta.id or ""
        if delta.function is not None:
            call.add(delta.function)

    def _count(self, usage: _ChatUsage) -> None:
        details = usage_of(usage.prompt_tokens_details, _PromptDetails)
        cached = count_of(details.cached_tokens if details else None)
        self._tokens = TokenCounts(count_of(usage.prompt_tokens), count_of(usage.completion_tokens), cached)
