"""The decision log for the console of `dragoman serve`: of one session, or the newest of those that were worked on.

Decisions of our own agent are notes in its sessions' logs, those of other agents lines of a file (`decisions`). What is
read for one answer is bounded.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dragoman.cli.decisions import decisions_of
from dragoman.coder.decision_log import DECISION
from dragoman.store.contract import Store, StoreFailed
from dragoman.store.entries import NoteEntry

# Decisions of one answer, and what is looked at for it.
SHOWN: Final = 500
_SESSIONS: Final = 20
_RECORDS: Final = 50_000


class RecentDecisions:
    """Reads decisions. `open_store` returns the store of our own agent's sessions; None: it is not served."""

    def __init__(self, open_store: Callable[[], Store] | None) -> None:
        self._open_store = open_store

    async def find(self, session: str) -> Sequence[Mapping[str, object]]:
        """Return the newest decisions of a session, or of the last sessions where it is empty; the newest first. Waits
        for the store."""
        found = [decision for lines in decisions_of(session).values() for decision in map(_decoded, lines)]
        if self._open_store is not None:
            found += await _of_store(self._open_store(), session)
        known = [decision for decision in found if decision]
        return sorted(known, key=lambda one: str(one.get("time")), reverse=True)[:SHOWN]


async def _of_store(store: Store, session: str) -> list[Mapping[str, object]]:
    found: list[Mapping[str, object]] = []
    try:
        ids = [session] if session else [info.id for info in (await store.list(archived="include")).sessions]
    except StoreFailed:
        return found
    left = _RECORDS
    for session_id in ids[:_SESSIONS]:
        try:
            async for records in store.read(session_id):
                left -= len(records)
                for record in records:
                    match record.entry:
                        case NoteEntry(kind=kind, value=dict() as value) if kind == DECISION:
                            found.append(value)
                if left < 0:
                    return found
        except StoreFailed:
            continue  # there is no such session, or it was deleted meanwhile
    return found


def _decoded(line: bytes) -> Mapping[str, object]:
    try:
        decision = json.loads(line)
    except ValueError:
        return {}
    return decision if isinstance(decision, dict) else {}
