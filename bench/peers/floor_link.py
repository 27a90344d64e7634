"""The floor's wire: typed structs over two pipes with asyncio and msgspec, and nothing that an SDK owes its users.

Reads of 64 KiB through add_reader, split into lines; sends appended to one buffer behind an awaitable call, written at
64 KiB or at the end of the loop's turn, waiting only while the pipe is full. No limits, no errors, no cancellation.
"""

import asyncio
import os
from collections.abc import Callable

import msgspec

READ_BYTES = 65_536
FLUSH_BYTES = 65_536


class Text(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class Diff(msgspec.Struct, tag_field="type", tag="diff", rename="camel"):
    path: str
    new_text: str
    old_text: str | None = None


class AgentMessageChunk(msgspec.Struct, tag_field="sessionUpdate", tag="agent_message_chunk"):
    content: Text


class ToolCallUpdate(msgspec.Struct, tag_field="sessionUpdate", tag="tool_call_update", rename="camel"):
    tool_call_id: str
    content: list[Diff]


Update = AgentMessageChunk | ToolCallUpdate


class SessionUpdate(msgspec.Struct, rename="camel"):
    session_id: str
    update: Update


class Prompt(msgspec.Struct, rename="camel"):
    session_id: str
    prompt: list[Text]


class Message(msgspec.Struct):
    """Any envelope, as read: what `params` or `result` hold is decoded when the method is known."""

    jsonrpc: str
    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()


class Notification(msgspec.Struct):
    method: str
    params: SessionUpdate
    jsonrpc: str = "2.0"


class Request(msgspec.Struct):
    id: int
    method: str
    params: object
    jsonrpc: str = "2.0"


class Answer(msgspec.Struct):
    id: int | str
    result: object
    jsonrpc: str = "2.0"


decode_message = msgspec.json.Decoder(Message).decode
decode_update = msgspec.json.Decoder(SessionUpdate).decode
decode_prompt = msgspec.json.Decoder(Prompt).decode


class Link:
    """One reader and one writer; every line goes to `on_line` in order."""

    def __init__(self, read_fd: int, write_fd: int, on_line: Callable[[bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_fd, self._write_fd, self._on_line = read_fd, write_fd, on_line
        self._rest: list[bytes] = []
        self._out = bytearray()
        self._waiting: list[asyncio.Future[None]] = []
        self._flush_is_due = False
        self._encode_into = msgspec.json.Encoder().encode_into
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        self._loop.add_reader(read_fd, self._read)

    async def send(self, message: Notification | Request | Answer) -> None:
        out = self._out
        self._encode_into(message, out, -1)
        out += b"\n"
        if len(out) >= FLUSH_BYTES:
            await self._flush()
        elif not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush_at_end_of_turn)

    def close(self) -> None:
        self._loop.remove_reader(self._read_fd)
        if not self.ended.done():
            self.ended.set_result(None)

    def _read(self) -> None:
        try:
            data = os.read(self._read_fd, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        first, *lines = data.split(b"\n")
        self._rest.append(first)
        if not lines:
            return
        self._on_line(b"".join(self._rest))
        self._rest = [lines.pop()]
        for line in lines:
            self._on_line(line)

    def _write(self) -> bool:
        """Writes what the pipe takes; true when nothing is left."""
        try:
            written = os.write(self._write_fd, self._out)
        except BlockingIOError:
            return False
        del self._out[:written]
        return not self._out

    async def _flush(self) -> None:
        if self._write():
            return
        writable: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(writable)
        self._loop.add_writer(self._write_fd, self._drain)
        await writable

    def _flush_at_end_of_turn(self) -> None:
        self._flush_is_due = False
        if self._out and not self._write():
            self._loop.add_writer(self._write_fd, self._drain)

    def _drain(self) -> None:
        if self._out and not self._write():
            return
        self._loop.remove_writer(self._write_fd)
        while self._waiting:
            self._waiting.pop().set_result(None)
