"""The pipes of a child as the two streams that the SDK's client talks through: one JSON message a line.

The SDK can start servers by itself, but reads lines of any length, hands the child its own choice of variables, and
leaves behind what the child has started in a session of its own. So the child is ours (`host.process`), and this only
moves lines. What is not a message is skipped. A line that is too long is skipped too, without keeping it: as the
request it answers is unknown, every request that waits is answered with an error.
"""

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from typing import Final, Self

import msgspec
from mcp.shared.message import SessionMessage
from mcp.types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from dragoman import limits
from dragoman.coder.mcp.server_text import one_line
from dragoman.host.pipes import PolledReadEnd, WriteEnd
from dragoman.host.process import Child

# A picture of 5 MB fits, as base64. Parsed it may take ten times as much for a moment.
MESSAGE_BYTES: Final = 8 * limits.MIB
# Bytes buffered in each direction; above this, sending waits and reading pauses.
OUTBOX_BYTES: Final = 1 * limits.MIB
# Follows the name of a server.
TOO_LARGE: Final = f"sent an answer larger than {MESSAGE_BYTES // limits.MIB} MiB, which was thrown away"
_NOISE_CHARACTERS: Final = 200
# What the shortest line takes in memory.
_LINE_BYTES: Final = 64


class Splitter:
    """Cuts bytes into lines of at most `limit` bytes. A longer one is None when it has ended."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Yield the lines that end in `data`."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._add(piece)
            line = None if self._skipping else bytes(self._rest)
            self._rest.clear()
            self._skipping = False
            yield line
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        if len(self._rest) + len(piece) > self._limit:
            self._skipping = True
            self._rest = bytearray()
        elif not self._skipping:
            self._rest += piece


class Lines:
    """A child, read and written. `read` and `write` are the SDK's streams; `close` before the child is stopped."""

    def __init__(self, child: Child) -> None:
        self.noise = ""  # the last thing that was no message, for people who wonder
        self.ended = False
        self.read: Final = _Read(self)
        self._child = child
        self.write: Final = _Write(self)
        self._splitter = Splitter(MESSAGE_BYTES)
        self._lines: deque[bytes | None] = deque()
        self._buffered = 0
        self._waiting: dict[RequestId, None] = {}
        self._failed: deque[JSONRPCMessage] = deque()
        self._outbox = bytearray()
        self._closed = False
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._reader = PolledReadEnd(child.stdout, self._data, self._end)
        self._writer = WriteEnd(child.stdin, self._flush, self._end)
        child.on_exit(self._exited)
        self._reader.resume()

    async def receive(self) -> SessionMessage:
        """Return the next message; `StopAsyncIteration` after the last."""
        while True:
            # So that a flood of lines does not keep the loop from everything else.
            await asyncio.sleep(0)
            while not self._lines and not self._failed:
                if self.ended or self._closed:
                    raise StopAsyncIteration
                self._arrived.clear()
                await self._arrived.wait()
            if self._failed:
                return SessionMessage(self._failed.popleft())
            message = self._take()
            if message is not None:
                return SessionMessage(message)

    async def send(self, message: JSONRPCMessage) -> None:
        """Send a message; waits before that while too much is held. A message to a dead server is dropped."""
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        while len(self._outbox) > OUTBOX_BYTES and not self._closed:
            self._room.clear()
            await self._room.wait()
        if isinstance(message, JSONRPCRequest):
            self._waiting[message.id] = None
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._waiting.pop((message.params or {}).get("requestId", ""), None)
        if not self._closed:
            self._outbox += data
            self._flush()

    def close(self) -> None:
        """Stop passing messages in both directions. What the child still writes is read and discarded."""
        self._closed = True
        self._writer.close()
        self._lines.clear()
        self._outbox.clear()
        self._room.set()
        self._arrived.set()
        self._drain()

    def _take(self) -> JSONRPCMessage | None:
        line = self._lines.popleft()
        self._buffered -= _weight(line)
        if self._buffered <= OUTBOX_BYTES:
            self._reader.resume()
        if line is None:
            error = ErrorData(code=PARSE_ERROR, message=TOO_LARGE)
            self._failed.extend(JSONRPCError(jsonrpc="2.0", id=one, error=error) for one in self._waiting)
            self._waiting.clear()
            return None
        try:
            message = jsonrpc_message_adapter.validate_python(_decoded(line), by_name=False)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self.noise = one_line(line[: 4 * _NOISE_CHARACTERS].decode(errors="replace"), _NOISE_CHARACTERS)
            return None
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._waiting.pop(message.id, None)
        return message

    def _data(self, data: bytes) -> None:
        if self._closed:
            return
        for line in self._splitter.feed(data):
            if line is None or line.strip():
                self._lines.append(line)
                self._buffered += _weight(line)
        if self._buffered > OUTBOX_BYTES:
            self._reader.pause()
        self._arrived.set()

    def _drain(self) -> None:
        """Wait until the child has read what was written to it; a dead one has, and its pipe will be closed."""
        if self._child.has_exited:
            self._reader.close()
        else:
            self._reader.resume()

    def _exited(self) -> None:
        if self._closed:
            self._reader.close()
        else:
            self._reader.finish()

    def _end(self, error: OSError | None) -> None:
        self.ended = True
        self._room.set()
        self._arrived.set()

    def _flush(self) -> None:
        if self._outbox:
            del self._outbox[: self._writer.write(bytes(self._outbox))]
        if len(self._outbox) <= OUTBOX_BYTES:
            self._room.set()


def _decoded(line: bytes) -> object:
    """Return the JSON of a line. Half characters, which a text that was cut ends in, and bad UTF-8 become `?`."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        mended = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False)
        return msgspec.json.decode(mended.encode(errors="replace"))


def _weight(line: bytes | None) -> int:
    return len(line or b"") + _LINE_BYTES


class _Read:
    """The SDK's read stream."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def receive(self) -> SessionMessage | Exception:
        return await self._lines.receive()

    async def aclose(self) -> None:
        self._lines.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._lines.receive()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._lines.close()


class _Write:
    """The SDK's write stream."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def send(self, item: SessionMessage, /) -> None:
        await self._lines.send(item.message)

    async def aclose(self) -> None:
        self._lines.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._lines.close()
