"""Is a request meant for this server, and sent by a page of ours or by no page? Judged by its head alone. Pure.

A browser lets any page send requests to this machine, and a name can be made to point to it (DNS rebinding); so a
loopback address alone is no protection. `Host` has to be a name of ours, and `Origin`, where there is one, the same.

RFC 9110 7.2 (Host), RFC 6454 7 (Origin).
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from dragoman.gateway.headers import Headers

# A header block of an ordinary client has a dozen headers and a kibibyte.
HEADER_COUNT: Final = 100
HEADER_BYTES: Final = 32 * 1024
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", re.ASCII)


class Refusal(NamedTuple):
    """Why a request is not admitted: an HTTP status, and a sentence for the client that is of no use to an attacker."""

    status: int
    reason: str


class HostCheck:
    """The names and the port that a server answers to."""

    def __init__(self, hosts: Iterable[str], port: int) -> None:
        self._hosts = {host.lower().strip("[]") for host in hosts}
        self._port = port

    def refusal(self, headers: Headers, scheme: str) -> Refusal | None:
        """Return a `Refusal` if there are too many headers, `Host` is not one of our names, or the request comes from a
        page of another origin; else None."""
        if len(headers) > HEADER_COUNT or sum(len(name) + len(value) for name, value in headers) > HEADER_BYTES:
            return Refusal(431, "The request has too many headers.")
        hosts = [value for name, value in headers if name == b"host"]
        # RFC 9110 7.2: more than one, or none, is an error, and what a proxy and a server could read differently.
        if len(hosts) != 1:
            return Refusal(400, "The request must name one host.")
        host = hosts[0].decode("latin-1").lower()
        if not self._is_ours(host):
            return Refusal(421, "This server does not answer to that name.")
        origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
        ours = {f"{scheme}://{host}"}
        if not _is_of_this_machine(host):
            ours.add(f"https://{host}")  # TLS ends at a proxy before us
        if len(origins) > 1 or not ours.issuperset(origins):
            return Refusal(403, "Pages of another origin may not use this server.")
        # No browser says "ours" and "from elsewhere" at once. A link from elsewhere to our page has no Origin.
        sites = {value for name, value in headers if name == b"sec-fetch-site"}
        if origins and not sites <= {b"none", b"same-origin"}:
            return Refusal(403, "Pages of another origin may not use this server.")
        return None

    def _is_ours(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        if host in self._hosts:  # named with its port, as it is seen behind a proxy
            return True
        name, port = match[1].strip("[]"), match[2]
        # Another port of this machine is another server, whose pages must not pass for ours; behind a proxy the port is
        # its own.
        if port is not None and int(port) != self._port and name not in self._hosts - LOOPBACK:
            return False
        if name in self._hosts:
            return True
        # Rebinding needs a name. Where we listen on every address, any literal one of ours may be used.
        return "0.0.0.0" in self._hosts | self._any() and _is_address(name)

    def _any(self) -> set[str]:
        return {"0.0.0.0"} if "::" in self._hosts else set()


LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach what listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_of_this_machine(host: str) -> bool:
    """Return whether a `Host`, with or without a port, is a loopback name or address."""
    match = _HOST.fullmatch(host)
    return match is not None and is_loopback(match[1].strip("[]"))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
