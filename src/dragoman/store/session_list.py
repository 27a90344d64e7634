"""The stored sessions, newest first, as a client's list shows them. Nothing is opened for it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import UNSET

from dragoman.store.contract import ArchiveFilter, SessionMeta, Store
from dragoman.vocabulary.requests import ListSessions, SessionInfo, SessionList

# At most this many sessions in one reply for a client whose dialect has no cursor: that is some MiB.
_LISTED: Final = 10_000
# In `_meta` of a session in a list: it was opened, and never used.
EMPTY: Final = "dragoman/empty"
_FILTERS: Final[dict[object, ArchiveFilter]] = {"include": "include", "only": "only"}


async def list_sessions(
    store: Store, request: ListSessions, related: Sequence[str] = (), *, all_pages: bool
) -> SessionList:
    """Return one page of the sessions, or all pages in one list; `related` folders count as the one asked for."""
    # An unknown filter of a later version hides archived sessions, as no filter does.
    archived = _FILTERS.get(request.archived, "exclude")
    cursor = request.cursor or None
    found: list[SessionMeta] = []
    while True:
        page = await store.list(cwd=request.cwd or None, related=related, cursor=cursor, archived=archived)
        found.extend(page.sessions)
        cursor = page.cursor
        if not all_pages or not cursor or len(found) >= _LISTED:
            return SessionList([info_of(meta) for meta in found], cursor or UNSET)


async def newest_session(store: Store, cwd: str, related: Sequence[str] = ()) -> str | None:
    """Return the id of the session of a folder, or of one related to it, in which something happened last."""
    page = await store.list(cwd=cwd, related=related)
    return page.sessions[0].id if page.sessions else None


def info_of(meta: SessionMeta) -> SessionInfo:
    """Return a session as a list shows it."""
    # Nothing has been written since it was made. Lists for people leave it out: there is nothing to open.
    empty = not meta.title and meta.activity == meta.created
    when = datetime.fromtimestamp(meta.activity / 1_000_000, UTC).isoformat().replace("+00:00", "Z")
    return SessionInfo(
        meta.id,
        meta.cwd,
        list(meta.directories) or UNSET,
        title=meta.title or UNSET,
        updated_at=when,
        archived=True if meta.archived else UNSET,
        meta={EMPTY: True} if empty else UNSET,
    )
