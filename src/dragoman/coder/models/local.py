"""`local:FILE.gguf` and `local:smollm2`: a small model on this machine, in a process of its own.

A crash, a long prompt or a bad file harms that process and no loop; it dies with us, and by itself when it is idle.
"""

import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from dragoman.coder.models import small, weights
from dragoman.coder.models.contract import (
    ModelFailed,
    ModelFinished,
    ModelRequest,
    Piece,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from dragoman.coder.models.endpoints import ModelUnavailable
from dragoman.coder.models.names import ModelName
from dragoman.coder.models.request_failures import NEVER, ContextFull
from dragoman.errors import StartFailed, how_to_install
from dragoman.host.environment import child_environment
from dragoman.host.pipes import PolledReadEnd, WriteEnd
from dragoman.host.process import Child
from dragoman.host.regular_file import read_regular
from dragoman.limits import KIB, MIB

# Models we know where to get.
KNOWN: Final = {"smollm2": weights.SMOLLM2}

# What a small model sees at once. More makes it slower and no wiser.
WINDOW: Final = 8 * KIB
_ANSWER_TOKENS: Final = 1024
# Reading a few gigabytes of weights from a slow disk.
_START_SECONDS: Final = 120.0
# The longest prompt that fits takes a minute on a slow machine before the first word comes.
_WORD_SECONDS: Final = 300.0
# Who is told to stop does so at the next word; who does not is stopped.
_STOP_SECONDS: Final = 0.5
# An idle model takes as much memory as a busy one.
_IDLE_SECONDS: Final = 300.0
_LINE_BYTES: Final = 1 * MIB
_RETRY_SECONDS: Final = 0.5

_SHORT_SYSTEM: Final = "You are a helpful coding assistant."
INSTALL: Final = f"Local models need one more package: {how_to_install('local')}"


def is_installed() -> bool:
    """Whether the library is there, without loading it."""
    return importlib.util.find_spec("xllamacpp") is not None


class LocalModel:
    """A model on this machine. The process is started with the first call."""

    def __init__(
        self,
        choice: ModelName,
        *,
        environment: Mapping[str, str],
        cache: Path | None = None,
        progress: Callable[[str], None] | None = None,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> None:
        self.name = str(choice)
        self.window: int | None = WINDOW
        self.thought_levels: tuple[str, ...] = ()
        self.sees: frozenset[str] = frozenset()
        self._known = KNOWN.get(choice.name)
        self._file = Path(choice.name)
        self._environment = environment
        self._cache = cache
        self._progress = progress
        self._idle_seconds = idle_seconds
        self._process: _Process | None = None
        self._turn = asyncio.Lock()
        self._resting: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        if not is_installed():
            raise ModelUnavailable(INSTALL)
        if self._known is None:
            _check(self._file)
        elif cache is None:
            raise ModelUnavailable(f"There is no folder to keep {self._known.title} in.")

    def begin_turn(self) -> None:
        """Nothing to remember: the conversation comes with every call."""

    def assistant(self, name: str) -> "LocalModel":
        """Return this model itself: it keeps no conversation, and calls wait for each other."""
        return self

    def retry_seconds(self, attempt: int) -> float:
        """A process is started again quickly."""
        return _RETRY_SECONDS

    async def respond(self, inquiry: ModelRequest) -> AsyncGenerator[Piece, None]:
        """One model call. Calls wait for each other: there is one model."""
        async with self._turn:
            self._stay()
            try:
                process = await self._ready()
                await process.send(self._request(inquiry))
                saying = small.Saying() if inquiry.tools else None
                finish = ""
                while (chunk := await process.receive(_WORD_SECONDS)) != {"end": True}:
                    if "error" in chunk:
                        raise self._explained(chunk["error"])
                    text, ended = _heard(chunk)
                    finish = ended or finish
                    words = text if saying is None else saying.feed(text)
                    if words:
                        yield TextDelta(words)
                    if isinstance(usage := chunk.get("usage"), dict):
                        yield UsageReported(int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0)))
                process.is_free = True
                if finish == "length":
                    yield ModelFinished("max_tokens")
                elif saying is not None and (call := saying.called()) is not None:
                    yield ToolCallRequested(*call)
            finally:
                await self._settle()
                self._rest()

    async def close(self) -> None:
        """End the process. The next call starts another."""
        self._stay()
        process, self._process = self._process, None
        if process is not None:
            await process.stop()

    async def _ready(self) -> "_Process":
        if self._process is None:
            path = self._file
            if self._known is not None:
                assert self._cache is not None
                path = await weights.find(
                    self._known, self._cache, environment=self._environment, progress=self._progress
                )
            process = _Process(path, self._environment)
            try:
                while (await process.receive(_START_SECONDS)) != {"ready": True}:
                    pass
            except BaseException:
                await process.stop()
                raise
            self._process = process
        self._process.is_free = False
        return self._process

    def _request(self, inquiry: ModelRequest) -> dict[str, Any]:
        system = _SHORT_SYSTEM if self._known is not None else inquiry.system
        request: dict[str, Any] = {
            "messages": small.messages_of(inquiry.items, system, inquiry.tools),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": _ANSWER_TOKENS,
            "temperature": 0,
        }
        if inquiry.tools:
            schema = {"name": "answer", "schema": small.answer_schema(inquiry.tools)}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
            request["loose"] = small.answer_schema(inquiry.tools, exact=False)
        return request

    def _explained(self, error: object) -> ModelFailed:
        kind = error.get("type") if isinstance(error, dict) else None
        if kind == "exceed_context_size_error":
            return ContextFull(self.name)
        return ModelFailed("server", f"{self.name} failed")

    async def _settle(self) -> None:
        """After a call that was left: the model stops talking, or its process ends."""
        process = self._process
        if process is None or process.is_free:
            return
        try:
            await process.send({"stop": True})
            async with asyncio.timeout(_STOP_SECONDS):
                while (await process.receive(_STOP_SECONDS)) != {"end": True}:
                    pass
            process.is_free = True
        except (ModelFailed, TimeoutError):
            self._process = None
            await process.stop()

    def _stay(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def _rest(self) -> None:
        self._stay()
        self._resting = asyncio.get_running_loop().call_later(self._idle_seconds, self._retire)

    def _retire(self) -> None:
        self._resting = None
        if not self._turn.locked():
            self._closing = asyncio.create_task(self.close())


class _Process:
    """The child and its two pipes: a JSON object a line."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        threads = max(1, (os.cpu_count() or 2) // 2)
        command = [sys.executable, "-P", "-m", "dragoman.coder.models.local_child"]
        try:
            self._child = Child.start(
                [*command, str(path.absolute()), str(threads), str(WINDOW)],
                cwd="/",
                env=child_environment(environment),
            )
        except StartFailed as error:
            raise ModelFailed("server", str(error), NEVER) from None
        self.is_free = True
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._half = b""
        self._room = asyncio.Event()
        self._reader = PolledReadEnd(self._child.stdout, self._data, lambda error: self._lines.put_nowait(None))
        self._writer = WriteEnd(self._child.stdin, self._room.set, lambda error: self._room.set())
        self._reader.resume()

    async def send(self, message: dict[str, Any]) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            self._room.clear()
            data = data[self._writer.write(data) :]
            if data:
                await self._room.wait()

    async def receive(self, seconds: float) -> dict[str, Any]:
        """The next object; `ModelFailed` when there is none in time, or none any more."""
        try:
            async with asyncio.timeout(seconds):
                line = await self._lines.get()
        except TimeoutError:
            raise ModelFailed("server", "The local model does not answer") from None
        if line is None:
            self._lines.put_nowait(None)
            raise ModelFailed("server", "The local model's process has ended; the file may be no model it can read")
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ModelFailed("garbage", "The local model's answer cannot be read")
        return value

    async def stop(self) -> None:
        self._reader.close()
        self._writer.close()
        await self._child.stop()

    def _data(self, data: bytes) -> None:
        *lines, self._half = (self._half + data).split(b"\n")
        for line in lines:
            self._lines.put_nowait(line)
        if len(self._half) > _LINE_BYTES:
            self._half = b""


def _heard(chunk: dict[str, Any]) -> tuple[str, str]:
    """The text of a chunk, and why the model stopped, if it has."""
    match chunk:
        case {"choices": [{"delta": dict(delta), "finish_reason": finish}]}:
            text = delta.get("content")
            return text if isinstance(text, str) else "", finish if isinstance(finish, str) else ""
        case _:
            return "", ""


def _check(file: Path) -> None:
    """A file that begins as a model does."""
    try:
        if read_regular(file, 4) == b"GGUF":
            return
    except OSError as error:
        raise ModelUnavailable(f"local:{file}: {error.strerror}.") from None
    raise ModelUnavailable(f"local:{file} is no GGUF file.")
