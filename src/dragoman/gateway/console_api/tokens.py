"""Tokens and principals, for administrators: listed, made, revoked. The rules of a token are those of `token_store`.

Only a token with `admin` and without limits of its own may do this (`requests.owner`): one that is held to folders or a
mode could make another that is not. Every change is a line of the server's log.
"""

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Final

import msgspec

from dragoman.errors import UsageError
from dragoman.gateway.http_replies import Stop
from dragoman.gateway.logbook import Logbook, principal_name
from dragoman.gateway.shared_state import TokenKeeper
from dragoman.gateway.token_store import has_expired
from dragoman.gateway.token_types import SCOPES, Scope, Token, TokenIdentity, TokenLimits

# Checks what is said of a new token's limits: its highest mode and its folders.
CheckLimits = Callable[[str, Sequence[str], bool, bool], TokenLimits]
# In the future at most.
_LONGEST_SECONDS: Final = 36_500 * 86_400.0
_FOLDERS: Final = 100
_TOKENS: Final = 2000

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class NewToken(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A token that is wanted; `expires` in seconds since 1970, 0: never."""

    name: Name
    scopes: list[Scope]
    principal: Annotated[str, msgspec.Meta(max_length=64)] = ""
    max_mode: Annotated[str, msgspec.Meta(max_length=64)] = ""
    workspaces: Annotated[list[str], msgspec.Meta(max_length=_FOLDERS)] = []
    allow_unconfined: bool = False
    allow_mcp_programs: bool = False
    expires: float = 0


class OldToken(msgspec.Struct, forbid_unknown_fields=True):
    """A token that is to be revoked, by its name."""

    name: Name


class Tokens:
    """The tokens of a server or a cluster, as an administrator has them."""

    def __init__(self, keeper: TokenKeeper, check_limits: CheckLimits, log: Logbook) -> None:
        self._keeper = keeper
        self._check_limits = check_limits
        self._log = log

    async def list(self, identity: TokenIdentity) -> dict[str, object]:
        """Return every token, share links among them, without anything that could be used in its place."""
        return {"tokens": [_shown(token, identity) for token in await self._keeper.all()]}

    async def make(self, wish: NewToken, identity: TokenIdentity) -> dict[str, object]:
        """Make a token; it is in the answer, and never again. Raise `UsageError`, `Stop` (409)."""
        now = time.time()
        if not wish.scopes:
            raise UsageError("Choose at least one scope.")
        if wish.expires and not now < wish.expires <= now + _LONGEST_SECONDS:
            raise UsageError("The end of a token is in the next hundred years, or never.")
        limits = self._check_limits(wish.max_mode, wish.workspaces, wish.allow_unconfined, wish.allow_mcp_programs)
        # Not under a lock, unlike share links: it keeps the list usable, and an administrator may get one more at once.
        if len(await self._keeper.all()) >= _TOKENS:
            raise Stop(409, "There are too many tokens. Revoke some first.")
        scopes = tuple(scope for scope in SCOPES if scope in wish.scopes)
        made = await self._keeper.make(wish.name, scopes, wish.principal, limits=limits, expires=round(wish.expires))
        self._log.info("token_made", token=wish.name, scopes=scopes, principal=principal_name(identity.principal))
        return {"name": wish.name, "token": made}

    async def revoke(self, wish: OldToken, identity: TokenIdentity) -> dict[str, object]:
        """Revoke a token, and the links made with it. Raise `Stop` (404)."""
        if not await self._keeper.revoke(wish.name):
            raise Stop(404, "There is no such token.")
        self._log.info("token_revoked", token=wish.name, principal=principal_name(identity.principal))
        return {"revoked": True}


def _shown(token: Token, identity: TokenIdentity) -> dict[str, object]:
    return {
        "name": token.name,
        "principal": token.principal,
        "scopes": token.scopes,
        "maxMode": token.limits.max_mode,
        "workspaces": token.limits.workspaces,
        "allowUnconfined": token.limits.allow_unconfined,
        "allowMcpPrograms": token.limits.allow_mcp_programs,
        "created": token.created,
        "expires": token.expires,
        "isOver": has_expired(token, time.time()),
        "isOwn": token.digest == identity.digest,
        "sharedBy": token.share.owner if token.share is not None else "",
    }
