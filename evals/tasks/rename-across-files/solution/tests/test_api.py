import unittest

from crm.api import load_customer
from crm.commands import call


class ApiTest(unittest.TestCase):
    def test_a_customer_is_fetched(self):
        self.assertEqual(load_customer(7)["name"], "Customer 7")
        self.assertIs(call("customer", 7), load_customer(7))
