"""A remote agent over one WebSocket; each text frame is a message.

A dropped socket is opened again and the connection goes on: the n-th message of a connection has the number n, so we
send the number of the last one that we have, get the number of the last one of ours that arrived, and send the rest.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from dragoman import limits
from dragoman.errors import LinkClosed, UsageError, how_to_install
from dragoman.host.tls import trust_only
from dragoman.transports.remote import (
    FIRST_SECONDS,
    OPEN_SECONDS,
    OURS,
    RETURN_SECONDS,
    RemoteTransport,
    ServerRefused,
    attempts,
    plain_reason,
)
from dragoman.transports.token import TokenFile

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

# Sent and perhaps not arrived: more than the socket buffers of both sides hold.
_REMEMBERED_BYTES: Final = 16 * limits.MIB
# Larger messages leave in pieces; servers bound a frame lower than a message.
_FRAGMENT: Final = 1 * limits.MIB
_PING_SECONDS: Final = 20.0
_OUR_NOTES: Final = b'{"jsonrpc":"2.0","method":"_dragoman/'
# RFC 6455 7.4.2 and ours: coming back would end the same way.
_FINAL: Final = frozenset({1002, 1003, 1008, 1009, 1010, 4004})


class _Note(msgspec.Struct):
    method: str
    params: dict[str, int] = {}


class _Greeting(msgspec.Struct):
    result: dict[str, Any] | None = None


class WebSocketTransport(RemoteTransport):
    """A `Transport` to an agent behind `ws://` or `wss://`."""

    def __init__(self, url: str, token: str | TokenFile | None = None, ca_file: str = "") -> None:
        super().__init__(url, token, ca_file)
        self._socket: ClientConnection | None = None
        self._connection_id: str | None = None
        self._has_id = asyncio.Event()
        self._cookies: SimpleCookie = SimpleCookie()
        self._received_count = 0
        self._sent: deque[bytes] = deque()
        self._sent_bytes = 0
        self._sent_count = 0

    async def _run(self) -> None:
        while True:
            socket = await self._connect()
            self._socket = socket
            for cookie in () if socket.response is None else socket.response.headers.get_all("Set-Cookie"):
                self._cookies.load(cookie)  # a load balancer finds the same server by it
            has_resent = asyncio.Event()
            sending = asyncio.create_task(self._send_all(socket, has_resent))
            try:
                await self._receive_all(socket, has_resent)
            finally:
                self._socket = None
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                await socket.close()
            if not self._connection_id:
                raise LinkClosed("the connection has ended, and the server has given it no name to come back to")
            if socket.close_code in _FINAL:
                raise LinkClosed(f"the server closed the connection with code {socket.close_code}")

    async def _connect(self) -> "ClientConnection":
        try:
            from websockets.asyncio.client import connect
            from websockets.exceptions import InvalidStatus, WebSocketException
        except ImportError:
            raise UsageError(f"WebSockets need an extra: {how_to_install('serve')}") from None

        class Straight(connect):
            """A connection to this address and no other: prompts and a token are for the server that was named."""

            def process_redirect(self, exc: Exception) -> Exception | str:
                return exc

        headers = dict(OURS)
        if self._cookies:
            headers["Cookie"] = "; ".join(f"{name}={cookie.value}" for name, cookie in self._cookies.items())
        if self._connection_id is not None:
            headers |= {"Acp-Connection-Id": self._connection_id, "Last-Event-ID": str(self._received_count)}
        # Without the argument the library asks the authorities of this machine.
        trusted: dict[str, Any] = {"ssl": trust_only(self.ca_file)} if self.ca_file else {}
        problem = "no answer"
        async for _ in attempts(FIRST_SECONDS if self._connection_id is None else RETURN_SECONDS):
            try:
                socket = await Straight(
                    self.url,
                    **trusted,
                    additional_headers=headers | self.token_headers(),
                    compression=None,
                    max_size=limits.FRAME_BYTES,
                    max_queue=16,
                    open_timeout=OPEN_SECONDS,
                    ping_interval=_PING_SECONDS,
                    ping_timeout=_PING_SECONDS,
                    close_timeout=1,
                    proxy=None if _is_local(self.url) else True,
                )
                self.on_reached()
                return socket
            except InvalidStatus as answer:
                status = answer.response.status_code
                if self.is_final(status, connected=self._connection_id is not None):
                    raise ServerRefused(self.refusal(status)) from None
                problem = self.refusal(status)
            except (OSError, WebSocketException, TimeoutError) as error:
                problem = plain_reason(error)
                self.on_attempt_failed(problem)
        raise self.unreachable(problem, ever=self._connection_id is not None)

    async def _receive_all(self, socket: "ClientConnection", has_resent: asyncio.Event) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            if self._connection_id is not None:
                await self._send_missing(socket)
            has_resent.set()
            while True:
                message = await socket.recv(decode=False)
                if not message.startswith(_OUR_NOTES):
                    self._received_count += 1
                elif b'"_dragoman/gap"' in message[:64]:
                    self._received_count += msgspec.json.decode(message, type=_Note).params["missed"]
                if self._connection_id is None:
                    self._read_connection_id(socket, message)
                await self.deliver(message)
        except (ConnectionClosed, msgspec.DecodeError, KeyError):
            return

    def _read_connection_id(self, socket: "ClientConnection", message: bytes) -> None:
        """Read the id of the connection from the handshake, or from the answer to `initialize`."""
        named = None if socket.response is None else socket.response.headers.get("Acp-Connection-Id")
        if named is None:
            result = msgspec.json.decode(message, type=_Greeting).result or {}
            named = result.get("connectionId")
        self._connection_id = named if isinstance(named, str) else ""
        self._has_id.set()

    async def _send_missing(self, socket: "ClientConnection") -> None:
        """Send the messages again that the server says it has not received. Raise `ServerRefused` if they are gone."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                note = msgspec.json.decode(await socket.recv(decode=False), type=_Note)
            received = note.params["received"]
        except (TimeoutError, msgspec.DecodeError, KeyError):
            raise ServerRefused("the connection was lost, and this server does not let a connection go on") from None
        first = self._sent_count - len(self._sent) + 1
        if received + 1 < first:
            raise ServerRefused("the connection was lost, and so were messages that had been sent")
        for message in list(self._sent)[received + 1 - first :]:
            await socket.send(_pieces(message), text=True)

    async def _send_all(self, socket: "ClientConnection", has_resent: asyncio.Event) -> None:
        from websockets.exceptions import ConnectionClosed

        # A message that is sent before the server has said what it received is among the missing ones, and sent twice.
        await has_resent.wait()
        while True:
            message = await self.next_message()
            if self._sent_count:
                await self._has_id.wait()  # nothing can be sent again before the connection has a name
            self._remember(message)
            self.on_sent()
            try:
                await socket.send(_pieces(message), text=True)
            except ConnectionClosed:
                return

    def _remember(self, message: bytes) -> None:
        self._sent.append(message)
        self._sent_count += 1
        self._sent_bytes += len(message)
        while self._sent_bytes > _REMEMBERED_BYTES and len(self._sent) > 1:
            self._sent_bytes -= len(self._sent.popleft())

    async def _send_goodbye(self) -> None:
        if self._socket is not None:
            await self._socket.close(1000)


def _pieces(message: bytes) -> bytes | Iterable[bytes]:
    if len(message) <= _FRAGMENT:
        return message
    return [message[at : at + _FRAGMENT] for at in range(0, len(message), _FRAGMENT)]


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
