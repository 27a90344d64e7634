"""Fetching a page through the proxy of the user's environment: a real one on loopback."""

import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx2
import pytest

from dragoman.host.address import UrlRefused
from dragoman.host.bounded_body import FetchFailed
from dragoman.host.fetch import FetchedPage, fetch
from dragoman.host.public_web import proxy_of
from tests.support.certificates import client_side, make_certificate, server_side
from tests.support.http2 import http2_server
from tests.support.proxy import Proxy, proxy
from tests.support.web import PUBLIC, Web, page, redirect, web

from .test_address import I9_URLS

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


class Proxied:
    """A world behind a proxy, which the environment names."""

    def __init__(self, world: Web, running: Proxy, trusted: ssl.SSLContext) -> None:
        self.world = world
        self.proxy = running
        self._trusted = trusted

    async def get(self, url: str) -> FetchedPage:
        def open_transport(url: str, proxy: str | None) -> httpx2.AsyncBaseTransport:
            return httpx2.AsyncHTTPTransport(verify=self._trusted, http2=True, proxy=proxy)

        return await fetch(url, resolve=self.world.resolve, open_transport=open_transport)


@pytest.fixture
async def plain(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxied]:
    answers = {"/": page(b"hello"), "/r": redirect("http://inside.example/"), "/other": redirect("http://10.0.0.1/")}
    async with web({**answers}) as world, proxy(world.port) as running:
        monkeypatch.setenv("HTTP_PROXY", running.url)
        yield Proxied(world, running, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


@pytest.fixture
async def secure(monkeypatch: pytest.MonkeyPatch, certificate: Path) -> AsyncIterator[Proxied]:
    async with web({"/": page(b"secure")}, server_side(certificate)) as world, proxy(world.port) as running:
        monkeypatch.setenv("HTTPS_PROXY", running.url)
        yield Proxied(world, running, client_side(certificate))


async def no_address(host: str, port: int) -> Sequence[str]:
    raise OSError


async def test_http_is_asked_for_by_name_after_a_check(plain: Proxied) -> None:
    assert (await plain.get("http://example.com/")).text == "hello"
    assert plain.proxy.asked == ["GET http://example.com/"]
    assert plain.world.resolved == ["example.com"]
    assert b"Host: example.com\r\n" in plain.world.requests[0]


@pytest.mark.requirement("I11")
async def test_https_is_a_tunnel_to_the_address_that_was_checked(secure: Proxied) -> None:
    """The certificate is that of the name."""
    assert (await secure.get("https://example.com/")).text == "secure"
    assert secure.proxy.asked == [f"CONNECT {PUBLIC}:443"]
    with pytest.raises(FetchFailed, match=r"other\.example has no certificate"):
        await secure.get("https://other.example/")


async def test_http2_goes_through_the_tunnel(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with http2_server(certificate, {"/": b"secure"}) as (port, asked), proxy(port) as running:
        monkeypatch.setenv("HTTPS_PROXY", running.url)
        assert (await Proxied(Web(port, {}), running, client_side(certificate)).get("https://example.com/")).text
        assert [(request["version"], request["host"]) for request in asked] == [("2", "example.com")]
        assert running.asked == [f"CONNECT {PUBLIC}:443"]


@pytest.mark.requirement("I9", "I14")
@pytest.mark.parametrize("url", I9_URLS, ids=lambda url: ascii(url)[:60])
async def test_a_refused_url_reaches_no_proxy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Web(1, {})
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with pytest.raises(UrlRefused):
        await Proxied(world, Proxy(1), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).get(url)
    assert world.resolved == []


@pytest.mark.requirement("I9")
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_name_with_a_private_address_reaches_no_proxy(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Web(1, {})
    world.names["inside.example"] = [[PUBLIC, "10.0.0.1"]]
    async with proxy(1) as running:
        monkeypatch.setenv("ALL_PROXY", running.url)
        with pytest.raises(UrlRefused, match="not public"):
            await Proxied(world, running, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).get(f"{scheme}://inside.example/")
        assert running.asked == []


@pytest.mark.requirement("I10")
async def test_a_redirect_is_checked_before_the_proxy_is_asked(plain: Proxied) -> None:
    plain.world.names["inside.example"] = [["10.0.0.1"]]
    for path in ("/r", "/other"):
        with pytest.raises(UrlRefused, match=r"not (a )?public"):
            await plain.get(f"http://example.com{path}")
    assert plain.proxy.asked == ["GET http://example.com/r", "GET http://example.com/other"]


@pytest.mark.parametrize("refusal", ["403 Forbidden", "400 Bad Request", "405 Method Not Allowed"])
async def test_a_proxy_that_takes_no_addresses_is_given_the_name(secure: Proxied, refusal: str) -> None:
    secure.world.names["example.com"] = [[PUBLIC, "1.1.1.1"]]
    secure.proxy.refusals["addresses"] = refusal
    assert (await secure.get("https://example.com/")).text == "secure"
    assert secure.proxy.asked == [f"CONNECT {PUBLIC}:443", "CONNECT example.com:443"]


@pytest.mark.requirement("I11")
@pytest.mark.parametrize("refusal", ["502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"])
async def test_an_address_that_the_proxy_cannot_reach_is_no_reason_for_the_name(secure: Proxied, refusal: str) -> None:
    """A name could have a dead address for us, and a private one for the proxy."""
    secure.world.names["example.com"] = [[PUBLIC, "1.1.1.1"]]
    secure.proxy.refusals["addresses"] = refusal
    with pytest.raises(FetchFailed, match=f"answers {refusal}"):
        await secure.get("https://example.com/")
    assert secure.proxy.asked == [f"CONNECT {PUBLIC}:443", "CONNECT 1.1.1.1:443"]


async def test_the_next_address_is_tried_through_the_proxy(secure: Proxied) -> None:
    secure.world.names["example.com"] = [["1.1.1.1", PUBLIC]]
    secure.proxy.refusals["1.1.1.1:443"] = "504 Gateway Timeout"
    assert (await secure.get("https://example.com/")).text == "secure"


async def test_a_host_with_an_address_of_ipv6_only_is_named_to_the_proxy(secure: Proxied) -> None:
    secure.world.names["example.com"] = [["2606:4700:4700::1111"]]
    assert (await secure.get("https://example.com/")).text == "secure"
    assert secure.proxy.asked == ["CONNECT example.com:443"]


async def test_a_name_that_only_the_proxy_knows_is_left_to_it(secure: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secure.world, "resolve", no_address)
    assert (await secure.get("https://example.com/")).text == "secure"
    assert secure.proxy.asked == ["CONNECT example.com:443"]


async def test_a_login_that_the_proxy_wants_is_said(secure: Proxied, plain: Proxied) -> None:
    secure.proxy.refusals["addresses"] = "407 Proxy Authentication Required"
    with pytest.raises(FetchFailed, match="answers 407 Proxy Authentication Required"):
        await secure.get("https://example.com/")
    assert secure.proxy.asked == [f"CONNECT {PUBLIC}:443"]


async def test_the_password_of_the_proxy_is_for_the_proxy(secure: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", secure.proxy.url.replace("://", "://me:secret@"))
    await secure.get("https://example.com/")
    assert secure.proxy.asked == [f"Proxy-Authorization: Basic bWU6c2VjcmV0 CONNECT {PUBLIC}:443"]
    assert b"uthorization" not in secure.world.requests[0]


async def test_a_proxy_that_is_not_there_is_said(secure: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with pytest.raises(FetchFailed, match=r"example\.com cannot be reached through the proxy"):
        await secure.get("https://example.com/")


@pytest.mark.parametrize("value", ["socks5://127.0.0.1:1080", "socks5h://127.0.0.1:1080", "ftp://127.0.0.1:1"])
async def test_a_proxy_of_another_kind_is_not_gone_around(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(FetchFailed, match="no http:// or https:// one"):
        await fetch("https://example.com/", resolve=no_address)


@pytest.mark.parametrize("value", ["http://[bad", "http://127.0.0.1:99999", "http://", "::::"])
async def test_a_proxy_that_is_no_url_is_said(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(FetchFailed, match="proxy"):
        await fetch("https://example.com/", resolve=no_address)


@pytest.mark.parametrize(
    ("variables", "proxies"),
    [
        ({}, (None, None)),
        ({"HTTP_PROXY": "http://p:1"}, ("http://p:1", None)),
        ({"https_proxy": "p:1"}, (None, "http://p:1")),
        ({"ALL_PROXY": "http://p:1"}, ("http://p:1", "http://p:1")),
        ({"ALL_PROXY": "http://p:1", "HTTPS_PROXY": "http://q:2"}, ("http://p:1", "http://q:2")),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "example.com"}, (None, None)),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": ".example.com, other.test"}, (None, None)),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, (None, None)),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "ample.com"}, ("http://p:1", "http://p:1")),
    ],
)
def test_the_proxy_is_that_of_the_environment(
    variables: dict[str, str], proxies: tuple[str | None, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (proxy_of("http", "www.example.com"), proxy_of("https", "www.example.com")) == proxies
