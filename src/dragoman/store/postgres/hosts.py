"""An address with several hosts: a primary and those that may become it.

They are asked at once, and the first that takes writes is used. One after the other, as asyncpg does it, a machine that
is gone without a word would be waited for longer than a lease lasts, and no node could get to the new primary.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from asyncpg import Record
    from asyncpg.connection import Connection

    Connect = Callable[..., Awaitable[Connection[Record]]]

_PORT: Final = 5432
_HOST: Final = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^:]*))(?::(?P<port>\d+))?")
_ATTRIBUTE: Final = "target_session_attrs"


def hosts_of(url: str) -> list[tuple[str, int]]:
    """Return the hosts of an address with their ports, if there are several; else nothing."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    named = parts.netloc.rpartition("@")[2]
    if named:
        found = [_HOST.fullmatch(one) for one in named.split(",")]
        hosts = [(unquote(one["v6"] or one["name"]), int(one["port"] or _PORT)) for one in found if one is not None]
    else:
        names = ",".join(query.get("host", [])).split(",")
        ports = [int(port) for port in ",".join(query.get("port", [])).split(",") if port.isdigit()] or [_PORT]
        # One port is that of each host.
        ports = ports * len(names) if len(ports) == 1 else ports
        hosts = list(zip(names, ports, strict=False))
    return hosts if len(hosts) > 1 else []


async def connect_to_any(connect: "Connect", url: str, **settings: Any) -> "Connection[Record]":
    """Connect to the host of an address that takes writes, or to the only one there is. `settings` are those of
    `asyncpg.connect`, which `connect` is. Raise what the first of several hosts has failed with."""
    hosts = hosts_of(url)
    if not hosts:
        return await connect(url, **settings)
    if _ATTRIBUTE not in parse_qs(urlsplit(url).query):
        settings[_ATTRIBUTE] = "read-write"
    tries = [asyncio.ensure_future(connect(url, host=host, port=port, **settings)) for host, port in hosts]
    chosen = None
    try:
        waiting = set(tries)
        while waiting and chosen is None:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            chosen = next((one for one in done if one.exception() is None), None)
        return await (chosen or tries[0])
    finally:
        for one in tries:
            one.cancel()
        for one, outcome in zip(tries, await asyncio.gather(*tries, return_exceptions=True), strict=True):
            # Connected in the same moment, and not needed.
            if one is not chosen and not isinstance(outcome, BaseException):
                outcome.terminate()
