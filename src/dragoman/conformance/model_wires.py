"""The answers of models as four APIs stream them: chat and responses of OpenAI, Anthropic's messages, Gemini."""

import itertools
import json
from collections.abc import Mapping
from typing import Any, Final

# Agents know a message and a call by its id again.
_NUMBERS: Final = itertools.count(1)


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _data(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


class AnswerStream:
    """One answer in one API: `begins`, any number of `says` and `calls`, then `ends`."""

    def begins(self) -> bytes:
        """Return what comes first."""
        return b""

    def says(self, text: str) -> bytes:
        """Return a piece of text."""
        raise NotImplementedError

    def calls(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        """Return a call of a tool."""
        raise NotImplementedError

    def ends(self, reason: str) -> bytes:
        """Return the end; `reason` is `stop`, or `call` where a tool was called."""
        raise NotImplementedError

    def tools_in(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the tools that a request offers: the name of each, and the schema of its arguments."""
        found = []
        for tool in body.get("tools") or []:
            function = tool.get("function", tool)
            found.append((str(function.get("name")), function.get("parameters") or function.get("input_schema") or {}))
        return found


class ChatAnswer(AnswerStream):
    """OpenAI's chat completions."""

    def says(self, text: str) -> bytes:
        return self._choice({"content": text})

    def calls(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{next(_NUMBERS)}", "type": "function", "function": function}
        return self._choice({"tool_calls": [call]})

    def ends(self, reason: str) -> bytes:
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        last = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "model"}
        finished = self._choice({}, "stop" if reason == "stop" else "tool_calls")
        return finished + _data({**last, "choices": [], "usage": usage}) + b"data: [DONE]\n\n"

    def _choice(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "model"}
        return _data({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


class ResponsesAnswer(AnswerStream):
    """OpenAI's responses. Made anew for each answer: it counts its events, and ends with its whole output."""

    def __init__(self) -> None:
        self._count = 0
        self._text = ""
        self._output: list[dict[str, Any]] = []

    def begins(self) -> bytes:
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        return (
            self._next("response.created", response=self._response("in_progress"))
            + self._next("response.output_item.added", output_index=0, item=item)
            + self._next("response.content_part.added", **place, part=part)
        )

    def says(self, text: str) -> bytes:
        self._text += text
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
        return self._next("response.output_text.delta", **place, delta=text)

    def calls(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        call = {"id": "fc_1", "type": "function_call", "call_id": f"call_{next(_NUMBERS)}", "name": tool}
        whole = {**call, "status": "completed", "arguments": json.dumps(arguments)}
        self._output.append(whole)
        started = {**whole, "status": "in_progress", "arguments": ""}
        done = {"item_id": "fc_1", "output_index": 1, "arguments": whole["arguments"]}
        return (
            self._next("response.output_item.added", output_index=1, item=started)
            + self._next("response.function_call_arguments.done", **done)
            + self._next("response.output_item.done", output_index=1, item=whole)
        )

    def ends(self, reason: str) -> bytes:
        text = {"type": "output_text", "text": self._text, "annotations": []}
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
        self._output.insert(0, item)
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        return (
            self._next("response.output_text.done", **place, text=self._text, logprobs=[])
            + self._next("response.output_item.done", output_index=0, item=item)
            + self._next("response.completed", response=self._response("completed"))
        )

    def _next(self, kind: str, **fields: Any) -> bytes:
        self._count += 1
        return _event(kind, sequence_number=self._count, **fields)

    def _response(self, status: str) -> dict[str, Any]:
        fields = {"id": "resp_1", "object": "response", "created_at": 1, "model": "model", "status": status}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10, **details}
        rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}
        return {**fields, "output": list(self._output), **rest}


class MessagesAnswer(AnswerStream):
    """Anthropic's messages. Made anew for each answer: it knows which block is open."""

    def __init__(self) -> None:
        self._blocks = 0

    def begins(self) -> bytes:
        message: dict[str, Any] = {
            "id": f"msg_{next(_NUMBERS)}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-8",
        }
        usage = {"input_tokens": 7, "output_tokens": 1}
        start = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        return _event("message_start", message=start) + self._open({"type": "text", "text": ""})

    def says(self, text: str) -> bytes:
        return _event("content_block_delta", index=self._blocks - 1, delta={"type": "text_delta", "text": text})

    def calls(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        closed = _event("content_block_stop", index=self._blocks - 1)
        opened = self._open({"type": "tool_use", "id": f"toolu_{next(_NUMBERS)}", "name": tool, "input": {}})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        return closed + opened + _event("content_block_delta", index=self._blocks - 1, delta=delta)

    def ends(self, reason: str) -> bytes:
        stop = "end_turn" if reason == "stop" else "tool_use"
        delta = {"stop_reason": stop, "stop_sequence": None}
        ended = _event("message_delta", delta=delta, usage={"output_tokens": 3})
        return _event("content_block_stop", index=self._blocks - 1) + ended + _event("message_stop")

    def _open(self, block: Mapping[str, Any]) -> bytes:
        self._blocks += 1
        return _event("content_block_start", index=self._blocks - 1, content_block=block)


class GeminiAnswer(AnswerStream):
    """Google's streamGenerateContent."""

    def says(self, text: str) -> bytes:
        return self._candidate([{"text": text}])

    def calls(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        return self._candidate([{"functionCall": {"name": tool, "args": dict(arguments)}}])

    def ends(self, reason: str) -> bytes:
        return self._candidate([{"text": ""}], finishReason="STOP")

    def tools_in(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        found: list[tuple[str, Mapping[str, Any]]] = []
        for group in body.get("tools") or []:
            for one in group.get("functionDeclarations") or []:
                schema = one.get("parametersJsonSchema") or one.get("parameters") or {}
                found.append((str(one.get("name")), schema))
        return found

    def _candidate(self, parts: list[dict[str, Any]], **fields: str) -> bytes:
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, **fields}
        counts = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
        usage = {"usageMetadata": counts, "modelVersion": "gemini-2.5-flash", "responseId": "1"}
        return _data({"candidates": [candidate], **usage})


# Which API a path is of.
WIRES: Final[Mapping[str, type[AnswerStream]]] = {
    "/chat/completions": ChatAnswer,
    "/responses": ResponsesAnswer,
    "/messages": MessagesAnswer,
    ":streamGenerateContent": GeminiAnswer,
}
