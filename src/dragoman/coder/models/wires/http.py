"""A connection to a server of models: a request is posted, and the events of its stream come back.

Promises: an answer is bounded as a whole and event by event; no redirect is followed, because it would carry the key
away; an answer that is left is closed at once, so that the provider stops it; nothing is tried again.
"""

import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import cache
from typing import Final
from urllib.parse import urlsplit

import httpx2

from dragoman.coder.models.timeouts import ModelTimeouts
from dragoman.coder.models.wires.contract import HttpRequest
from dragoman.coder.models.wires.errors import Encoded, NoEvents, ResponseTooLarge
from dragoman.errors import LinkClosed
from dragoman.host.tls import verify_for
from dragoman.limits import MIB
from dragoman.sse import EventReader
from dragoman.version import VERSION

_HERE: Final = ("localhost", "127.0.0.1", "::1")
_HEADERS: Final = {
    "accept": "text/event-stream",
    "content-type": "application/json",
    "user-agent": f"dragoman/{VERSION}",
}
# One event. The longest real ones, a call that writes a large file, have a few MiB.
_EVENT_BYTES: Final = 16 * MIB
# An error is a sentence, and at times a page of HTML.
_ERROR_BYTES: Final = MIB
# Where the list of authorities may come from, besides the system.
_AUTHORITY_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class ErrorStatus(Exception):
    """The server answered with a status that is no success. The body is cut where it is too long."""

    def __init__(self, status: int, body: bytes, headers: httpx2.Headers) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = headers


class HttpConnection:
    """A client for one address, for any number of requests. Made in a thread: the list of authorities is read."""

    def __init__(
        self, base_url: str, timeouts: ModelTimeouts, answer_bytes: int, headers: Mapping[str, str] | None = None
    ) -> None:
        """`headers`, with names in small letters, come before those of a request."""
        self._base_url = base_url
        self._headers = dict(headers or {})
        self._bound = answer_bytes
        self._client = new_client(base_url, timeouts)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    async def events(self, request: HttpRequest) -> AsyncGenerator[list[bytes], None]:
        """Post a request and yield the events of the answer as they come; those of one read are one list.

        An empty list tells that the answer has begun, or that bytes came which complete no event.
        """
        posted = self._client.build_request(
            "POST",
            self._base_url + request.path,
            headers=_HEADERS | request.headers | self._headers,
            content=request.body,
        )
        response = await self._client.send(posted, stream=True)
        try:
            # A few compressed bytes can be gigabytes of answer, and our request asked for no compression.
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise Encoded
            if not response.is_success:
                raise ErrorStatus(response.status_code, await _read(response, self._bound), response.headers)
            yield []
            async with aclosing(self._stream(response)) as events:
                async for batch in events:
                    yield batch
        finally:
            await response.aclose()

    async def _stream(self, response: httpx2.Response) -> AsyncGenerator[list[bytes], None]:
        reader = EventReader(min(self._bound, _EVENT_BYTES))
        left, is_stream = self._bound, False
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        async for received in response.stream:
            left -= len(received)
            if left < 0:
                raise ResponseTooLarge
            try:
                batch = [event.data for event in reader.feed(received)]
            except LinkClosed:
                raise ResponseTooLarge from None
            is_stream = is_stream or bool(batch)
            yield batch
        if not is_stream:
            raise NoEvents


async def _read(response: httpx2.Response, bound: int) -> bytes:
    """Return the beginning of a body, and read all of it; one beyond the bound is refused."""
    body, size = bytearray(), 0
    async for received in response.aiter_raw():
        size += len(received)
        if size > bound:
            raise ResponseTooLarge
        body += received[: max(0, _ERROR_BYTES - len(body))]
    return bytes(body)


def new_client(base_url: str, timeouts: ModelTimeouts) -> httpx2.AsyncClient:
    """Return an HTTP client that keeps the promises of this module, but for the bounds."""
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(
            connect=timeouts.connect, read=timeouts.chunk, write=timeouts.chunk, pool=timeouts.connect
        ),
        headers={"accept-encoding": "identity"},
        follow_redirects=False,
        verify=_trust(base_url),
        # The owner's proxy leads to the world, not back to this machine.
        trust_env=urlsplit(base_url).hostname not in _HERE,
    )


def _trust(base_url: str) -> ssl.SSLContext:
    """Return whom the address is believed by. Contexts are shared: one takes 15 to 50 ms, and has a list in memory."""
    verify = verify_for(base_url)
    return _authorities(*map(os.environ.get, _AUTHORITY_VARIABLES)) if isinstance(verify, bool) else verify


@cache
def _authorities(file: str | None, folder: str | None) -> ssl.SSLContext:
    return httpx2.create_ssl_context()
