"""A small library."""

from dataclasses import dataclass, field
from datetime import date, timedelta

DAY_CENTS = 20
LOAN_DAYS = 14


@dataclass
class Book:
    title: str
    loan: "Loan | None" = None


@dataclass
class Member:
    name: str
    loans: list = field(default_factory=list)
    owes: int = 0


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


def fine(loan, today):
    """Return the cents that a loan costs when it comes back today."""
    return max(0, (today - loan.due).days) * DAY_CENTS


def give_back(book, today):
    loan = book.loan
    loan.member.owes += fine(loan, today)
    loan.member.loans.remove(loan)
    book.loan = None
