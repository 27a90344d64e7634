"""A model on loopback, so that an agent that needs one is checked without a key.

What is said depends on the prompt that `check` sent: the word `slowly` makes it count for a minute, `Create the file`
makes it call the tool of the agent that writes a file, and anything else is answered in a sentence. What an agent asks
on the side, such as a title for the session, offers no tools and gets a word.
"""

import http.server
import json
import re
import socketserver
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Self

from dragoman.conformance.model_wires import WIRES, AnswerStream

ANSWER: Final = "Hello from the model of dragoman check."
_COUNTED: Final = 600
_PAUSE_SECONDS: Final = 0.1
# Tools that write a file, best first; a shell is the last resort.
_WRITERS: Final = ("write_file", "write", "create_file", "create", "edit", "apply_patch")
_SHELLS: Final = ("bash", "shell", "exec_command", "run_shell_command", "execute", "terminal", "command")
_FILE: Final = "dragoman-check.txt"
_NAMED_FILE: Final = re.compile(r"Create the file ([^\s\"\\]+)")
_RESULT: Final = re.compile(r'"role": "tool"|tool_result|function_call_output|functionResponse')


class CheckModelServer(socketserver.ThreadingTCPServer):
    """The server. `url` has no path; `asked` counts requests that offer tools."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url: Final = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked = 0
        self._thread: Final = threading.Thread(target=self.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Expect it: an agent that is killed leaves in the middle of an answer."""

    def variables(self) -> dict[str, str]:
        """Return the variables by which agents find a model, with keys that mean nothing."""
        keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "CODEX_API_KEY")
        addresses = {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_BASE": f"{self.url}/v1",
            "ANTHROPIC_BASE_URL": self.url,
            "GOOGLE_GEMINI_BASE_URL": self.url,
        }
        rest = {"OPENAI_MODEL": "model", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "NO_PROXY": "127.0.0.1"}
        return {**dict.fromkeys(keys, "dragoman-check"), **addresses, **rest}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: CheckModelServer

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        except ValueError:
            self.send_error(400)
            return
        wire = next((make() for path, make in WIRES.items() if path in self.path), None)
        if wire is None:
            self._reply_aside()
            return
        try:
            self._stream(wire, body)
        except ConnectionError:
            return

    def do_GET(self) -> None:
        """Answer with an empty list of models."""
        self._reply({"object": "list", "data": [], "models": []})

    def _reply_aside(self) -> None:
        parts = {"role": "model", "parts": [{"text": "{}"}]}
        self._reply({"candidates": [{"content": parts}], "totalTokens": 7, "input_tokens": 7})

    def _reply(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, wire: AnswerStream, body: Mapping[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        tools = wire.tools_in(body)
        self.server.asked += bool(tools)
        self._chunk(wire.begins())
        wanted = wish_of(body) if tools else "aside"
        call = call_for(tools, _file_in(body)) if wanted == "write" else None
        if wanted == "slow":
            for number in range(_COUNTED):
                self._chunk(wire.says(f"{number}\n"))
                time.sleep(_PAUSE_SECONDS)
        elif call is not None:
            self._chunk(wire.says("I create the file.") + wire.calls(*call))
        else:
            self._chunk(wire.says("aside" if wanted == "aside" else ANSWER))
        self._chunk(wire.ends("call" if call is not None else "stop"))
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: stderr is the report's."""


def wish_of(body: Mapping[str, Any]) -> str:
    """Return what the last message of a request wants: `write`, `slow` or `answer`."""
    turns = body.get("messages") or body.get("input") or body.get("contents") or []
    if isinstance(turns, str):
        turns = [turns]
    # Agents put notes of their own behind the prompt; a result of a tool is always behind its call.
    for turn in reversed(turns):
        text = json.dumps(turn)
        if _RESULT.search(text):
            return "answer"
        if "Create the file" in text:
            return "write"
        if "Count slowly" in text:
            return "slow"
        if '"assistant"' in text or '"model"' in text:
            return "answer"
    return "answer"


def _file_in(body: Mapping[str, Any]) -> str:
    """Return the file that the prompt names."""
    found = _NAMED_FILE.findall(json.dumps(body))
    return found[-1] if found else _FILE


def call_for(tools: list[tuple[str, Mapping[str, Any]]], file: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return a call that writes this file, with arguments for the schema of its tool; None if no tool can."""
    # Its whole name first: `todowrite` ends as `write` does, and writes no file.
    for matches in (str.__eq__, str.endswith):
        for wanted in (*_WRITERS, *_SHELLS):
            for name, schema in tools:
                if matches(_plain(name), _plain(wanted)) and "todo" not in name.lower():
                    return name, arguments_for(schema, file, is_shell=wanted in _SHELLS)
    return None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def arguments_for(schema: Mapping[str, Any], file: str, *, is_shell: bool) -> Mapping[str, Any]:
    """Return arguments for a tool, by the names and types in its schema."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = set(schema.get("required") or properties)
    found: dict[str, Any] = {}
    for name, about in properties.items():
        if name not in required:
            continue
        kind = about.get("type") if isinstance(about, dict) else "string"
        found[name] = _argument(name, str(kind).lower(), file, is_shell=is_shell)
    return found


def _argument(name: str, kind: str, file: str, *, is_shell: bool) -> Any:
    lower = name.lower()
    if kind == "array":
        return ["sh", "-c", f"printf hello > {file}"] if is_shell else []
    if kind in ("integer", "number"):
        return 1
    if kind == "boolean":
        return False
    if "path" in lower or lower in ("file", "filename"):
        return file
    if is_shell and ("command" in lower or lower == "cmd"):
        return f"printf hello > {file}"
    return "hello"
