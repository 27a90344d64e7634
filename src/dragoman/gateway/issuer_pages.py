"""The login of the page with an OpenID issuer.

| request | answer |
|---|---|
| POST `/login/ways` | 200, `{"issuer": HOST}`, or `{}` where there is the token alone |
| POST `/login/oidc/start` | 200, the `url` to go to, and the `binding` to keep in the tab |
| GET `/login/oidc` | 200, the page: the issuer sends the browser here, with a code and a state |
| POST `/login/oidc/finish` with those and the binding, as JSON | as `/login` |

None of them needs a login, so each costs little: nothing is kept, bodies are small, and of those that have the issuer
asked only so many run at once, and only so many come from one address.
"""

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from dragoman import limits
from dragoman.gateway.guard import identity_of
from dragoman.gateway.headers import value_of
from dragoman.gateway.http_replies import Bodies, Handle, Stop, answer
from dragoman.gateway.issuer_login import CALLBACK, IssuerLogin, LoginReturn
from dragoman.gateway.issuer_settings import IssuerAway, NotAccepted
from dragoman.gateway.logbook import principal_name
from dragoman.gateway.monitor import Monitor
from dragoman.gateway.rate_limiter import RateLimiter
from dragoman.gateway.streaming import Receive, Send
from dragoman.gateway.token_types import TokenIdentity, Unsure

if TYPE_CHECKING:
    from starlette.types import Scope

WAYS: Final = "/login/ways"
# A code and a state, which issuers make some kilobytes long.
_BODY_BYTES: Final = 16 * limits.KIB
# People who come back from the issuer: of one address (a proxy's, maybe), and at once.
_RATE: Final = 1.0
_BURST: Final = 30.0
_AT_ONCE: Final = 16
# Whose bodies these are before it is known who asks. No token can have this principal.
_STRANGER: Final = TokenIdentity("", "\0login", ())

LogIn = Callable[[TokenIdentity, "Scope", Send], Awaitable[None]]


class IssuerPages:
    """The routes of `issuer`; None: there is none to log in with. `log_in` answers with a new login of an identity."""

    def __init__(self, issuer: IssuerLogin | None, monitor: Monitor, log_in: LogIn) -> None:
        self._issuer = issuer
        self._monitor = monitor
        self._log_in = log_in
        self._bodies = Bodies()
        self._returns = RateLimiter(_RATE, _BURST, time.monotonic)
        self._running = 0
        posts = {f"{CALLBACK}/start": self._start, f"{CALLBACK}/finish": self._finish}
        # Without an issuer these paths are not there, and want a login as any other.
        self.posts: Final[dict[str, Handle]] = {WAYS: self._ways, **({} if issuer is None else posts)}

    async def _ways(self, scope: "Scope", receive: Receive, send: Send) -> None:
        ways = {} if self._issuer is None else {"issuer": urlsplit(self._issuer.issuer.settings.issuer).hostname}
        await answer(send, 200, msgspec.json.encode(ways))

    async def _start(self, scope: "Scope", receive: Receive, send: Send) -> None:
        assert self._issuer is not None
        try:
            begun = await self._issuer.start(_origin_of(scope))
        except (IssuerAway, Unsure) as error:
            raise Stop(503, str(error)) from None
        await answer(send, 200, msgspec.json.encode({"url": begun.url, "binding": begun.binding}))

    async def _finish(self, scope: "Scope", receive: Receive, send: Send) -> None:
        assert self._issuer is not None
        if not await self._returns.acquire((scope.get("client") or ("",))[0]):
            raise Stop(429, "Too many logins. Wait a minute.")
        if self._running >= _AT_ONCE:
            raise Stop(503, "Too many logins at once. Try again.")
        self._running += 1
        try:
            # The budget of bodies is counted by principal; until the login is done there is none.
            scope["identity"] = _STRANGER
            async with self._bodies.read(scope, receive, _BODY_BYTES) as body:
                token = await self._issuer.finish(_origin_of(scope), _return_in(body))
        # 403 and not 401: another token would not help, and the page says the sentence.
        except NotAccepted as error:
            self._monitor.log.info("login_refused", reason=str(error))
            raise Stop(403, f"This login does not count here: {error}.") from None
        except (IssuerAway, Unsure) as error:
            raise Stop(503, str(error)) from None
        finally:
            self._running -= 1
        self._monitor.log.info("login", principal=principal_name(token.principal))
        await self._log_in(identity_of(token, is_granted=True), scope, send)


def _return_in(body: bytes) -> LoginReturn:
    try:
        return msgspec.json.decode(body, type=LoginReturn)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Stop(400, "The body is no login that has come back.") from None


def _origin_of(scope: "Scope") -> str:
    """Return the origin of our page that asks, as its browser sees it: behind a proxy we cannot know it otherwise."""
    origin = value_of(scope["headers"], b"origin")
    # The guard has checked it against `Host`. Programs may send none; no login of theirs needs a browser.
    if origin is None:
        raise Stop(400, "A login with the issuer is begun by the page.")
    return origin
