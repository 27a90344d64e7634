"""Who may come in. Asked before anything of a request is read but its head; no I/O, and the clock is given.

In this order: is this request meant for us (`Host`), was it sent by a page of ours or by no page (`Origin`), does it
carry a token that we know. A browser lets any page send requests to this machine, and a name can be made to point to
it; so a loopback address alone is no protection.

A browser that has shown its token has a cookie instead. It sends that along with whatever any page makes it send, and
to every other port of this host, so a cookie counts only where the browser says that our own page has asked, for more
than looking with a header that no other page can set, and always with the page key that only our own page has.

RFC 9110 7.2 (Host), RFC 6454 7 (Origin), RFC 6750 2.1 (Bearer).
"""

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from dragoman.errors import UsageError
from dragoman.gateway.login_store import LoginHalves, LoginStore, page_key_in

Scope = Literal["read", "prompt", "admin"]
SCOPES: Final[tuple[Scope, ...]] = ("read", "prompt", "admin")
Headers = Sequence[tuple[bytes, bytes]]

# A header block of an ordinary client has a dozen headers and a kibibyte.
HEADER_COUNT: Final = 100
HEADER_BYTES: Final = 32 * 1024
# A token of ours is 43 characters; one that is longer than this is rejected and not hashed.
_TOKEN_LENGTH: Final = 512
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
# Buckets kept; past this the oldest are forgotten, and start full again.
_BUCKETS: Final = 10_000
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", re.ASCII)


class Refusal(NamedTuple):
    """Why a request is not admitted: an HTTP status, and a sentence for the client that is of no use to an attacker."""

    status: int
    reason: str


class TokenLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a token may reach, beside its scopes; the default is what a token gets if its maker says nothing.

    - `max_mode`: no mode that reaches further; empty: every mode that is open to its scopes.
    - `workspaces`: real paths of the only folders it may open sessions in; none: every folder.
    - `allow_unconfined`: without `admin` too, it may use every mode and answer questions about leaving a confinement.
    - `allow_mcp_programs`: without `admin` too, it may bring MCP servers that are programs.
    """

    max_mode: str = ""
    workspaces: tuple[str, ...] = ()
    allow_unconfined: bool = False
    allow_mcp_programs: bool = False


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a token: never the token itself. Times are seconds since 1970; 0: not known, or never."""

    name: str
    principal: str
    scopes: tuple[Scope, ...]
    digest: str
    limits: TokenLimits = TokenLimits()
    created: float = 0
    expires: float = 0


class TokenIdentity(NamedTuple):
    """The token a request was admitted by, and what it may do. `digest` identifies it, since another token may get the
    same name later. `cookie` is the digest of the login cookie that stood for the token; empty: the token itself was
    sent. `token` is its name; empty: the request needed none."""

    token: str
    principal: str
    scopes: tuple[Scope, ...]
    cookie: str = ""
    digest: str = ""
    limits: TokenLimits = TokenLimits()

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    def covers(self, other: "TokenIdentity") -> bool:
        """Whether whatever `other` may do, this may do too."""
        if not set(other.scopes) <= set(self.scopes):
            return False
        return self.limits in (other.limits, _NO_LIMITS if self.may("admin") else None)


_NO_LIMITS: Final = TokenLimits()


class Unsure(UsageError):
    """The tokens cannot be read now, so it is not known which are valid."""


class Guard:
    """One for a server. `tokens` gives those that are valid now, or is `Unsure`; `hosts` are the names we answer to;
    `cookies` are the logins of browsers, which are kept in memory if not given."""

    def __init__(
        self,
        tokens: Callable[[], Iterable[Token]],
        hosts: Iterable[str],
        port: int,
        clock: Callable[[], float],
        cookies: LoginStore | None = None,
    ) -> None:
        self._tokens = tokens
        self._hosts = {host.lower().strip("[]") for host in hosts}
        self._port = port
        self._requests = _Buckets(RATE, BURST, clock)
        self._messages = _Buckets(MESSAGE_RATE, MESSAGE_BURST, clock)
        self._wrong = _Buckets(_WRONG_RATE, _WRONG_BURST, clock)
        self._clock = clock
        self._unsure_since: float | None = None
        self.cookies: Final = cookies or LoginStore(port, clock)

    def refusal(self, headers: Headers, scheme: str) -> Refusal | None:
        """Return a `Refusal` if there are too many headers, `Host` is not one of our names, or the request comes from a
        page of another origin; else None."""
        if len(headers) > HEADER_COUNT or sum(len(name) + len(value) for name, value in headers) > HEADER_BYTES:
            return Refusal(431, "The request has too many headers.")
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1:
            return Refusal(400, "The request must name one host.")
        host = hosts[0].decode("latin-1").lower()
        if not self._is_ours(host):
            return Refusal(421, "This server does not answer to that name.")
        origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
        ours = {f"{scheme}://{host}"}
        if not _is_of_this_machine(host):
            ours.add(f"https://{host}")  # TLS ends at a proxy before us
        if len(origins) > 1 or not ours.issuperset(origins):
            return Refusal(403, "Pages of another origin may not use this server.")
        # No browser says "ours" and "from elsewhere" at once. A link from elsewhere to our page has no Origin.
        sites = {value for name, value in headers if name == b"sec-fetch-site"}
        if origins and not sites <= {b"none", b"same-origin"}:
            return Refusal(403, "Pages of another origin may not use this server.")
        return None

    def enter(self, headers: Headers, address: str, method: str = "GET") -> TokenIdentity | Refusal:
        """Return the identity of the bearer token, or of the login cookie that stands for one; else a `Refusal`. With
        an `Authorization` header cookies are ignored."""
        try:
            return self._enter(headers, address, method)
        except Unsure:
            return Refusal(503, "The tokens cannot be read now. Try again later.")

    def _enter(self, headers: Headers, address: str, method: str) -> TokenIdentity | Refusal:
        shown = _bearer(headers)
        token = None if shown is None else self._known(shown)
        cookies = [] if value_of(headers, b"authorization") is not None else self._cookies_in(headers)
        cookie = ""
        if cookies:
            if not _is_of_our_page(headers, method):
                return Refusal(403, "A cookie counts only for our own page.")
            cookie, token = self._meant(cookies, page_key_in(headers))
        if token is None:
            # Only failures are limited by address, never a valid token: behind a proxy many clients share an address.
            if not self._wrong.take(address):
                return Refusal(429, "Too many wrong tokens. Wait a minute.")
            if cookies:
                return Refusal(401, "This login has ended, or another page asks. Open the page and log in again.")
            return Refusal(401, "A valid token is needed: Authorization: Bearer TOKEN.")
        if not self._requests.take(token.principal):
            return Refusal(429, "Too many requests. Slow down.")
        return TokenIdentity(token.name, token.principal, token.scopes, cookie, token.digest, token.limits)

    def admit(self, token_identity: TokenIdentity) -> TokenIdentity | Refusal:
        """Return the identity of a client that needs no token; a `Refusal` past the request rate of its principal."""
        if not self._requests.take(token_identity.principal):
            return Refusal(429, "Too many requests. Slow down.")
        return token_identity

    def pause(self, token_identity: TokenIdentity) -> float:
        """A message came on a socket: the seconds after which it may be heard. Its cookie, if any, was used."""
        if token_identity.cookie:
            self.cookies.touch(token_identity.cookie)
        return self._messages.wait(token_identity.principal)

    def cookie_for(self, token_identity: TokenIdentity) -> LoginHalves | None:
        """Make a login for the token that was shown; None: it was revoked just now, or the file cannot be read."""
        try:
            return self.cookies.make(token_identity.digest) if self._is_kept(token_identity) else None
        except Unsure:
            return None

    def is_valid(self, token_identity: TokenIdentity) -> bool:
        """Return whether the token of this identity, by its digest, is still valid; True if it has none. While the
        tokens cannot be read: True for `UNSURE_SECONDS`, then False."""
        if not token_identity.token:
            return True
        now = self._clock()
        try:
            kept = self._is_kept(token_identity)
        except Unsure:
            if self._unsure_since is None:
                self._unsure_since = now
            return now - self._unsure_since < UNSURE_SECONDS
        self._unsure_since = None
        return kept

    def is_logged_in(self, token_identity: TokenIdentity) -> bool:
        """Return whether the login cookie of this identity is still valid; True if it has none."""
        return not token_identity.cookie or self.cookies.counts(token_identity.cookie)

    def _is_kept(self, token_identity: TokenIdentity) -> bool:
        return any(token.digest == token_identity.digest for token in self._tokens())

    def _known(self, shown: bytes) -> Token | None:
        """Every token is compared, and each in constant time: how long this takes says nothing."""
        digest = digest_of(shown)
        found = None
        for token in self._tokens():
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def _cookies_in(self, headers: Headers) -> list[str]:
        shown = b"; ".join(value for name, value in headers if name == b"cookie")
        origin = value_of(headers, b"origin")
        secure = None if origin is None else origin.lower().startswith("https:")
        return self.cookies.shown(shown.decode("latin-1"), secure=secure)

    def _meant(self, cookies: list[str], page_key: str) -> tuple[str, Token | None]:
        """The cookie that this page key belongs to, and the token it stands for, if that was not revoked."""
        for cookie in cookies:
            digest = self.cookies.token_digest(cookie, page_key)
            if digest is None:
                continue
            found = next((token for token in self._tokens() if token.digest == digest), None)
            if found is None:
                self.cookies.end(cookie)
            return cookie, found
        return "", None

    def _is_ours(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        if host in self._hosts:  # named with its port, as it is seen behind a proxy
            return True
        name, port = match[1].strip("[]"), match[2]
        if port is not None and int(port) != self._port and name not in self._hosts - LOOPBACK:
            return False
        if name in self._hosts:
            return True
        # Rebinding needs a name. Where we listen on every address, any literal one of ours may be used.
        return "0.0.0.0" in self._hosts | self._any() and _is_address(name)

    def _any(self) -> set[str]:
        return {"0.0.0.0"} if "::" in self._hosts else set()


LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_of_this_machine(host: str) -> bool:
    """Whether a `Host`, with or without a port, is a loopback name or address."""
    match = _HOST.fullmatch(host)
    return match is not None and is_loopback(match[1].strip("[]"))


def digest_of(token: bytes) -> str:
    """What is kept of a token. It has 256 bits of chance, so a slow hash would add nothing."""
    return hashlib.sha256(token).hexdigest()


def value_of(headers: Headers, name: bytes) -> str | None:
    """A header; the first, where there are several."""
    return next((value.decode("latin-1") for found, value in headers if found == name), None)


# No page of another origin can add it without asking us first, and we never say yes.
OUR_HEADER: Final = (b"x-dragoman", "1")


def has_our_header(headers: Headers) -> bool:
    """Whether a script of our own page has sent this, or no browser at all."""
    return value_of(headers, OUR_HEADER[0]) == OUR_HEADER[1]


def _is_of_our_page(headers: Headers, method: str) -> bool:
    """`refusal` has let no foreign `Origin` pass, so one that is here is ours."""
    ours = any(name == b"origin" for name, _ in headers) or value_of(headers, b"sec-fetch-site") == "same-origin"
    return ours and (method in ("GET", "HEAD") or has_our_header(headers))


def _bearer(headers: Headers) -> bytes | None:
    shown = [value for name, value in headers if name == b"authorization"]
    if len(shown) != 1:
        return None
    kind, _, token = shown[0].strip().partition(b" ")
    token = token.strip()
    return token if kind.lower() == b"bearer" and 0 < len(token) <= _TOKEN_LENGTH else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _Buckets:
    """So many at once, so many a second, for each key."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> bool:
        level = self._level(key)
        self._levels.pop(key, None)
        self._levels[key] = (max(level - 1, 0), self._clock())
        if len(self._levels) > _BUCKETS:
            del self._levels[next(iter(self._levels))]
        return level >= 1

    def wait(self, key: str) -> float:
        """Take one and return the seconds the caller has to wait for it; 0 if there was one. The level may become
        negative, so that each further call gets a longer wait. Does not wait itself."""
        level = self._level(key) - 1
        self._levels.pop(key, None)
        self._levels[key] = (level, self._clock())
        if len(self._levels) > _BUCKETS:
            del self._levels[next(iter(self._levels))]
        return max(-level / self._rate, 0.0)

    def _level(self, key: str) -> float:
        level, since = self._levels.get(key, (self._burst, self._clock()))
        return min(level + (self._clock() - since) * self._rate, self._burst)


def scopes_of(text: str) -> tuple[Scope, ...]:
    """Scopes from a command line: `read,prompt`. ValueError names the wrong one."""
    named: Mapping[str, Scope] = {scope: scope for scope in SCOPES}
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in named:
            raise ValueError(f"there is no scope {word!r}; there are {', '.join(SCOPES)}")
    if not words:
        raise ValueError(f"name at least one scope of {', '.join(SCOPES)}")
    return tuple(named[word] for word in dict.fromkeys(words))
