"""When a job runs next."""

from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True)
class Monthly:
    """Runs on a day of each month; in a shorter month on its last day."""

    day: int

    def next_run(self, after: date) -> date:
        """Return the first run after a date, never that date itself."""
        if after.day < self.day:
            return after.replace(day=self.day)
        return after.replace(month=after.month + 1, day=self.day)


@dataclass(frozen=True)
class Weekly:
    """Runs on a day of each week; Monday is 0."""

    weekday: int

    def next_run(self, after: date) -> date:
        """Return the first run after a date, never that date itself."""
        return after + timedelta(days=(self.weekday - after.weekday()) % 7)
