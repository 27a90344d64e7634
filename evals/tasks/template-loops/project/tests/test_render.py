import unittest

from tpl import render


class RenderTest(unittest.TestCase):
    def test_values_are_escaped(self):
        self.assertEqual(render("<b>{{ user.name }}</b>", {"user": {"name": "<Ann>"}}), "<b>&lt;Ann&gt;</b>")
