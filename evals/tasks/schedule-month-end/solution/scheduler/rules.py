"""When a job runs next."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True)
class Monthly:
    """Runs on a day of each month; in a shorter month on its last day."""

    day: int

    def next_run(self, after: date) -> date:
        """Return the first run after a date, never that date itself."""
        run = self._run_in(after.year, after.month)
        if run > after:
            return run
        return self._run_in(after.year + after.month // 12, after.month % 12 + 1)

    def _run_in(self, year: int, month: int) -> date:
        return date(year, month, min(self.day, monthrange(year, month)[1]))


@dataclass(frozen=True)
class Weekly:
    """Runs on a day of each week; Monday is 0."""

    weekday: int

    def next_run(self, after: date) -> date:
        """Return the first run after a date, never that date itself."""
        return after + timedelta(days=(self.weekday - after.weekday() - 1) % 7 + 1)
