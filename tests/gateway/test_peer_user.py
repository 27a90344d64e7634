"""Which user is at the other end of a connection: real sockets, real users, and the kernel's own answer."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dragoman.gateway import peer_user
from dragoman.gateway.idle_sockets import SocketPeer, peer_of
from dragoman.gateway.peer_user import can_be_known, is_own, user_of
from tests.support.needs import need_other_users

Ends = tuple[SocketPeer, SocketPeer]
# Connects, and holds on until it is told to go.
AS_USER = """
import os, socket, sys
user, host, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.setgid(user)
os.setuid(user)
with socket.socket() as client:
    client.connect((host, port))
    sys.stdin.read()
"""


@contextmanager
def connected(host: str = "127.0.0.1", *, to: str = "") -> Iterator[tuple[socket.socket, socket.socket, Ends]]:
    """A connection of this process: its client, its server, and the ends as a server sees them."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection((to or host, port)) as client:
            server, address = listening.accept()
            with server:
                yield client, server, (peer_of(*address[:2]), peer_of(*server.getsockname()[:2]))


@pytest.mark.parametrize(
    ("host", "to"), [("127.0.0.1", ""), ("127.0.0.1", "::ffff:127.0.0.1"), ("127.0.0.9", ""), ("::1", "")]
)
def test_our_own_connection_is_ours(host: str, to: str) -> None:
    with connected(host, to=to) as (_, _, (client, server)):
        assert user_of(client, server) == os.geteuid()
        assert is_own(client, server)
    assert can_be_known()


@contextmanager
def other_user(user: int) -> Iterator[Ends]:
    """A connection that a process of another user has opened."""
    need_other_users()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        where = [str(word) for word in (user, *listening.getsockname())]
        with subprocess.Popen([sys.executable, "-c", AS_USER, *where], stdin=subprocess.PIPE) as child:
            server, address = listening.accept()
            with server:
                yield peer_of(*address), peer_of(*server.getsockname())
            assert child.stdin is not None
            child.stdin.close()


def test_another_user_is_another_user() -> None:
    with other_user(12345) as (client, server):
        assert user_of(client, server) == 12345
        assert not is_own(client, server)


def test_a_user_whom_our_namespace_has_no_number_for_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of those look like user 65534, and so would a server that runs as it."""
    with other_user(65534) as (client, server):
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
        assert user_of(client, server) is None
        assert not is_own(client, server)


def test_only_the_very_connection_counts() -> None:
    with connected() as (_, _, (client, server)), connected("127.0.0.9") as (_, _, (_, elsewhere)):
        assert user_of(server, client) == os.geteuid()  # its other end
        for ends in (
            (client, elsewhere),
            (client, SocketPeer("127.0.0.9", server.port)),
            (SocketPeer("127.0.0.9", client.port), server),
            (SocketPeer(client.address, server.port), server),
            (server, server),
            (SocketPeer("0.0.0.0", 0), server),
            (SocketPeer("::1", client.port), server),
            (SocketPeer("", 0), server),
            (SocketPeer("garbage", 1), server),
            (SocketPeer(client.address, 70_000), server),
            (client, SocketPeer("", 0)),
        ):
            assert user_of(*ends) is None, ends


def test_a_listening_socket_is_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        here = peer_of(*listening.getsockname())
        assert user_of(here, SocketPeer("127.0.0.1", 9)) is None


def test_what_is_left_of_a_closed_connection_has_no_owner() -> None:
    with connected() as (client, server, ends):
        assert is_own(*ends)
        client.shutdown(socket.SHUT_WR)
        assert user_of(*ends) is None
        client.close()
        assert user_of(*ends) is None
        server.close()
        assert user_of(*ends) is None


@pytest.mark.parametrize("missing", ["AF_NETLINK", "SOCK_CLOEXEC"])
def test_where_the_system_has_no_such_question_nothing_is_known(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, missing)
    with connected() as (_, _, ends):
        assert user_of(*ends) is None
    assert not can_be_known()


def test_an_answer_that_is_cut_short_or_an_error_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with connected() as (_, _, ends):
        owner, length = peer_user._owner, 88

        def cut(answer: bytes, client: SocketPeer, server: SocketPeer) -> int | None:
            return owner(answer[:length], client, server)

        monkeypatch.setattr(peer_user, "_owner", cut)
        assert is_own(*ends)
        for length in range(88):
            assert user_of(*ends) is None, length
