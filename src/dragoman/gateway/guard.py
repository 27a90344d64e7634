"""Who may come in. Asked before anything of a request is read but its head; no I/O of its own, and the clock is an
argument.

In this order: is this request meant for us and sent by a page of ours or by no page (`host_check`), does it carry a
token that we know, and does its principal keep to the rate (`rate_limiter`).

A browser that has shown its token has a cookie instead. It sends that along with whatever any page makes it send, and
to every other port of this host, so a cookie counts only where the browser says that our own page has asked, for more
than looking with a header that no other page can set, and always with the page key that only our own page has.

RFC 6750 2.1 (Bearer), RFC 6265 8.2 and 8.5 (cookies).
"""

import hmac
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from dragoman.gateway.headers import Headers, has_our_header, value_of
from dragoman.gateway.host_check import HostCheck, Refusal
from dragoman.gateway.issuer_grants import IssuerGrants
from dragoman.gateway.issuer_jwt import TOKEN_BYTES
from dragoman.gateway.login_store import LoginCookies, LoginStore, page_key_in
from dragoman.gateway.rate_limiter import RateLimiter
from dragoman.gateway.shared_state import (
    LoginHalves,
    RatesOf,
    SharedGrants,
    SharedLogins,
    SharedTokens,
)
from dragoman.gateway.token_types import SCOPES, Token, TokenIdentity, Unsure, digest_of

# Requests of one principal: a busy editor sends some ten a second.
RATE: Final = 200.0
BURST: Final = 1000.0
# Messages of one principal on its WebSockets, which cost no head and no handshake. Past this they are read later.
MESSAGE_RATE: Final = 1000.0
MESSAGE_BURST: Final = 5000.0
# Wrong tokens from one address: a person who mistypes, not a program that guesses.
_WRONG_RATE: Final = 1.0
_WRONG_BURST: Final = 20.0
# While the tokens cannot be read, requests get 503, and connections that are open stay open for so long: a disk that
# fails for a moment is no reason to end a night's work.
UNSURE_SECONDS: Final = 60.0


class Guard:
    """Admit requests to one server. `hosts` are names that the server answers to; `logins` are those of browsers, which
    are kept in memory if not given; the cookies of them are this server's own. `grants` are what people of an OpenID
    issuer may do, `rates` makes what counts how often something is done. `node_of` returns the name of the node whose
    token was shown, or an empty one."""

    def __init__(
        self,
        tokens: SharedTokens,
        hosts: Iterable[str],
        port: int,
        clock: Callable[[], float],
        logins: SharedLogins | None = None,
        grants: SharedGrants | None = None,
        rates: RatesOf | None = None,
        node_of: Callable[[bytes], str] | None = None,
    ) -> None:
        self._tokens = tokens
        self._host_check = HostCheck(hosts, port)
        rates = rates or (lambda kind, rate, burst: RateLimiter(rate, burst, clock))
        self._requests = rates("requests", RATE, BURST)
        self._messages = rates("messages", MESSAGE_RATE, MESSAGE_BURST)
        self._wrong_tokens = rates("wrong tokens", _WRONG_RATE, _WRONG_BURST)
        self._clock = clock
        self._unsure_since: dict[str, float] = {}  # by what cannot be known
        self._grants: SharedGrants = grants or IssuerGrants(clock)
        self._node_of = node_of
        self.logins: Final[SharedLogins] = logins or LoginStore(clock)
        self.cookies: Final = LoginCookies(port)

    def refusal(self, headers: Headers, scheme: str) -> Refusal | None:
        """Return a `Refusal` if a request is not meant for this server, or comes from a page of another origin."""
        return self._host_check.refusal(headers, scheme)

    async def authenticate(self, headers: Headers, address: str, method: str = "GET") -> TokenIdentity | Refusal:
        """Return the identity of the bearer token, or of the login cookie that stands for one; else a `Refusal`. With
        an `Authorization` header cookies are ignored."""
        try:
            return await self._authenticate(headers, address, method)
        except Unsure:
            return Refusal(503, "The tokens cannot be read now. Try again later.")

    async def _authenticate(self, headers: Headers, address: str, method: str) -> TokenIdentity | Refusal:
        shown = bearer_in(headers)
        if shown is not None and self._node_of is not None and (node := self._node_of(shown)):
            # Neither counted nor limited: it passes on what its own clients were counted for. No token of a client
            # looks like this one, so a wrong one goes on to be refused, and counted, like any other.
            return TokenIdentity("", f"node:{node}", SCOPES, node=node)
        found = None if shown is None else await self._find(shown)
        # A request that sends a token is judged by it alone: a page could add a cookie to it, but not the other way
        # round.
        cookies = [] if value_of(headers, b"authorization") is not None else self._cookies_in(headers)
        cookie = ""
        if cookies:
            if not _is_of_our_page(headers, method):
                return Refusal(403, "A cookie counts only for our own page.")
            cookie, found = await self._find_login(cookies, page_key_in(headers))
        if found is None:
            if cookies:
                return await self.refuse(
                    address, "This login has ended, or another page asks. Open the page, log in again."
                )
            return await self.refuse(address, "A valid token is needed: Authorization: Bearer TOKEN.")
        if not await self._requests.acquire(found.token.principal):
            return Refusal(429, "Too many requests. Slow down.")
        return identity_of(found.token, cookie, is_granted=found.is_granted)

    async def refuse(self, address: str, reason: str) -> Refusal:
        """Return the `Refusal` of a wrong token or login from this address; past their rate it says that alone."""
        # Only failures are limited by address, never a valid token: behind a proxy many clients share an address.
        if not await self._wrong_tokens.acquire(address):
            return Refusal(429, "Too many wrong tokens. Wait a minute.")
        return Refusal(401, reason)

    async def admit(self, token_identity: TokenIdentity) -> TokenIdentity | Refusal:
        """Return the identity of a client that needs no token; a `Refusal` past the request rate of its principal."""
        if not await self._requests.acquire(token_identity.principal):
            return Refusal(429, "Too many requests. Slow down.")
        return token_identity

    async def message_delay(self, token_identity: TokenIdentity) -> float:
        """Return after how many seconds a message that came on a socket may be received. Counts it, and keeps the login
        alive that the socket was opened by."""
        if token_identity.cookie:
            await self.logins.touch(token_identity.cookie)
        return 0.0 if token_identity.node else await self._messages.delay(token_identity.principal)

    async def log_in(self, token_identity: TokenIdentity) -> LoginHalves | None:
        """Make a login for the token that was shown; None: it was revoked just now, or the file cannot be read."""
        try:
            return await self.logins.make(token_identity.digest) if await self._is_stored(token_identity) else None
        except Unsure:
            return None

    async def is_valid(self, token_identity: TokenIdentity) -> bool:
        """Return whether the token of this identity, by its digest, is still valid; True if it has none, or is of an
        issuer (`is_logged_in`). While the tokens cannot be read: True for `UNSURE_SECONDS`, then False."""
        if not token_identity.token or token_identity.is_granted:
            return True
        return await self._while_unsure("token", self._is_stored(token_identity))

    async def is_logged_in(self, token_identity: TokenIdentity) -> bool:
        """Return whether the login cookie of this identity is still valid, and what its issuer has granted; True if it
        has neither. While that cannot be known, as `is_valid`."""
        if not token_identity.cookie and not token_identity.is_granted:
            return True
        return await self._while_unsure("login", self._is_logged_in(token_identity))

    async def _is_logged_in(self, token_identity: TokenIdentity) -> bool:
        # An issuer's token ends after some minutes, by itself; the turn that it began goes on, as at a login's end.
        if token_identity.is_granted and not await self._is_granted(token_identity):
            return False
        return not token_identity.cookie or await self.logins.is_valid(token_identity.cookie)

    async def _is_granted(self, token_identity: TokenIdentity) -> bool:
        digest = token_identity.digest
        return self._grants.find_bearer(digest) is not None or await self._grants.find(digest) is not None

    async def _while_unsure(self, what: str, check: Awaitable[bool]) -> bool:
        """Return the outcome of a check; while that is not known: True for `UNSURE_SECONDS`, then False."""
        try:
            outcome = await check
        except Unsure:
            # The clock starts with the first failure, and stops when it is known again.
            now = self._clock()
            return now - self._unsure_since.setdefault(what, now) < UNSURE_SECONDS
        self._unsure_since.pop(what, None)
        return outcome

    async def _is_stored(self, token_identity: TokenIdentity) -> bool:
        if token_identity.is_granted:
            return await self._is_granted(token_identity)
        return any(token.digest == token_identity.digest for token in await self._tokens.valid())

    async def _find(self, shown: bytes) -> "_Found | None":
        """Return the token that was sent; None if it is not known."""
        # Every token is compared, and each in constant time: how long this takes must not tell how close a guess was.
        digest = digest_of(shown)
        found = None
        for token in await self._tokens.valid():
            if hmac.compare_digest(token.digest, digest):
                found = _Found(token)
        # What was granted to a login of the page is never sent as a token, so no other server is asked.
        granted = None if found is not None else self._grants.find_bearer(digest)
        return found if granted is None else _Found(granted, is_granted=True)

    def _cookies_in(self, headers: Headers) -> list[str]:
        shown = b"; ".join(value for name, value in headers if name == b"cookie")
        origin = value_of(headers, b"origin")
        secure = None if origin is None else origin.lower().startswith("https:")
        return self.cookies.shown(shown.decode("latin-1"), secure=secure)

    async def _find_login(self, cookies: list[str], page_key: str) -> "tuple[str, _Found | None]":
        """Return the cookie that this page key belongs to, and the token it stands for, if that was not revoked."""
        for cookie in cookies:
            digest = await self.logins.token_digest(cookie, page_key)
            if digest is None:
                continue
            stored = next((one for one in await self._tokens.valid() if one.digest == digest), None)
            granted = None if stored is not None else await self._grants.find(digest)
            token = stored or granted
            # The token was revoked, or the grant is over: its logins end with it, here at the latest.
            if token is None:
                await self.logins.end(cookie)
                return cookie, None
            return cookie, _Found(token, is_granted=stored is None)
        return "", None


class _Found(NamedTuple):
    """A token that counts now. `is_granted`: an OpenID issuer vouches for it."""

    token: Token
    is_granted: bool = False


def _is_of_our_page(headers: Headers, method: str) -> bool:
    """Return whether the browser says that our own page has sent this."""
    # `HostCheck.refusal` has let no foreign `Origin` pass, so one that is here is ours.
    ours = any(name == b"origin" for name, _ in headers) or value_of(headers, b"sec-fetch-site") == "same-origin"
    return ours and (method in ("GET", "HEAD") or has_our_header(headers))


def identity_of(token: Token, cookie: str = "", *, is_granted: bool = False) -> TokenIdentity:
    """Return the identity of a token, or of a grant; `cookie` is the digest of the login cookie that stood for it."""
    return TokenIdentity(
        token.name,
        token.principal,
        token.scopes,
        cookie,
        token.digest,
        token.limits,
        is_granted=is_granted,
        share=token.share,
    )


def bearer_in(headers: Headers) -> bytes | None:
    """Return the bearer token of a request; None where it has none, more than one, or one that is too long."""
    shown = [value for name, value in headers if name == b"authorization"]
    # Two headers: which of them a proxy has looked at cannot be known.
    if len(shown) != 1:
        return None
    kind, _, token = shown[0].strip().partition(b" ")
    token = token.strip()
    return token if kind.lower() == b"bearer" and 0 < len(token) <= TOKEN_BYTES else None
