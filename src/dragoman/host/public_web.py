"""Requests to the public internet only: a transport for httpx2 that connects to an address which was checked.

A host is resolved once. Every address it has must be public, and the connection goes to one of those that were
checked, so a name that means something else a moment later changes nothing; the certificate is that of the name. The
rules, which address is public and which name, are in `address`.

Through a proxy, which is the user's own, the same is checked first. An https page is asked for at the checked address
(CONNECT), if the proxy takes addresses; else, and for http, the proxy is given the name and looks it up again. A name
that cannot be looked up here is left to the proxy, because in many networks only the proxy can.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.request import getproxies, proxy_bypass

import httpx2

from dragoman.host.address import DEFAULT_PORTS, UrlRefused, is_public

# One address of several may be dead; the others shall get their turn within the whole.
CONNECT_SECONDS: Final = 10.0
ADDRESSES: Final = 4
# A network where only the proxy looks up names may drop our questions instead of answering them.
LOOKUP_SECONDS: Final = 5.0

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, for a port."""


class UnknownHost(httpx2.ConnectError):
    """The name of the host has no address."""


class PublicTransport(httpx2.AsyncBaseTransport):
    """Sends requests to a public host through `inner`. `UrlRefused`: the host has an address that is not public.

    `proxied`: `inner` goes through a proxy. One transport is for one host: connections are kept by address, and another
    host may have the same one. `allows` tells which addresses may be called, if not only public ones.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        resolve: Resolve,
        *,
        proxied: bool = False,
        allows: Callable[[str], bool] = is_public,
    ) -> None:
        self._inner = inner
        self._resolve = resolve
        self._proxied = proxied
        self._allows = allows

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._proxied:
            return await self._ask_proxy(request)
        try:
            addresses = await self._addresses(request)
        except (OSError, UnicodeError) as error:
            raise UnknownHost("There is no such host.", request=request) from error
        return await self._ask_addresses(request, addresses)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _addresses(self, request: httpx2.Request) -> Sequence[str]:
        host = request.url.raw_host.decode("ascii")
        port = request.url.port or DEFAULT_PORTS.get(request.url.scheme, 0)
        return await public_addresses(host, port, self._resolve, self._allows)

    async def _ask_addresses(self, request: httpx2.Request, addresses: Sequence[str]) -> httpx2.Response:
        """Return the response of the first address that can be reached."""
        failure: httpx2.TransportError = httpx2.ConnectError("There is no address.", request=request)
        for address in addresses[:ADDRESSES]:
            try:
                return await self._inner.handle_async_request(_pinned(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
                if is_of_tls(error) or _refuses_addresses(error):
                    raise
                failure = error
        raise failure

    async def _ask_proxy(self, request: httpx2.Request) -> httpx2.Response:
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                addresses = await self._addresses(request)
        except (OSError, UnicodeError):  # a timeout is an OSError
            addresses = []
        # Not IPv6: `httpcore2` writes such an address without the brackets that CONNECT needs.
        addresses = [address for address in addresses if "." in address]
        if request.url.scheme == "https" and addresses:
            try:
                return await self._ask_addresses(request, addresses)
            except httpx2.ProxyError as error:
                if not _refuses_addresses(error):
                    raise
        return await self._inner.handle_async_request(request)


def _pinned(request: httpx2.Request, address: str) -> httpx2.Request:
    """Return the request for this address: `Host`, which is set already, and the certificate are those of the name."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")},
    )


def is_of_tls(error: BaseException | None) -> bool:
    """Return whether TLS is what failed, such as a certificate that is not trusted."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__  # the pool cuts the chain of causes
    return error is not None


def _refuses_addresses(error: httpx2.TransportError) -> bool:
    """Return whether a proxy takes no address, or not this one: 4xx, but not 407, a login; 5xx is about the host."""
    return isinstance(error, httpx2.ProxyError) and str(error).startswith("4") and not str(error).startswith("407")


def proxy_of(scheme: str, host: str) -> str | None:
    """Return the URL of the proxy that the user's environment names for this host, if there is one."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


async def public_addresses(
    host: str, port: int, resolve: Resolve, allows: Callable[[str], bool] = is_public
) -> Sequence[str]:
    """Return the addresses of a host.

    One that is not public (`allows`) spoils them all, because the name is not to be trusted then: `UrlRefused`.
    `OSError`, `UnicodeError`: there is no such host.
    """
    addresses = list(await resolve(host, port))
    if not all(map(allows, addresses)):
        raise UrlRefused(f"{host} leads to an address that is not public.")
    return addresses


async def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the machine's resolver has for a host. `OSError`: it has none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
