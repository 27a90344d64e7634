"""The logins of browsers, and what people of an OpenID issuer may do, in the database of a cluster: a login at
one node counts at all."""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from dragoman.gateway.issuer_grants import IssuerGrants
from dragoman.gateway.login_store import COOKIES, COOKIES_EACH, IDLE_SECONDS, LIFE_SECONDS
from dragoman.gateway.shared_state import LoginHalves
from dragoman.gateway.token_types import Token, Unsure
from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.database import Database

# A use of a login is written so often, and not with each message.
_TOUCH_SECONDS: Final = 60.0
# A half of ours has 43 characters.
_LENGTH: Final = 64
_ALIVE: Final = (
    f"made > clock_timestamp() - interval '{LIFE_SECONDS:.0f} seconds' "
    f"AND used > clock_timestamp() - interval '{IDLE_SECONDS:.0f} seconds'"
)
_MAKE: Final = "INSERT INTO dragoman.login VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp())"
# By token first: who has one token cannot log out the browsers of others by logging in often.
_EVICT_EACH: Final = f"""
    DELETE FROM dragoman.login WHERE cookie IN (
        SELECT cookie FROM dragoman.login WHERE token = $1 ORDER BY used DESC OFFSET {COOKIES_EACH}
    )
"""
_EVICT: Final = f"""
    DELETE FROM dragoman.login
    WHERE cookie IN (SELECT cookie FROM dragoman.login ORDER BY used DESC OFFSET {COOKIES})
"""
_FIND: Final = f"SELECT page_key, token FROM dragoman.login WHERE cookie = $1 AND {_ALIVE}"
_TOUCH: Final = f"UPDATE dragoman.login SET used = clock_timestamp() WHERE cookie = $1 AND {_ALIVE}"
_SECRET: Final = "issuer state"


class PostgresLogins:
    """The logins of browsers at all nodes; a `SharedLogins`."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._touched: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<PostgresLogins used={len(self._touched)}>"

    async def make(self, token_digest: str) -> LoginHalves:
        """Make a login for a token that was shown, and return its two halves. Evicts the oldest past the limits."""
        halves = LoginHalves(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        with _unsure():
            async with self._database.transaction() as connection:
                await connection.execute(_MAKE, _digest(halves.cookie), _digest(halves.page_key), token_digest)
                await connection.execute(_EVICT_EACH, token_digest)
                await connection.execute(_EVICT)
        return halves

    async def token_digest(self, digest: str, page_key: str) -> str | None:
        """Return the digest of the token that a login stands for; None where the halves do not belong together, or are
        not valid any more. Counts as a use."""
        with _unsure():
            async with self._database.transaction(read_only=True) as connection:
                row = await connection.fetchrow(_FIND, digest)
        shown = _digest(page_key[:_LENGTH])
        # Compared in any case: how long it takes says nothing.
        fits = hmac.compare_digest(shown, shown[::-1] if row is None else row["page_key"])
        if row is None or not fits:
            return None
        await self.touch(digest)
        return str(row["token"])

    async def touch(self, digest: str) -> None:
        """Note a use of a login; one that is over stays over. Nothing is noted while the database is away."""
        now = asyncio.get_running_loop().time()
        if now - self._touched.get(digest, float("-inf")) < _TOUCH_SECONDS:
            return
        if len(self._touched) >= COOKIES:
            self._touched.clear()
        self._touched[digest] = now
        with suppress(StoreFailed):
            async with self._database.transaction() as connection:
                await connection.execute(_TOUCH, digest)

    async def is_valid(self, digest: str) -> bool:
        """Return whether a login is valid now. Does not count as a use."""
        with _unsure():
            async with self._database.transaction(read_only=True) as connection:
                return await connection.fetchrow(_FIND, digest) is not None

    async def end(self, digest: str) -> None:
        """End a login, at every node."""
        with _unsure():
            async with self._database.transaction() as connection:
                await connection.execute("DELETE FROM dragoman.login WHERE cookie = $1", digest)

    async def save(self) -> None:
        """Do nothing: every change is committed when it is made."""

    async def save_at_intervals(self) -> None:
        """Wait until cancelled: there is nothing to save."""
        await asyncio.Event().wait()


class PostgresGrants:
    """The grants of all nodes; a `SharedGrants`. Those of bearer tokens are each node's own."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._bearers: Final = IssuerGrants(time.time)
        self._secret = b""

    def __repr__(self) -> str:
        return f"<PostgresGrants here={self._bearers!r}>"

    def find_bearer(self, digest: str) -> Token | None:
        """Return the grant of a bearer token that this node has looked at, if it is valid now."""
        return self._bearers.find_bearer(digest)

    async def find(self, digest: str) -> Token | None:
        """Return the grant of a digest, if it is valid now. Raise `Unsure` while the database is away."""
        here = self._bearers.find_bearer(digest)
        if here is not None:
            return here
        query = "SELECT body FROM dragoman.login_grant WHERE digest = $1 AND expires > clock_timestamp()"
        with _unsure():
            async with self._database.transaction(read_only=True) as connection:
                body = await connection.fetchval(query, digest)
        return None if body is None else msgspec.json.decode(body, type=Token)

    async def add(self, token: Token, key_id: str | None = None, *, is_login: bool = False) -> None:
        """Keep a grant until it ends; that of a login at every node. Raise `Unsure` while the database is away."""
        if not is_login:
            await self._bearers.add(token, key_id)
            return
        statement = """
            INSERT INTO dragoman.login_grant VALUES ($1, $2, to_timestamp($3))
            ON CONFLICT (digest) DO UPDATE SET body = excluded.body, expires = excluded.expires
        """
        with _unsure():
            async with self._database.transaction() as connection:
                await connection.execute(statement, token.digest, msgspec.json.encode(token), token.expires)

    def forget_other_keys(self, key_ids: Collection[object]) -> None:
        """Drop the grants of bearer tokens that were signed with a key which the issuer has taken back."""
        self._bearers.forget_other_keys(key_ids)

    async def secret(self) -> bytes:
        """Return the key that seals the state of a login: the same at every node. Raise `Unsure`."""
        if not self._secret:
            with _unsure():
                async with self._database.transaction() as connection:
                    await connection.execute(
                        "INSERT INTO dragoman.secret VALUES ($1, $2) ON CONFLICT DO NOTHING",
                        *(_SECRET, secrets.token_bytes(32)),
                    )
                    found = "SELECT value FROM dragoman.secret WHERE name = $1"
                    self._secret = bytes(await connection.fetchval(found, _SECRET))
        return self._secret


@contextmanager
def _unsure() -> Iterator[None]:
    """Raise a failure of the database in the block as `Unsure`: it makes no login invalid."""
    try:
        yield
    except StoreFailed as error:
        raise Unsure(f"logins cannot be looked up: {error}") from error


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
