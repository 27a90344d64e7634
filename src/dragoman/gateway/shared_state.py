"""What several servers in front of the same sessions would have to share: an interface for each kind of it.

Every method is asynchronous, because the state may be on another machine. Here it is embedded: in memory and in files
of this server, which answers without waiting, so an `await` of it goes on in the same step of the loop. Code that
depends on that says so; any other has to look again, after an `await`, at what it knew before.

| kind | interface | embedded in |
|---|---|---|
| tokens | `SharedTokens` | `token_store` |
| logins of browsers | `SharedLogins` | `login_store` |
| rates | `SharedRates` | `rate_limiter` |

A failure of the machine that holds the state is `Unsure` for tokens and logins: it makes none of them invalid.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dragoman.gateway.token_types import Token


class LoginHalves(NamedTuple):
    """Both halves of a new login, which are given out here and can never be read again."""

    cookie: str
    page_key: str


class SharedTokens(Protocol):
    """The tokens of all servers."""

    async def valid(self) -> Sequence[Token]:
        """Return the tokens that are valid now. Raise `Unsure` where that cannot be known."""


class SharedLogins(Protocol):
    """The logins of browsers at all servers; a login is named by the digest of its cookie."""

    async def make(self, token_digest: str) -> LoginHalves:
        """Make a login for a token that was shown, and return its two halves."""

    async def token_digest(self, digest: str, page_key: str) -> str | None:
        """Return the digest of the token that a login stands for; None where the halves do not belong together, or are
        not valid any more. Counts as a use."""

    async def touch(self, digest: str) -> None:
        """Note a use of a login; one that is over stays over."""

    async def is_valid(self, digest: str) -> bool:
        """Return whether a login is valid now. Does not count as a use."""

    async def end(self, digest: str) -> None:
        """End a login, at every server."""

    async def save(self) -> None:
        """Wait until what has changed up to now outlives a crash."""

    async def save_at_intervals(self) -> None:
        """Save the last use of each login at intervals, for as long as the server runs."""


class SharedRates(Protocol):
    """How often each key may do one kind of thing, counted over all servers."""

    async def acquire(self, key: str) -> bool:
        """Take one, and return whether there was one."""

    async def delay(self, key: str) -> float:
        """Take one and return the seconds the caller has to wait for it; 0 if there was one. Does not wait for it."""
