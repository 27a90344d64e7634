"""A server behind an address: HTTP by httpx2, sockets by websockets, and bare TCP for what both refuse to send."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from dragoman import limits
from dragoman.conformance.servers.doors import EventStream, ServerDoor, ServerReply, ServerSocket, StreamedEvent
from dragoman.errors import UsageError, how_to_install
from dragoman.host.tls import verify_for
from dragoman.sse import EventReader

if TYPE_CHECKING:
    import httpx2
    from websockets.asyncio.client import ClientConnection

_CONNECT_SECONDS: Final = 10.0
_READ_SECONDS: Final = 120.0
_RAW_SECONDS: Final = 10.0
_RAW_BYTES: Final = 1024 * 1024


class AddressServer:
    """A server that runs, by its `http://` or `https://` address."""

    def __init__(self, url: str, token: str | None = None, ca_file: str = "") -> None:
        self.name: Final = url
        self.has_token: Final = token is not None
        self._url: Final = url
        self._token: Final = token
        self._ca_file: Final = ca_file

    def door(self, *, with_token: bool = True) -> ServerDoor:
        """Return a new client of it. Raise `UsageError` without the libraries."""
        return _AddressDoor(self._url, self._token if with_token else None, self._ca_file)


class _AddressDoor:
    def __init__(self, url: str, token: str | None, ca_file: str) -> None:
        try:
            import httpx2
        except ImportError:
            raise UsageError(f"HTTP needs an extra: {how_to_install('serve')}") from None
        self._url: Final = url
        self._token: Final[Mapping[str, str]] = {} if token is None else {"authorization": f"Bearer {token}"}
        self._ca_file: Final = ca_file
        self._error: Final[type[Exception]] = httpx2.HTTPError
        self._client: Final = httpx2.AsyncClient(
            verify=verify_for(url, ca_file),
            timeout=httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
            follow_redirects=False,
        )

    async def request(self, method: str, headers: Mapping[str, str], body: bytes = b"") -> ServerReply:
        try:
            reply = await self._client.request(method, self._url, headers={**self._token, **headers}, content=body)
        except self._error as error:
            raise OSError(str(error) or type(error).__name__) from None
        return ServerReply(reply.status_code, _lower(reply.headers), reply.content)

    async def open_stream(self, headers: Mapping[str, str]) -> EventStream | ServerReply:
        request = self._client.build_request("GET", self._url, headers={**self._token, **headers})
        try:
            reply = await self._client.send(request, stream=True)
            if reply.status_code != 200:
                await reply.aread()
                await reply.aclose()
                return ServerReply(reply.status_code, _lower(reply.headers), reply.content)
        except self._error as error:
            raise OSError(str(error) or type(error).__name__) from None
        return _AddressStream(reply, self._error)

    async def open_socket(self, headers: Mapping[str, str]) -> ServerSocket | ServerReply:
        try:
            from websockets.asyncio.client import connect
            from websockets.exceptions import InvalidHandshake, InvalidStatus
        except ImportError:
            raise UsageError(f"WebSockets need an extra: {how_to_install('serve')}") from None
        verified = verify_for(self._url, self._ca_file)
        trusted: dict[str, Any] = {"ssl": verified} if isinstance(verified, ssl.SSLContext) else {}
        try:
            socket = await connect(
                "ws" + self._url.removeprefix("http"),
                additional_headers={**self._token, **headers},
                max_size=limits.FRAME_BYTES,
                proxy=None,
                **(trusted if self._url.startswith("https") else {}),
            )
        except InvalidStatus as refused:
            return ServerReply(refused.response.status_code, _lower(refused.response.headers), b"")
        except InvalidHandshake as refused:
            raise OSError(str(refused)) from None
        return _AddressSocket(socket)

    async def raw(self, body: bytes, *, length: int, half_close: bool) -> ServerReply | None:
        where = urlsplit(self._url)
        secure = where.scheme == "https"
        verified = verify_for(self._url, self._ca_file)
        context = verified if isinstance(verified, ssl.SSLContext) else ssl.create_default_context()
        reader, writer = await asyncio.open_connection(
            where.hostname, where.port or (443 if secure else 80), ssl=context if secure else None
        )
        fields = {"host": where.netloc, "content-type": "application/json", "content-length": str(length)}
        lines = [f"{name}: {value}" for name, value in {**fields, **self._token}.items()]
        head = "\r\n".join([f"POST {where.path or '/'} HTTP/1.1", *lines, "connection: close", "", ""])
        try:
            writer.write(head.encode() + body)
            await writer.drain()
            if not half_close:
                return None
            if writer.can_write_eof():
                writer.write_eof()
            async with asyncio.timeout(_RAW_SECONDS):
                return _parsed(await reader.read(_RAW_BYTES))
        except (TimeoutError, ConnectionError):
            return None
        finally:
            writer.transport.abort()

    async def close(self) -> None:
        await self._client.aclose()


def _parsed(data: bytes) -> ServerReply | None:
    """Return the start of an answer that was read as bytes; None if it is none."""
    words = data.split(b"\r\n", 1)[0].split()
    if len(words) < 2 or not words[1].isdigit():
        return None
    return ServerReply(int(words[1]), {}, data.partition(b"\r\n\r\n")[2])


def _lower(headers: Any) -> Mapping[str, str]:
    pairs = headers.raw_items() if hasattr(headers, "raw_items") else headers.items()
    return {name.lower(): value for name, value in pairs}


class _AddressStream:
    def __init__(self, reply: "httpx2.Response", error: type[Exception]) -> None:
        self.headers: Mapping[str, str] = _lower(reply.headers)
        self._reply: Final = reply
        self._error: Final = error
        self._events: Final[asyncio.Queue[StreamedEvent | None]] = asyncio.Queue()
        self._reading: Final = asyncio.get_running_loop().create_task(self._read(reply.aiter_bytes()))

    async def _read(self, pieces: AsyncIterator[bytes]) -> None:
        reader = EventReader()
        with contextlib.suppress(self._error):
            async for data in pieces:
                for event in reader.feed(data):
                    self._events.put_nowait(StreamedEvent(bytes(event.data), event.id or ""))
        self._events.put_nowait(None)

    async def next(self, seconds: float) -> StreamedEvent | None:
        async with asyncio.timeout(seconds):
            return await self._events.get()

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._reply.aclose()


class _AddressSocket:
    def __init__(self, socket: "ClientConnection") -> None:
        answered = socket.response
        self.headers: Mapping[str, str] = {} if answered is None else _lower(answered.headers)
        self._socket: Final = socket

    async def send(self, message: str | bytes, *, pieces: int = 1) -> None:
        from websockets.exceptions import ConnectionClosed

        size = max(len(message) // pieces, 1)
        try:
            if pieces == 1:
                await self._socket.send(message)
            else:
                await self._socket.send([message[at : at + size] for at in range(0, len(message), size)])
        except ConnectionClosed as closed:
            raise ConnectionError(str(closed)) from None

    async def receive(self, seconds: float) -> str | bytes | None:
        from websockets.exceptions import ConnectionClosed

        try:
            async with asyncio.timeout(seconds):
                return await self._socket.recv()
        except ConnectionClosed:
            return None

    async def ping(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(await self._socket.ping(), seconds)
        except Exception:
            return False
        return True

    async def close(self) -> None:
        await self._socket.close()

    async def abort(self) -> None:
        # The head of a text frame of 100 bytes, and no more of it.
        self._socket.transport.write(b"\x81\xe4")
        self._socket.transport.abort()
