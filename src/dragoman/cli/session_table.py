"""Sessions in a line each, and the head of a transcript. What strangers have named is made harmless."""

import functools
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from dragoman import limits
from dragoman.cli.text_width import fit, harmless_line, pad
from dragoman.store.contract import SessionMeta, Store, StoreFailed
from dragoman.store.recording import recorded_agent

# The column grows if two ids begin alike.
SHORT: Final[int] = limits.SHORT_ID.stop
_WHEN: Final = 16
_GAP: Final = "  "
# A folder is known by its last part, a title by its first words; on a narrow terminal both get something.
_FOLDER: Final = 30
_NARROW: Final = 10
_UNTITLED: Final = "(untitled)"


class SessionTable:
    """Rows of one list. Ids are as short as they can be among all the ids there are."""

    def __init__(self, names: Sequence[str], *, columns: int | None) -> None:
        shared = max((_shared(one, next_one) for one, next_one in pairwise(names)), default=0)
        self._short = max(SHORT, shared + 1)
        self._columns = columns

    def row(self, meta: SessionMeta) -> str:
        """Return one session: its id, when something last happened, where, and what it is called."""
        start = f"{pad(meta.id[: self._short], self._short)}{_GAP}{when(meta)}{_GAP}"
        folder, title = folder_of(meta), title_of(meta)
        if self._columns is None:
            return f"{start}{pad(folder, _FOLDER)}{_GAP}{title}\n"
        room = self._columns - len(start) - len(_GAP)
        for_folder = max(_NARROW, min(_FOLDER, room // 2))
        folder = pad(fit(folder, for_folder, keep_end=True), for_folder)
        return fit(f"{start}{folder}{_GAP}{fit(title, max(_NARROW, room - for_folder))}", self._columns) + "\n"


def _shared(one: str, other: str) -> int:
    """Return how many characters two ids have in common before they differ."""
    return next((at for at, (mine, theirs) in enumerate(zip(one, other, strict=False)) if mine != theirs), len(one))


def heading(meta: SessionMeta, *, coloured: bool) -> str:
    """Return what stands above a transcript."""
    title = f"\x1b[1m{title_of(meta)}\x1b[0m" if coloured else title_of(meta)
    return f"{title}\n{meta.id}\n{folder_of(meta)}, {when(meta)}\n\n"


def markdown_heading(meta: SessionMeta) -> str:
    """Return what stands above a transcript in Markdown."""
    return f"# {title_of(meta)}\n\n- Session: `{meta.id}`\n- Folder: `{folder_of(meta)}`\n- Last used: {when(meta)}\n\n"


async def summary(store: Store, session_id: str) -> str:
    """Return one session in a line, whatever state it is in."""
    try:
        meta = await store.read_meta(session_id)
    except StoreFailed as failure:
        return f"{session_id} ({failure})"
    return f"{meta.id}{_GAP}{when(meta)}{_GAP}{folder_of(meta)}{_GAP}{title_of(meta)}"


def when(meta: SessionMeta) -> str:
    """Return the local time of the last change of a session."""
    try:
        return datetime.fromtimestamp(meta.activity / 1_000_000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "-".ljust(_WHEN)


def folder_of(meta: SessionMeta) -> str:
    """Return the folder, the user's own one as `~`."""
    home = os.path.expanduser("~")
    cwd = meta.cwd
    if home != "/" and (cwd == home or cwd.startswith(home + os.sep)):
        cwd = "~" + cwd[len(home) :]
    return harmless_line(cwd)


@functools.cache  # of the sessions of a list many have the same folder
def _worktree_at(folder: str) -> str:
    """Return the name of the worktree of ours that a folder is in; empty: it is in none. Blocks."""
    from dragoman.host.worktrees import find_worktree

    worktree = find_worktree(folder)
    return worktree.name if worktree is not None else ""


def title_of(meta: SessionMeta) -> str:
    """Return the title, the worktree it works in, whose session it is where not ours, and whether it is put away."""
    title = harmless_line(meta.title) or _UNTITLED
    if worktree := _worktree_at(meta.cwd):
        title = f"[worktree {worktree}] {title}"
    if agent := recorded_agent(meta.id):
        title = f"[{agent}] {title}"
    return f"[archived] {title}" if meta.archived else title
