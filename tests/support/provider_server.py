"""A provider for commands and editors that are processes: every provider's wire, served from a thread on loopback.

It lists the models it was given, in each provider's form, and answers every prompt with the same words. Like a real
one it knows one key, and refuses a path or a key that is not its own, and a conversation that no provider takes.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.support.provider_rules import refusal
from tests.support.provider_streams import (
    anthropic_begins,
    anthropic_block,
    anthropic_ends,
    gemini,
    named,
    openai_response,
)
from tests.support.upstream import DONE, chat, chat_usage

KEY: Final = "sk-canary-0123456789abcdef"
SAID: Final = "Good morning."


class Heard(NamedTuple):
    """A request."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: dict[str, Any]


class ProviderServer:
    """`models` are listed; a `status` other than 200 refuses every list; `hold` delays lists until it is set."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.heard: list[Heard] = []
        self.models: list[dict[str, Any]] = []
        self.status = 200
        self.raw: bytes | None = None
        self.headers: dict[str, str] = {}  # sent beside those of every answer
        self.page = 1000
        self.hold = threading.Event()
        self.hold.set()

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def lists(self, *names: str, **fields: Any) -> None:
        """List models by these names."""
        self.models = [{"id": name, **fields} for name in names]

    def listed(self) -> list[Heard]:
        """The requests for a list."""
        return [heard for heard in self.heard if heard.method == "GET"]

    def answer(self, heard: Heard) -> tuple[int, str, bytes]:
        """Return status, content type and body."""
        sent = heard.headers.get("authorization", "").removeprefix("Bearer ")
        keys = {sent, heard.headers.get("x-api-key"), heard.headers.get("x-goog-api-key")}
        if KEY not in keys and heard.path != "/api/tags":
            return 401, "application/json", b'{"error": {"message": "no such key"}}'
        if heard.method == "GET":
            return self._list(heard)
        for path, events in _ANSWERS.items():
            if heard.path.endswith(path):
                if refused := refusal(path, heard.body):
                    return refused.status, "application/json", json.dumps(refused.body).encode()
                return 200, "text/event-stream", b"".join(events)
        return 404, "application/json", b'{"error": {"message": "no such path"}}'

    def _list(self, heard: Heard) -> tuple[int, str, bytes]:
        self.hold.wait(30)
        forms = {"/v1/models": self._as_ids, "/api/tags": self._as_tags}
        form = self._as_google if "x-goog-api-key" in heard.headers else forms.get(heard.path)
        if form is None:
            return 404, "application/json", b"{}"
        if self.status != 200 or self.raw is not None:
            return self.status, "application/json", self.raw or b"{}"
        return 200, "application/json", json.dumps(form(heard)).encode()

    def _as_ids(self, heard: Heard) -> dict[str, Any]:
        """OpenAI's form, and Anthropic's, whose pages say where the next one begins."""
        begin = self._after(heard.query.get("after_id", [""])[0])
        page = self.models[begin : begin + self.page]
        more = begin + self.page < len(self.models)
        return {"object": "list", "data": page, "has_more": more, "last_id": page[-1]["id"] if page else None}

    def _as_google(self, heard: Heard) -> dict[str, Any]:
        begin = int(heard.query.get("pageToken", ["0"])[0])
        page = self.models[begin : begin + self.page]
        made = [{"supportedGenerationMethods": ["generateContent"], **_google(model)} for model in page]
        more = {"nextPageToken": str(begin + self.page)} if begin + self.page < len(self.models) else {}
        return {"models": made, **more}

    def _as_tags(self, heard: Heard) -> dict[str, Any]:
        return {"models": [{"name": model["id"], "model": model["id"]} for model in self.models]}

    def _after(self, name: str) -> int:
        return next((at for at, model in enumerate(self.models, 1) if model["id"] == name), 0)


def _google(model: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in model.items() if name != "id"}
    return {"name": f"models/{model['id']}", **rest}


@contextmanager
def provider_server() -> Iterator[ProviderServer]:
    """Serve on a free port until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            heard = Heard(self.command, parts.path, parse_qs(parts.query), headers, json.loads(body) if body else {})
            it.heard.append(heard)
            status, kind, answer = it.answer(heard)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(answer)))
            for name, value in it.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on stderr."""

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                pass  # a client may leave at any time

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    it = ProviderServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield it
    finally:
        it.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _openai() -> list[bytes]:
    text = {"type": "output_text", "text": SAID, "annotations": []}
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events = [
        named("response.created", response=openai_response("in_progress", [])),
        named("response.output_item.added", output_index=0, item=message | {"content": []}),
        named("response.content_part.added", **place, part=text | {"text": ""}),
        named("response.output_text.delta", **place, delta=SAID, logprobs=[]),
        named("response.output_text.done", **place, text=SAID, logprobs=[]),
        named("response.output_item.done", output_index=0, item=message | {"content": [text]}),
        named("response.completed", response=openai_response("completed", [message | {"content": [text]}])),
    ]
    return [event.replace(b'data: {"', b'data: {"sequence_number": %d, "' % at) for at, event in enumerate(events)]


_ANSWERS: Final = {
    "/v1/responses": _openai(),
    "/v1/messages": [
        anthropic_begins(),
        anthropic_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": SAID}),
        anthropic_ends("end_turn"),
    ],
    ":streamGenerateContent": [gemini({"text": SAID}, finish="STOP")],
    "/v1/chat/completions": [chat({"content": SAID}), chat({}, "stop"), chat_usage(7, 3), DONE],
}
