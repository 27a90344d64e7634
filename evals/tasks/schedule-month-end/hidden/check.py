import signal
from calendar import monthrange
from datetime import date, timedelta

from scheduler.plan import upcoming
from scheduler.rules import Monthly, Weekly

signal.alarm(15)
day = date(2023, 12, 1)
while day < date(2025, 2, 1):
    for wanted in (1, 15, 28, 29, 30, 31):
        probe = day + timedelta(days=1)
        while probe.day != min(wanted, monthrange(probe.year, probe.month)[1]):
            probe += timedelta(days=1)
        assert Monthly(wanted).next_run(day) == probe, (day, wanted)
    for weekday in range(7):
        found = Weekly(weekday).next_run(day)
        assert found.weekday() == weekday and 1 <= (found - day).days <= 7, (day, weekday)
    day += timedelta(days=1)
runs = upcoming([Weekly(0), Monthly(31)], date(2026, 1, 26), 3)
assert [when for when, _ in runs] == [date(2026, 1, 31), date(2026, 2, 2), date(2026, 2, 9)]
print("PASS")
