import unittest

from site_tools.slugs import SlugBook, slugify


class SlugTest(unittest.TestCase):
    def test_words_are_joined(self):
        self.assertEqual(slugify("Hello, World!"), "hello-world")

    def test_signs_and_umlauts_are_written_out(self):
        self.assertEqual(slugify("C++ für alle"), "c-plus-plus-fuer-alle")

    def test_two_titles_get_two_slugs(self):
        book = SlugBook()
        self.assertEqual([book.add("a b"), book.add("A B"), book.add("a b")], ["a-b", "a-b-2", "a-b"])
