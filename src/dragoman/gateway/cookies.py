"""Who logged in with a browser: a token shown once becomes a cookie, which is all the page has from then on.

A cookie is 256 random bits, of which we keep a hash, in memory: a restart ends them all. It stands for one very token
and ends with it. It says nothing about who sent it, so the guard asks for more than a cookie (RFC 6265 8.2).
"""

import hashlib
import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

# Unused for a day, it is forgotten; after a week the token is wanted again.
IDLE_SECONDS: Final = 24 * 3600.0
LIFE_SECONDS: Final = 7 * 24 * 3600.0
# Browsers that are logged in at once; past this the one that was unused for longest is logged out.
COOKIES: Final = 1000
# A cookie of ours has 43 characters; nobody needs to have more hashed.
_LENGTH: Final = 64


class _Kept(NamedTuple):
    token_digest: str
    made: float
    used: float


class Cookies:
    """Those that count. `name` is that of a cookie over plain HTTP: ports of one machine share a browser's cookies."""

    def __init__(self, port: int, clock: Callable[[], float]) -> None:
        self._name = f"dragoman-{port}"
        self._clock = clock
        self._kept: dict[str, _Kept] = {}  # by the cookie's own digest, the one used last at the end

    def make(self, token_digest: str) -> str:
        """A new cookie for a token that was shown."""
        value = secrets.token_urlsafe(32)
        now = self._clock()
        self._kept[_digest(value)] = _Kept(token_digest, now, now)
        while len(self._kept) > COOKIES:
            del self._kept[next(iter(self._kept))]
        return value

    def token_digest(self, digest: str) -> str | None:
        """The token that a cookie stands for, by the digest of the cookie; None where it does not count any more."""
        counts = self.counts(digest)
        kept = self._kept.pop(digest, None)
        if kept is None or not counts:
            return None
        self._kept[digest] = kept._replace(used=self._clock())
        return kept.token_digest

    def counts(self, digest: str) -> bool:
        """Whether it does now; looking is not using."""
        kept = self._kept.get(digest)
        now = self._clock()
        return kept is not None and now - kept.made < LIFE_SECONDS and now - kept.used < IDLE_SECONDS

    def end(self, digest: str) -> None:
        """It counts no more."""
        self._kept.pop(digest, None)

    def shown(self, header: str, *, secure: bool | None = None) -> str | None:
        """The digest of the cookie of ours in a `Cookie` header. A page that came by TLS has the one that only TLS can
        have set, and one that did not has the other: what somebody else on this machine has set counts for neither.
        None: nobody knows; the one of TLS goes first."""
        pairs = dict(reversed([_pair(part) for part in header.split(";")]))
        plain, tls = pairs.get(self._name), pairs.get(f"__Host-{self._name}")
        value = (tls or plain) if secure is None else tls if secure else plain
        return _digest(value) if value and len(value) <= _LENGTH else None

    def header(self, value: str, *, secure: bool) -> bytes:
        """`Set-Cookie`; an empty value takes it away."""
        name = f"__Host-{self._name}" if secure else self._name
        age = int(LIFE_SECONDS) if value else 0
        end = "; Secure" if secure else ""
        return f"{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{end}".encode()


def _pair(part: str) -> tuple[str, str]:
    name, _, value = part.strip().partition("=")
    return name, value


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
