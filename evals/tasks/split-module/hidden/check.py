import ast
import os
import pathlib
import subprocess
import sys

assert not os.path.exists("library.py")
import library
from library import fines, loans, models

assert library.Book is models.Book and library.Loan is loans.Loan and library.fine is fines.fine
homes = {"Book": "models", "Member": "models", "Loan": "loans", "lend": "loans", "give_back": "loans", "fine": "fines"}
for name, home in homes.items():
    assert getattr(library, name).__module__ == f"library.{home}", name
assert (library.DAY_CENTS, library.LOAN_DAYS, fines.DAY_CENTS) == (20, 14, 20)
defined = []
for path in pathlib.Path("library").glob("*.py"):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined.append(node.name)
            assert not any(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in ast.walk(node)), path
        if isinstance(node, ast.ImportFrom) and path.name != "__init__.py":
            assert node.module not in ("library", None), f"{path} imports the package"
        if isinstance(node, ast.Import):
            assert all(alias.name != "library" for alias in node.names)
assert len(defined) == len(set(defined)), "something is there twice"
for module in ("library.fines", "library.loans", "library.models"):
    subprocess.run([sys.executable, "-S", "-c", f"import {module}"], check=True)
shown = subprocess.run([sys.executable, "-S", "app.py", "Emma", "Ann"], capture_output=True, text=True, check=True)
assert shown.stdout == "Emma: 14 days, until 2026-01-15\n"
from datetime import date

book, member = library.Book("Emma"), library.Member("Ann")
library.lend(book, member, date(2026, 1, 1))
library.give_back(book, date(2026, 1, 17))
assert member.owes == 40
print("PASS")
