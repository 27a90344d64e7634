"""The connection to one language server, over the pipes of its process: requests, notifications, and its own requests.

Not the client of `pygls`: that one starts its process without a group and never reads its stderr, which a server that
logs fills and then blocks on; it reads a body of any length, decodes all of it or nothing, and waits for the server's
end without a bound. Here every buffer has a bound, and a server that passes one has lost its connection.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman import limits
from dragoman.coder.language_servers import messages
from dragoman.coder.language_servers.framing import Frames, FramingError, frame
from dragoman.host.pipes import PolledReadEnd, WriteEnd
from dragoman.host.process import Child

# What waits for a server that does not read: a few whole files.
OUTGOING_BYTES: Final = 32 * limits.MIB
# What a server may send in one interval. Problems of a large project are some megabytes.
FLOOD_BYTES: Final = 64 * limits.MIB
FLOOD_SECONDS: Final = 10.0
# Messages that are no JSON.
MOST_BAD: Final = 20

_METHOD_NOT_FOUND: Final = -32601


_log = logging.getLogger(__name__)


class ServerLost(Exception):
    """The server has gone, or has been given up; the text says why, for our log."""


class RequestRefused(Exception):
    """The server answered a request with an error."""


class ServerConnection:
    """One connection. `on_notification` and `answer` are called from the loop, in the order of arrival."""

    def __init__(
        self,
        child: Child,
        on_notification: Callable[[str, Raw | UnsetType], None],
        answer: Callable[[str, Raw | UnsetType], object],
    ) -> None:
        """`answer` returns the result for a request of the server, and raises `LookupError` for an unknown one."""
        self._on_notification = on_notification
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._open: dict[int, asyncio.Future[Raw]] = {}
        self._last_id = 0
        self._outgoing = bytearray()
        self._bad = 0
        self._window_began = self._loop.time()
        self._window_bytes = 0
        self.lost: Final = asyncio.Event()
        self.reason = ""
        self._writer = WriteEnd(child.stdin, self._write, lambda error: self.close("it does not read any more"))
        self._reader = PolledReadEnd(child.stdout, self._receive, lambda error: self.close("it has ended"))
        self._reader.resume()
        # What it started itself may hold the pipe open for ever.
        child.on_exit(self._reader.finish)

    def __repr__(self) -> str:
        state = f"lost: {self.reason}" if self.lost.is_set() else "open"
        return f"<ServerConnection {state}, {len(self._open)} requests, {len(self._outgoing)} bytes to send>"

    async def request(self, method: str, params: Raw | None, seconds: float) -> Raw:
        """Return the result of a request. Raises `ServerLost`, `RequestRefused`, and `TimeoutError` after `seconds`.

        What is not waited for any more is cancelled at the server, too.
        """
        if self.lost.is_set():
            raise ServerLost(self.reason)
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Raw] = self._loop.create_future()
        self._open[number] = answer
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            async with asyncio.timeout(seconds):
                return await answer
        finally:
            if self._open.pop(number, None) is not None and not self.lost.is_set():
                self.notify("$/cancelRequest", Raw(b'{"id":%d}' % number))

    def notify(self, method: str, params: Raw) -> None:
        """Send a notification. One to a server that is lost goes nowhere."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def close(self, reason: str) -> None:
        """Close the connection: open requests end with `ServerLost`. The process is the owner's to stop."""
        if self.lost.is_set():
            return
        self.reason = reason
        self._reader.close()
        self._writer.close()
        self._outgoing.clear()
        self.lost.set()
        waiting, self._open = self._open, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(ServerLost(reason))

    # -- sending ------------------------------------------------------------------------------------------------------

    def _send(self, message: dict[str, object]) -> None:
        if self.lost.is_set():
            return
        if message.get("params", UNSET) is None:
            del message["params"]
        self._outgoing += frame(msgspec.json.encode(message))
        if len(self._outgoing) > OUTGOING_BYTES:
            self.close("it does not read what it is sent")
            return
        self._write()

    def _write(self) -> None:
        while self._outgoing and not self.lost.is_set():
            # A copy: the buffer cannot shrink while a view of it is held.
            taken = self._writer.write(bytes(self._outgoing[: limits.READ_BYTES]))
            if not taken:
                return
            del self._outgoing[:taken]

    # -- receiving ----------------------------------------------------------------------------------------------------

    def _receive(self, data: bytes) -> None:
        now = self._loop.time()
        if now - self._window_began > FLOOD_SECONDS:
            self._window_began, self._window_bytes = now, 0
        self._window_bytes += len(data)
        if self._window_bytes > FLOOD_BYTES:
            self.close("it sends more than it may")
            return
        try:
            bodies = self._frames.feed(data)
        except FramingError as error:
            self.close(f"it sent {error}")
            return
        for body in bodies:
            if self.lost.is_set():
                return
            self._receive_message(body)

    def _receive_message(self, body: bytes) -> None:
        message = messages.decode_envelope(body)
        if message is None:
            self._bad += 1
            if self._bad > MOST_BAD:
                self.close("it sends what is no JSON")
        elif message.method is UNSET:
            self._receive_answer(message)
        elif message.id is None:
            self._on_notification(message.method, message.params)
        else:
            self._receive_request(message.id, message.method, message.params)

    def _receive_answer(self, message: messages.ServerMessage) -> None:
        answer = self._open.pop(message.id, None) if isinstance(message.id, int) else None
        if answer is None or answer.done():
            return
        if message.error is not UNSET:
            answer.set_exception(RequestRefused(bytes(message.error)[:200].decode(errors="replace")))
        else:
            answer.set_result(message.result or Raw(b"null"))

    def _receive_request(self, number: int | str, method: str, params: Raw | UnsetType) -> None:
        try:
            result = self._answer(method, params)
        except LookupError:
            error = {"code": _METHOD_NOT_FOUND, "message": "This client does not serve that."}
            self._send({"jsonrpc": "2.0", "id": number, "error": error})
            return
        self._send({"jsonrpc": "2.0", "id": number, "result": result})
