from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True)
class Monthly:
    day: int

    def next_run(self, after: date) -> date:
        try:
            if after.day < self.day:
                return after.replace(day=self.day)
            return after.replace(month=after.month + 1, day=self.day)
        except ValueError:
            return after.replace(month=after.month % 12 + 1, day=28)


@dataclass(frozen=True)
class Weekly:
    weekday: int

    def next_run(self, after: date) -> date:
        return after + timedelta(days=(self.weekday - after.weekday()) % 7)
