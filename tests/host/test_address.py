"""Which addresses are public, and which URLs are asked for."""

import pytest

from dragoman.host.address import CheckedUrl, UrlRefused, check_url, is_allowed, is_public

NOT_PUBLIC = [
    *("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "169.254.0.1", "100.64.0.1", "100.100.100.200", "100.127.255.255", "168.63.129.16"),
    *("192.0.0.192", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "192.88.99.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:7f00:1", "::127.0.0.1", "::8.8.8.8"),
    *("2002:7f00:1::", "2002:808:808::1", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "2001::1"),
    *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "3fff::1", "2001:10::1", "2001:20::1", "2001:2::1"),
    *("fc00::1", "fd00:ec2::254", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "2606:4700::1111%1", "fec0::1"),
    *("ff02::1", "ff0e::1", "100::1", "5f00::1", "4000::1"),
    *("", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1 ", "1.2.3.4/32", "010.8.8.8"),
]


@pytest.mark.requirement("I9")
@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_not(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.0", "172.15.255.255"),
        *("172.32.0.1", "192.0.1.1", "192.169.0.1", "198.17.255.255", "223.255.255.255", "126.0.0.1", "128.0.0.1"),
        *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:82b::200e", "2003::1"),
    ],
)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


I9_URLS = [
    *("http://127.0.0.1", "http://0.0.0.0", "http://0", "http://[::1]", "http://[::]", "http://[::ffff:127.0.0.1]"),
    *("http://2130706433", "http://0x7f.1", "http://0x7f000001", "http://0177.0.0.1", "http://017700000001"),
    *("http://127.1", "http://127.0.1", "http://127.0.0.1.", "http://1.1.1.1.1", "http://0x", "http://foo.0x7f"),
    *("http://169.254.169.254/latest", "http://100.64.0.1", "http://[fd00:ec2::254]", "http://10.0.0.1:8080"),
    *("http://[2002:7f00:1::]", "http://[64:ff9b::7f00:1]", "http://[fe80::1%25eth0]", "http://[v1.x]"),
    *("http://localhost", "http://localhost.", "http://LOCALHOST", "http://a.localhost", "http://router.local"),
    *("http://metadata.google.internal", "http://intranet", "http://printer.lan", "http://nas.home.arpa"),
    *("http://example.com@127.0.0.1", "http://127.0.0.1@example.com", "http://user:pass@example.com", "http://@e.com"),
    *("http://example.com\\@127.0.0.1", "http:\\\\example.com", "http://example.com\0.evil.com", "http://a\0b.com"),
    *("http://exam\tple.com", "http://exam\nple.com", "http://example.com /", " http://example.com", "http://a b.com"),
    *("http://ex%61mple.com", "http://127.0.0.1%00.example.com", "http://example.com%2f@evil.com"),
    *("http://１２７.０.０.１", "http://①②⑦.⓪.⓪.①", "http://127。0。0。1", "http://ⓛocalhost", "http://\u200b.com"),
    *("ftp://example.com", "file:///etc/passwd", "gopher://example.com", "javascript:alert(1)", "data:text/html,x"),
    *("//example.com", "example.com", "", "http:", "http://", "http:///x", "http:example.com", "http:/example.com"),
    *("http://example.com:0", "http://example.com:22", "http://example.com:25", "http://example.com:65536"),
    *("http://example.com:-1", "http://example.com:80:80", "http://example.com:６３", "http://example.com:6667"),
    *(
        "http://[::1",
        "http://::1",
        "http://]",
        "http://a[b].com",
        "http://.com",
        "http://a..com",
        "http://-",
        "http://.",
    ),
    *("http://" + "a" * 64 + ".com", "http://" + "a." * 130 + "com", "http://example.com/" + "a" * 9000),
    *("http://" + "ä" * 8000 + ".com", "http://ex!ample.com", "http://a,b.com", "http://a'b.com"),
]


@pytest.mark.requirement("I9")
@pytest.mark.parametrize("url", I9_URLS, ids=lambda url: ascii(url)[:60])
def test_a_url_that_is_not_plainly_public_is_refused(url: str) -> None:
    with pytest.raises(UrlRefused):
        check_url(url)


@pytest.mark.parametrize(
    ("text", "url", "again"),
    [
        ("http://example.com", CheckedUrl("http", "example.com", 80, "/"), "http://example.com/"),
        (
            "HTTPS://EXAMPLE.com./A?b=c#d",
            CheckedUrl("https", "example.com", 443, "/A?b=c"),
            "https://example.com/A?b=c",
        ),
        ("https://example.com:443/", CheckedUrl("https", "example.com", 443, "/"), "https://example.com/"),
        ("http://example.com:443/", CheckedUrl("http", "example.com", 443, "/"), "http://example.com:443/"),
        ("http://example.com:8080?x", CheckedUrl("http", "example.com", 8080, "/?x"), "http://example.com:8080/?x"),
        ("http://bücher.example/ä?ö=%20", CheckedUrl("http", "xn--bcher-kva.example", 80, "/%C3%A4?%C3%B6=%20"), None),
        ("http://1.1.1.1/", CheckedUrl("http", "1.1.1.1", 80, "/"), None),
        ("http://[2606:4700:4700:0::1111]/", CheckedUrl("http", "2606:4700:4700::1111", 80, "/"), None),
        ("http://example.com/a@b:c", CheckedUrl("http", "example.com", 80, "/a@b:c"), None),
        ("http://example.com?@evil.com", CheckedUrl("http", "example.com", 80, "/?@evil.com"), None),
        ("http://example.com#@evil.com", CheckedUrl("http", "example.com", 80, "/"), None),
        ("http://example.com/'\"<>", CheckedUrl("http", "example.com", 80, "/'%22%3C%3E"), None),
    ],
)
def test_a_public_url_is_taken_apart(text: str, url: CheckedUrl, again: str | None) -> None:
    assert check_url(text) == url
    assert check_url(url.text) == url
    if again is not None:
        assert url.text == again


@pytest.mark.requirement("I12")
@pytest.mark.parametrize("host", ["example.com", "EXAMPLE.com.", "Example.Com"])
def test_the_allowed_host_is_allowed_in_every_spelling(host: str) -> None:
    assert is_allowed(host, "example.com")
    assert is_allowed("example.com", host)


@pytest.mark.requirement("I12")
@pytest.mark.parametrize(
    "host",
    [
        *(
            "example.com.evil",
            "evil-example.com",
            "evilexample.com",
            "sub.example.com",
            "example.co",
            "example.com@evil",
        ),
        *("ехample.com", "xn--xample-2of.com", "example.com:80", "example.com/", "", "example.com..", "exa mple.com"),
    ],
)
def test_no_other_host_is_allowed(host: str) -> None:
    assert not is_allowed(host, "example.com")


@pytest.mark.requirement("I12")
def test_a_star_allows_what_is_below_and_nothing_beside() -> None:
    assert is_allowed("a.b.Example.com", "*.example.com")
    for host in ("example.com", "evilexample.com", "example.com.evil", ".example.com"):
        assert not is_allowed(host, "*.example.com")
