"""The table of differences is honest: every row is there, is proved by a test that exists, or is said to be missing."""

import ast
from functools import cache
from pathlib import Path

import pytest

from dragoman.dialects.named import NAMES
from dragoman.dialects.rows import MISSING, ROWS, Row

ROOT = Path(__file__).resolve().parents[2]
# How many rows each system has.
COUNTS = {1: 22, 2: 19, 3: 18, 4: 23, 5: 12}


@cache
def names_in(file: str) -> frozenset[str]:
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def is_there(proof: str) -> bool:
    file, _, name = proof.partition("::")
    return name.startswith("test_") and name in names_in(file)


def test_every_row_of_the_survey_is_in_the_table_once() -> None:
    expected = [f"8.{system}.{row}" for system, count in COUNTS.items() for row in range(1, count + 1)]
    assert [row.id for row in ROWS] == expected


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_is_proved_by_tests_that_exist_or_is_missing(row: Row) -> None:
    assert [proof for proof in row.proofs if not is_there(proof)] == []
    assert bool(row.proofs) != (row.id in MISSING)
    assert row.where == "always" or row.where in NAMES
    assert row.differs
    assert row.ours


def test_what_is_missing_is_a_row_and_has_a_reason() -> None:
    assert MISSING.keys() <= {row.id for row in ROWS}
    assert all(MISSING.values())


def test_what_changes_our_words_is_never_always_on() -> None:
    assert [row.id for row in ROWS if row.kind == "P" and row.where == "always"] == []


def test_a_proof_that_is_not_there_is_seen() -> None:
    assert not is_there("tests/dialects/test_rows.py::test_nope")
    assert not is_there("tests/dialects/nope.py::test_nope")
    assert is_there("tests/dialects/test_rows.py::test_a_proof_that_is_not_there_is_seen")
