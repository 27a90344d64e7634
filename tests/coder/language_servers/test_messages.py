"""What a server sends is read field by field, and places are counted in characters."""

import json
from typing import Any

import pytest
from msgspec import Raw

from dragoman.coder.language_servers import messages
from dragoman.coder.language_servers.problems import Problem


def diagnostic(line: int, character: int, **more: Any) -> dict[str, Any]:
    place = {"line": line, "character": character}
    return {"range": {"start": place, "end": place}, "message": "bad", **more}


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 9), ("utf-16", 6), ("utf-32", 5), ("unheard-of", 6)])
def test_a_column_is_a_number_of_characters_in_every_encoding(encoding: str, units: int) -> None:
    (problem,) = messages.problems("/a.py", [diagnostic(1, units)], "first\né = 😋!\n", encoding)
    assert problem == Problem("/a.py", 2, 6, "error", "bad")


def test_one_diagnostic_that_is_none_costs_itself() -> None:
    items = [
        diagnostic(0, 0, severity=9),
        diagnostic(0, -1),
        "no object",
        {"message": "no range"},
        diagnostic(
            0, 0, severity=2, code=7, source="small", data={"huge": 1}, message={"kind": "markdown", "value": "m"}
        ),
        diagnostic(70, 3, severity=4, message=None),
    ]
    assert messages.problems("/a.py", items, "text", "utf-16") == [
        Problem("/a.py", 1, 1, "warning", "m", "small", "7"),
        Problem("/a.py", 71, 1, "hint", ""),
    ]


def test_a_column_beyond_a_line_and_a_line_without_an_end_cost_nothing() -> None:
    text = "x" * 1_000_000
    (problem,) = messages.problems("/a.py", [diagnostic(0, 10**9)], text, "utf-16")
    assert problem.column <= 10_001


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({}, messages.ServerAbilities()),
        (
            {
                "positionEncoding": "utf-8",
                "diagnosticProvider": {"x": 1},
                "textDocumentSync": {"save": {"includeText": True}},
            },
            messages.ServerAbilities("utf-8", pulls=True, on_save=True, text_on_save=True),
        ),
        ({"textDocumentSync": {"openClose": True}}, messages.ServerAbilities(on_save=False)),
        ({"textDocumentSync": 2, "diagnosticProvider": False}, messages.ServerAbilities()),
    ],
)
def test_what_a_server_can_do_is_read_from_its_answer(capabilities: Any, expected: messages.ServerAbilities) -> None:
    assert messages.abilities(Raw(json.dumps({"capabilities": capabilities}).encode())) == expected


def test_what_is_published_is_known_by_its_path() -> None:
    said = {"uri": "file:///w/a%20b.py", "diagnostics": [1], "version": 3}
    assert messages.published(Raw(json.dumps(said).encode())) == messages.Published("/w/a b.py", 3, [1])
    wrong: object
    for wrong in ({"uri": "untitled:1", "diagnostics": []}, {"uri": 1}, []):
        assert messages.published(Raw(json.dumps(wrong).encode())) is None


def test_a_server_is_served_nothing_that_changes_files() -> None:
    assert messages.answer("workspace/applyEdit", Raw(b"{}"), ["/work"])["applied"] is False  # type: ignore[index]
    assert messages.answer("window/showDocument", Raw(b"{}"), ["/work"]) == {"success": False}
    with pytest.raises(LookupError):
        messages.answer("experimental/run", Raw(b"{}"), ["/work"])
