"""The bytes of the peer: lines in both directions, and what its switches do to them."""

import json
from collections.abc import Callable
from typing import Any, Final

from dragoman.transports.contract import Transport
from dragoman.transports.write_buffer import WriteBuffer

Message = dict[str, Any]
_SMALL_BYTES: Final = 64 * 1024


class PeerWire:
    """Reads and writes lines. `on_message` gets what is JSON, `on_noise` what is not."""

    def __init__(self, transport: Transport, switch: str) -> None:
        self.switch: Final = switch
        self.processes = 1
        self.on_message: Callable[[Any], None] = lambda _: None
        self.on_noise: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        self._transport: Final = transport
        self._part = b""
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
        *lines, self._part = (self._part + data).split(b"\n")
        if self.switch == "ends_at_large_messages" and len(self._part) > _SMALL_BYTES:
            self.end()
        if self.switch == "reads_one_message_a_read":
            lines = lines[:1]
        for line in lines:
            self._on_line(line)

    def writable(self) -> None:
        self._unsent.writable()

    def connection_lost(self, error: Exception | None) -> None:
        if self.switch != "outlives_stdin":
            self.end()

    def _on_line(self, line: bytes) -> None:
        if self._is_ended:
            return
        if not line.strip():
            if self.switch == "ends_at_blank_lines":
                self.end()
            return
        try:
            message = json.loads(line)
        except ValueError:
            self.on_noise()
            return
        self.on_message(message)
