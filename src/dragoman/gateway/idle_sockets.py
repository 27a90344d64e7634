"""Who is connected, and whether it asks anything: whoever says nothing is hung up on, before any token is shown.

The server library waits for a first request for ever, and for the next one on a connection that has had one. So
requests are counted by who sends them, sockets are found among our own descriptors now and then, and those that have
nobody to answer for too long are closed. Whoever reads a stream is being answered.
"""

import ipaddress
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from dragoman.gateway.dead_peers import own_sockets

# From the first byte of TCP to the end of a request's head, TLS included.
FIRST_SECONDS: Final = 20.0
# Between two requests of one connection; proxies keep theirs for about a minute.
BETWEEN_SECONDS: Final = 120.0
# Connections that have asked nothing yet. Past this the oldest are hung up on at once.
SILENT: Final = 512
# How often somebody looks.
LOOK_SECONDS: Final = 5.0


class SocketPeer(NamedTuple):
    """The other end of a socket."""

    address: str
    port: int


class IdleSockets:
    """Those of one server; no I/O, and the clock is given."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._asking: Counter[SocketPeer] = Counter()
        self._asked: dict[SocketPeer, float] = {}  # when the last answer ended
        self._seen: dict[SocketPeer, float] = {}  # when somebody who has asked nothing was seen first

    @contextmanager
    def asks(self, client: tuple[str, int | str] | None) -> Iterator[None]:
        """A request is answered meanwhile."""
        if client is None:
            yield
            return
        peer = peer_of(*client)
        self._asking[peer] += 1
        try:
            yield
        finally:
            self._asking[peer] -= 1
            if not self._asking[peer]:
                del self._asking[peer]
            self._asked[peer] = self._clock()

    @property
    def answered(self) -> bool:
        """Whether somebody is being answered."""
        return bool(self._asking)

    def hopeless(self, connected: Collection[SocketPeer]) -> set[SocketPeer]:
        """Of those that are connected now, who is to be hung up on. Forgets the others."""
        now = self._clock()
        if self._asking and not any(peer in connected for peer in self._asking):
            return set()  # these are other names than ours: better nobody than everybody
        self._asked = {peer: since for peer, since in self._asked.items() if peer in connected}
        silent = [peer for peer in connected if peer not in self._asking and peer not in self._asked]
        self._seen = {peer: self._seen.get(peer, now) for peer in silent}
        oldest = sorted(self._seen, key=self._seen.__getitem__)[: max(len(self._seen) - SILENT, 0)]
        late = [peer for peer, since in self._seen.items() if now - since >= FIRST_SECONDS]
        done = [peer for peer, ended in self._asked.items() if now - ended >= BETWEEN_SECONDS]
        return {*oldest, *late, *(peer for peer in done if peer not in self._asking)}


def peer_of(address: str, port: int | str) -> SocketPeer:
    """A peer as everybody names it: the kernel, where one socket takes both versions of IP, and the library differ."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return SocketPeer(address, int(port))
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return SocketPeer(str(mapped or found), int(port))


def connected_to(port: int) -> set[SocketPeer]:
    """Everybody who is connected to a port of ours."""
    return {peer for peer, _ in _accepted(port)}


def hang_up(port: int, peers: Iterable[SocketPeer]) -> None:
    """Close these, for whoever holds them; it will see that they are gone."""
    wanted = set(peers)
    for peer, one in _accepted(port):
        if peer in wanted:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _accepted(port: int) -> Iterator[tuple[SocketPeer, socket.socket]]:
    for one in own_sockets():
        with one, suppress(OSError):
            if one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == port:
                yield peer_of(*one.getpeername()[:2]), one
