"""A model server for benches: just enough of four APIs, on loopback. The user's last words say what it answers."""

import http.server
import json
import re
import socketserver
import threading
import time
from typing import Any, Final

DELTAS: Final = 1_000
WORDS: Final = "the quick "
CALLS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "read": ("read_file", {"path": "pyproject.toml"}),
    "run": ("bash", {"command": "true"}),
}


class ModelServer(socketserver.ThreadingTCPServer):
    """`arrived`: when the last request was there; `wrote`: its first delta; `called`: the last tool call."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.arrived = self.wrote = self.called = 0.0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """An agent that is killed leaves in the middle of an answer."""

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a delta would wait for the client's acknowledgement of the head
    server: ModelServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.arrived = time.perf_counter()
        wanted = _wanted(json.loads(body))
        wire = next(wire for path, wire in _WIRES.items() if path in self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        time.sleep(0.02)  # the head is there before the first word, as with every provider
        self._chunk(wire.begins())
        if wanted in CALLS:
            tool, arguments = CALLS[wanted]
            self.server.called = time.perf_counter()
            self._chunk(wire.calls(tool, arguments) + wire.ends("call"))
        elif wanted == "many":
            self._chunk(b"".join(wire.says(WORDS) for _ in range(DELTAS)) + wire.ends("stop"))
        else:
            self.server.wrote = time.perf_counter()
            self._chunk(wire.says(WORDS))
            time.sleep(0.05)
            self._chunk(wire.ends("stop"))
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self) -> None:
        """Know no list of models."""
        self.send_error(404)

    def _chunk(self, events: bytes) -> None:
        if events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(events), events))
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def _wanted(body: dict[str, Any]) -> str:
    """The user's last word, or nothing where a tool's result is the last."""
    turns = body.get("messages") or body.get("input") or body.get("contents") or []
    last = json.dumps(turns[-1])
    if re.search(r'"tool"|tool_result|function_call_output|functionResponse', last):
        return ""
    return next((word for word in (*CALLS, "many") if f'"{word}"' in last), "hi")


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _data(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


class _Wire:
    """The events of one API."""

    def begins(self) -> bytes:
        return b""

    def says(self, text: str) -> bytes:
        raise NotImplementedError

    def calls(self, tool: str, arguments: dict[str, str]) -> bytes:
        raise NotImplementedError

    def ends(self, reason: str) -> bytes:
        raise NotImplementedError


class _Chat(_Wire):
    def says(self, text: str) -> bytes:
        return self._choice({"content": text})

    def calls(self, tool: str, arguments: dict[str, str]) -> bytes:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        return self._choice({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})

    def ends(self, reason: str) -> bytes:
        return self._choice({}, "stop" if reason == "stop" else "tool_calls") + b"data: [DONE]\n\n"

    def _choice(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "model"}
        return _data({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


class _Responses(_Wire):
    def begins(self) -> bytes:
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        created = _event("response.created", sequence_number=0, response=self._response("in_progress"))
        return created + _event("response.output_item.added", sequence_number=1, output_index=0, item=item)

    def says(self, text: str) -> bytes:
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
        return _event("response.output_text.delta", sequence_number=2, **place, delta=text)

    def calls(self, tool: str, arguments: dict[str, str]) -> bytes:
        item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": tool, "status": "completed"}
        added = _event("response.output_item.added", sequence_number=2, output_index=1, item=item | {"arguments": ""})
        whole = item | {"arguments": json.dumps(arguments)}
        return added + _event("response.output_item.done", sequence_number=3, output_index=1, item=whole)

    def ends(self, reason: str) -> bytes:
        return _event("response.completed", sequence_number=9, response=self._response("completed"))

    def _response(self, status: str) -> dict[str, Any]:
        fields = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "status": status}
        return fields | {"output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": None}


class _Messages(_Wire):
    def begins(self) -> bytes:
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-8", "content": []}
        usage = {"input_tokens": 1, "output_tokens": 1}
        started = _event("message_start", message=message | {"stop_reason": None, "usage": usage})
        return started + _event("content_block_start", index=0, content_block={"type": "text", "text": ""})

    def says(self, text: str) -> bytes:
        return _event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def calls(self, tool: str, arguments: dict[str, str]) -> bytes:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        started = _event("content_block_start", index=1, content_block=block)
        return started + _event("content_block_delta", index=1, delta=delta) + _event("content_block_stop", index=1)

    def ends(self, reason: str) -> bytes:
        stop = "end_turn" if reason == "stop" else "tool_use"
        ended = _event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 1})
        return _event("content_block_stop", index=0) + ended + _event("message_stop")


class _Gemini(_Wire):
    def says(self, text: str) -> bytes:
        return self._candidate([{"text": text}])

    def calls(self, tool: str, arguments: dict[str, str]) -> bytes:
        return self._candidate([{"functionCall": {"name": tool, "args": arguments}}])

    def ends(self, reason: str) -> bytes:
        return self._candidate([], finishReason="STOP")

    def _candidate(self, parts: list[dict[str, Any]], **fields: str) -> bytes:
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, **fields}
        return _data({"candidates": [candidate], "modelVersion": "gemini-2.5-flash", "responseId": "1"})


_WIRES: Final[dict[str, _Wire]] = {
    "/chat/completions": _Chat(),
    "/responses": _Responses(),
    "/messages": _Messages(),
    ":streamGenerateContent": _Gemini(),
}
