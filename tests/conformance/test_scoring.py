"""What counts: rows that are frozen for a revision, and failures that were expected."""

import pytest

from dragoman.conformance.rows import ROLES, load_rows
from dragoman.conformance.run import CheckReport, RowResult
from dragoman.conformance.schema import REVISION
from dragoman.conformance.scoring import (
    ADDED_LATER,
    BaselineInvalid,
    ExpectedFailure,
    FrozenSet,
    frozen_set,
    parse_baseline,
    revisions,
    scored,
)
from dragoman.conformance.verdicts import Verdict

MUSTS = [row for row in load_rows("agent") if row.tier == "must" and 1 in row.versions]
ROW, OTHER = MUSTS[0], MUSTS[1]
NEWEST = frozen_set(REVISION)


def report(*verdicts: tuple[object, Verdict]) -> CheckReport:
    results = [RowResult(row, 1, verdict, "why") for row, verdict in verdicts]  # type: ignore[arg-type]
    return CheckReport("it", {1: {}}, tuple(results))


def test_the_newest_set_is_of_the_revision_whose_types_judge_the_rows() -> None:
    assert revisions()[-1] == REVISION


@pytest.mark.requirement("CK5")
def test_every_row_is_in_the_newest_set_or_has_a_reason_why_it_does_not_count() -> None:
    rows = {row.id for role in ROLES for row in load_rows(role)}
    counted = {id for role in ROLES for id in NEWEST.rows[role]}
    assert rows - counted - NEWEST.not_scored.keys() == set()
    assert counted - rows == set()


@pytest.mark.requirement("CK5")
def test_a_row_that_is_younger_than_the_set_fails_no_program() -> None:
    older = FrozenSet("2.3.0", {**NEWEST.rows, "agent": NEWEST.rows["agent"] - {ROW.id}}, {})
    found = scored(report((ROW, Verdict.FAIL)), older)
    assert (found.conforms(), found.results[0].not_scored) == (True, ADDED_LATER)
    assert not scored(report((ROW, Verdict.FAIL)), NEWEST).conforms()


def test_a_row_that_is_not_scored_has_its_own_reason() -> None:
    pending = NEWEST._replace(not_scored={ROW.id: "the text is not decided yet"})
    assert scored(report((ROW, Verdict.FAIL)), pending).results[0].not_scored == "the text is not decided yet"


@pytest.mark.requirement("CK6")
def test_a_failure_that_was_expected_does_not_count() -> None:
    expected = parse_baseline(f"# known\n\n{ROW.id}@1 # the model is slow\n")
    found = scored(report((ROW, Verdict.FAIL), (OTHER, Verdict.PASS)), NEWEST, expected)
    assert (found.conforms(), found.results[0].is_expected, found.could_test()) == (True, True, True)


@pytest.mark.requirement("CK6")
def test_a_failure_that_was_expected_for_another_version_counts() -> None:
    assert not scored(report((ROW, Verdict.FAIL)), NEWEST, parse_baseline(f"{ROW.id}@2")).conforms()


@pytest.mark.requirement("CK6")
@pytest.mark.parametrize("verdict", [Verdict.PASS])
def test_an_expected_failure_that_does_not_come_makes_the_run_fail(verdict: Verdict) -> None:
    found = scored(report((ROW, verdict)), NEWEST, parse_baseline(ROW.id))
    assert (found.stale, found.conforms()) == ((ROW.id,), False)


def test_an_expected_failure_of_a_row_that_was_not_judged_is_not_stale() -> None:
    assert scored(report((OTHER, Verdict.PASS)), NEWEST, parse_baseline(ROW.id)).stale == ()
    assert scored(report((ROW, Verdict.BLOCKED)), NEWEST, parse_baseline(ROW.id)).stale == ()


@pytest.mark.parametrize("line", ["ACP-INIT-1", "ACP-INIT-001@3", "init", "ACP-INIT-001 why"])
def test_a_line_that_is_no_row_is_named(line: str) -> None:
    with pytest.raises(BaselineInvalid, match="line 2"):
        parse_baseline(f"ACP-INIT-001\n{line}")


def test_lines_have_rows_versions_and_reasons() -> None:
    text = "ACP-INIT-001\nACP-INIT-003@2   # known\n"
    assert parse_baseline(text) == (ExpectedFailure("ACP-INIT-001", 0), ExpectedFailure("ACP-INIT-003", 2))
