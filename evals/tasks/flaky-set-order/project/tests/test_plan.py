import unittest

from plans.plan import plan


class PlanTest(unittest.TestCase):
    def test_the_order_is_by_name(self):
        self.assertEqual(plan({"deploy": ["test", "build"], "test": [], "build": []}), ["build", "test", "deploy"])
