"""One POST to an address that a user has given: to the public internet, or to an origin that the operator allows.

As with `fetch`, the host is looked up once and the connection goes to an address that was checked. No redirect is
followed, and of the answer nothing is read but its status, so that nothing of a network behind us can be seen by it.
"""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import aclosing
from typing import Final
from urllib.parse import urlsplit

import httpx2

from dragoman.host.address import UrlRefused, check_target
from dragoman.host.bounded_body import BROKEN, FetchFailed
from dragoman.host.fetch import OpenTransport, open_transport_for
from dragoman.host.public_web import CONNECT_SECONDS, PublicTransport, Resolve, look_up, proxy_of

_TIMEOUT: Final = httpx2.Timeout(None, connect=CONNECT_SECONDS).as_dict()


async def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    origins: Collection[str] = (),
    seconds: float,
    resolve: Resolve = look_up,
    open_transport: OpenTransport = open_transport_for,
) -> int:
    """Send a body and return the status of the answer, within so many seconds. `origins`, in the spelling of
    `origin_of`, may have any address. Raise `UrlRefused`, or `FetchFailed` where there is no answer."""
    try:
        async with asyncio.timeout(seconds):
            return await _post(url, body, headers, check_target(url, origins), resolve, open_transport)
    except TimeoutError as error:
        raise FetchFailed(f"There was no answer within {seconds:g} s.") from error
    except httpx2.InvalidURL as error:
        raise UrlRefused("That is no URL.") from error
    except (httpx2.TransportError, *BROKEN) as error:
        raise FetchFailed("It cannot be reached, or does not speak HTTP.") from error


async def _post(
    url: str, body: bytes, headers: Mapping[str, str], is_allowed: bool, resolve: Resolve, opened: OpenTransport
) -> int:
    parts = urlsplit(url)
    # What the operator allows is in the operator's own network, where no proxy is needed.
    proxy = None if is_allowed else proxy_of(parts.scheme, parts.hostname or "")
    inner = await asyncio.to_thread(opened, url, proxy)
    transport = inner if is_allowed else PublicTransport(inner, resolve, proxied=proxy is not None)
    # The host as it was checked, and not as the library would write it.
    sent = {"Host": parts.netloc, "Content-Length": str(len(body)), **headers}
    request = httpx2.Request("POST", url, headers=sent, content=body, extensions={"timeout": _TIMEOUT})
    async with aclosing(transport):
        response = await transport.handle_async_request(request)
        async with aclosing(response):
            return response.status_code
