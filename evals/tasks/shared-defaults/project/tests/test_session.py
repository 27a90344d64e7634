import unittest

from shop.session import Session


class SessionTest(unittest.TestCase):
    def test_carts_are_apart(self):
        Session("ann").cart.add("pen")
        self.assertEqual(Session("bob").cart.items, [])
