"""Lending and giving back."""

from dataclasses import dataclass
from datetime import date, timedelta

from library.fines import fine
from library.models import Book, Member

LOAN_DAYS = 14


@dataclass
class Loan:
    book: Book
    member: Member
    due: date


def lend(book, member, today):
    """Lend a book. Raise ValueError if it is not there, or the member owes money."""
    if book.loan is not None:
        raise ValueError(f"{book.title} is lent")
    if member.owes:
        raise ValueError(f"{member.name} owes {member.owes}")
    loan = Loan(book, member, today + timedelta(days=LOAN_DAYS))
    book.loan = loan
    member.loans.append(loan)
    return loan


def give_back(book, today):
    loan = book.loan
    loan.member.owes += fine(loan, today)
    loan.member.loans.remove(loan)
    book.loan = None
