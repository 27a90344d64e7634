import unittest
from datetime import date

from library import Book, Member, fine, give_back, lend


class LibraryTest(unittest.TestCase):
    def test_a_late_book_costs(self):
        book, member = Book("Emma"), Member("Ann")
        loan = lend(book, member, date(2026, 1, 1))
        self.assertEqual(fine(loan, date(2026, 1, 16)), 20)
        give_back(book, date(2026, 1, 16))
        self.assertEqual(member.owes, 20)
