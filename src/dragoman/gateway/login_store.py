"""Who logged in with a browser: a token shown once becomes a login, which is all the page has from then on.

A login has two halves of 256 random bits, and only their hashes are kept. The *cookie* is sent by the browser by
itself, but to every port of the host (RFC 6265 8.5): any other server of this machine is handed it. The *page key* is
given to the page in the answer to its login and kept in the storage of its origin, which has the port; the page sends
it as a header, or as an offered subprotocol of a WebSocket. Neither half counts without the other.

A login stands for one very token and ends with it. It outlives a restart of the server where there is a file. It says
nothing about who sent it, so the guard asks for more than a cookie (RFC 6265 8.2).
"""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from dragoman import limits
from dragoman.gateway.login_file import LOGINS, LoginFile, StoredLogin
from dragoman.gateway.shared_state import LoginHalves

# Unused for a day, it is forgotten; after a week the token is wanted again.
IDLE_SECONDS: Final = 24 * 3600.0
LIFE_SECONDS: Final = 7 * 24 * 3600.0
# Browsers that are logged in at once; past this the one that was unused for longest is logged out.
COOKIES: Final = LOGINS
# Of one token, so that its owner cannot log out the browsers of other tokens.
COOKIES_EACH: Final = 100
# How often the last use of each is written: so much of it a crash may forget.
SAVE_SECONDS: Final = 300.0
# A clock that is set back by more than this makes logins that are not made yet; they are over.
_CLOCK_SECONDS: Final = 3600.0
# A half of ours has 43 characters; longer ones are not hashed.
_LENGTH: Final = 64
# Cookies of our name in one request that are looked at; there is one, unless another server of this host sets some.
_SHOWN: Final = 8
# What the name of the cookie of a share link ends with.
_SHARE: Final = "-share"
# How the page shows its key. A browser lets a page set no header of a WebSocket, but name subprotocols.
PAGE_KEY_HEADER: Final = b"x-dragoman-page-key"
_OFFERED: Final = b"dragoman."


class LoginStore:
    """The logins of one server alone, as the embedded `SharedLogins`. `clock` is that of the wall where there is a
    `file`."""

    def __init__(self, clock: Callable[[], float], file: LoginFile | None = None) -> None:
        self._clock = clock
        self._file = file
        # By the cookie's own digest, the one used last at the end.
        self._logins = {} if file is None else {one.cookie: one for one in sorted(file.read(), key=_used)}
        self._version = self._written = 0
        self._writing: asyncio.Task[None] | None = None

    async def make(self, token_digest: str) -> LoginHalves:
        """Make a login for a token that was shown, and return its two halves. Evicts the oldest past the limits."""
        halves = LoginHalves(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        now = self._clock()
        login = StoredLogin(_digest(halves.cookie), _digest(halves.page_key), token_digest, now, now)
        # Evicted by token first: who has one token cannot log out the browsers of others by logging in often.
        same = [digest for digest, kept in self._logins.items() if kept.token == token_digest]
        for digest in same[: max(len(same) + 1 - COOKIES_EACH, 0)]:
            del self._logins[digest]
        self._logins[login.cookie] = login
        # The order of the dict is that of the last use, so the first is the one that was unused for longest.
        limits.evict_oldest(self._logins, COOKIES)
        self._version += 1
        return halves

    async def token_digest(self, digest: str, page_key: str) -> str | None:
        """Return the digest of the token that a login stands for, by the digest of its cookie and its page key itself;
        None where the two do not belong together, or are not valid any more. Counts as a use."""
        kept = self._logins.get(digest)
        shown = _digest(page_key[:_LENGTH])
        # Compared in any case: how long it takes says nothing.
        fits = hmac.compare_digest(shown, shown[::-1] if kept is None else kept.page_key)
        if kept is None or not fits or not self._knows(digest):
            return None
        self._touch(digest)
        return kept.token

    async def touch(self, digest: str) -> None:
        """Note a use of a login, which keeps it alive for another while; one that is over stays over."""
        self._touch(digest)

    def _touch(self, digest: str) -> None:
        if self._knows(digest):
            # Taken out and put back at the end: the dict stays in the order of use.
            kept = self._logins.pop(digest)
            self._logins[digest] = msgspec.structs.replace(kept, used=self._clock())
            self._version += 1

    async def is_valid(self, digest: str) -> bool:
        """Return whether a login is valid now. Does not count as a use."""
        return self._knows(digest)

    def _knows(self, digest: str) -> bool:
        kept = self._logins.get(digest)
        return kept is not None and self._is_alive(kept)

    async def end(self, digest: str) -> None:
        """End a login."""
        if self._logins.pop(digest, None) is not None:
            self._version += 1

    async def save(self) -> None:
        """Wait until what has changed up to now is on disk. Changes that come meanwhile are written together."""
        wanted = self._version
        # A write that has begun may be older than our change; then another follows. Many callers share each write.
        while self._file is not None and self._written < wanted:
            if self._writing is None:
                self._writing = asyncio.create_task(self._write(self._file))
            # Shielded: a client that hangs up must not cancel the write that others wait for.
            await asyncio.shield(self._writing)

    async def save_at_intervals(self) -> None:
        """Write when each login was used last, at intervals, for as long as the server runs."""
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            await self.save()

    async def _write(self, file: LoginFile) -> None:
        # Read before the copy: a change that comes during the write is not counted as written.
        version = self._version
        # Expired logins go with the next write; until then `is_valid` keeps them out.
        self._logins = {digest: kept for digest, kept in self._logins.items() if self._is_alive(kept)}
        try:
            await asyncio.to_thread(file.write, list(self._logins.values()))
        finally:
            self._written = version
            self._writing = None

    def _is_alive(self, kept: StoredLogin) -> bool:
        age, idle = self._clock() - kept.made, self._clock() - kept.used
        return -_CLOCK_SECONDS < age < LIFE_SECONDS and -_CLOCK_SECONDS < idle < IDLE_SECONDS


class LoginCookies:
    """The cookies of one server. `port` is in their name: ports of one machine share a browser's cookies."""

    def __init__(self, port: int) -> None:
        self._name = f"dragoman-{port}"

    def shown(self, header: str, *, secure: bool | None = None) -> list[str]:
        """Return the digests of the cookies of ours in a `Cookie` header.

        A page that came by TLS has the one that only TLS can have set, and one that did not has the other: what another
        server on this machine has set counts for neither. `secure` None: it is not known which; the one of TLS goes
        first. There may be several of one name: another port of this host can set one for a path, which the browser
        puts before ours (RFC 6265 5.4).
        """
        pairs = [_pair(part) for part in header.split(";")]
        names = (self._name, f"{self._name}{_SHARE}")
        plain = [value for name, value in pairs if name in names]
        tls = [value for name, value in pairs if name in {f"__Host-{one}" for one in names}]
        values = [*tls, *plain] if secure is None else tls if secure else plain
        return [_digest(value) for value in values if value and len(value) <= _LENGTH][:_SHOWN]

    def header(self, value: str, *, secure: bool, is_share: bool = False) -> bytes:
        """Return the value of `Set-Cookie`; an empty value removes the cookie. `is_share`: of a share link, whose
        cookie stands beside that of a login, so that who looks at a link stays logged in."""
        own = f"{self._name}{_SHARE}" if is_share else self._name
        name = f"__Host-{own}" if secure else own
        age = int(LIFE_SECONDS) if value else 0
        end = "; Secure" if secure else ""
        return f"{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{end}".encode()


def page_key_in(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Return the page key of a request, from its header or from the subprotocols it offers; empty where it has none, or
    more than one."""
    shown = [value for name, value in headers if name == PAGE_KEY_HEADER]
    for name, value in headers:
        if name == b"sec-websocket-protocol":
            offered = [word.strip() for word in value.split(b",")]
            shown += [word.removeprefix(_OFFERED) for word in offered if word.startswith(_OFFERED)]
    return shown[0].decode("latin-1") if len(shown) == 1 and len(shown[0]) <= _LENGTH else ""


def _used(login: StoredLogin) -> float:
    return login.used


def _pair(part: str) -> tuple[str, str]:
    name, _, value = part.strip().partition("=")
    return name, value


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
