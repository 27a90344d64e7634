"""A peer whose machine or network is gone says nothing, so the kernel asks: TCP keep-alive on whatever we accept.

The server library answers a WebSocket's pings and has none of its own to send, and an event stream only ever speaks
one way. So a peer that is silent is probed by TCP (RFC 9293 3.8.4), and data that is not acknowledged is given up on
(RFC 5482), both within about a minute. Sockets inherit this from the one that listens, which is inside the library:
it is found among our own descriptors.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

# Silent for so long, asked so often at this distance: a dead peer is gone after a minute. Proxies use the same scale.
IDLE_SECONDS: Final = 30
INTERVAL_SECONDS: Final = 10
PROBES: Final = 3
# Data that was sent and not acknowledged.
UNACKNOWLEDGED_SECONDS: Final = 60
_DESCRIPTORS: Final = ("/proc/self/fd", "/dev/fd")


def find_dead_peers(port: int) -> int:
    """Ask for it on every socket of ours that listens on a port; how many there were."""
    found = 0
    for listening in listeners(port):
        with listening:
            found += 1
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            # Set on the socket that listens: those that it accepts inherit them.
            for name, value in _OPTIONS.items():
                with suppress(OSError, AttributeError):  # not every system has every one
                    listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return found


_OPTIONS: Final = {
    "TCP_KEEPIDLE": IDLE_SECONDS,
    "TCP_KEEPALIVE": IDLE_SECONDS,  # the same, on macOS
    "TCP_KEEPINTVL": INTERVAL_SECONDS,
    "TCP_KEEPCNT": PROBES,
    "TCP_USER_TIMEOUT": UNACKNOWLEDGED_SECONDS * 1000,
}


def listeners(port: int) -> Iterator[socket.socket]:
    """Return our sockets that listen on a port, as descriptors of their own."""
    for one in own_sockets():
        with suppress(OSError):
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and one.getsockname()[1] == port:
                yield one
                continue
        one.close()


def own_sockets() -> Iterator[socket.socket]:
    """Yield a duplicate of every socket of this process; the caller has to close each."""
    for folder in _DESCRIPTORS:
        with suppress(OSError):
            names = os.listdir(folder)
            break
    else:
        return
    for name in names:
        with suppress(OSError):
            # A duplicate: closing ours leaves the one that granian works with open.
            copy = os.dup(int(name))
            try:
                yield socket.socket(fileno=copy)
            except OSError:
                os.close(copy)
