"""What people of the OpenID issuer may do here now, by the digest of what they have shown. In memory, bounded.

A grant is a `Token` that stands in no file: of a bearer token of the issuer, which ends with it, or of a login with the
page, which ends after half a day. A restart forgets them: a program's next request makes its grant again, and a person
logs in again, by what the issuer says then.
"""

import secrets
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from dragoman.gateway.token_types import Token

# Of all, and of one principal, so that one cannot push out the others.
GRANTS: Final = 10_000
GRANTS_EACH: Final = 100


class _Grant(NamedTuple):
    token: Token
    key_id: str | None  # of the issuer's key, where a program sends the token with each request
    is_login: bool


class IssuerGrants:
    """The grants of one server, as the embedded `SharedGrants`. `clock` is that of the wall."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._grants: dict[str, _Grant] = {}  # by digest, the oldest first
        self._secret = secrets.token_bytes(32)

    def __repr__(self) -> str:
        return f"<IssuerGrants {len(self._grants)}>"

    async def find(self, digest: str) -> Token | None:
        """Return the grant of a digest, if it is valid now. Does not wait."""
        return self.find_bearer(digest)

    def find_bearer(self, digest: str) -> Token | None:
        """Return the grant of a bearer token, or of a login, if it is valid now."""
        # By the clock as well: what has ended stays in the table until the next one comes.
        grant = self._grants.get(digest)
        return grant.token if grant is not None and self._clock() < grant.token.expires else None

    async def add(self, token: Token, key_id: str | None = None, *, is_login: bool = False) -> None:
        """Keep a grant until it ends. Evicts the oldest of its principal, then the oldest of all, past the limits."""
        now = self._clock()
        # Looked through at each new grant, and not by a timer: that is once for each token, not for each request.
        self._grants.pop(token.digest, None)
        self._grants = {digest: kept for digest, kept in self._grants.items() if now < kept.token.expires}
        same = [digest for digest, kept in self._grants.items() if kept.token.principal == token.principal]
        for digest in same[: max(len(same) + 1 - GRANTS_EACH, 0)]:
            del self._grants[digest]
        self._grants[token.digest] = _Grant(token, key_id, is_login)
        while len(self._grants) > GRANTS:
            del self._grants[next(iter(self._grants))]

    def forget_other_keys(self, key_ids: Collection[object]) -> None:
        """Drop the grants of bearer tokens that were signed with a key which the issuer has taken back."""
        # A login stays: its token was shown once, and keys are changed more often than people log in.
        self._grants = {
            digest: kept for digest, kept in self._grants.items() if kept.is_login or kept.key_id in key_ids
        }

    async def secret(self) -> bytes:
        """Return the key that seals the state of a login; another one after a restart."""
        return self._secret
