"""What several servers in front of the same sessions would have to share: an interface for each kind of it.

What may be on another machine is asked for by an asynchronous method. Here it is embedded: in memory and in files of
this server. After an `await` code has to look again at what it knew before, also where the embedded kind never waits.

Whose session it is has to be known in steps of the loop that cannot wait (`SessionAccess`). So a server has a view of
its own of the directory, which answers at once: `load` brings it up to date before a request is judged, and `persist`
makes a claim hold everywhere before a client learns the id.

| kind | interface | embedded in |
|---|---|---|
| tokens | `SharedTokens` | `token_store` |
| logins of browsers | `SharedLogins` | `login_store` |
| rates | `SharedRates` | `rate_limiter` |
| sessions and their owners | `SharedDirectory` | `session_directory` |

A failure of the machine that holds the state is `Unsure` for tokens and logins: it makes none of them invalid.
"""

from collections.abc import Iterable, Sequence
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


class SharedDirectory(Protocol):
    """The sessions of one agent, at all servers: whose they are, what the agent calls them, where they were made."""

    async def load(self, session_ids: Iterable[str] = (), *, agent_ids: Iterable[str] = ()) -> None:
        """Bring the view up to date about these sessions, and those that the agent calls so."""

    async def persist(self, session_id: str) -> bool:
        """Make a claim hold at every server, and over restarts; return False if another principal has the session.
        Raise `OSError` where it cannot be written."""

    def owner(self, session_id: str) -> str | None:
        """Return the session's principal; None if the session was not made through a gateway."""

    def agent_id(self, session_id: str) -> str:
        """Return its agent's id for it."""

    def cwd(self, session_id: str) -> str:
        """Return the folder it was made in; empty where that is not known."""

    def sessions_named(self, agent_id: str) -> list[str]:
        """Return the sessions to which the agent has given this id, the newest last."""

    def is_ambiguous(self, session_id: str) -> bool:
        """Return whether the agent has given this session's id to a session of another principal too."""

    def claim(self, session_id: str, principal: str, agent_id: str = "", cwd: str = "") -> bool:
        """Make this principal the owner of a session in the view; return False if another one is, and stays so."""
