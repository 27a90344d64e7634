"""A small library."""

from library.fines import DAY_CENTS, fine
from library.loans import LOAN_DAYS, Loan, give_back, lend
from library.models import Book, Member

__all__ = ["DAY_CENTS", "LOAN_DAYS", "Book", "Loan", "Member", "fine", "give_back", "lend"]
