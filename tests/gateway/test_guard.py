"""The guard by itself, with a clock of the test's own: hosts, origins, tokens, cookies, rates."""

import pytest

from dragoman.gateway import login_store
from dragoman.gateway.guard import BURST, MESSAGE_BURST, MESSAGE_RATE, RATE, UNSURE_SECONDS
from dragoman.gateway.headers import Headers
from dragoman.gateway.host_check import HEADER_BYTES, HEADER_COUNT, Refusal, is_loopback
from dragoman.gateway.rate_limiter import RateLimiter
from dragoman.gateway.token_types import Token, TokenIdentity, Unsure, digest_of, scopes_of
from tests.support.guards import ImmediateGuard

PORT = 8790
SECRET = b"s" * 43


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class OneTokenGuard:
    """A guard with one token, which can be taken away."""

    def __init__(self, *hosts: str) -> None:
        self.clock = Clock()
        self.tokens = [Token("phone", "ada", ("read", "prompt"), digest_of(SECRET))]
        self.guard = ImmediateGuard(lambda: self.tokens, hosts or ("localhost", "127.0.0.1", "[::1]"), PORT, self.clock)

    def status(self, headers: Headers, scheme: str = "http") -> int | None:
        refusal = self.guard.refusal(headers, scheme)
        return None if refusal is None else refusal.status

    def host(self, name: str) -> int | None:
        return self.status([(b"host", name.encode("latin-1"))])

    def origin(self, host: str, origin: str, scheme: str = "http") -> int | None:
        return self.status([(b"host", host.encode()), (b"origin", origin.encode())], scheme)

    def authenticate(
        self, *headers: tuple[bytes, bytes], address: str = "1.2.3.4", method: str = "GET"
    ) -> TokenIdentity | Refusal:
        return self.guard.authenticate(headers, address, method)


def bearer(token: bytes = SECRET, kind: bytes = b"Bearer") -> tuple[bytes, bytes]:
    return b"authorization", kind + b" " + token


@pytest.mark.parametrize(
    ("hosts", "name", "status"),
    [
        ((), f"localhost:{PORT}", None),
        ((), "LOCALHOST", None),
        ((), f"[::1]:{PORT}", None),
        ((), "localhost:80", 421),
        ((), "evil.example", 421),
        ((), f"evil.example:{PORT}", 421),
        ((), "10.0.0.7", 421),
        ((), "local host", 421),
        ((), "localhost:", 421),
        ((), "[::1", 421),
        (("agents.example",), "agents.example", None),
        (("agents.example",), "agents.example:443", None),  # the port of a proxy before us
        (("agents.example:8443",), "agents.example:8443", None),
        (("agents.example:8443",), "agents.example:8444", 421),
        (("0.0.0.0",), f"10.0.0.7:{PORT}", None),
        (("0.0.0.0",), "10.0.0.7:80", 421),
        (("0.0.0.0",), "rebound.example", 421),
        (("::",), f"[2001:db8::7]:{PORT}", None),
        (("::",), "rebound.example", 421),
    ],
)
def test_only_requests_for_our_own_names_come_in(hosts: tuple[str, ...], name: str, status: int | None) -> None:
    assert OneTokenGuard(*hosts).host(name) == status


@pytest.mark.parametrize("hosts", [[], [b"localhost", b"localhost"]])
def test_a_request_names_one_host(hosts: list[bytes]) -> None:
    assert OneTokenGuard().status([(b"host", host) for host in hosts]) == 400


def test_a_request_has_so_many_headers_and_so_many_bytes_of_them() -> None:
    host = (b"host", b"localhost")
    assert OneTokenGuard().status([host, *[(b"x", b"")] * (HEADER_COUNT - 1)]) is None
    assert OneTokenGuard().status([host, *[(b"x", b"")] * HEADER_COUNT]) == 431
    assert OneTokenGuard().status([host, (b"x", b"y" * (HEADER_BYTES - 14))]) is None
    assert OneTokenGuard().status([host, (b"x", b"y" * (HEADER_BYTES - 13))]) == 431


@pytest.mark.parametrize(
    ("host", "origin", "scheme", "status"),
    [
        ("localhost:8790", "http://localhost:8790", "http", None),
        ("localhost:8790", "http://LOCALHOST:8790", "http", None),
        ("localhost:8790", "https://localhost:8790", "https", None),
        ("localhost:8790", "https://localhost:8790", "http", 403),  # nothing stands between us and this machine
        ("localhost:8790", "http://localhost:3000", "http", 403),
        ("localhost:8790", "http://127.0.0.1:8790", "http", 403),
        ("localhost:8790", "http://evil.example", "http", 403),
        ("localhost:8790", "null", "http", 403),
        ("localhost:8790", "", "http", 403),
        ("agents.example", "https://agents.example", "http", None),  # TLS ends at a proxy
        ("agents.example", "http://agents.example.evil.example", "http", 403),
    ],
)
def test_no_page_but_ours_uses_us(host: str, origin: str, scheme: str, status: int | None) -> None:
    assert OneTokenGuard("localhost", "agents.example").origin(host, origin, scheme) == status


@pytest.mark.parametrize("host", ["[::1]:8790", "127.0.0.7:8790", "localhost", "[::1]"])
def test_no_proxy_with_tls_is_before_a_loopback_address(host: str) -> None:
    door = OneTokenGuard("localhost", "::1", "127.0.0.7")
    assert door.origin(host, f"http://{host}") is None
    assert door.origin(host, f"https://{host}") == 403


def test_two_origins_are_one_too_many() -> None:
    ours = (b"origin", b"http://localhost")
    assert OneTokenGuard().status([(b"host", b"localhost"), ours, ours]) == 403


def test_a_known_token_comes_in_with_its_rights() -> None:
    token_identity = OneTokenGuard().authenticate(bearer(kind=b"bEARER"))
    assert token_identity == TokenIdentity("phone", "ada", ("read", "prompt"), digest=digest_of(SECRET))
    assert isinstance(token_identity, TokenIdentity)
    assert token_identity.may("prompt")
    assert not token_identity.may("admin")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [bearer(b"x" * 43)],
        [bearer(b"")],
        [bearer(b"x" * 513)],
        [bearer(kind=b"Basic")],
        [(b"authorization", SECRET)],
        [bearer(), bearer()],
    ],
)
def test_anything_else_is_told_how_to_come_in(headers: list[tuple[bytes, bytes]]) -> None:
    refused = OneTokenGuard().authenticate(*headers)
    assert isinstance(refused, Refusal)
    assert refused.status == 401


def test_a_client_that_guesses_has_to_wait_and_one_that_knows_does_not() -> None:
    door = OneTokenGuard()
    statuses = [found.status for _ in range(25) if isinstance(found := door.authenticate(bearer(b"guess")), Refusal)]
    assert statuses == [401] * 20 + [429] * 5
    assert isinstance(door.authenticate(bearer()), TokenIdentity)
    other = door.authenticate(bearer(b"guess"), address="5.6.7.8")
    assert isinstance(other, Refusal) and other.status == 401
    door.clock.now += 1.0
    again = door.authenticate(bearer(b"guess"))
    assert isinstance(again, Refusal) and again.status == 401


def test_a_principal_has_a_rate_and_gets_it_back() -> None:
    door = OneTokenGuard()
    assert all(isinstance(door.authenticate(bearer()), TokenIdentity) for _ in range(int(BURST)))
    full = door.authenticate(bearer())
    assert isinstance(full, Refusal) and full.status == 429
    unknown = TokenIdentity("", "ada", ("read",))
    assert isinstance(door.guard.admit(unknown), Refusal)
    assert door.guard.admit(unknown._replace(principal="bob")) == unknown._replace(principal="bob")
    door.clock.now += 2 / RATE
    assert isinstance(door.authenticate(bearer()), TokenIdentity)


def test_what_is_remembered_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.rate_limiter._KEYS", 3)
    door = OneTokenGuard()
    for number in range(10):
        door.authenticate(bearer(b"guess"), address=str(number))
    limiter = door.guard.inner._wrong_tokens
    assert isinstance(limiter, RateLimiter)
    assert list(limiter._levels) == ["7", "8", "9"]


OUR_PAGE = (b"origin", b"http://localhost")
OUR_HEADER = (b"x-dragoman", b"1")


def logged_in(door: OneTokenGuard) -> list[tuple[bytes, bytes]]:
    """Both halves of a new login, as the page sends them."""
    token_identity = door.authenticate(bearer())
    assert isinstance(token_identity, TokenIdentity)
    login = door.guard.log_in(token_identity)
    assert login is not None
    return [(b"x-dragoman-page-key", login.page_key.encode()), (b"cookie", f"dragoman-{PORT}={login.cookie}".encode())]


@pytest.mark.parametrize(
    ("method", "more", "comes_in"),
    [
        ("GET", [OUR_PAGE], True),
        ("GET", [(b"sec-fetch-site", b"same-origin")], True),
        ("GET", [(b"sec-fetch-site", b"cross-site")], False),
        ("GET", [], False),
        ("POST", [OUR_PAGE], False),
        ("POST", [OUR_PAGE, OUR_HEADER], True),
        ("POST", [OUR_PAGE, (b"x-dragoman", b"0")], False),
        ("POST", [OUR_HEADER], False),
        ("DELETE", [OUR_PAGE], False),
    ],
)
def test_a_cookie_counts_for_our_own_page_alone(method: str, more: list[tuple[bytes, bytes]], comes_in: bool) -> None:
    door = OneTokenGuard()
    found = door.authenticate(*logged_in(door), *more, method=method)
    assert isinstance(found, TokenIdentity) == comes_in
    if isinstance(found, TokenIdentity):
        assert (found.token, found.principal) == ("phone", "ada")
        assert found.cookie
    else:
        assert found.status == 403


def test_a_token_counts_before_a_cookie() -> None:
    door = OneTokenGuard()
    login = logged_in(door)
    refused = door.authenticate(*login, OUR_PAGE, bearer(b"wrong"))
    assert isinstance(refused, Refusal) and refused.status == 401


def test_a_cookie_ends_with_its_token() -> None:
    door = OneTokenGuard()
    login = logged_in(door)
    token_identity = door.authenticate(bearer())
    assert isinstance(token_identity, TokenIdentity)
    assert door.guard.is_valid(token_identity)
    assert door.guard.is_valid(TokenIdentity("", "ada", ("read",)))  # needed none
    kept, door.tokens = door.tokens, []
    refused = door.authenticate(*login, OUR_PAGE)
    assert isinstance(refused, Refusal) and refused.status == 401
    assert not door.guard.is_valid(token_identity)
    assert door.guard.log_in(token_identity) is None
    door.tokens = kept  # a token that comes back does not bring the cookie back
    assert isinstance(door.authenticate(*login, OUR_PAGE), Refusal)


def test_another_token_of_the_old_name_is_another_token() -> None:
    door = OneTokenGuard()
    token_identity = door.authenticate(bearer())
    assert isinstance(token_identity, TokenIdentity)
    door.tokens = [Token("phone", "ada", ("read",), digest_of(b"new"))]
    assert not door.guard.is_valid(token_identity)
    assert door.guard.log_in(token_identity) is None


def test_while_the_tokens_cannot_be_read_no_client_comes_in_and_none_is_ended_at_once() -> None:
    door = OneTokenGuard()
    login = logged_in(door)
    token_identity = door.authenticate(bearer())
    assert isinstance(token_identity, TokenIdentity)

    def broken() -> list[Token]:
        raise Unsure("the disk is gone")

    door.guard.tokens = broken
    for headers in ([bearer()], [bearer(b"wrong")], [*login, OUR_PAGE]):
        refused = door.authenticate(*headers)
        assert isinstance(refused, Refusal) and refused.status == 503
    assert door.guard.is_valid(token_identity)
    assert door.guard.log_in(token_identity) is None
    door.clock.now += UNSURE_SECONDS - 1
    assert door.guard.is_valid(token_identity)
    door.clock.now += 1
    assert not door.guard.is_valid(token_identity)
    door.guard.tokens = lambda: door.tokens  # it was the disk: nothing is forgotten
    assert door.guard.is_valid(token_identity)
    assert isinstance(door.authenticate(*login, OUR_PAGE), TokenIdentity)
    door.guard.tokens = broken  # and the time begins anew
    assert door.guard.is_valid(token_identity)


@pytest.mark.parametrize(
    ("sites", "status"),
    [
        ([], None),
        ([b"same-origin"], None),
        ([b"none"], None),
        ([b"cross-site"], 403),
        ([b"same-site"], 403),
        ([b"same-origin", b"cross-site"], 403),
        ([b"x"], 403),
    ],
)
def test_a_browser_that_contradicts_itself_is_refused(sites: list[bytes], status: int | None) -> None:
    named = [(b"host", b"localhost"), *((b"sec-fetch-site", site) for site in sites)]
    assert OneTokenGuard().status([*named, OUR_PAGE]) == status
    assert OneTokenGuard().status(named) is None  # a link from elsewhere to our page


def test_a_page_has_the_cookie_of_its_own_scheme() -> None:
    door = OneTokenGuard("agents.example")
    key, (name, value) = logged_in(door)
    tls = (name, b"__Host-" + value)
    plain, secure = (b"origin", b"http://agents.example"), (b"origin", b"https://agents.example")
    assert isinstance(door.authenticate(key, (name, value), plain), TokenIdentity)
    assert isinstance(door.authenticate(key, tls, secure), TokenIdentity)
    for shown, origin in ((tls, plain), ((name, value), secure)):
        refused = door.authenticate(key, shown, origin)
        assert isinstance(refused, Refusal) and refused.status == 401


def test_a_client_that_sends_too_much_on_a_socket_waits() -> None:
    door = OneTokenGuard()
    token_identity = door.authenticate(bearer())
    assert isinstance(token_identity, TokenIdentity)
    assert {door.guard.message_delay(token_identity) for _ in range(int(MESSAGE_BURST))} == {0.0}
    assert [door.guard.message_delay(token_identity) for _ in range(2)] == [
        pytest.approx(n / MESSAGE_RATE) for n in (1, 2)
    ]
    assert isinstance(door.authenticate(bearer()), TokenIdentity)  # requests are counted for themselves
    door.clock.now += 3 / MESSAGE_RATE
    assert door.guard.message_delay(token_identity) == 0.0


def test_a_message_on_a_socket_is_a_use_of_its_cookie() -> None:
    door = OneTokenGuard()
    used, unused = (door.authenticate(*logged_in(door), OUR_PAGE) for _ in range(2))
    assert isinstance(used, TokenIdentity) and isinstance(unused, TokenIdentity)
    door.clock.now += login_store.IDLE_SECONDS - 1
    door.guard.message_delay(used)
    door.clock.now += 1
    assert [door.guard.is_logged_in(one) for one in (used, unused)] == [True, False]
    assert door.guard.is_logged_in(TokenIdentity("phone", "ada", ("read",)))  # came by no cookie


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("localhost", True), ("127.0.0.5", True), ("::1", True), ("0.0.0.0", False), ("agents.example", False)],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_scopes_are_read_from_a_command_line() -> None:
    assert scopes_of(" read, prompt,read,") == ("read", "prompt")
    with pytest.raises(ValueError, match="there is no scope 'root'; there are read, prompt, admin"):
        scopes_of("read,root")
    with pytest.raises(ValueError, match="name at least one scope"):
        scopes_of(" , ")
