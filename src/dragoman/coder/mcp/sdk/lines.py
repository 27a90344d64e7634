"""The pipes of a child as the two streams that the SDK's client talks through: one JSON message a line.

The SDK can start servers by itself, but reads lines of any length, hands the child its own choice of variables, and
leaves behind what the child has started in a session of its own. So the child is ours (`host.process`), and this only
moves lines. asyncio's `StreamReader` cuts them; it holds at most twice the longest, then reading pauses. What is not a
message is skipped. A line that is too long is skipped too, without keeping it: as the request it answers is unknown,
every request that waits is answered with an error.
"""

import asyncio
import json
from collections import deque
from typing import Final

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
from dragoman.coder.mcp.sdk.streams import SdkReadStream, SdkWriteStream
from dragoman.coder.mcp.server_text import one_line
from dragoman.host.pipes import PolledReadEnd, WriteEnd
from dragoman.host.process import Child

# A picture of 5 MB fits, as base64. Parsed it may take ten times as much for a moment.
MESSAGE_BYTES: Final = 8 * limits.MIB
# Bytes that wait to be written; above this, sending waits.
OUTBOX_BYTES: Final = 1 * limits.MIB
# Follows the name of a server.
TOO_LARGE: Final = f"sent an answer larger than {MESSAGE_BYTES // limits.MIB} MiB, which was thrown away"
_NOISE_CHARACTERS: Final = 200


class _Pausing(asyncio.ReadTransport):
    """What a `StreamReader` pauses while it holds twice its limit, and resumes."""

    def __init__(self, reader: PolledReadEnd) -> None:
        super().__init__()
        self._reader = reader

    def pause_reading(self) -> None:
        self._reader.pause()

    def resume_reading(self) -> None:
        self._reader.resume()


class Lines:
    """A child, read and written. `read` and `write` are the SDK's streams; `close` before the child is stopped."""

    def __init__(self, child: Child) -> None:
        self.noise = ""  # the last thing that was no message, for people who wonder
        self.ended = False
        self.read: Final = SdkReadStream(self.receive, self._aclose)
        self.write: Final = SdkWriteStream(self.send, self._aclose)
        self._child = child
        self._waiting: dict[RequestId, None] = {}
        self._failed: deque[JSONRPCMessage] = deque()
        self._outbox = bytearray()
        self._closed = False
        self._room = asyncio.Event()
        self._reader = PolledReadEnd(child.stdout, self._data, self._end)
        self._bytes = asyncio.StreamReader(MESSAGE_BYTES)
        self._bytes.set_transport(_Pausing(self._reader))
        self._writer = WriteEnd(child.stdin, self._flush, self._end)
        child.on_exit(self._exited)
        self._reader.resume()

    async def receive(self) -> SessionMessage:
        """Return the next message; `StopAsyncIteration` after the last."""
        while True:
            # So that a flood of lines does not keep the loop from everything else.
            await asyncio.sleep(0)
            if self._failed:
                return SessionMessage(self._failed.popleft())
            line = await self._line()
            if line is None:
                self._fail_all()
            elif (message := self._decode(line)) is not None:
                return SessionMessage(message)

    async def send(self, item: SessionMessage) -> None:
        """Send a message; waits before that while too much is held. A message to a dead server is dropped."""
        message = item.message
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
        self._outbox.clear()
        self._room.set()
        self._bytes.feed_eof()
        self._drain()

    async def _aclose(self) -> None:
        self.close()

    async def _line(self) -> bytes | None:
        """Return the next line; None: it was too long, and was thrown away as it came."""
        is_too_long = False
        while not self._closed:
            try:
                line = await self._bytes.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await self._bytes.readexactly(error.consumed)
                is_too_long = True
                continue
            except asyncio.IncompleteReadError:
                break
            return None if is_too_long else line
        raise StopAsyncIteration

    def _fail_all(self) -> None:
        """Answer every request that waits with an error, which `receive` returns."""
        error = ErrorData(code=PARSE_ERROR, message=TOO_LARGE)
        self._failed.extend(JSONRPCError(jsonrpc="2.0", id=one, error=error) for one in self._waiting)
        self._waiting.clear()

    def _decode(self, line: bytes) -> JSONRPCMessage | None:
        """Return the message of a line; None: it has none."""
        if not line.strip():
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
        if not self._closed and not self.ended:
            self._bytes.feed_data(data)

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
        self._bytes.feed_eof()

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
