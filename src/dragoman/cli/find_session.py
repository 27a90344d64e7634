"""Which stored session is meant by what was typed: its id, the beginning of the id, or its title.

Ids come first: a title counts where no id begins with what was typed, so a new title never changes what an id means. A
title is compared as the list shows it, so that it can be copied from there.
"""

import os
from collections.abc import Sequence
from typing import Final

from dragoman.cli.errors import CommandError
from dragoman.cli.session_table import SHORT
from dragoman.cli.text_width import harmless_line
from dragoman.store.contract import SessionMeta, Store

# How every id of ours begins; it need not be written.
_KIND: Final = "sess_"
# Ids named where several sessions could be meant.
_NAMED: Final = 5


class SessionUnknown(CommandError):
    """No stored session is meant by what was typed."""


async def find_in(stores: Sequence[Store], given: str, folder: str) -> tuple[Store, str]:
    """Return the first of the stores that has the session that is meant, and its id; `CommandError` as
    `find_session` raises it."""
    for store in stores[:-1]:
        try:
            return store, await find_session(store, given, folder)
        except SessionUnknown:
            continue
    return stores[-1], await find_session(stores[-1], given, folder)


async def find_session(store: Store, given: str, folder: str) -> str:
    """Return the id of the session that is meant; raise `SessionUnknown` if there is none, `CommandError` if several
    could be.

    A title that a session of `folder` has is looked for only there, else in all folders; archived sessions count.
    """
    found = await store.ids(given) if given else ()
    if given and not found:
        found = await store.ids(f"{_KIND}{given}")
    if given in found or len(found) == 1:
        return found[0]  # sorted: a whole id stands before longer ones
    if found:
        raise CommandError(
            f"{given!r} begins {len(found):,} ids: {_choices_text(found)}; write more characters of the id"
        )
    titled = await _find_by_title(store, given)
    here = [meta for meta in titled if meta.cwd == os.path.abspath(os.path.expanduser(folder))]
    matches = here or titled
    if not matches:
        raise SessionUnknown(f"there is no session {given!r}; `dragoman sessions list --all` shows what there is")
    if len(matches) > 1:
        ids = [await _short(store, meta.id) for meta in matches[: _NAMED + 1]]
        raise CommandError(
            f"{len(matches):,} sessions are called {given!r}: {_choices_text(ids)}; write the id instead"
        )
    return matches[0].id


async def _find_by_title(store: Store, given: str) -> list[SessionMeta]:
    """Return the sessions of all folders that have this title, the newest first."""
    title = harmless_line(given)
    if not title or not await store.ids():
        return []  # where nothing is stored, no list is made
    found: list[SessionMeta] = []
    cursor = None
    while True:
        page = await store.list(cursor=cursor, archived="include")
        found += [meta for meta in page.sessions if harmless_line(meta.title) == title]
        cursor = page.cursor
        if cursor is None:
            return found


async def _short(store: Store, session_id: str) -> str:
    """Return a beginning of an id that is enough to name the session."""
    short = session_id[:SHORT]
    return short if len(await store.ids(short)) == 1 else session_id


def _choices_text(ids: Sequence[str]) -> str:
    more = ", …" if len(ids) > _NAMED else ""
    return ", ".join(ids[:_NAMED]) + more
