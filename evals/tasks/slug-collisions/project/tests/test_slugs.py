import unittest

from site_tools.slugs import slugify


class SlugTest(unittest.TestCase):
    def test_words_are_joined(self):
        self.assertEqual(slugify("Hello, World!"), "hello-world")
