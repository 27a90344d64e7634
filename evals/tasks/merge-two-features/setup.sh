git checkout -q -b discounts
cat > shop/checkout.py <<'END'
def total(prices, discount=0):
    """Return the sum of the prices, less a discount in percent."""
    return sum(prices) * (100 - discount) // 100
END
cat > tests/test_discount.py <<'END'
import unittest

from shop.checkout import total


class DiscountTest(unittest.TestCase):
    def test_the_discount_is_taken_off(self):
        self.assertEqual(total([100, 100], discount=10), 180)
END
git add -A
git commit -q -m 'Add discounts'
git checkout -q main
cat > shop/checkout.py <<'END'
FREE_FROM = 500
SHIPPING = 50


def total(prices):
    """Return the sum of the prices, with shipping unless they are FREE_FROM or more; nothing costs nothing."""
    goods = sum(prices)
    return goods + SHIPPING if 0 < goods < FREE_FROM else goods
END
cat > tests/test_total.py <<'END'
import unittest

from shop.checkout import total


class TotalTest(unittest.TestCase):
    def test_shipping_is_added(self):
        self.assertEqual(total([100, 200]), 350)
        self.assertEqual(total([600]), 600)
END
git add -A
git commit -q -m 'Add shipping'
git merge -q discounts > /dev/null || true
