"""What each principal has spent today, in dollars, as far as agents report what their sessions cost; over restarts too.

An agent reports what a session has cost in all. What was reported before is known here, so a report adds the difference
to the day; the first report of a session that is not known adds nothing, because it is not known when that was spent.
The file is the user's alone; a second of what was spent can be lost with the process.
"""

import asyncio
import math
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from dragoman import limits
from dragoman.errors import UsageError
from dragoman.host.private_file import check_private, write_private
from dragoman.host.regular_file import read_whole

SAVE_SECONDS: Final = 1.0
# Sessions whose costs are known; an entry has some 60 bytes.
# An older one is a session that is not known: its next report adds nothing.
_SESSIONS: Final = 20_000
# Room for that many ids of 400 characters; ours have 37. A larger file would keep the server from starting.
_FILE_BYTES: Final = 8 * limits.MIB


class _Content(msgspec.Struct):
    day: str = ""
    principals: dict[str, float] = {}
    sessions: dict[str, float] = {}


class DaySpend:
    """The sums of today by principal. Without a file they are kept in memory. Raise `UsageError` for a file that cannot
    be read: without it nothing is known to be within its limit."""

    def __init__(self, file: Path | None = None, today: Callable[[], date] = date.today) -> None:
        self._file = file
        # The calendar of the machine, in its own zone: a day begins for all principals at once.
        self._today = today
        self._content = _Content() if file is None else _read(file)
        self._is_saved = True

    def __repr__(self) -> str:
        return f"<DaySpend {self._content.day} principals={len(self._content.principals)}>"

    def today(self, principal: str) -> float:
        """Return what a principal has spent today."""
        # The sums of yesterday stay until the first cost of today.
        is_today = self._content.day == self._today().isoformat()
        return self._content.principals.get(principal, 0.0) if is_today else 0.0

    def begin_session(self, session_id: str) -> None:
        """Note a new session, which has cost nothing yet."""
        self._set_total(session_id, 0.0)

    def add(self, principal: str, session_id: str, total: float) -> bool:
        """Note what a session has cost in all, and add what is new of it to today; return whether anything was."""
        # In a sum it would stay for the day, and no limit is ever below it.
        if not math.isfinite(total):
            return False
        before = self._content.sessions.get(session_id)
        # Less than before comes from an agent that counts anew in each process. Until it has passed what was known,
        # what it spends adds nothing: agents that do so are limited too late.
        if before is not None and total <= before:
            return False
        self._set_total(session_id, total)
        if before is None:
            return False
        day = self._today().isoformat()
        if self._content.day != day:
            self._content.day = day
            self._content.principals.clear()
        self._content.principals[principal] = self._content.principals.get(principal, 0.0) + total - before
        return True

    def _set_total(self, session_id: str, total: float) -> None:
        # The one that was reported last is the last to go.
        self._content.sessions.pop(session_id, None)
        self._content.sessions[session_id] = total
        # Also where nothing is added to the day: without the total, the first report after a restart would count as
        # that of a session which is not known, and be free.
        self._is_saved = False
        limits.evict_oldest(self._content.sessions, _SESSIONS)

    async def save_at_intervals(self) -> None:
        """Write what has changed, at intervals, for as long as the server runs. Raises `OSError`."""
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            await self.save()

    async def save(self) -> None:
        """Write what has changed, and wait for the disk. Raises `OSError`."""
        if self._file is None or self._is_saved:
            return
        # Encoded in this step, for the loop goes on to change it; and marked before the write, so that what is added
        # meanwhile is written by the next one.
        content, self._is_saved = msgspec.json.encode(self._content), True
        try:
            await asyncio.to_thread(write_private, self._file, content)
        except OSError:
            self._is_saved = False
            raise


def _read(file: Path) -> _Content:
    try:
        content = msgspec.json.decode(read_whole(file, _FILE_BYTES, follow=False, check=check_private), type=_Content)
    except FileNotFoundError:
        return _Content()
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError(f"{file} has what principals have spent today and cannot be read: mend or remove it") from None
    if all(map(math.isfinite, (*content.principals.values(), *content.sessions.values()))):
        return content
    raise UsageError(f"{file} has an amount that is no number: mend or remove it")
