"""`session/list` for one client: only sessions that its principal may see, and cursors that say nothing of the others.

An agent's own cursor may contain a session id of another principal. So a client gets a random name for it, which is
valid on its connection only.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman import limits
from dragoman.errors import INTERNAL_ERROR, INVALID_PARAMS, RequestFailed
from dragoman.gateway.session_access import SessionAccess
from dragoman.gateway.token_types import TokenIdentity
from dragoman.vocabulary.requests import ListSessions, SessionList

# Pages of an agent's list that one request may go through to find something of its principal's; ours have fifty each.
_PAGES: Final = 100
# A client goes through one list at a time, or a few; the oldest cursor is evicted first.
_CURSORS: Final = 16
# An agent's cursor names a place in a list; ours has some eighty characters.
_CURSOR_LENGTH: Final = 4096


class SessionLister:
    """List the sessions of an agent for one client; remembers its cursors."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._cursors = Cursors()

    async def list(
        self,
        request: ListSessions,
        token_identity: TokenIdentity,
        fetch: Callable[[ListSessions], Awaitable[SessionList]],
    ) -> SessionList:
        """Return the next page that has a session of this principal, or the last one. `fetch` asks the agent for a page
        of its own list. Waits for up to `_PAGES` of them."""
        cursor = self._cursors.resolve(request.cursor)
        for _ in range(_PAGES):
            page = await fetch(replace(request, cursor=cursor))
            await self._access.load_listed(page.sessions)
            seen = [self._access.visible_info(info, token_identity) for info in page.sessions]
            own = [info for info in seen if info is not None]
            cursor = page.next_cursor or UNSET
            # A page without anything of this principal's is skipped: how many sessions others have must not show.
            if own or not cursor:
                break
        return replace(page, sessions=own, next_cursor=self._cursors.hide(cursor))


class Cursors:
    """The cursors of one connection; at most `_CURSORS` are valid, the newest."""

    def __init__(self) -> None:
        self._agent_cursors: dict[str, str] = {}

    def hide(self, cursor: str | None | UnsetType) -> str | UnsetType:
        """Return a random name for a cursor of the agent's; UNSET where there is none."""
        if not cursor:
            return UNSET
        if len(cursor) > _CURSOR_LENGTH:
            raise RequestFailed(INTERNAL_ERROR, "The agent's list cannot be continued")
        name = secrets.token_urlsafe(12)
        self._agent_cursors[name] = cursor
        limits.evict_oldest(self._agent_cursors, _CURSORS)
        return name

    def resolve(self, name: str | None | UnsetType) -> str | UnsetType:
        """Return the agent's cursor of this name. Raise `RequestFailed` where there is none."""
        if not name:
            return UNSET
        cursor = self._agent_cursors.get(name)
        if cursor is None:
            raise RequestFailed(INVALID_PARAMS, "There is no such cursor here; list from the beginning")
        return cursor
