"""How a server is reached: requests, event streams, sockets, and raw bytes."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class ServerReply(NamedTuple):
    """A whole answer; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


class StreamedEvent(NamedTuple):
    """One event of a stream; `id` is empty if it has none."""

    data: bytes
    id: str = ""


class EventStream(Protocol):
    """An event stream that was opened."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers of the answer, with names in lower case."""

    async def next(self, seconds: float) -> StreamedEvent | None:
        """Return the next event; None at the end of the stream. Raise `TimeoutError`."""

    async def close(self) -> None:
        """Leave the stream."""


class ServerSocket(Protocol):
    """A WebSocket that was opened."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers of the answer, with names in lower case."""

    async def send(self, message: str | bytes, *, pieces: int = 1) -> None:
        """Send a message, in several fragments if that is asked for. Raise `OSError` if the socket is closed."""

    async def receive(self, seconds: float) -> str | bytes | None:
        """Return the next message; None at the end. Raise `TimeoutError`."""

    async def ping(self, seconds: float) -> bool:
        """Return whether a ping is answered."""

    async def close(self) -> None:
        """Close the socket in order."""

    async def abort(self) -> None:
        """Drop the connection, in the middle of a frame."""


class ServerDoor(Protocol):
    """One client of a server."""

    async def request(self, method: str, headers: Mapping[str, str], body: bytes = b"") -> ServerReply:
        """Send a request and read the whole answer. Raise `OSError` if there is none."""

    async def open_stream(self, headers: Mapping[str, str]) -> EventStream | ServerReply:
        """Send a GET; return the stream, or the answer if it is none."""

    async def open_socket(self, headers: Mapping[str, str]) -> ServerSocket | ServerReply:
        """Open a WebSocket; return it, or the answer that refuses it."""

    async def raw(self, body: bytes, *, length: int, half_close: bool) -> ServerReply | None:
        """Post the first bytes of a body of a length, then close our direction, or drop the connection.

        Return the answer, None if none came. Raise `OSError` if no connection can be made.
        """

    async def close(self) -> None:
        """Release what was opened."""


class ServerSubject(Protocol):
    """A server that runs whether it is judged or not."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    @property
    def has_token(self) -> bool:
        """Return whether a token is sent with what probes ask."""

    def door(self, *, with_token: bool = True) -> ServerDoor:
        """Return a new client of it."""
