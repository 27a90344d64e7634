"""Fetching a page, from real servers on this machine that stand in for public ones."""

import asyncio
import gzip
import socket
import ssl
import time
import tracemalloc
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest

from dragoman.host.address import UrlRefused
from dragoman.host.bounded_body import FetchFailed
from dragoman.host.fetch import FetchedPage, fetch
from dragoman.host.public_web import look_up
from tests.support.certificates import client_side, make_certificate, server_side
from tests.support.http2 import http2_server
from tests.support.web import PUBLIC, Answer, Web, page, redirect, web

from .test_address import I9_URLS, NOT_PUBLIC

pytestmark = pytest.mark.anyio

OTHER = "2606:4700:4700::1111"
MIB = 1024 * 1024


def raw(head: str, body: bytes = b"") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{head}\r\n".encode() + body


# --- pages


async def test_a_page_is_fetched_and_read() -> None:
    body = "<title>T</title><p>Größe <a href='/x'>link</a>".encode("windows-1252")
    async with web({"/a?b": page(body, kind="text/html; charset=windows-1252")}) as world:
        assert await world.get("http://Example.com/a?b#c") == FetchedPage(
            "http://example.com/a?b", 200, "text/html", "T\n\nGröße link (http://example.com/x)", truncated=False
        )
        assert world.dialled == [(PUBLIC, 80, None)]
        assert world.requests[0].startswith(b"GET /a?b HTTP/1.1\r\nHost: example.com\r\n")


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("application/json", b'{"a": 1}', '{"a": 1}'),
        ("application/ld+json", b"{}", "{}"),
        ("text/markdown", b"# x", "# x"),
        ("text/x-python", "ä".encode(), "ä"),
        ("application/xml", b"<a/>", "<a/>"),
        ("image/png", b"\x89PNG", "[image/png, which cannot be shown as text]"),
        ("application/octet-stream", b"x", "[application/octet-stream, which cannot be shown as text]"),
        ("", b"plain", "plain"),
        ("", b"a\0b", "[data, which cannot be shown as text]"),
        ("text/plain", bytes(range(128, 256)) * 40, "[data, which cannot be shown as text]"),
    ],
)
async def test_what_is_no_page_is_shown_as_it_is_or_named(kind: str, body: bytes, text: str) -> None:
    async with web({"/": page(body, kind=kind)}) as world:
        assert (await world.get("http://example.com")).text == text


async def test_an_error_page_is_a_page_too() -> None:
    async with web({"/": page(b"not here", status="404 Not Found")}) as world:
        found = await world.get("http://example.com")
        assert (found.status, found.text) == (404, "not here")


async def test_nothing_of_ours_is_sent_along() -> None:
    async with web({"/": redirect("http://other.example/x"), "/x": page(b"x", "Set-Cookie: a=b")}) as world:
        await world.get("http://example.com")
        names = {line.partition(b":")[0].lower() for line in world.requests[1].split(b"\r\n")[1:] if line}
        assert names == {b"host", b"user-agent", b"accept", b"accept-encoding"}
        assert b"Host: other.example\r\n" in world.requests[1]


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello" * 100)),
        ("x-gzip", gzip.compress(b"hello" * 100)),
        ("GZIP", gzip.compress(b"hello" * 100)),
        ("deflate", zlib.compress(b"hello" * 100)),
        ("deflate", zlib.compress(b"hello" * 100)[2:-4]),
        ("br", brotli.compress(b"hello" * 100)),
        ("identity", b"hello" * 100),
    ],
    ids=["gzip", "x-gzip", "upper case", "deflate", "deflate without header", "brotli", "identity"],
)
async def test_a_packed_page_is_unpacked(encoding: str, packed: bytes) -> None:
    async with web({"/": page(packed, f"Content-Encoding: {encoding}")}) as world:
        found = await world.get("http://example.com")
        assert (found.text, found.truncated) == ("hello" * 100, False)


async def test_a_page_in_chunks_is_put_together() -> None:
    body = b"5\r\nhello\r\nA;name=value\r\n, world!!!\r\n0\r\nTrailer: x\r\n\r\n"
    async with web({"/": raw("Transfer-Encoding: chunked\r\n", body)}) as world:
        assert (await world.get("http://example.com")).text == "hello, world!!!"


async def test_a_page_may_end_with_the_connection_and_begin_with_a_hint() -> None:
    answer = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.0 200\r\n\r\nall of it"
    async with web({"/": answer}) as world:
        assert (await world.get("http://example.com")).text == "all of it"


# --- where we do not go


@pytest.mark.requirement("I9", "I14")
@pytest.mark.parametrize("url", I9_URLS, ids=lambda url: ascii(url)[:60])
async def test_a_refused_url_asks_no_resolver_and_opens_no_connection(url: str) -> None:
    world = Web(1, {})
    with pytest.raises(UrlRefused):
        await world.get(url)
    assert (world.resolved, world.dialled) == ([], [])


@pytest.mark.requirement("I9")
@pytest.mark.parametrize("address", [address for address in NOT_PUBLIC if address])
async def test_a_name_that_means_a_private_address_is_not_dialled(address: str) -> None:
    world = Web(1, {})
    for addresses in ([address], [PUBLIC, address], [address, PUBLIC]):
        world.names["rebind.example"] = [addresses]
        with pytest.raises(UrlRefused, match="not public"):
            await world.get("http://rebind.example")
    assert world.dialled == []


@pytest.mark.requirement("I10")
async def test_a_redirect_to_what_is_refused_is_refused_at_the_hop() -> None:
    async with web({"/": b""}) as world:
        for url in I9_URLS:
            _, slashes, rest = url.partition("://")
            if not slashes or rest[:1] in ("", "/") or "\n" in url or url.startswith(" "):
                continue  # seen from a page that means the page's own host, or it is no header, or a header's space
            world.answers["/"] = f"HTTP/1.1 302 Found\r\nLocation: {url}\r\n\r\n".encode()
            world.dialled.clear()
            world.resolved.clear()
            with pytest.raises((UrlRefused, FetchFailed)):
                await world.get("http://example.com")
            assert world.dialled == [(PUBLIC, 80, None)], url
            assert world.resolved == ["example.com"], url


@pytest.mark.requirement("I10")
async def test_a_redirect_to_a_name_with_a_private_address_is_refused() -> None:
    async with web({"/": redirect("http://inside.example/")}) as world:
        world.names["inside.example"] = [["10.0.0.1"]]
        with pytest.raises(UrlRefused):
            await world.get("http://example.com")
        assert len(world.dialled) == 1


@pytest.mark.requirement("I10")
async def test_ten_redirects_are_followed_and_eleven_are_not() -> None:
    answers: dict[str, Answer] = {f"/{number}": redirect(f"/{number - 1}") for number in range(1, 12)}
    async with web(answers | {"/0": page(b"there")}) as world:
        found = await world.get("http://example.com/10")
        assert (found.url, found.text) == ("http://example.com/0", "there")
        with pytest.raises(UrlRefused, match="more than 10 times"):
            await world.get("http://example.com/11")


@pytest.mark.parametrize("status", ["301 x", "302 x", "303 x", "307 x", "308 x"])
async def test_every_kind_of_redirect_is_followed(status: str) -> None:
    async with web({"/a/b": redirect("../ä?x", status), "/%C3%A4?x": page(b"x")}) as world:
        assert (await world.get("http://example.com/a/b")).url == "http://example.com/%C3%A4?x"


@pytest.mark.requirement("I11")
async def test_the_address_that_was_checked_is_the_one_that_is_dialled() -> None:
    async with web({"/": page(b"x")}) as world:
        world.names["rebind.example"] = [[PUBLIC], ["127.0.0.1"]]
        assert (await world.get("http://rebind.example")).text == "x"
        assert (world.resolved, world.dialled) == (["rebind.example"], [(PUBLIC, 80, None)])
        with pytest.raises(UrlRefused):
            await world.get("http://rebind.example")


@pytest.mark.requirement("I11")
async def test_the_default_dial_resolves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """httpx2 is given an address and gives that to the socket, each in turn; it asks no resolver of its own."""
    seen: list[object] = []
    loop = asyncio.get_running_loop()

    async def connect(sock: socket.socket, address: object) -> None:
        seen.append(address)
        raise ConnectionRefusedError

    async def getaddrinfo(host: object, *_: object, **__: object) -> None:
        raise AssertionError(f"{host!r} was looked up again")

    monkeypatch.setattr(loop, "sock_connect", connect)
    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    world = Web(1, {})
    world.names["two.example"] = [[PUBLIC, "1.1.1.1"]]
    with pytest.raises(FetchFailed, match="cannot be reached"):
        await fetch("https://two.example", resolve=world.resolve)
    assert seen == [(PUBLIC, 443), ("1.1.1.1", 443)]
    assert world.resolved == ["two.example"]


async def test_the_default_resolver_gives_addresses_that_are_checked() -> None:
    """Needs no network: a name in the hosts file would do, and so does an address in a public URL."""
    assert list(await look_up("127.0.0.1", 80)) == ["127.0.0.1"]
    assert list(await look_up(PUBLIC, 80)) == [PUBLIC]


async def test_the_next_address_is_tried_when_one_is_dead() -> None:
    async with web({"/": page(b"x")}) as world:
        world.names["two.example"] = [[OTHER, PUBLIC]]
        world.dead.add(OTHER)
        assert (await world.get("http://two.example")).text == "x"
        assert world.dialled == [(OTHER, 80, None), (PUBLIC, 80, None)]


async def test_a_host_that_is_not_there_is_said() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise OSError

    with pytest.raises(FetchFailed, match=r"no host nowhere\.example"):
        await fetch("http://nowhere.example", resolve=resolve)


# --- bodies


async def forever(writer: asyncio.StreamWriter, head: bytes, piece: bytes) -> None:
    writer.write(head)
    while True:
        writer.write(piece)
        await writer.drain()


@pytest.mark.requirement("I13")
async def test_an_endless_body_is_cut_at_the_limit() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        await forever(writer, raw(""), b"x" * 65536)

    async def endless_chunks(writer: asyncio.StreamWriter) -> None:
        await forever(writer, raw("Transfer-Encoding: chunked\r\n"), b"1000\r\n" + b"x" * 0x1000 + b"\r\n")

    async with web({"/a": endless, "/b": endless_chunks}) as world:
        for path in ("a", "b"):
            found = await world.get(f"http://example.com/{path}", max_bytes=100_000)
            assert (len(found.text), found.truncated) == (100_000, True)


@pytest.mark.requirement("I13")
async def test_a_slow_drip_is_cut_at_the_deadline() -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(raw(""))
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async def slow_head(writer: asyncio.StreamWriter) -> None:
        await forever_slowly(writer, b"HTTP/1.1 200 OK\r\n", b"A: b\r\n")

    async with web({"/drip": drip, "/silent": silent, "/head": slow_head}) as world:
        start = time.monotonic()
        found = await world.get("http://example.com/drip", deadline_seconds=0.3)
        assert found.truncated and set(found.text) == {"x"}
        for path in ("silent", "head"):
            with pytest.raises(FetchFailed, match="within"):
                await world.get(f"http://example.com/{path}", deadline_seconds=0.3)
        assert time.monotonic() - start < 10


async def forever_slowly(writer: asyncio.StreamWriter, head: bytes, piece: bytes) -> None:
    writer.write(head)
    while not writer.is_closing():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.05)


@pytest.mark.requirement("I13")
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (raw("Content-Length: 100\r\n", b"short"), "short"),
        (raw("Transfer-Encoding: chunked\r\n", b"64\r\nshort"), "short"),
        (raw("Content-Encoding: gzip\r\n", gzip.compress(b"short " * 1000)[:-9]), "short " * 500),
        (raw("Content-Encoding: br\r\n", brotli.compress(bytes(range(97, 123)) * 50)[:-1]), "abcdefghijklmno"),
    ],
    ids=["length", "chunks", "gzip", "brotli"],
)
async def test_a_body_that_ends_too_early_is_marked(answer: bytes, text: str) -> None:
    async with web({"/": answer}) as world:
        found = await world.get("http://example.com")
        assert found.text.startswith(text)
        assert found.truncated


@pytest.mark.requirement("I13")
@pytest.mark.parametrize(
    "answer",
    [
        raw("Content-Encoding: zstd\r\n", b"x"),
        raw("Content-Encoding: gzip, gzip\r\n", b"x"),
        raw("Content-Encoding: br\r\n", b"\xff\xff\xff\xff"),
        raw("Content-Encoding: gzip\r\n", b"no gzip at all"),
        raw("Content-Encoding: deflate\r\n", b"\xff\xff\xff\xff"),
        raw("Content-Length: 1\r\nContent-Length: 2\r\n", b"xx"),
        raw("Content-Length: -1\r\n", b"x"),
        raw("Content-Length: +1\r\n", b"x"),
        raw("Content-Length: 0x1\r\n", b"x"),
        raw("Content-Length: 99999999999\r\n", b"x"),
        raw("Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"),
        raw("Transfer-Encoding: chunked\r\n", b"x\r\n"),
        raw("Transfer-Encoding: chunked\r\n", b"-1\r\n"),
        raw("Transfer-Encoding: chunked\r\n", b" 1\r\nx\r\n"),
        raw("Transfer-Encoding: chunked\r\n", b"1\nx\n0\n\n"),
        raw("Transfer-Encoding: chunked\r\n", b"0\r\n" + b"A: b\r\n" * 1000),
        raw("A b\r\n"),
        raw("A : b\r\n"),
        raw("A: \0\r\n"),
        raw("A: b\r\n" * 300),
        raw("A: " + "b" * 70_000 + "\r\n"),
        raw(("A: " + "b" * 1000 + "\r\n") * 100),
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 999 x\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nx",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"\0" * 100_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
        b"",
    ],
    ids=range(29),
)
async def test_what_is_not_plain_http_is_refused_with_a_sentence(answer: bytes) -> None:
    async with web({"/": answer}) as world:
        with pytest.raises(FetchFailed, match=r"\.$"):
            await world.get("http://example.com")


@pytest.mark.parametrize(
    ("answer", "text", "truncated"),
    [
        (raw("Content-Length: 9\r\nTransfer-Encoding: chunked\r\n", b"1\r\nx\r\n0\r\n\r\n"), "x", False),
        (raw("Transfer-Encoding: chunked\r\n", b"1;" + b"x" * 2000 + b"\r\nx\r\n0\r\n\r\n"), "x", False),
        (raw("A: b\r\n folded\r\n", b"x"), "x", False),
        (raw("Transfer-Encoding: chunked\r\n", b"1\r\nxy\r\n0\r\n\r\n"), "x", True),
    ],
    ids=["length and chunks", "long extension of a chunk", "folded header", "a chunk that does not end"],
)
async def test_what_the_rules_of_http_let_a_client_read_is_read(answer: bytes, text: str, truncated: bool) -> None:
    async with web({"/": answer}) as world:
        found = await world.get("http://example.com")
        assert (found.text, found.truncated) == (text, truncated)


def bomb() -> bytes:
    """1 GiB of zeros in 1 MiB, quickly made: after a full flush a block can be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    first, second = (packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + second * 1023


@pytest.mark.requirement("D11")
@pytest.mark.parametrize("encoding", ["gzip", "br"])
async def test_a_decompression_bomb_touches_little_memory(encoding: str) -> None:
    """A gigabyte in a megabyte, or less; zeros, or a tag without an end."""
    packed = bomb() if encoding == "gzip" else brotli.compress(b"<p>" * (256 * MIB // 3), quality=1)
    assert len(packed) < 2 * MIB
    async with web({"/": page(packed, f"Content-Encoding: {encoding}", kind="text/html")}) as world:
        tracemalloc.start()
        try:
            found = await world.get("http://example.com")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert found.truncated
    assert peak < 32 * MIB


@pytest.mark.requirement("D11")
async def test_a_body_of_packed_nothing_is_cut_as_well() -> None:
    """Empty blocks: input without end and no output."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    start = packer.compress(b"x") + packer.flush(zlib.Z_SYNC_FLUSH)
    nothing = b"\x00\x00\x00\xff\xff" * 1000

    async def endless(writer: asyncio.StreamWriter) -> None:
        await forever(writer, raw("Content-Encoding: gzip\r\n") + start, nothing)

    async with web({"/": endless}) as world:
        found = await world.get("http://example.com", max_bytes=200_000)
        assert (found.text, found.truncated) == ("x", True)


@pytest.mark.requirement("D11")
async def test_a_body_that_declares_too_much_is_not_begun() -> None:
    async with web({"/": raw(f"Content-Length: {1024 * MIB}\r\n", b"x")}) as world:
        with pytest.raises(FetchFailed, match="larger than 32 MiB"):
            await world.get("http://example.com")


async def test_a_cancelled_fetch_closes_its_connection() -> None:
    gone = asyncio.Event()
    begun = asyncio.Event()

    async def wait_for_the_end(writer: asyncio.StreamWriter) -> None:
        begun.set()
        await asyncio.sleep(0)
        try:
            await forever_slowly(writer, raw(""), b"x")
        finally:
            gone.set()

    async with web({"/": wait_for_the_end}) as world:
        task = asyncio.create_task(world.get("http://example.com"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 10)


# --- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


async def test_a_page_comes_over_tls_for_the_name_that_was_asked(certificate: Path) -> None:
    async with web({"/": page(b"secure")}, server_side(certificate)) as world:
        world.tls = client_side(certificate)
        assert (await world.get("https://example.com")).text == "secure"
        assert world.dialled == [(PUBLIC, 443, "example.com")]
        with pytest.raises(FetchFailed, match="certificate"):
            await world.get("https://other.example")


async def test_an_untrusted_certificate_is_refused(certificate: Path) -> None:
    async with web({"/": page(b"secure")}, server_side(certificate)) as world:
        world.tls = ssl.create_default_context()
        with pytest.raises(FetchFailed, match="certificate"):
            await world.get("https://example.com")
        assert world.requests == []


@pytest.mark.requirement("I10")
async def test_a_redirect_from_https_to_http_is_refused(certificate: Path) -> None:
    async with web({"/": redirect("http://example.com/x")}, server_side(certificate)) as world:
        world.tls = client_side(certificate)
        with pytest.raises(UrlRefused, match="https to http"):
            await world.get("https://example.com")
        assert len(world.dialled) == 1


@pytest.mark.requirement("I11")
async def test_a_page_comes_over_http2_from_the_address_that_was_checked(certificate: Path) -> None:
    """From granian. The address is that of the check, the name in TLS and in the request that of the host."""
    long = b"x" * 300_000
    async with http2_server(certificate, {"/": b"secure", "/long": long}) as (port, asked):
        world = Web(port, {})
        world.tls = client_side(certificate)
        world.names["example.com"] = [[PUBLIC], [PUBLIC], ["10.0.0.1"]]
        assert (await world.get("https://example.com/")).text == "secure"
        cut = await world.get("https://example.com/long", max_bytes=100_000)
        assert (len(cut.text), cut.truncated) == (100_000, True)
        with pytest.raises(UrlRefused):
            await world.get("https://example.com/")
    assert [(request["version"], request["path"], request["host"]) for request in asked] == [
        ("2", "/", "example.com"),
        ("2", "/long", "example.com"),
    ]
    assert asked[0].keys() == {"version", "path", "host", "user-agent", "accept", "accept-encoding"}
    assert world.dialled == [(PUBLIC, 443, "example.com")] * 2


SETTINGS = b"\0\0\0\4\0\0\0\0\0"


@pytest.mark.requirement("I13")
@pytest.mark.parametrize(
    "frames",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        SETTINGS,
        SETTINGS + b"\0\0\1\1\4\0\0\0\1" + b"\xff",  # headers that are none
        SETTINGS + b"\0\0\5\1\4\0\0\0\1" + b"\x08\x03abc",  # the status abc
        SETTINGS + b"\0\0\1\0\1\0\0\0\1x",  # a body without headers
        SETTINGS + b"\0\0\4\3\0\0\0\0\1\0\0\0\1",  # a reset
        SETTINGS + b"\0\0\x08\7\0\0\0\0\0" + bytes(8),  # a goodbye
        SETTINGS + b"\0\0\1\1\4\0\0\0\1\x88" + b"\0\0\1\0\0\0\0\0\3x",  # 200, then a stream of its own
        SETTINGS + b"\xff" * 100,
    ],
    ids=range(10),
)
async def test_what_is_not_plain_http2_is_refused_with_a_sentence(certificate: Path, frames: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(10)
            writer.write(frames)
            await writer.drain()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_side(certificate, "h2"))
    async with server:
        world = Web(server.sockets[0].getsockname()[1], {})
        world.tls = client_side(certificate)
        with pytest.raises(FetchFailed, match=r"\.$"):
            await world.get("https://example.com")


async def test_a_body_over_http2_that_breaks_off_is_marked(certificate: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(SETTINGS + b"\0\0\1\1\4\0\0\0\1\x88" + b"\0\0\5\0\0\0\0\0\1short")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_side(certificate, "h2"))
    async with server:
        world = Web(server.sockets[0].getsockname()[1], {})
        world.tls = client_side(certificate)
        found = await world.get("https://example.com")
    assert (found.text, found.truncated) == ("short", True)


@pytest.mark.requirement("I11")
async def test_two_hosts_at_one_address_share_no_connection(certificate: Path) -> None:
    """A connection is for the host whose certificate it has shown, and a redirect leads to another."""
    async with http2_server(certificate, {"/": b"https://other.example/x", "/x": b"x"}) as (port, asked):
        world = Web(port, {})
        world.tls = client_side(certificate)
        with pytest.raises(FetchFailed, match=r"other\.example has no certificate"):
            await world.get("https://example.com")
    assert world.dialled == [(PUBLIC, 443, "example.com"), (PUBLIC, 443, "other.example")]
    assert [request["host"] for request in asked] == ["example.com"]
