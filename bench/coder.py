"""`python -m bench.coder`: the whole coding agent beside the bare SDK, which it is made of.

Streaming goes through the script model, the loop, the context, the store and the wire; starting and opening a session
are those of `dragoman acp` with everything installed; cancels are counted in three phases of a turn. Exit status: 0 the
promises are met, 1 one is missed.
"""

import argparse
import http.server
import json
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from bench import harness
from bench.harness import Child, Guardian
from bench.lines import Line, told
from bench.roster import PEERS

CHUNKS: Final = 100_000
REPETITIONS: Final = 5
CANCELS: Final = 100
WORDS: Final = "the quick "

STREAM_TIMES: Final = 4.0
"""100,000 scripted deltas through the whole agent at no less than a quarter of the bare SDK's speed."""
START_TIMES: Final = 1.5
"""`initialize` is answered within 1.5x of the SDK's example agent."""
OPEN_MS: Final = 30.0
"""`session/new` without MCP servers, in CPU time."""
FIRST_MS: Final = 5.0
"""The first chunk leaves within 5 ms of the model's first byte."""
CANCEL_MS: Final = 100.0
"""A cancel is answered within 100 ms, 99 times of 100."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.coder", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    quick = parser.parse_args(arguments).quick
    guardian = Guardian()
    try:
        with tempfile.TemporaryDirectory() as folder:
            return told(lines(guardian, Path(folder), 10 if quick else 1))
    finally:
        guardian.close()


def lines(guardian: Guardian, folder: Path, share: int) -> Iterator[Line]:
    chunks, repetitions = CHUNKS // share, max(REPETITIONS // share, 2)
    bare = [stream(bare_agent(guardian), f"stream 1 {WORDS}", f"stream {chunks} {WORDS}") for _ in range(repetitions)]
    script = [{"say": WORDS, "repeat": chunks}]
    whole = [stream(coder(guardian, folder, [{"say": WORDS}], script), "go", "go") for _ in range(repetitions)]
    yield Line(f"bare SDK: {chunks:,} deltas", chunks / median(bare) / 1e3, "k/s")
    yield Line("  through the whole coding agent, stored", chunks / median(whole) / 1e3, "k/s")
    yield Line("  times slower", median(whole) / median(bare), "", STREAM_TIMES)
    starts = [(start(bare_agent(guardian)), start(coder(guardian, folder))) for _ in range(repetitions * 3)]
    yield Line("bare SDK: initialize answered", median(one for one, _ in starts) * 1e3, "ms")
    yield Line("  dragoman acp", median(other for _, other in starts) * 1e3, "ms")
    yield Line(
        "  times slower", median(other for _, other in starts) / median(one for one, _ in starts), "", START_TIMES
    )
    opened = [open_cpu(coder(guardian, folder)) for _ in range(repetitions * 2)]
    yield Line("session/new, CPU", median(opened) * 1e3, "ms", OPEN_MS)
    first = first_chunk(guardian, folder, max(20 // share, 3))
    yield Line("a provider's first byte to the first chunk", first, "ms", FIRST_MS)
    for phase, steps in PHASES.items():
        taken = cancels(coder(guardian, folder, steps), CANCELS // share or 10)
        yield Line(f"cancel in {phase}: answered, p99", quantiles(taken, n=100)[-1] * 1e3, "ms", CANCEL_MS)


PHASES: Final[Mapping[str, list[dict[str, Any]]]] = {
    "a model's stream": [{"say": WORDS}, {"say": WORDS, "repeat": 100_000, "delay_ms": 1}],
    "a model's silence": [{"say": WORDS}, {"say": WORDS, "delay_ms": 600_000}],
    "a command": [{"say": WORDS}, {"call": "bash", "input": {"command": "trap '' TERM; sleep 600"}}],
}


def bare_agent(guardian: Guardian) -> Child:
    return Child(guardian, PEERS["ours"].agent, PEERS["ours"].environment)


def coder(guardian: Guardian, folder: Path, *turns: list[dict[str, Any]]) -> Child:
    """`dragoman acp`: a script in a mode without questions, or the demo."""
    model = "demo"
    if turns:
        script = folder / "script.json"
        script.write_text(json.dumps({"turns": [{"steps": steps} for steps in turns]}), encoding="utf-8")
        model = f"script:{script}"
    command = [sys.executable, "-m", "dragoman.cli.main", "acp", "--mode", "full-access", "--model", model]
    return Child(guardian, command, {**PEERS["ours"].environment, "DRAGOMAN_HOME": str(folder / "home")})


def stream(agent: Child, first: str, prompt: str) -> float:
    """How long the second turn takes; the first one loads what works on prompts."""
    with agent as child:
        session = harness.open_session(child)
        child.send(harness.prompt_request(session, first))
        harness.hear_turn(child)
        began = time.perf_counter()
        child.send(harness.prompt_request(session, prompt))
        harness.hear_turn(child)
        return time.perf_counter() - began


def start(agent: Child) -> float:
    began = time.perf_counter()
    with agent as child:
        child.call(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        return time.perf_counter() - began


def open_cpu(agent: Child) -> float:
    with agent as child:
        child.call(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        settled(child.cpu)
        before = child.cpu()
        harness.new_session(child, 2)
        return child.cpu() - before


def first_chunk(guardian: Guardian, folder: Path, turns: int) -> float:
    """Milliseconds from the moment a local server writes the first word of an answer to the editor's reading it."""
    with FakeProvider() as provider:
        home = folder / "provider"
        home.mkdir(exist_ok=True)
        text = f'[providers.fake]\nbase_url = "http://127.0.0.1:{provider.port}/v1"\n'
        (home / "config.toml").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "dragoman.cli.main", "acp", "--model", "fake/model"]
        environment = {**PEERS["ours"].environment, "DRAGOMAN_HOME": str(home)}
        taken: list[float] = []
        with Child(guardian, command, environment) as child:
            session = harness.open_session(child)
            for _ in range(turns + 1):
                child.send(harness.prompt_request(session, "hi"))
                while b'"agent_message_chunk"' not in child.read_line():
                    pass
                taken.append(time.perf_counter() - provider.wrote)
                while b'"stopReason"' not in child.read_line():
                    pass
        return median(taken[1:]) * 1e3  # the first one loads the provider's library


class FakeProvider(socketserver.ThreadingTCPServer):
    """Speaks just enough of the chat completions API: one word, a moment later the end."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.port = self.server_address[1]
        self.wrote = 0.0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        assert isinstance(self.server, FakeProvider)
        time.sleep(0.02)  # the head is there before the first word, as with every provider
        self.server.wrote = time.perf_counter()
        self._say({"delta": {"role": "assistant", "content": "Hello"}, "finish_reason": None})
        time.sleep(0.05)
        self._say({"delta": {}, "finish_reason": "stop"})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _say(self, choice: dict[str, Any]) -> None:
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "model"}
        self.wfile.write(b"data: " + json.dumps({**chunk, "choices": [{"index": 0, **choice}]}).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def settled(cpu: Callable[[], float]) -> None:
    """Until the agent has done what it does behind its answer."""
    before = -1.0
    while cpu() != before:
        before = cpu()
        time.sleep(0.05)


def cancels(agent: Child, count: int) -> list[float]:
    """How long each cancel took to end its turn."""
    taken: list[float] = []
    with agent as child:
        session = harness.open_session(child)
        for _ in range(count):
            child.send(harness.prompt_request(session, "go"))
            while b'"agent_message_chunk"' not in child.read_line():
                pass
            time.sleep(0.02)  # into the phase that is measured
            note = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
            began = time.perf_counter()
            child.send(json.dumps(note).encode() + b"\n")
            while b'"stopReason"' not in child.read_line():
                pass
            taken.append(time.perf_counter() - began)
    return taken


if __name__ == "__main__":
    sys.exit(main())
