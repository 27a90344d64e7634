import sys
from datetime import date

from library import LOAN_DAYS, Book, Member, lend

if __name__ == "__main__":
    loan = lend(Book(sys.argv[1]), Member(sys.argv[2]), date(2026, 1, 1))
    print(f"{loan.book.title}: {LOAN_DAYS} days, until {loan.due}")
