import unittest

from shop.checkout import total


class TotalTest(unittest.TestCase):
    def test_prices_are_added(self):
        self.assertEqual(total([1, 2]), 3)
