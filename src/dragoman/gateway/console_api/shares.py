"""Share links: a session that people without a token of their own may read until a date.

A link is a token of a principal of its own, with the scope `read` and one session (`SessionShare`): it opens no list
and no other session, answers nothing, and holds no agent. It ends at its date, by a word of the session's owner, and
with the token it was made with. As of every token, only its hash is kept.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from dragoman import limits
from dragoman.errors import UsageError
from dragoman.gateway.http_replies import Stop
from dragoman.gateway.hub import Hub
from dragoman.gateway.logbook import principal_name
from dragoman.gateway.shared_state import TokenKeeper
from dragoman.gateway.token_store import has_expired
from dragoman.gateway.token_types import SessionShare, Token, TokenIdentity

LONGEST_SECONDS: Final = 90 * 24 * 3600.0
_SHORTEST_SECONDS: Final = 60.0
# Links that are valid: of one principal, of all.
SHARES_EACH: Final = 50
SHARES: Final = 1000
_NAME: Final = "share-"


class NewShare(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A link that is wanted; `expires` in seconds since 1970."""

    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    expires: float
    agent: Annotated[str, msgspec.Meta(max_length=256)] = ""
    label: Annotated[str, msgspec.Meta(max_length=100)] = ""


class OldShare(msgspec.Struct, forbid_unknown_fields=True):
    """A link that is to end, by its name."""

    name: Annotated[str, msgspec.Meta(max_length=64)]


class ShareLinks:
    """The links of one server, or of a cluster. `keeper` has their tokens."""

    def __init__(self, keeper: TokenKeeper, hubs: Mapping[str, Hub]) -> None:
        self._keeper = keeper
        self._hubs = hubs
        self._log = next(iter(hubs.values())).monitor.log
        self._making = asyncio.Lock()

    async def listed(self, identity: TokenIdentity) -> dict[str, object]:
        """Return the links of a principal, of the sessions that its token reaches."""
        return {"shares": [_shown(token) for token in await self._own(identity)]}

    async def make(self, wish: NewShare, identity: TokenIdentity) -> dict[str, object]:
        """Make a link; its token is in the answer, and never again. Raise `Stop` (401, 404,
        409), `UsageError`."""
        now = time.time()
        if not now + _SHORTEST_SECONDS <= wish.expires <= now + LONGEST_SECONDS:
            raise UsageError(f"A link ends at a date within the next {LONGEST_SECONDS / 86_400:.0f} days.")
        await self._check_own(wish, identity)
        # Counted and made in one go: two requests at once must not both be the last one.
        async with self._making:
            tokens = await self._keeper.all()
            links = [one for one in tokens if one.share is not None and not has_expired(one, now)]
            own = [one for one in links if one.share is not None and one.share.owner == identity.principal]
            if len(own) >= SHARES_EACH or len(links) >= SHARES:
                raise Stop(409, "There are too many links. End one first.")
            made_with = next((one for one in tokens if one.digest == identity.digest), None)
            # A grant of the issuer is in no list: its link ends at its own date, or by its owner. A token of ours that
            # is in none was revoked meanwhile, and nothing would end its link with it.
            if made_with is None and not identity.is_granted:
                raise Stop(401, "A valid token is needed.")
            if made_with is not None and made_with.expires and wish.expires > made_with.expires:
                raise UsageError("This link would outlive the token it is made with. Choose an earlier date.")
            name = f"{_NAME}{secrets.token_hex(8)}"
            share = SessionShare(wish.session_id, identity.principal, identity.digest, wish.label.strip())
            # A principal of its own: whatever is found by the principal alone, nothing of the owner's is found.
            made = await self._keeper.make(name, ("read",), name, expires=wish.expires, share=share)
        self._note("share_made", name, wish.session_id, identity)
        return {"name": name, "token": made, "expires": wish.expires}

    async def revoke(self, wish: OldShare, identity: TokenIdentity) -> dict[str, object]:
        """End a link. Raise `Stop` (404)."""
        found = next((one for one in await self._own(identity) if one.name == wish.name), None)
        if found is None or found.share is None:
            raise Stop(404, "There is no such link.")
        is_revoked = await self._keeper.revoke(found.name)
        self._note("share_revoked", found.name, found.share.session, identity)
        return {"revoked": is_revoked}

    async def _own(self, identity: TokenIdentity) -> list[Token]:
        found = []
        for token in await self._keeper.all():
            share = token.share
            if share is None or share.owner != identity.principal or has_expired(token, time.time()):
                continue
            # Another token of the principal may reach fewer folders than that which made the link.
            if await self._agent_of(share.session, identity) is not None:
                found.append(token)
        return found

    async def _check_own(self, wish: NewShare, identity: TokenIdentity) -> None:
        found = await self._agent_of(wish.session_id, identity)
        if found is None or (wish.agent and wish.agent != found):
            raise Stop(404, "There is no such session of yours, or it was made without this server.")

    async def _agent_of(self, session_id: str, identity: TokenIdentity) -> str | None:
        """Return the name of the agent whose session this is; None where it is not this principal's."""
        for name, hub in self._hubs.items():
            await hub.access.load_folder(session_id, identity)
            is_own = hub.access.directory.owner(session_id) == identity.principal
            if is_own and hub.access.may_reach(session_id, identity):
                return name
        return None

    def _note(self, event: str, name: str, session_id: str, identity: TokenIdentity) -> None:
        session = session_id[limits.SHORT_ID]
        self._log.info(event, name=name, session=session, principal=principal_name(identity.principal))


async def shared_session(hubs: Mapping[str, Hub], identity: TokenIdentity) -> dict[str, object]:
    """Return what the page of a link has to know: which session at which agent."""
    share = identity.share
    assert share is not None
    for name, hub in hubs.items():
        await hub.access.load_folder(share.session, identity)
        if hub.access.may_reach(share.session, identity):
            return {"sessionId": share.session, "agent": name, "label": share.label}
    raise Stop(404, "The session of this link is not here any more.")


def _shown(token: Token) -> dict[str, object]:
    assert token.share is not None
    return {
        "name": token.name,
        "sessionId": token.share.session,
        "label": token.share.label,
        "created": token.created,
        "expires": token.expires,
    }
