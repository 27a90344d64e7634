"""Read `tests/requirements/*.toml`, and write into it which tests prove each requirement.

    python -m tools.requirements

A requirement is one sentence that must hold: a `[[row]]` with an `id`, a `sentence`, a `source` and `tests`. A test
names its requirements with a marker, `@pytest.mark.requirement("C8")`, and the command above writes the lists of tests
from the markers, so a renamed test is renamed in one place. `tests/test_requirements.py` fails while the two differ,
while a requirement has no test, and while a marker names no requirement.

The tables of compatibility, vendor programs and losses have more fields, which the pages of `docs/` show. All of it is
data of the repository and not part of the wheel: nothing at run time reads it.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "tests" / "requirements"
MARKER: Final = "mark.requirement("
SYSTEMS: Final = ("iac-code", "v2-june", "elephant", "agentao", "simse")

RowClass = Literal["T", "A", "P", "-"]
Direction = Literal["same", "v1→v2", "v2→v1"]


class Requirement(NamedTuple):
    """One entry; `tests` are `path::name`, in the order of the files."""

    id: str
    sentence: str
    source: str
    tests: tuple[str, ...]


class CompatibilityRow(NamedTuple):
    """One difference between a documented system and the protocol."""

    id: str
    system: str
    row_class: RowClass
    where: str
    differs: str
    ours: str
    tests: tuple[str, ...]


class VendorFinding(NamedTuple):
    """One difference between a vendor's program and its own document."""

    id: str
    program: str
    does: str
    ours: str
    tests: tuple[str, ...]


class Loss(NamedTuple):
    """One thing that a version of the protocol cannot carry, and what is sent instead."""

    id: str
    direction: Direction
    what: str
    instead: str
    tests: tuple[str, ...]


def _rows(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))["row"]
    return [{**row, "tests": tuple(row["tests"])} for row in rows]


ROWS: Final = tuple(
    CompatibilityRow(
        *(row[name] for name in ("id", "source", "class", "where", "sentence", "ours", "tests")),
    )
    for row in _rows("compatibility.toml")
)
FINDINGS: Final = tuple(
    VendorFinding(*(row[name] for name in ("id", "source", "sentence", "ours", "tests")))
    for row in _rows("vendor_programs.toml")
)
LOSSES: Final = tuple(
    Loss(*(row[name] for name in ("id", "direction", "sentence", "instead", "tests"))) for row in _rows("losses.toml")
)


class Marked(NamedTuple):
    """One requirement that one test names."""

    id: str
    test: str


def requirements() -> list[Requirement]:
    """Read every row of every file. Raises `KeyError` for a row that lacks a field."""
    return [
        Requirement(row["id"], row["sentence"], row["source"], row["tests"])
        for file in sorted(FOLDER.glob("*.toml"))
        for row in _rows(file.name)
    ]


def markers(root: Path = ROOT) -> list[Marked]:
    """Find every requirement that a test function names, without importing the tests."""
    found: list[Marked] = []
    for file in sorted((root / "tests").rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if MARKER in text:  # most files have none, and parsing is what takes the time
            found += (Marked(id, f"{file.relative_to(root).as_posix()}::{name}") for name, id in _named(text))
    return found


def _named(text: str) -> Iterator[tuple[str, str]]:
    """Each test function of a module with each id of its markers.

    Raises `ValueError` for a marker that is no decorator of a test function of the module: it would not be counted.
    """
    module = ast.parse(text)
    stray = sum(_is_marker(node) for node in ast.walk(module))
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            for decorator in filter(_is_marker, node.decorator_list):
                stray -= 1
                assert isinstance(decorator, ast.Call)
                yield from ((node.name, ast.literal_eval(argument)) for argument in decorator.args)
    if stray:
        raise ValueError(f"{stray} requirement markers stand elsewhere than before a test function")


def _is_marker(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement"


def mistakes(entries: list[Requirement], marked: list[Marked]) -> list[str]:
    """Say what is wrong between the entries and the markers, one sentence each."""
    known = {entry.id for entry in entries}
    tests: dict[str, list[str]] = {entry.id: [] for entry in entries}
    for mark in marked:
        tests.setdefault(mark.id, []).append(mark.test)
    twice = sorted({entry.id for entry in entries if sum(other.id == entry.id for other in entries) > 1})
    return [
        *(f"{id} stands in the files twice" for id in twice),
        *(f"{mark.test} names {mark.id}, which is no requirement" for mark in marked if mark.id not in known),
        *(f"{entry.id} has no test" for entry in entries if not tests[entry.id]),
        *(
            f"{entry.id} lists other tests than those that name it; run `python -m tools.requirements`"
            for entry in entries
            if list(entry.tests) != tests[entry.id]
        ),
    ]


def written(text: str, tests: dict[str, list[str]]) -> str:
    """Put the lists of tests into the text of one file, and leave everything else as it is."""

    def entry(match: re.Match[str]) -> str:
        names = tests.get(match[2], [])
        items = "".join(f'    "{name}",\n' for name in names)
        return f"{match[1]}tests = [\n{items}]\n" if items else f"{match[1]}tests = []\n"

    return re.sub(r'^(id = "([^"]+)"\n(?:(?!tests = |\[\[).*\n)*)tests = \[[^\]]*\]\n', entry, text, flags=re.MULTILINE)


def main() -> None:
    tests: dict[str, list[str]] = {}
    for mark in markers():
        tests.setdefault(mark.id, []).append(mark.test)
    for file in sorted(FOLDER.glob("*.toml")):
        file.write_text(written(file.read_text(encoding="utf-8"), tests), encoding="utf-8")


if __name__ == "__main__":
    main()
