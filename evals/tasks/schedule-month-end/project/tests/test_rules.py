import unittest
from datetime import date

from scheduler.rules import Monthly


class MonthlyTest(unittest.TestCase):
    def test_a_shorter_month_has_its_last_day(self):
        self.assertEqual(Monthly(31).next_run(date(2026, 1, 31)), date(2026, 2, 28))
