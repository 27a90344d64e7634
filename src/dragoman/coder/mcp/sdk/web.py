"""Servers behind a URL. The SDK speaks with them, through an HTTP client of ours that does not take just anything.

The SDK reads an answer that is no event stream whole, however long it is, and unpacks what is packed. Ours counts, and
takes nothing packed: a kilobyte of it can be a gigabyte.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import httpx2
from mcp.client import Transport
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from dragoman.coder.mcp.logins import LoginFailed, LoginNeeded, McpLoginFile
from dragoman.coder.mcp.sdk.guarded_client import CountedBody, can_log_in
from dragoman.coder.mcp.sdk.lines import MESSAGE_BYTES, TOO_LARGE
from dragoman.coder.mcp.sdk.oauth import KeptLoginAuth
from dragoman.errors import StartFailed
from dragoman.host.address import UrlRefused
from dragoman.host.public_web import PublicTransport, look_up
from dragoman.host.tls import verify_for
from dragoman.vocabulary.requests import McpHttp, McpSse

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

# A machine that does not answer at all.
CONNECT_SECONDS: Final = 10.0
# An event stream may be silent for long; a call has its own deadline, and a lost stream is opened again.
SILENT_SECONDS: Final = 300.0


class Web:
    """A server behind a URL. `status` is the last HTTP status, if that was a refusal, else 0. `refusal` is why its
    login cannot be used, if that is so.

    `only_public`: it is called only where all addresses of its host are of the public internet. `logins` is the folder
    of kept logins; empty: none is used.
    """

    def __init__(self, config: McpHttp | McpSse, *, only_public: bool = False, logins: str = "") -> None:
        self._only_public = only_public
        self.status = 0
        self.refusal: StartFailed | None = None
        self._config = config
        self._headers = {header.name: header.value for header in config.headers or ()}
        self._url, self._auth = _without_user(config.url)
        if logins and self._auth is None and can_log_in(self._url, list(self._headers)):
            self._auth = _WatchedLogin(self, KeptLoginAuth(self._url, McpLoginFile(logins, self._url)))

    def transport(self) -> Transport:
        """Return a way to the agent, for one connection."""
        return self._sse() if isinstance(self._config, McpSse) else self._http()

    @asynccontextmanager
    async def _http(self) -> "AsyncIterator[TransportStreams]":
        async with (
            self._client(self._headers) as client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=MESSAGE_BYTES) as streams,
        ):
            yield streams

    def _sse(self) -> "AbstractAsyncContextManager[TransportStreams]":
        return sse_client(
            self._url,
            self._headers,
            timeout=CONNECT_SECONDS,
            sse_read_timeout=SILENT_SECONDS,
            httpx_client_factory=self._client,
        )

    def _client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        verify = verify_for(self._url)
        return httpx2.AsyncClient(
            headers=(headers or {}) | {"Accept-Encoding": "identity"},
            timeout=timeout or httpx2.Timeout(CONNECT_SECONDS, read=SILENT_SECONDS),
            auth=auth or self._auth,
            verify=verify,
            transport=_PublicTransport(httpx2.AsyncHTTPTransport(verify=verify), look_up)
            if self._only_public
            else None,
            event_hooks={"response": [self._on_response]},
        )

    async def _on_response(self, response: httpx2.Response) -> None:
        # Servers that push nothing refuse the stream for that, and many refuse to be told of the end.
        if response.request.method == "POST" or isinstance(self._config, McpSse):
            self.status = response.status_code if response.is_error else 0
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError("Its answer is packed, which was not asked for.", request=response.request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = CountedBody(response.stream, MESSAGE_BYTES, TOO_LARGE)


class _WatchedLogin(httpx2.Auth):
    """Notes why a login cannot be used: the SDK makes an error of its own of what is raised here."""

    def __init__(self, web: Web, inner: httpx2.Auth) -> None:
        self._web = web
        self._inner = inner

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        self._web.refusal = None
        flow = self._inner.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                outgoing = await flow.asend((yield outgoing))
        except StopAsyncIteration:
            return
        except (LoginNeeded, LoginFailed) as error:
            self._web.refusal = error
            raise
        finally:
            await flow.aclose()


def _without_user(url: str) -> tuple[str, httpx2.Auth | None]:
    """Return the URL without its user and password, safe to print, and those as `BasicAuth`; None: there were none.

    Raise `StartFailed` if the URL cannot be parsed.
    """
    try:
        parts = urlsplit(url)
        user, _, host = parts.netloc.rpartition("@")
    except ValueError:
        raise StartFailed("has an address that cannot be read") from None
    name, _, password = user.partition(":")
    return parts._replace(netloc=host).geturl(), httpx2.BasicAuth(unquote(name), unquote(password)) if user else None


class _PublicTransport(PublicTransport):
    """Calls public hosts only, at the address that was looked at; no proxy is asked, which would look it up itself."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await super().handle_async_request(request)
        except UrlRefused:
            raise StartFailed("its address is not public, and this token may bring no other") from None
