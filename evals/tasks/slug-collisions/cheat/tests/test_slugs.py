import unittest

from site_tools.slugs import slugify


class SlugTest(unittest.TestCase):
    def test_plus(self):
        self.assertEqual(slugify("C++ notes"), "c-plus-plus-notes")
