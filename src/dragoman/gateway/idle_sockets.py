"""Close accepted sockets on which no request comes, whether or not a token was ever shown on them.

The server library waits for a first request for ever, and for the next one on a connection that has had one. So
requests in progress are counted by peer, sockets are found among our own descriptors at intervals, and those without
a request in progress for too long are shut down. A stream that is being read is a request in progress.
"""

import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from dragoman.gateway.dead_peers import own_sockets

# From the first byte of TCP to the end of a request's head, TLS included.
FIRST_SECONDS: Final = 20.0
# Between two requests of one connection; proxies keep theirs for about a minute.
BETWEEN_SECONDS: Final = 120.0
# Connections without any request yet. Past this the oldest are shut down at once: a flood of sockets that say nothing
# must not use up the descriptors.
SILENT: Final = 512
# Interval between two checks.
CHECK_SECONDS: Final = 5.0
# Among ten thousand sockets the thread that looks at them gives way after so many, for so long.
_STEP: Final = 64
_PAUSE_SECONDS: Final = 0.001


class SocketPeer(NamedTuple):
    """The other end of a socket."""

    address: str
    port: int


class IdleSockets:
    """The peers of one server and their requests in progress; no I/O, and the clock is an argument."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._in_progress: Counter[SocketPeer] = Counter()
        self._last_reply: dict[SocketPeer, float] = {}  # when the last answer ended
        self._first_seen: dict[SocketPeer, float] = {}  # when a peer without any request was seen first

    @contextmanager
    def request(self, client: tuple[str, int | str] | None) -> Iterator[None]:
        """Count a request of `client` as in progress while the block runs."""
        if client is None:
            yield
            return
        peer = peer_of(*client)
        self._in_progress[peer] += 1
        try:
            yield
        finally:
            self._in_progress[peer] -= 1
            if not self._in_progress[peer]:
                del self._in_progress[peer]
            self._last_reply[peer] = self._clock()

    @property
    def has_requests(self) -> bool:
        """Return whether a request is in progress."""
        return bool(self._in_progress)

    def expired_peers(self, connected: Collection[SocketPeer]) -> set[SocketPeer]:
        """Return which of the connected peers have been silent for too long. Forgets peers that are not connected."""
        now = self._clock()
        # Peers are matched by address and port between what granian says of a request and what the kernel says of a
        # socket.
        if self._in_progress and not any(peer in connected for peer in self._in_progress):
            # No peer with a request is connected, so the two sides name peers differently: close none rather than all.
            return set()
        self._last_reply = {peer: since for peer, since in self._last_reply.items() if peer in connected}
        # Three kinds of peers: with a request in progress, with one that is over, and without any; the last are silent.
        silent = [peer for peer in connected if peer not in self._in_progress and peer not in self._last_reply]
        self._first_seen = {peer: self._first_seen.get(peer, now) for peer in silent}
        oldest = sorted(self._first_seen, key=self._first_seen.__getitem__)[: max(len(self._first_seen) - SILENT, 0)]
        late = [peer for peer, since in self._first_seen.items() if now - since >= FIRST_SECONDS]
        done = [peer for peer, ended in self._last_reply.items() if now - ended >= BETWEEN_SECONDS]
        return {*oldest, *late, *(peer for peer in done if peer not in self._in_progress)}


def peer_of(address: str, port: int | str) -> SocketPeer:
    """Return a peer in one normal form: without a zone, and an IPv4-mapped address as IPv4. The kernel and the server
    library name it differently where one socket accepts both versions of IP."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return SocketPeer(address, int(port))
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return SocketPeer(str(mapped or found), int(port))


def connected_to(port: int) -> set[SocketPeer]:
    """Return the peers of all sockets that are connected to a port of ours."""
    return {peer for peer, _ in _accepted(port)}


def shut_down(port: int, peers: Iterable[SocketPeer]) -> None:
    """Shut down the sockets of these peers; the server library, which owns them, then sees the end of each."""
    wanted = set(peers)
    for peer, one in _accepted(port):
        if peer in wanted:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _accepted(port: int) -> Iterator[tuple[SocketPeer, socket.socket]]:
    for number, one in enumerate(own_sockets()):
        if number % _STEP == _STEP - 1:
            time.sleep(_PAUSE_SECONDS)  # in a thread: the loop goes on meanwhile
        with one, suppress(OSError):
            if one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == port:
                yield peer_of(*one.getpeername()[:2]), one
