"""The tables of differences are honest: every row is there, and is proved by a test that exists."""

import ast
from functools import cache
from pathlib import Path

import pytest

from dragoman.dialects.vendors.named import NAMES
from tools.requirements import FINDINGS, ROWS, SYSTEMS, CompatibilityRow, VendorFinding

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


def unproved(proofs: tuple[str, ...]) -> list[str]:
    """Proofs that are none. No proof at all is one of them."""
    return [proof for proof in proofs if not is_there(proof)] if proofs else ["nothing"]


def test_every_row_of_the_survey_is_in_the_table_once() -> None:
    expected = [f"8.{system}.{row}" for system, count in COUNTS.items() for row in range(1, count + 1)]
    assert [row.id for row in ROWS] == expected


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_is_proved_by_tests_that_exist(row: CompatibilityRow) -> None:
    assert unproved(row.tests) == []
    assert row.where == "always" or row.where in NAMES
    assert row.system in NAMES
    assert row.differs
    assert row.ours


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.id)
def test_a_finding_is_proved_by_tests_that_exist(finding: VendorFinding) -> None:
    assert unproved(finding.tests) == []
    assert finding.program in SYSTEMS
    assert finding.does
    assert finding.ours


def test_every_finding_is_in_its_table_once() -> None:
    assert len({finding.id for finding in FINDINGS}) == len(FINDINGS)


def test_what_changes_our_words_is_never_always_on() -> None:
    assert [row.id for row in ROWS if row.row_class == "P" and row.where == "always"] == []


def test_a_proof_that_is_not_there_is_seen() -> None:
    assert unproved(()) == ["nothing"]
    assert unproved(("tests/dialects/test_rows.py::test_nope",)) == ["tests/dialects/test_rows.py::test_nope"]
    assert not is_there("tests/dialects/test_rows.py::test_nope")
    assert not is_there("tests/dialects/nope.py::test_nope")
    assert is_there("tests/dialects/test_rows.py::test_a_proof_that_is_not_there_is_seen")
