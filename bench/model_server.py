"""A model server for benches: just enough of four APIs, on loopback. The user's last words say what it answers."""

import http.server
import json
import re
import socketserver
import threading
import time
from typing import Any, Final

from dragoman.conformance.model_wires import WIRES

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
        wire = next(make() for path, make in WIRES.items() if path in self.path)
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
