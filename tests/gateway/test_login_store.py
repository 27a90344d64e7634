"""A token becomes a login of two halves, and when they count: the guard by itself, with a clock of ours."""

import pytest

from dragoman.gateway import login_store
from dragoman.gateway.host_check import Refusal
from dragoman.gateway.login_store import LoginCookies, LoginStore
from dragoman.gateway.shared_state import LoginHalves
from dragoman.gateway.token_types import SCOPES, Token, TokenIdentity, digest_of
from tests.support.guards import ImmediateGuard, at_once

ORIGIN = ("origin", "http://localhost:8790")
FETCHED = ("sec-fetch-site", "same-origin")
OURS = ("x-dragoman", "1")


class Door:
    """A guard with tokens that can be taken away, and a clock that can be moved."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tokens = [Token(name, name, SCOPES, digest_of(name.encode())) for name in ("laptop", "phone")]
        self.guard = ImmediateGuard(lambda: self.tokens, ["localhost"], 8790, lambda: self.now)

    def login(self, name: str = "laptop") -> LoginHalves:
        entered = self.guard.authenticate([(b"authorization", b"Bearer " + name.encode())], "here")
        assert isinstance(entered, TokenIdentity) and entered.cookie == ""
        halves = self.guard.log_in(entered)
        assert halves is not None
        return halves

    def knock(self, login: LoginHalves, *headers: tuple[str, str], method: str = "GET") -> TokenIdentity | int:
        """As the page does, with both halves; an empty one is not sent."""
        sent = [("host", "localhost:8790"), ("cookie", f"other=1; dragoman-8790={login.cookie}"), *headers]
        sent += [("x-dragoman-page-key", login.page_key)] if login.page_key else []
        encoded = [(name.encode(), value.encode()) for name, value in sent]
        refusal = self.guard.refusal(encoded, "http")
        entered = refusal if refusal is not None else self.guard.authenticate(encoded, "here", method)
        return entered.status if isinstance(entered, Refusal) else entered


@pytest.fixture
def door() -> Door:
    return Door()


def test_a_login_stands_for_its_token(door: Door) -> None:
    login = door.login("phone")
    entered = door.knock(login, ORIGIN)
    assert isinstance(entered, TokenIdentity)
    assert (entered.token, entered.principal, entered.scopes) == ("phone", "phone", SCOPES)
    assert entered.cookie != ""
    again = door.login("phone")
    assert len({*login, *again}) == 4
    assert {len(half) for half in login} == {43}  # 256 bits


def test_neither_half_counts_without_its_own_other_half(door: Door) -> None:
    login, other = door.login("laptop"), door.login("phone")
    halves = (
        LoginHalves(login.cookie, ""),
        LoginHalves("", login.page_key),
        LoginHalves(login.cookie, other.page_key),
        LoginHalves(login.cookie, login.cookie),
        LoginHalves(login.page_key, login.page_key),
        LoginHalves(login.page_key, login.cookie),
        LoginHalves(login.cookie, login.page_key[:-1]),
        LoginHalves(login.cookie, login.page_key + "A"),
        LoginHalves(login.cookie, "x" * 5000),
    )
    assert [door.knock(shown, ORIGIN) for shown in halves] == [401] * len(halves)
    assert isinstance(door.knock(login, ORIGIN), TokenIdentity)  # nor has any of that ended it


OFFERED = "sec-websocket-protocol"


def test_a_socket_shows_the_page_key_as_a_subprotocol_and_only_once(door: Door) -> None:
    cookie, key = door.login()
    for offered, outcome in (
        ([f"acp, dragoman.{key}"], "in"),
        (["acp", f"dragoman.{key}"], "in"),
        ([f"dragoman.{key},acp"], "in"),
        (["acp"], 401),
        ([f"acp, {key}"], 401),
        ([f"acp, dragoman.{key}, dragoman.{key}"], 401),
        ([f"acp, dragoman.{'x' * 43}, dragoman.{key}"], 401),
        (["acp, dragoman."], 401),
    ):
        entered = door.knock(LoginHalves(cookie, ""), ORIGIN, *((OFFERED, value) for value in offered))
        assert ("in" if isinstance(entered, TokenIdentity) else entered) == outcome, offered
    assert door.knock(LoginHalves(cookie, key), ORIGIN, (OFFERED, f"dragoman.{key}")) == 401


def test_half_a_login_does_not_keep_it_alive(door: Door) -> None:
    login = door.login()
    for _ in range(4):
        door.now += login_store.IDLE_SECONDS * 0.3
        assert door.knock(LoginHalves(login.cookie, ""), ORIGIN) == 401
    assert door.knock(login, ORIGIN) == 401


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
        ("GET", [OURS], 403),  # a client that can set a header and no Origin is no page of ours
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
    assert ("in" if isinstance(entered, TokenIdentity) else entered) == outcome


def test_a_wrong_cookie_is_401_and_guessing_is_held_back(door: Door) -> None:
    statuses = [door.knock(LoginHalves("x" * 43, "y" * 43), ORIGIN) for _ in range(100)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert door.knock(LoginHalves("x" * 5000, "y" * 43), ORIGIN) == 429
    assert isinstance(door.knock(door.login(), ORIGIN), TokenIdentity)


def test_unused_for_a_day_it_is_over(door: Door) -> None:
    used, unused = door.login(), door.login()
    for _ in range(3):
        door.now += login_store.IDLE_SECONDS * 0.6
        assert isinstance(door.knock(used, ORIGIN), TokenIdentity)
    assert door.knock(unused, ORIGIN) == 401


def test_after_a_week_it_is_over_though_it_was_used(door: Door) -> None:
    login = door.login()
    while door.now + 3600 < login_store.LIFE_SECONDS:
        door.now += 3600
        assert isinstance(door.knock(login, ORIGIN), TokenIdentity)
    door.now += 3600
    assert door.knock(login, ORIGIN) == 401


def test_it_ends_with_its_token_and_not_with_another(door: Door) -> None:
    mine, other = door.login("laptop"), door.login("phone")
    door.tokens = door.tokens[:1]
    assert isinstance(door.knock(mine, ORIGIN), TokenIdentity)
    assert door.knock(other, ORIGIN) == 401
    # A new token of the old name is another token.
    door.tokens.append(Token("phone", "phone", SCOPES, digest_of(b"new")))
    assert door.knock(other, ORIGIN) == 401


def test_logging_out_ends_it(door: Door) -> None:
    login = door.login()
    entered = door.knock(login, ORIGIN)
    assert isinstance(entered, TokenIdentity)
    at_once(door.guard.inner.logins.end(entered.cookie))
    assert door.knock(login, ORIGIN) == 401


def test_a_token_counts_before_a_cookie(door: Door) -> None:
    entered = door.knock(door.login("laptop"), ("authorization", "Bearer phone"))
    assert isinstance(entered, TokenIdentity) and (entered.token, entered.cookie) == ("phone", "")
    assert door.knock(door.login("laptop"), ORIGIN, ("authorization", "Bearer wrong")) == 401


def test_the_one_unused_for_longest_goes_when_there_are_too_many(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_store, "COOKIES", 3)
    first, second, third = (door.login() for _ in range(3))
    assert isinstance(door.knock(first, ORIGIN), TokenIdentity)
    door.login()
    assert door.knock(second, ORIGIN) == 401
    assert isinstance(door.knock(first, ORIGIN), TokenIdentity)
    assert isinstance(door.knock(third, ORIGIN), TokenIdentity)


def test_a_cookie_that_another_port_has_set_before_ours_does_not_log_us_out(door: Door) -> None:
    login, other = door.login("laptop"), door.login("phone")
    for set_before in ("x", other.cookie):
        entered = door.knock(LoginHalves(f"{set_before}; dragoman-8790={login.cookie}", login.page_key), ORIGIN)
        assert isinstance(entered, TokenIdentity) and entered.token == "laptop"


def test_one_token_cannot_log_out_the_browsers_of_another(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_store, "COOKIES", 5)
    monkeypatch.setattr(login_store, "COOKIES_EACH", 3)
    other = door.login("phone")
    mine = [door.login("laptop") for _ in range(20)]
    assert isinstance(door.knock(other, ORIGIN), TokenIdentity)
    assert [isinstance(door.knock(login, ORIGIN), TokenIdentity) for login in mine[-4:]] == [False, True, True, True]


def test_a_clock_that_was_set_back_for_long_makes_no_login_eternal() -> None:
    now = [1_000_000.0]
    kept = LoginStore(lambda: now[0])
    login = at_once(kept.make("token"))
    (digest,) = LoginCookies(8790).shown(f"dragoman-8790={login.cookie}")
    now[0] -= 1800
    assert at_once(kept.token_digest(digest, login.page_key)) == "token"
    now[0] -= 7200
    assert at_once(kept.token_digest(digest, login.page_key)) is None


def test_what_the_browser_is_told_about_it() -> None:
    cookies = LoginCookies(8790)
    everywhere = "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"
    assert cookies.header("v", secure=False) == f"dragoman-8790=v; {everywhere}".encode()
    assert cookies.header("v", secure=True) == f"__Host-dragoman-8790=v; {everywhere}; Secure".encode()
    assert b"Max-Age=0;" in cookies.header("", secure=False)


def test_the_cookie_of_tls_goes_first_and_garbage_is_none() -> None:
    cookies = LoginCookies(8790)
    (a,), (b,) = cookies.shown("dragoman-8790=a"), cookies.shown("dragoman-8790=b")
    assert cookies.shown("dragoman-8790=b; __Host-dragoman-8790=a") == [a, b]
    assert cookies.shown("dragoman-8790=b; __Host-dragoman-8790=a", secure=True) == [a]
    assert cookies.shown("dragoman-8790=b; __Host-dragoman-8790=a", secure=False) == [b]
    assert cookies.shown("dragoman-8790=a; dragoman-8790=b") == [a, b]
    assert len(cookies.shown("dragoman-8790=a; " * 1000)) == 8
    for garbage in ("", ";", "=", "dragoman-8790", "dragoman-8790=", "dragoman-9000=a", "dragoman-8790=" + "a" * 65):
        assert cookies.shown(garbage) == []
