"""The bytes of the peer: lines in both directions, and what its switches do to them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from dragoman.transports.contract import Transport
from dragoman.transports.write_buffer import WriteBuffer

Message = dict[str, Any]
_SMALL_BYTES: Final = 64 * 1024
_LARGE_BYTES: Final = 4 * 1024 * 1024
# Lines with these end the peer that has the switch.
_FATAL: Final = {
    "ends_at_binary": b"\x00",
    "ends_at_bad_utf8": b"\xff",
    "ends_at_nesting": b"[" * 1000,
    "ends_at_surrogates": b"\\ud800",
    "ends_at_large_numbers": b"1e400",
    "ends_at_carriage_returns": b"\r",
}


class PeerWire:
    """Reads and writes lines. `on_message` gets what is JSON, `on_noise` what is not."""

    def __init__(self, transport: Transport, switch: str) -> None:
        self.switch: Final = switch
        self.processes = 1
        self.on_message: Callable[[Any], None] = lambda _: None
        self.on_noise: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        # Whether a turn runs.
        self.is_busy: Callable[[], bool] = lambda: False
        self._transport: Final = transport
        self._part = bytearray()
        self._unsent: Final = WriteBuffer(transport)
        self._is_ended = False

    def __repr__(self) -> str:
        return f"<PeerWire {self.switch or 'conforming'} ended={self._is_ended}>"

    def start(self) -> None:
        """Begin to read."""
        self._transport.start(self)
        if self.switch == "speaks_first":
            self.send({"method": "_example.org/ready", "params": {}})

    def send(self, message: Message) -> None:
        """Send a message, with its `jsonrpc`."""
        self.send_line(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode())

    def send_line(self, data: bytes) -> None:
        """Send a line as it is."""
        if self.switch == "drops_unread_answers" and self._unsent.size:
            return
        self._unsent.write(data + b"\n")

    def end(self) -> None:
        """End the connection, as a process that exits does."""
        self._is_ended = True
        self.processes = 1 if self.switch == "leaves_children" else 0
        self.on_end()
        self._transport.close_writing()

    def data_received(self, data: bytes) -> None:
        if self.switch == "loses_torn_characters":
            data = data.decode(errors="ignore").encode()
        self._part += data
        lines: list[bytes] = []
        if b"\n" in data:
            *whole, rest = bytes(self._part).split(b"\n")
            lines, self._part = whole, bytearray(rest)
        if self.switch == "ends_at_large_messages" and len(self._part) > _SMALL_BYTES:
            self.end()
        if self.switch == "ends_at_8_mib" and len(self._part) > _LARGE_BYTES:
            self.end()
        if self.switch == "loses_last_requests":
            for line in lines:
                asyncio.get_running_loop().call_later(0.005, self._on_line, line)
            return
        if self.switch == "reads_one_message_a_read":
            lines = lines[:1]
        for line in lines:
            self._on_line(line)

    def writable(self) -> None:
        self._unsent.writable()

    def connection_lost(self, error: Exception | None) -> None:
        is_torn = self.switch == "waits_for_line_end" and self._part
        if self.switch != "outlives_stdin" and not is_torn and not (self.switch == "outlives_turns" and self.is_busy()):
            self.end()

    def _on_line(self, line: bytes) -> None:
        if self._is_ended:
            return
        if self.switch in _FATAL and _FATAL[self.switch] in line:
            self.end()
            return
        if not line.strip():
            if self.switch == "ends_at_blank_lines":
                self.end()
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self.on_noise()
            return
        self.on_message(message)
