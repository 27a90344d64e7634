import unittest

from crm.api import fetch
from crm.commands import call


class ApiTest(unittest.TestCase):
    def test_a_customer_is_fetched(self):
        self.assertEqual(fetch(7)["name"], "Customer 7")
        self.assertIs(call("customer", 7), fetch(7))
