"""Rows are data: what is wrong with a table of them is found when it is loaded."""

from typing import Any

import pytest

from dragoman.conformance.rows import RowsInvalid, load_rows, parse_rows
from dragoman.conformance.schema import REVISION

ROW: dict[str, Any] = {
    "id": "ACP-X-501",
    "versions": [1, 2],
    "tier": "must",
    "sentence": "Something holds.",
    "citation": "ACP, something",
    "broken": "breaks_something",
}


def table(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"revision": "2.4.0", "row": list(rows)}


def test_the_rows_of_the_agent_are_of_the_revision_whose_types_judge_them() -> None:
    rows = load_rows("agent")
    assert {row.revision for row in rows} == {REVISION}
    assert len(rows) >= 60


def test_a_row_is_loaded_with_its_source() -> None:
    (row,) = parse_rows(table(ROW), "agent")
    assert (row.id, row.versions, row.source()) == ("ACP-X-501", (1, 2), "ACP, something (schema 2.4.0)")


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([{**ROW, "broken": ""}], "ACP-X-501: lacks broken"),
        ([{key: value for key, value in ROW.items() if key != "citation"}], "ACP-X-501: lacks citation"),
        ([{**ROW, "colour": "red"}], "ACP-X-501: colour is no field of a row"),
        ([{**ROW, "tier": "may"}], "ACP-X-501: 'may' is no tier"),
        ([{**ROW, "versions": [3]}], "ACP-X-501: 3 is no version"),
        ([{**ROW, "transports": ["pigeon"]}], "ACP-X-501: 'pigeon' is no transport"),
        ([{**ROW, "tier": "must-if-advertised"}], "ACP-X-501: is a must if advertised, and names no capability"),
        ([ROW, {**ROW, "versions": [2]}], "ACP-X-501: stands 2 times for version 2"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(rows: list[dict[str, Any]], complaint: str) -> None:
    with pytest.raises(RowsInvalid) as caught:
        parse_rows(table(*rows), "agent")
    assert str(caught.value).startswith(complaint)


def test_rows_without_a_revision_are_refused() -> None:
    with pytest.raises(RowsInvalid, match="no revision"):
        parse_rows({"row": [ROW]}, "agent")
