"""The HTTP client for what a server's login needs: its metadata, its authorization server, tokens.

Those addresses come from the server, so they could lead into the network behind us. Promise: the server's own origin
is called as the user has configured it; any other address has to be of the public internet, or of the same kind as the
server's own (a server on this machine may name another one here, one of a private network another one there), and a
server that is called over https names nothing else. What was looked up is what is called (`public_web`), redirects
stay within their origin, and answers are unpacked nowhere and cut at `_ANSWER_BYTES`.
"""

import ipaddress
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urlsplit

import httpx2

from dragoman import limits
from dragoman.coder.mcp.logins import LoginFailed
from dragoman.host.address import DEFAULT_PORTS, UrlRefused, is_public
from dragoman.host.public_web import PublicTransport, Resolve, look_up, proxy_of
from dragoman.host.tls import verify_for

# Metadata has some kilobytes, tokens a few.
_ANSWER_BYTES: Final = 1 * limits.MIB
SECONDS: Final = 20.0
# The server, its metadata, its authorization server; each has a pool of connections of its own.
_HOSTS: Final = 8


def guarded_client(url: str, *, auth: httpx2.Auth | None = None, seconds: float = SECONDS) -> httpx2.AsyncClient:
    """Return a client for the login at the server with this URL. `LoginFailed` from a request that is not made."""
    transport = _GuardedTransport(httpx2.URL(url), look_up)
    headers = {"Accept-Encoding": "identity"}
    return httpx2.AsyncClient(transport=transport, auth=auth, timeout=seconds, headers=headers, trust_env=False)


def kind_of(address: str) -> str:
    """Return what kind of address it is: public, loopback, link-local, private; empty: it is none."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if is_public(address):
        return "public"
    return "loopback" if ip.is_loopback else "link-local" if ip.is_link_local else "private"


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends each request by the transport of its origin; judges the origins that are not the server's."""

    def __init__(self, server: httpx2.URL, resolve: Resolve) -> None:
        self._server = server
        self._resolve = resolve
        self._by_origin: dict[tuple[str, str, int | None], httpx2.AsyncBaseTransport] = {}
        self._kinds: frozenset[str] | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        origin = _origin(request.url)
        if origin not in self._by_origin:
            if len(self._by_origin) >= _HOSTS:
                raise LoginFailed("has a login that leads to too many addresses")
            self._by_origin[origin] = await self._open(request.url)
        try:
            response = await self._by_origin[origin].handle_async_request(request)
        except UrlRefused:
            host = request.url.host
            raise LoginFailed(f"has a login that leads to {host}, which is not a public address") from None
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError("Its answer is packed, which was not asked for.", request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=CountedBody(response.stream, _ANSWER_BYTES, "sent an answer that is too long"),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        for transport in self._by_origin.values():
            await transport.aclose()

    async def _open(self, url: httpx2.URL) -> httpx2.AsyncBaseTransport:
        if url.scheme not in DEFAULT_PORTS or url.userinfo:
            raise LoginFailed("has a login that leads to an address that is none of the web")
        if self._server.scheme == "https" and url.scheme != "https":
            raise LoginFailed(f"has a login that leads to {url.host} without https")
        proxy = proxy_of(url.scheme, url.host)
        inner = httpx2.AsyncHTTPTransport(verify=verify_for(str(url)), proxy=proxy)
        if _origin(url) == _origin(self._server):
            return inner
        if self._kinds is None:
            self._kinds = await self._own_kinds()
        kinds = self._kinds | {"public"}
        return PublicTransport(
            inner, self._resolve, proxied=proxy is not None, allows=lambda address: kind_of(address) in kinds
        )

    async def _own_kinds(self) -> frozenset[str]:
        """Return the kinds of the server's own addresses; none where only a proxy can look it up."""
        port = self._server.port or DEFAULT_PORTS.get(self._server.scheme, 0)
        try:
            return frozenset(map(kind_of, await self._resolve(self._server.host, port)))
        except (OSError, UnicodeError):
            return frozenset()


class CountedBody(httpx2.AsyncByteStream):
    """A body that ends in an error, with this text, when it has more than `most` bytes."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int, text: str) -> None:
        self._inner = inner
        self._most = most
        self._text = text

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                raise httpx2.StreamError(self._text)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def can_log_in(url: str, headers: "list[str]") -> bool:
    """Return whether a login may be used for a server: it has no credentials of its own in its URL or headers."""
    return "@" not in urlsplit(url).netloc and not any(name.lower() == "authorization" for name in headers)
