"""Which user holds the other end of a connection of this machine: asked of the kernel, at the time of a request.

A connection over loopback has two sockets, and the kernel knows of each which user has opened it. Linux tells it by
sock_diag(7), for the exact addresses and ports of both ends: one question of some ten microseconds, however many
connections there are, and open to every process. (/proc/net/tcp has the same, and takes milliseconds to be read even
where there are five.) The answer is not kept: a port has another owner soon after its connection is closed.

Promise: an answer is the owner of the very socket that is the other end, and of one that is still connected. Whatever
cannot be known is None: no Linux, no such question in this kernel or this sandbox, an end that is in another network
namespace, a user that our user namespace has no number for. A caller must treat None as a stranger.
"""

import ipaddress
import os
import socket
import struct
from typing import Final

from dragoman.gateway.idle_sockets import SocketPeer, peer_of

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h; the order of bytes is the machine's, that of ports the net's.
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_ESTABLISHED: Final = 1
_HEADER: Final = struct.Struct("=IHHII")  # length, type, flags, sequence, port of netlink
_REQUEST: Final = struct.Struct("=BBxxI")  # family, protocol, states
_ENDS: Final = struct.Struct(">HH16s16s")  # ports and addresses: of the socket itself, then of what it is connected to
_REST: Final = struct.Struct("=III")  # interface, cookie
_FOUND: Final = struct.Struct("=BBxx")  # family, state
_OWNER: Final = struct.Struct("=12xII")  # user, inode
_ANY: Final = (0, 0xFFFFFFFF, 0xFFFFFFFF)
_ANSWER_BYTES: Final = 4096
# The kernel answers before `send` returns; one that does not is not waited for.
_SECONDS: Final = 0.5
# Stands for every user that has no number in our user namespace (user_namespaces(7)).
_OVERFLOW_FILE: Final = "/proc/sys/kernel/overflowuid"
_OVERFLOW: Final = 65534


def is_own(client: SocketPeer, server: SocketPeer) -> bool:
    """Return whether a process of our own user is the `client` of a connection to the `server`.

    False where that is not known. Root is no exception, neither as the client nor as the server.
    """
    return user_of(client, server) == os.geteuid()


def user_of(client: SocketPeer, server: SocketPeer) -> int | None:
    """Return the user that has opened the socket at the client's end."""
    try:
        found = _ask(client, server)
    except (OSError, ValueError, struct.error, AttributeError):  # AttributeError: not Linux
        return None
    return None if found is None or found == _overflow() else found


def can_be_known() -> bool:
    """Return whether this machine tells, tried with a connection of our own."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listening,
            socket.create_connection(listening.getsockname(), timeout=_SECONDS) as client,
        ):
            return is_own(peer_of(*client.getsockname()), peer_of(*client.getpeername()))
    except OSError:
        return False


def _ask(client: SocketPeer, server: SocketPeer) -> int | None:
    local, remote = ipaddress.ip_address(client.address), ipaddress.ip_address(server.address)
    if local.version != remote.version:
        return None
    family = socket.AF_INET if local.version == 4 else socket.AF_INET6
    ends = _ENDS.pack(client.port, server.port, local.packed.ljust(16, b"\0"), remote.packed.ljust(16, b"\0"))
    question = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << _ESTABLISHED) + ends + _REST.pack(*_ANY)
    header = _HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.sendto(header + question, (0, 0))
        answer, sender = kernel.recvfrom(_ANSWER_BYTES)
    return None if sender[0] else _owner(answer, client, server)


def _owner(answer: bytes, client: SocketPeer, server: SocketPeer) -> int | None:
    """The user in an answer, if it is about an open connection with exactly these ends: the kernel may answer with a
    socket that listens, or with what is left of a connection, which has no owner."""
    _, kind, _, _, _ = _HEADER.unpack_from(answer)
    if kind != _SOCK_DIAG_BY_FAMILY:
        return None
    at = _HEADER.size
    family, state = _FOUND.unpack_from(answer, at)
    at += _FOUND.size
    port, other_port, address, other_address = _ENDS.unpack_from(answer, at)
    at += _ENDS.size + _REST.size
    user, inode = _OWNER.unpack_from(answer, at)
    width = 4 if family == socket.AF_INET else 16
    # A socket for IPv6 that speaks IPv4 has mapped addresses; `peer_of` makes the plain ones of them.
    ends = (_named(address[:width], port), _named(other_address[:width], other_port))
    is_it = state == _ESTABLISHED and inode and ends == (client, server)
    return int(user) if is_it else None


def _named(address: bytes, port: int) -> SocketPeer:
    return peer_of(str(ipaddress.ip_address(address)), port)


def _overflow() -> int:
    try:
        with open(_OVERFLOW_FILE, "rb") as file:
            return int(file.read(16))
    except (OSError, ValueError):
        return _OVERFLOW
