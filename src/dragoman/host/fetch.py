"""One page of the public web: a GET that cannot be led into the network behind us.

A host is resolved once. Every address it has must be public, and the connection goes to one of those that were
checked, so a name that means something else a moment later changes nothing. A redirect is a new URL and is checked
like one. Nothing of ours is sent along: no cookies, no credentials, no referrer, no proxy settings. Bodies are bounded
by size, after unpacking too, and all of it by time.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from dragoman.host.address import CheckedUrl, UrlRefused, check_reference, check_url, is_public
from dragoman.host.decoding import is_binary_text
from dragoman.host.readable import decode, html_text
from dragoman.host.response import HEAD_BYTES, Body, FetchFailed, Head, read_head

# What is read of a page. The longest articles have a megabyte of markup.
PAGE_BYTES: Final = 4 * 1024 * 1024
MOST_PAGE_BYTES: Final = 16 * 1024 * 1024
# A body that says it is larger is not begun: it is no page.
DECLARED_BYTES: Final = 32 * 1024 * 1024
PAGE_SECONDS: Final = 30.0
# One address of several may be dead; the others shall get their turn within the whole.
CONNECT_SECONDS: Final = 10.0
ADDRESSES: Final = 4
REDIRECTS: Final = 10
_REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, for a port."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[str, int, str | None], Awaitable[Streams]]
"""A connection to an address and port; with TLS for a host of that name, unless the name is None."""


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
    dial: Dial | None = None,
) -> FetchedPage:
    """Return a page as readable text. `UrlRefused` if the URL is not allowed, `FetchFailed` if nothing could be had.

    `same_host`: the permission is for this host; a redirect to another one is `UrlRefused` with the URL it leads to.
    `resolve` and `dial` are for tests, which have no public internet: what `resolve` returns is checked all the same.
    """
    visit = _Visit(max(1, min(max_bytes, MOST_PAGE_BYTES)), same_host, resolve or _resolve, dial or _dial)
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

    def __init__(self, limit: int, same_host: bool, resolve: Resolve, dial: Dial) -> None:
        self._limit = limit
        self._same_host = same_host
        self._resolve = resolve
        self._dial = dial
        self._url: CheckedUrl | None = None
        self._head: Head | None = None
        self.body: Body | None = None

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
        reader, writer = await self._connect(url)
        try:
            writer.write(_request(url))
            head = await read_head(reader)
            if head.status in _REDIRECT_STATUSES and head.field("location"):
                return _as_utf8(head.field("location"))
            self._url, self._head = url, head
            if _is_text(head):
                if (head.declared_bytes or 0) > DECLARED_BYTES:
                    raise FetchFailed(f"The page is larger than {DECLARED_BYTES // 1024 // 1024} MiB.")
                self.body = Body(head, self._limit)
                await self.body.read(reader)
            return None
        except OSError as error:
            raise FetchFailed(f"The connection to {url.host} broke.") from error
        finally:
            writer.transport.abort()

    async def _connect(self, url: CheckedUrl) -> Streams:
        for address in await self._addresses(url):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await self._dial(address, url.port, url.host if url.scheme == "https" else None)
            except ssl.SSLError as error:
                raise FetchFailed(f"{url.host} has no certificate that can be trusted.") from error
            except (OSError, TimeoutError):
                continue
        raise FetchFailed(f"{url.host} cannot be reached.")

    async def _addresses(self, url: CheckedUrl) -> Sequence[str]:
        try:
            return (await public_addresses(url.host, url.port, self._resolve))[:ADDRESSES]
        except (OSError, UnicodeError) as error:
            raise FetchFailed(f"There is no host {url.host}.") from error

    def page(self) -> FetchedPage:
        """Return the outcome of a fetch. Takes a moment for a long page."""
        assert self._url is not None
        assert self._head is not None
        kind = _kind(self._head)
        text, is_cut = f"[{kind or 'data'}, which cannot be shown as text]", False
        if self.body is not None:
            data, is_cut = bytes(self.body.data), self.body.is_cut
            text = decode(data, _charset(self._head), is_html=_is_html(kind))
            if _is_html(kind):
                text = html_text(text, self._url.text)
            if is_binary_text(text):
                text = "[data, which cannot be shown as text]"
        return FetchedPage(self._url.text, self._head.status, kind, text, is_cut)


def _owner(host: str) -> str:
    """Return the host without `www.` in front: both names count as one host."""
    return host.removeprefix("www.")


def _as_utf8(field: str) -> str:
    """Servers send UTF-8 in redirects, though headers have no characters but ASCII."""
    return field.encode("latin-1").decode("utf-8", "replace")


def _request(url: CheckedUrl) -> bytes:
    lines = [
        f"GET {url.target} HTTP/1.1",
        f"Host: {url.authority}",
        "User-Agent: Mozilla/5.0 (compatible; Dragoman)",
        "Accept: text/html, text/markdown, text/plain, application/json, */*;q=0.5",
        "Accept-Encoding: gzip, deflate",
        "Connection: close",
    ]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("ascii")


def _kind(head: Head) -> str:
    return head.field("content-type").partition(";")[0].strip().lower()


def _charset(head: Head) -> str:
    for parameter in head.field("content-type").split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")
    return ""


def _is_html(kind: str) -> bool:
    return kind in ("text/html", "application/xhtml+xml")


def _is_text(head: Head) -> bool:
    """Return whether the body is worth reading; one without a type may be."""
    kind = _kind(head)
    main, _, sub = kind.partition("/")
    words = ("json", "xml", "javascript", "ecmascript", "yaml", "x-yaml", "toml", "x-sh", "x-ndjson", "sql", "graphql")
    return not kind or main == "text" or sub in words or sub.endswith(("+json", "+xml", "+yaml", "-javascript"))


async def public_addresses(host: str, port: int, resolve: Resolve | None = None) -> Sequence[str]:
    """Return the addresses of a host.

    One that is not public spoils them all, because the name is not to be trusted then: `UrlRefused`. `OSError`,
    `UnicodeError`: there is no such host.
    """
    addresses = list(await (resolve or _resolve)(host, port))
    if not all(is_public(address) for address in addresses):
        raise UrlRefused(f"{host} leads to an address that is not public.")
    return addresses


async def _resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def _dial(address: str, port: int, tls_name: str | None) -> Streams:
    context = ssl.create_default_context() if tls_name is not None else None
    return await asyncio.open_connection(address, port, ssl=context, server_hostname=tls_name, limit=HEAD_BYTES)
