import unittest

from bank.accounts import Savings


class SavingsTest(unittest.TestCase):
    def test_it_is_not_overdrawn(self):
        with self.assertRaises(ValueError):
            Savings(10).withdraw(11)
