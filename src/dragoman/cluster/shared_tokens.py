"""The tokens of a cluster, in its database: hashes, and never a token itself. A change counts at every node within a
second."""

import asyncio
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.errors import UsageError
from dragoman.gateway.token_store import has_expired, is_token_name, without
from dragoman.gateway.token_types import SCOPES, Scope, SessionShare, Token, TokenLimits, Unsure, digest_of
from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.database import Database

if TYPE_CHECKING:
    from dragoman.store.postgres.database import AnyConnection

# So old may be what a node knows of tokens.
_CHECK_SECONDS: Final = 1.0
_ALL: Final = "SELECT body FROM dragoman.token ORDER BY number"
# By the database's clock: the clock of a node must not keep an expired token alive.
_NOW: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"
# A token was made once: revoking the last one leaves this behind.
_MADE: Final = "tokens made"


class PostgresTokens:
    """The tokens of all nodes; a `SharedTokens`."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._valid: Sequence[Token] = ()
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<PostgresTokens tokens={len(self._valid)}>"

    async def valid(self) -> Sequence[Token]:
        """Return the tokens that are valid now, or were a second ago. Raise `Unsure` while the database is away."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._read_at >= _CHECK_SECONDS:
            # One at a time: a flood of requests is one question.
            async with self._reading:
                if loop.time() - self._read_at >= _CHECK_SECONDS:
                    await self._read()
        return self._valid

    async def all(self) -> Sequence[Token]:
        """Return every token, also those that have expired. Raise `StoreFailed`."""
        async with self._database.transaction(read_only=True) as connection:
            return [_decode(row["body"]) for row in await connection.fetch(_ALL)]

    async def never_made(self) -> bool:
        """Return whether no token was ever made. Raise `StoreFailed`."""
        async with self._database.transaction(read_only=True) as connection:
            return not await connection.fetchval("SELECT true FROM dragoman.secret WHERE name = $1", _MADE)

    async def make(
        self,
        name: str,
        scopes: Sequence[Scope] = SCOPES,
        principal: str = "",
        *,
        limits: TokenLimits | None = None,
        expires: float = 0,
        share: SessionShare | None = None,
        is_first: bool = False,
    ) -> str:
        """Make a token and return it: it can never be read again. The name of one that has expired is free. `is_first`:
        return an empty string if there was one before. Raise `UsageError` for a name that is in use or cannot be one,
        `StoreFailed` for the database."""
        if not is_token_name(name):
            raise UsageError("a token's name has 1 to 64 printable characters")
        if principal and not is_token_name(principal):
            raise UsageError("a principal has 1 to 64 printable characters")
        secret = secrets.token_urlsafe(32)
        async with self._database.transaction() as connection:
            made_now = await connection.fetchval(
                "INSERT INTO dragoman.secret VALUES ($1, '') ON CONFLICT DO NOTHING RETURNING true", _MADE
            )
            if is_first and not made_now:
                return ""
            now = float(await connection.fetchval(_NOW))
            found = await connection.fetchval("SELECT body FROM dragoman.token WHERE name = $1 FOR UPDATE", name)
            if found is not None and not has_expired(_decode(found), now):
                raise UsageError(f"there is a token {name!r} already; revoke it first")
            digest = digest_of(secret.encode())
            limits = limits or TokenLimits()
            token = Token(name, principal or name, tuple(scopes), digest, limits, round(now), expires, share)
            await connection.execute("DELETE FROM dragoman.token WHERE name = $1", name)
            if share is not None:
                await self._remove_expired_shares(connection, now)
            await connection.execute(
                "INSERT INTO dragoman.token (name, digest, body) VALUES ($1, $2, $3)",
                *(name, digest, msgspec.json.encode(token)),
            )
        # Its user may come to this node in the next moment.
        self._read_at = float("-inf")
        return secret

    async def revoke(self, name: str) -> bool:
        """Remove a token, and the share links that were made with it; return False if there is none of that name. Raise
        `StoreFailed`."""
        async with self._database.transaction() as connection:
            tokens = [_decode(row["body"]) for row in await connection.fetch(f"{_ALL} FOR UPDATE")]
            kept = {token.name for token in without(name, tokens)}
            gone = [token.name for token in tokens if token.name not in kept]
            await connection.execute("DELETE FROM dragoman.token WHERE name = ANY ($1)", gone)
        self._read_at = float("-inf")
        return bool(gone)

    async def _remove_expired_shares(self, connection: "AnyConnection", now: float) -> None:
        tokens = [_decode(row["body"]) for row in await connection.fetch(_ALL)]
        gone = [token.name for token in tokens if token.share is not None and has_expired(token, now)]
        await connection.execute("DELETE FROM dragoman.token WHERE name = ANY ($1)", gone)

    async def _read(self) -> None:
        try:
            async with self._database.transaction(read_only=True) as connection:
                rows = [_decode(row["body"]) for row in await connection.fetch(_ALL)]
                now = float(await connection.fetchval(_NOW))
        except StoreFailed as error:
            raise Unsure(f"the tokens cannot be read: {error}") from error
        self._valid = [token for token in rows if not has_expired(token, now)]
        self._read_at = asyncio.get_running_loop().time()


def _decode(body: bytes) -> Token:
    return msgspec.json.decode(body, type=Token)
