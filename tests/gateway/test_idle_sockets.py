"""Who is hung up on: by itself with a clock of ours, and on the real server."""

import asyncio
import socket
from itertools import count
from pathlib import Path

import pytest

from dragoman.gateway import idle_sockets, server
from dragoman.gateway.idle_sockets import BETWEEN_SECONDS, FIRST_SECONDS, SILENT, IdleSockets, SocketPeer, peer_of
from tests.support.gateway import counting, gateway, http_client, raw_http

from .sockets import opening, session

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_socket_without_requests_is_closed_and_one_being_answered_is_not() -> None:
    clock = Clock()
    known = IdleSockets(clock)
    silent, asking = SocketPeer("10.0.0.1", 1), SocketPeer("10.0.0.1", 2)
    both = {silent, asking}
    with known.request(asking):
        assert known.expired_peers(both) == set()
        clock.now += FIRST_SECONDS
        assert known.expired_peers(both) == {silent}
        clock.now += 10 * BETWEEN_SECONDS
        with known.request(asking):  # two at once
            pass
        clock.now += 10 * BETWEEN_SECONDS
        assert known.expired_peers({asking}) == set()
    clock.now += BETWEEN_SECONDS - 1
    assert known.expired_peers({asking}) == set()
    clock.now += 1
    assert known.expired_peers({asking}) == {asking}


def test_what_is_remembered_goes_with_the_connection() -> None:
    known = IdleSockets(Clock())
    with known.request(("10.0.0.1", 1)):
        pass
    with known.request(None):
        pass
    known.expired_peers({SocketPeer("10.0.0.2", 1)})
    assert known.expired_peers(set()) == set()
    assert (known._in_progress, known._last_reply, known._first_seen) == ({}, {}, {})


def test_where_the_names_of_peers_mean_nothing_no_socket_is_closed() -> None:
    clock = Clock()
    known = IdleSockets(clock)
    with known.request(("a name of its own", "1")):
        for _ in range(3):
            assert known.expired_peers({SocketPeer("10.0.0.1", 1)}) == set()
            clock.now += FIRST_SECONDS


def test_of_many_that_say_nothing_the_oldest_go_at_once() -> None:
    clock = Clock()
    known = IdleSockets(clock)
    old = {SocketPeer("10.0.0.1", port) for port in range(10)}
    assert known.expired_peers(old) == set()
    clock.now += 1
    new = {SocketPeer("10.0.0.2", port) for port in range(SILENT)}
    assert known.expired_peers(old | new) == old


@pytest.mark.parametrize("address", ["10.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1"])
def test_a_peer_has_one_name(address: str) -> None:
    assert peer_of(address, 1) == peer_of(address, "1") == SocketPeer("10.0.0.1", 1)


def test_a_peer_of_ipv6_has_one_name_too() -> None:
    assert peer_of("fe80:0::1%eth0", 1) == peer_of("fe80::1", 1)
    assert peer_of("unknown", 1) == SocketPeer("unknown", 1)


SAID = {
    "nothing": b"",
    "half a head": b"GET /health HTTP/1.1\r\nHost: x\r\nX-",
    "the beginning of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "a request": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


async def closed(port: int, said: bytes, host: str = "127.0.0.1") -> None:
    """Say this, and wait until the server has closed the connection."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(said)
        async with asyncio.timeout(30):
            while await reader.read(65536):
                pass
    except ConnectionError:
        pass
    finally:
        writer.close()


async def test_the_server_closes_silent_sockets_and_none_that_is_being_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_sockets, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(idle_sockets, "FIRST_SECONDS", 0.3)
    monkeypatch.setattr(idle_sockets, "BETWEEN_SECONDS", 0.6)
    async with gateway(counting(1), tmp_path) as served, opening(served) as peer, raw_http(served) as raw:
        session_id = await raw.session()
        await asyncio.gather(*(closed(served.server.port, said) for said in SAID.values()))
        assert served.hub.connections[raw.connection].connection.readers == 2  # the streams are still read
        assert session_id in served.hub.sessions
        await session(peer, 1)  # and so is a WebSocket on which nothing was sent


async def test_silent_sockets_are_closed_also_after_a_check_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_sockets, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(idle_sockets, "FIRST_SECONDS", 0.3)
    look, looks = idle_sockets.connected_to, count()

    def connected_to(port: int) -> set[SocketPeer]:
        if next(looks) == 1:
            raise RuntimeError("can't start new thread")
        return look(port)

    monkeypatch.setattr(server, "connected_to", connected_to)
    async with gateway(counting(1), tmp_path) as served:
        await closed(served.server.port, b"")
        assert [str(bug) for bug in served.bugs] == ["can't start new thread"]
        served.bugs.clear()


async def test_a_client_of_a_socket_for_both_versions_of_ip_is_known_by_its_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_sockets, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(idle_sockets, "FIRST_SECONDS", 0.3)
    async with gateway(counting(1), tmp_path, host="::") as served, raw_http(served) as raw:
        await closed(served.server.port, b"")
        await closed(served.server.port, b"", "::1")
        assert served.hub.connections[raw.connection].connection.readers == 1
        async with http_client() as client:
            assert (await client.get(f"http://[::1]:{served.server.port}/health")).status_code == 200


async def test_a_client_of_http_2_that_does_not_answer_a_ping_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_H2_PING_MILLISECONDS", 100)
    async with gateway(counting(1), tmp_path) as served:
        with socket.create_connection(("127.0.0.1", served.server.port)) as peer:
            peer.sendall(SAID["the beginning of HTTP/2"])
            peer.settimeout(5)
            heard = b""
            while b"\0\0\x08\x06\0" not in heard:  # the head of a PING
                more = await asyncio.to_thread(peer.recv, 4096)
                assert more
                heard += more
