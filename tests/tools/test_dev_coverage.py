"""`./dev coverage` counts branches as coverage tells them, and fails where there are too few."""

from typing import Any

import pytest

from tools import covered
from tools.covered import PARTS, RUNS, Part, count, table

FILES: dict[str, Any] = {
    "src/dragoman/wire/a.py": {
        "summary": {"num_statements": 100, "covered_lines": 99, "num_branches": 40, "covered_branches": 38},
        "missing_lines": [7],
        "missing_branches": [[6, 7], [9, -3]],
    },
    "src/dragoman/wire/b.py": {
        "summary": {"num_statements": 10, "covered_lines": 10, "num_branches": 0, "covered_branches": 0},
        "missing_lines": [],
        "missing_branches": [],
    },
    "src/dragoman/store/c.py": {
        "summary": {"num_statements": 10, "covered_lines": 10, "num_branches": 10, "covered_branches": 9},
        "missing_lines": [],
        "missing_branches": [[1, 2]],
    },
}


def test_a_part_is_the_sum_of_its_files() -> None:
    found = count(FILES, PARTS["wire"])
    assert (found.lines, found.lines_hit, found.branches, found.branches_hit) == (110, 109, 40, 38)
    assert found.branch_percent == 95.0
    assert found.is_enough
    assert found.missing == ["src/dragoman/wire/a.py: 7, 6->7, 9->exit"]


def test_too_few_branches_are_too_few_whatever_the_lines_say() -> None:
    found = count(FILES, PARTS["store"])
    assert (found.line_percent, found.branch_percent, found.is_enough) == (100.0, 90.0, False)
    *_, row, missing = table({"store": found}, with_missing=True)
    assert row.endswith("90.0 %  UNDER 95 %")
    assert missing == "    src/dragoman/store/c.py: 1->2"


def test_a_part_of_which_there_is_nothing_is_whole() -> None:
    assert count(FILES, Part("src/dragoman/none/", [])).is_enough


def test_every_part_has_its_run_and_its_tests() -> None:
    assert sorted(name for run in RUNS for name in run) == sorted(PARTS)
    for part in PARTS.values():
        assert (covered.ROOT / part.sources).exists()
        assert all((covered.ROOT / test).exists() for test in part.tests)


def test_a_part_that_there_is_none_of_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert covered.main(["attic"]) == 2
    assert "there is no part attic" in capsys.readouterr().err
