"""A token becomes a cookie, and when the cookie counts: the guard by itself, with a clock of ours."""

import pytest

from dragoman.gateway import cookies
from dragoman.gateway.cookies import Cookies
from dragoman.gateway.guard import SCOPES, Guard, Pass, Refusal, Token, digest_of

ORIGIN = ("origin", "http://localhost:8790")
FETCHED = ("sec-fetch-site", "same-origin")
OURS = ("x-dragoman", "1")


class Door:
    """A guard with tokens that can be taken away, and a clock that can be moved."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tokens = [Token(name, name, SCOPES, digest_of(name.encode())) for name in ("laptop", "phone")]
        self.guard = Guard(lambda: self.tokens, ["localhost"], 8790, lambda: self.now)

    def login(self, name: str = "laptop") -> str:
        entered = self.guard.enter([(b"authorization", b"Bearer " + name.encode())], "here")
        assert isinstance(entered, Pass) and entered.cookie == ""
        value = self.guard.cookie_for(entered)
        assert value is not None
        return value

    def knock(self, cookie: str, *headers: tuple[str, str], method: str = "GET") -> Pass | int:
        sent = [("host", "localhost:8790"), ("cookie", f"other=1; dragoman-8790={cookie}"), *headers]
        encoded = [(name.encode(), value.encode()) for name, value in sent]
        refusal = self.guard.refusal(encoded, "http")
        entered = refusal if refusal is not None else self.guard.enter(encoded, "here", method)
        return entered.status if isinstance(entered, Refusal) else entered


@pytest.fixture
def door() -> Door:
    return Door()


def test_a_cookie_stands_for_its_token(door: Door) -> None:
    cookie = door.login("phone")
    entered = door.knock(cookie, ORIGIN)
    assert isinstance(entered, Pass)
    assert (entered.token, entered.principal, entered.scopes) == ("phone", "phone", SCOPES)
    assert entered.cookie != ""
    assert door.login("phone") != cookie
    assert len(cookie) == 43  # 256 bits


@pytest.mark.parametrize(
    ("method", "headers", "outcome"),
    [
        ("GET", [ORIGIN], "in"),
        ("GET", [FETCHED], "in"),
        ("HEAD", [FETCHED], "in"),
        ("POST", [ORIGIN, OURS], "in"),
        ("POST", [FETCHED, OURS], "in"),
        ("DELETE", [ORIGIN, OURS], "in"),
        ("GET", [], 403),
        ("GET", [OURS], 403),  # whoever can set a header and no Origin is no page of ours
        ("POST", [ORIGIN], 403),
        ("POST", [OURS], 403),
        ("DELETE", [ORIGIN], 403),
        ("POST", [ORIGIN, ("x-dragoman", "0")], 403),
        ("GET", [("sec-fetch-site", "same-site")], 403),
        ("GET", [("sec-fetch-site", "cross-site")], 403),
        ("GET", [("sec-fetch-site", "none")], 403),
        ("POST", [("origin", "http://evil.example"), OURS], 403),
        ("POST", [("origin", "null"), OURS], 403),
        ("POST", [("origin", "http://localhost:9000"), FETCHED, OURS], 403),
        ("POST", [("origin", "https://localhost:8790"), OURS], 403),
        ("POST", [ORIGIN, ORIGIN, OURS], 403),
    ],
)
def test_it_counts_only_for_our_own_page(
    door: Door, method: str, headers: list[tuple[str, str]], outcome: object
) -> None:
    entered = door.knock(door.login(), *headers, method=method)
    assert ("in" if isinstance(entered, Pass) else entered) == outcome


def test_a_wrong_cookie_is_401_and_guessing_is_held_back(door: Door) -> None:
    statuses = [door.knock("x" * 43, ORIGIN) for _ in range(100)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert door.knock("x" * 5000, ORIGIN) == 429
    assert isinstance(door.knock(door.login(), ORIGIN), Pass)


def test_unused_for_a_day_it_is_over(door: Door) -> None:
    used, unused = door.login(), door.login()
    for _ in range(3):
        door.now += cookies.IDLE_SECONDS * 0.6
        assert isinstance(door.knock(used, ORIGIN), Pass)
    assert door.knock(unused, ORIGIN) == 401


def test_after_a_week_it_is_over_though_it_was_used(door: Door) -> None:
    cookie = door.login()
    while door.now + 3600 < cookies.LIFE_SECONDS:
        door.now += 3600
        assert isinstance(door.knock(cookie, ORIGIN), Pass)
    door.now += 3600
    assert door.knock(cookie, ORIGIN) == 401


def test_it_ends_with_its_token_and_not_with_another(door: Door) -> None:
    mine, other = door.login("laptop"), door.login("phone")
    door.tokens = door.tokens[:1]
    assert isinstance(door.knock(mine, ORIGIN), Pass)
    assert door.knock(other, ORIGIN) == 401
    # A new token of the old name is another token.
    door.tokens.append(Token("phone", "phone", SCOPES, digest_of(b"new")))
    assert door.knock(other, ORIGIN) == 401


def test_logging_out_ends_it(door: Door) -> None:
    cookie = door.login()
    entered = door.knock(cookie, ORIGIN)
    assert isinstance(entered, Pass)
    door.guard.cookies.end(entered.cookie)
    assert door.knock(cookie, ORIGIN) == 401


def test_a_token_counts_before_a_cookie(door: Door) -> None:
    entered = door.knock(door.login("laptop"), ("authorization", "Bearer phone"))
    assert isinstance(entered, Pass) and (entered.token, entered.cookie) == ("phone", "")
    assert door.knock(door.login("laptop"), ORIGIN, ("authorization", "Bearer wrong")) == 401


def test_the_one_unused_for_longest_goes_when_there_are_too_many(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cookies, "COOKIES", 3)
    first, second, third = (door.login() for _ in range(3))
    assert isinstance(door.knock(first, ORIGIN), Pass)
    door.login()
    assert door.knock(second, ORIGIN) == 401
    assert isinstance(door.knock(first, ORIGIN), Pass)
    assert isinstance(door.knock(third, ORIGIN), Pass)


def test_what_the_browser_is_told_about_it() -> None:
    kept = Cookies(8790, lambda: 0.0)
    everywhere = "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"
    assert kept.header("v", secure=False) == f"dragoman-8790=v; {everywhere}".encode()
    assert kept.header("v", secure=True) == f"__Host-dragoman-8790=v; {everywhere}; Secure".encode()
    assert b"Max-Age=0;" in kept.header("", secure=False)


def test_the_cookie_of_tls_goes_first_and_garbage_is_none() -> None:
    kept = Cookies(8790, lambda: 0.0)
    only = kept.shown("dragoman-8790=a")
    assert only is not None
    assert kept.shown("dragoman-8790=b; __Host-dragoman-8790=a") == only
    assert kept.shown("dragoman-8790=a; dragoman-8790=b") == only  # RFC 6265 5.4: the first is the nearer one
    for garbage in ("", ";", "=", "dragoman-8790", "dragoman-8790=", "dragoman-9000=a", "dragoman-8790=" + "a" * 65):
        assert kept.shown(garbage) is None
