"""One page of the public web: a GET that cannot be led into the network behind us.

httpx2 speaks HTTP/1.1 and HTTP/2, through a transport of ours (`public_web`) that connects to checked addresses only.
A redirect is a new URL and is checked like one. Nothing of ours is sent along: no cookies, no credentials, no referrer;
of the user's settings, the proxy of the environment counts. Bodies are bounded by size, after unpacking too, and all of
it by time.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx2

from dragoman.host.address import DEFAULT_PORTS, CheckedUrl, UrlRefused, check_reference, check_url
from dragoman.host.bounded_body import ACCEPTED_ENCODINGS, BROKEN, BoundedBody, FetchFailed
from dragoman.host.decoding import is_binary_text
from dragoman.host.public_web import (
    CONNECT_SECONDS,
    PublicTransport,
    Resolve,
    UnknownHost,
    is_of_tls,
    look_up,
    proxy_of,
)
from dragoman.host.readable import decode, html_text
from dragoman.host.tls import verify_for

# What is read of a page. The longest articles have a megabyte of markup.
PAGE_BYTES: Final = 4 * 1024 * 1024
MOST_PAGE_BYTES: Final = 16 * 1024 * 1024
PAGE_SECONDS: Final = 30.0
REDIRECTS: Final = 10
# Heads of real pages stay below 8 KiB, cookies and policies included.
HEAD_BYTES: Final = 64 * 1024
HEAD_LINES: Final = 200
_REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final = {
    "User-Agent": "Mozilla/5.0 (compatible; Dragoman)",
    "Accept": "text/html, text/markdown, text/plain, application/json, */*;q=0.5",
    "Accept-Encoding": ACCEPTED_ENCODINGS,
}
# The whole has one deadline, so only a connection has one of its own.
_TIMEOUT: Final = httpx2.Timeout(None, connect=CONNECT_SECONDS).as_dict()

OpenTransport = Callable[[str, str | None], httpx2.AsyncBaseTransport]
"""What sends a request for a URL, through the proxy with this URL if that is not None."""


class FetchedPage(NamedTuple):
    """What was found at `url`, which is the last one if there were redirects. `truncated`: there was more."""

    url: str
    status: int
    content_type: str
    text: str
    truncated: bool


async def fetch(
    url: str,
    *,
    max_bytes: int = PAGE_BYTES,
    deadline_seconds: float = PAGE_SECONDS,
    same_host: bool = False,
    resolve: Resolve | None = None,
    open_transport: OpenTransport | None = None,
) -> FetchedPage:
    """Return a page as readable text. `UrlRefused` if the URL is not allowed, `FetchFailed` if nothing could be had.

    `same_host`: the permission is for this host; a redirect to another one is `UrlRefused` with the URL it leads to.
    `resolve` and `open_transport` are for tests, which have no public internet: what `resolve` returns is checked all
    the same.
    """
    limit = max(1, min(max_bytes, MOST_PAGE_BYTES))
    visit = _Visit(limit, same_host, resolve or look_up, open_transport or open_transport_for)
    try:
        async with asyncio.timeout(deadline_seconds):
            await visit.follow(check_url(url))
    except TimeoutError as error:
        if visit.body is None or not visit.body.data:
            raise FetchFailed(f"The page did not come within {deadline_seconds:g} s.") from error
        visit.body.is_cut = True
    return await asyncio.to_thread(visit.page)


class _Visit:
    """The fetch of one page, over its redirects."""

    def __init__(self, limit: int, same_host: bool, resolve: Resolve, open_transport: OpenTransport) -> None:
        self._limit = limit
        self._same_host = same_host
        self._resolve = resolve
        self._open_transport = open_transport
        self._url: CheckedUrl | None = None
        self._response: httpx2.Response | None = None
        self.body: BoundedBody | None = None

    async def follow(self, url: CheckedUrl) -> None:
        for _ in range(REDIRECTS + 1):
            location = await self._hop(url)
            if location is None:
                return
            following = check_reference(location, url)
            if url.scheme == "https" and following.scheme != "https":
                raise UrlRefused("The page redirects from https to http, which is not encrypted.")
            if self._same_host and _owner(url.host) != _owner(following.host):
                raise UrlRefused(f"The page redirects to another host. Fetch {following.text} if you want that.")
            url = following
        raise UrlRefused(f"The page redirects more than {REDIRECTS} times.")

    async def _hop(self, url: CheckedUrl) -> str | None:
        """Return where it redirects to; None if it is the page."""
        proxy = proxy_of(url.scheme, url.host)
        inner = await asyncio.to_thread(self._open_transport, url.text, proxy)  # reads the list of authorities
        async with aclosing(PublicTransport(inner, self._resolve, proxied=proxy is not None)) as transport:
            response = await _ask(transport, url, proxy)
            async with aclosing(response):
                location = response.headers.get("location")
                if response.status_code in _REDIRECT_STATUSES and location:
                    return location
                self._url, self._response = url, response
                if _is_text(response.headers):
                    self.body = BoundedBody(response.headers, self._limit)
                    await self.body.read(response)
                return None

    def page(self) -> FetchedPage:
        """Return the outcome of a fetch. Takes a moment for a long page."""
        assert self._url is not None
        assert self._response is not None
        kind = _kind(self._response.headers)
        text, is_cut = f"[{kind or 'data'}, which cannot be shown as text]", False
        if self.body is not None:
            data, is_cut = bytes(self.body.data), self.body.is_cut
            text = decode(data, self._response.charset_encoding or "", is_html=_is_html(kind))
            if _is_html(kind) and not is_binary_text(text):
                text = html_text(text, self._url.text)
            if is_binary_text(text):
                text = "[data, which cannot be shown as text]"
        return FetchedPage(self._url.text, self._response.status_code, kind, text, is_cut)


async def _ask(transport: PublicTransport, url: CheckedUrl, proxy: str | None) -> httpx2.Response:
    """Return the response to a GET, without its body; `FetchFailed`, with a reason for the model, if there is none."""
    headers = {"Host": url.authority, **_HEADERS}
    try:
        request = httpx2.Request("GET", url.text, headers=headers, extensions={"timeout": _TIMEOUT})
        response = await transport.handle_async_request(request)
    except httpx2.InvalidURL as error:
        raise UrlRefused("That is no URL.") from error
    except httpx2.ProxyError as error:
        raise FetchFailed(f"The proxy between here and {url.host} answers {error}.") from error
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise FetchFailed(_why_not_connected(error, url.host, proxy)) from error
    except BROKEN as error:
        raise FetchFailed(f"What answers at {url.host} does not speak HTTP.") from error
    head = response.headers.raw
    if not 200 <= response.status_code < 600:
        await response.aclose()
        raise FetchFailed("The server answers with a status that is none.")
    if len(head) > HEAD_LINES or sum(len(name) + len(value) for name, value in head) > HEAD_BYTES:
        await response.aclose()
        raise FetchFailed("The server sent too many headers.")
    return response


def _why_not_connected(error: httpx2.TransportError, host: str, proxy: str | None) -> str:
    if is_of_tls(error):
        return f"{host} has no certificate that can be trusted."
    if isinstance(error, UnknownHost):
        return f"There is no host {host}."
    return f"{host} cannot be reached{'' if proxy is None else ' through the proxy'}."


def open_transport_for(url: str, proxy: str | None) -> httpx2.AsyncBaseTransport:
    try:
        if proxy is None or (urlsplit(proxy).scheme in DEFAULT_PORTS and urlsplit(proxy).port != 0):
            return httpx2.AsyncHTTPTransport(verify=verify_for(url), http2=True, proxy=proxy)
    except (httpx2.InvalidURL, ValueError):
        pass
    raise FetchFailed("The proxy that the environment names is no http:// or https:// one, and no other can be used.")


def _owner(host: str) -> str:
    """Return the host without `www.` in front: both names count as one host."""
    return host.removeprefix("www.")


def _kind(headers: httpx2.Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_html(kind: str) -> bool:
    return kind in ("text/html", "application/xhtml+xml")


def _is_text(headers: httpx2.Headers) -> bool:
    """Return whether the body is worth reading; one without a type may be."""
    kind = _kind(headers)
    main, _, sub = kind.partition("/")
    words = ("json", "xml", "javascript", "ecmascript", "yaml", "x-yaml", "toml", "x-sh", "x-ndjson", "sql", "graphql")
    return not kind or main == "text" or sub in words or sub.endswith(("+json", "+xml", "+yaml", "-javascript"))
