"""Count the files of ours that a request passes through, and print how many comments the core has.

`sys.setprofile` records every call of a function of `dragoman` on the main thread, from the moment the client writes
the request until the moment it reads the response. The pipe between them stands for another process and is not counted.

    python -m tools.request_path [--list]
"""

import asyncio
import io
import json
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import dragoman
from dragoman import Agent, Prompt, Session, SqliteStore
from dragoman.transports.memory import memory_pair

PACKAGE: Final = Path(dragoman.__file__).parent
PIPE_BYTES: Final = 64 * 1024
# The memory pipe stands for the other process, so it is no file that a reader of the product meets.
NOT_COUNTED: Final = ("transports/memory.py",)
# The most files that a reader should have to open, and the fewest comment lines for 100 lines of code.
PROMPT_FILES: Final = 14
LOAD_FILES: Final = 20
COMMENTS: Final = 10
COMMENTED_PARTS: Final = ("wire", "link", "dialects", "agent", "store", "gateway")
GENERATED: Final = ("wire/v1.py", "wire/v2.py")


class Figure(NamedTuple):
    """One measured number and its bound."""

    name: str
    value: float
    bound: float
    at_most: bool

    @property
    def is_met(self) -> bool:
        """Whether the value is on the right side of its bound."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def __str__(self) -> str:
        word = "at most" if self.at_most else "at least"
        return f"{self.name}: {self.value:g} ({word} {self.bound:g}){'' if self.is_met else '  MISSED'}"


class _Client:
    """The other end of the connection, in raw JSON. It returns from `request` at the response with the same id."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._buffer = b""
        self._responses: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.on_response: Callable[[int], None] = lambda _: None
        transport.start(self)

    async def request(self, id: int, method: str, params: dict[str, Any]) -> Any:
        """Send a request and wait for its result. Raise `RuntimeError` if the response is an error."""
        self._responses[id] = asyncio.get_running_loop().create_future()
        line = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"
        if self._transport.write(line) != len(line):
            raise RuntimeError("the pipe is full")
        response = await self._responses[id]
        if "error" in response:
            raise RuntimeError(f"{method}: {response['error']}")
        return response["result"]

    def data_received(self, data: bytes) -> None:
        """Take lines apart and complete the request that a response is for."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "method" not in message:
                self.on_response(message["id"])
                self._responses[message["id"]].set_result(message)

    def writable(self) -> None:
        """Ignore it: requests are small."""

    def connection_lost(self, error: Exception | None) -> None:
        """Ignore it: the run is over."""


class Recorder:
    """The functions of `dragoman` that were called, by file, while `record` was on."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.order: list[str] = []

    def start(self) -> None:
        """Record every call on this thread from now on."""
        sys.setprofile(self._called)

    def stop(self) -> None:
        """Record no more calls."""
        sys.setprofile(None)

    @property
    def files(self) -> list[str]:
        """The files with at least one call, in the order in which they were met."""
        return list(dict.fromkeys(name.split(":")[0] for name in self.order))

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return
        file = frame.f_code.co_filename[len(str(PACKAGE)) + 1 :]
        if file not in NOT_COUNTED and frame.f_code.co_name != "<module>":
            self.order.append(f"{file}:{frame.f_code.co_qualname}")
            self.calls[file] += 1


@asynccontextmanager
async def _connected(agent: Agent) -> AsyncGenerator[_Client, None]:
    ours, theirs = memory_pair(PIPE_BYTES)
    serving = asyncio.ensure_future(agent.serve(theirs))
    client = _Client(ours)
    await client.request(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    try:
        yield client
    finally:
        await ours.close()
        await serving


def _one_word_agent(**settings: Any) -> Agent:
    agent = Agent("one-word", **settings)

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        await session.say("word")

    return agent


async def _record(client: _Client, method: str, params: dict[str, Any]) -> Recorder:
    recorder = Recorder()
    client.on_response = lambda id: recorder.stop() if id == 3 else None
    recorder.start()
    await client.request(3, method, params)
    return recorder


async def trace_prompt() -> Recorder:
    """Record one v1 `session/prompt` of an agent that says one word."""
    with tempfile.TemporaryDirectory() as folder:
        async with _connected(_one_word_agent()) as client:
            opened = await client.request(2, "session/new", {"cwd": folder, "mcpServers": []})
            prompt = [{"type": "text", "text": "hi"}]
            # One turn before the one that counts, so that first uses of modules are over.
            await client.request(4, "session/prompt", {"sessionId": opened["sessionId"], "prompt": prompt})
            return await _record(client, "session/prompt", {"sessionId": opened["sessionId"], "prompt": prompt})


async def trace_load() -> Recorder:
    """Record one v1 `session/load` of a stored session with one turn."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sessions")
        params: dict[str, Any] = {"cwd": folder, "mcpServers": []}
        async with _connected(_one_word_agent(store=store)) as client:
            opened = await client.request(2, "session/new", params)
            params["sessionId"] = opened["sessionId"]
            prompt = [{"type": "text", "text": "hi"}]
            await client.request(4, "session/prompt", {"sessionId": opened["sessionId"], "prompt": prompt})
        async with _connected(_one_word_agent(store=store)) as client:
            return await _record(client, "session/load", params)


def count_comments(folder: Path) -> tuple[int, int]:
    """Return the comment lines and the code lines below `folder`, docstrings and generated modules left out."""
    comments = code = 0
    for path in sorted(folder.rglob("*.py")):
        if path.relative_to(PACKAGE).as_posix() not in GENERATED:
            with path.open("rb") as file:
                found = _lines(file)
            comments, code = comments + found[0], code + found[1]
    return comments, code


def _lines(file: io.BufferedReader) -> tuple[int, int]:
    comments: set[int] = set()
    code: set[int] = set()
    begins = True  # a string here is a docstring, or stands alone
    for token in tokenize.tokenize(file.readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING):
            begins = True
        elif token.type not in (tokenize.NL, tokenize.ENDMARKER):
            if not (begins and token.type == tokenize.STRING):
                code.update(range(token.start[0], token.end[0] + 1))
            begins = False
    return len(comments), len(code)


def measure() -> list[Figure]:
    """Measure every figure: files of a prompt, files of a load, comments of each part of the core."""
    figures = [
        Figure("files that a v1 session/prompt passes", len(asyncio.run(trace_prompt()).files), PROMPT_FILES, True),
        Figure("files that a v1 session/load passes", len(asyncio.run(trace_load()).files), LOAD_FILES, True),
    ]
    for part in COMMENTED_PARTS:
        comments, code = count_comments(PACKAGE / part)
        figures.append(
            Figure(f"comment lines per 100 code lines in {part}", round(100 * comments / code, 1), COMMENTS, False)
        )
    return figures


def main() -> int:
    """Print the figures; with `--list` also every file and how many calls it had."""
    if "--list" in sys.argv[1:]:
        for name, trace in (("session/prompt", trace_prompt), ("session/load", trace_load)):
            recorder = asyncio.run(trace())
            print(f"{name}: {len(recorder.files)} files, {sum(recorder.calls.values())} calls")
            for file in recorder.files:
                print(f"  {recorder.calls[file]:4}  {file}")
    for figure in measure():
        print(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
