"""Copy all sessions of one store to another: whole, one by one, and as often as it takes.

A session is there whole or not at all (`Store.restore`), so a copy that was interrupted is begun again and goes on with
what is missing. Nothing is taken away from the source. A session is read under its lease, so that it cannot grow while
it is copied; one that is open elsewhere is named as such and left for the next time.
"""

from collections.abc import Callable
from typing import NamedTuple

from dragoman.store.contract import SessionHeld, Store, StoreFailed
from dragoman.store.entries import Entry


class MigrationReport(NamedTuple):
    """How many sessions were copied, how many were there already, and by id why others were not."""

    copied: int
    present: int
    failed: dict[str, str]


async def migrate(source: Store, target: Store, progress: Callable[[int, int], None]) -> MigrationReport:
    """Copy what the target lacks. `progress` is called with done and total before each session.

    Raise `StoreFailed` if one of the stores fails as a whole.
    """
    copied = present = 0
    failed: dict[str, str] = {}
    # Both lists once: a session that is made meanwhile is for the next time, as one that is open.
    names = await source.ids()
    there = set(await target.ids())
    for done, session_id in enumerate(names):
        progress(done, len(names))
        try:
            if await _copy(source, target, session_id, is_there=session_id in there):
                copied += 1
            else:
                present += 1
        except SessionHeld:
            failed[session_id] = "it is open in another process: close it there, then migrate again"
        # One session's failure is its own: a damaged log keeps no other from being copied.
        except StoreFailed as error:
            failed[session_id] = str(error)
    return MigrationReport(copied, present, failed)


async def _copy(source: Store, target: Store, session_id: str, *, is_there: bool) -> bool:
    """Copy a session; return False if the target has it already, as it is."""
    # The lease also waits for what its last owner has left behind: a salvaged log is copied as it is then.
    log = await source.open(session_id)
    try:
        entries = await _entries(source, session_id)
        if not is_there:
            await target.restore(log.meta, entries)
            return True
    finally:
        await log.release()
    found = await _entries(target, session_id)
    # It may have gone on there after an earlier copy; what the source has is in it then.
    if found[: len(entries)] != entries:
        raise StoreFailed("the target has a session with this id and other content")
    return False


async def _entries(store: Store, session_id: str) -> list[Entry]:
    """Return a log as it was committed: entries name others by their numbers, which a joined reading would change."""
    return [record.entry async for batch in store.read(session_id, joined=False) for record in batch]
