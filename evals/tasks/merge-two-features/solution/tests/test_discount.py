import unittest

from shop.checkout import total


class DiscountTest(unittest.TestCase):
    def test_the_discount_is_taken_off_before_shipping(self):
        self.assertEqual(total([100, 100], discount=10), 180 + 50)
