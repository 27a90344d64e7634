"""How the project is written: one class for a name, sentences about things, references that can be followed."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.needs import ROOT

PACKAGE = ROOT / "src" / "dragoman"
# Made from the schema, whose names they keep.
GENERATED = {PACKAGE / "wire" / "v1.py", PACKAGE / "wire" / "v2.py"}
TEXTS = (".py", ".md", ".js", ".html", ".css")

PERSONS = re.compile(r"\b(nobody|somebody|whoever|everybody|anybody)\b", re.IGNORECASE)
# Where such a word is data: the principal of a client without a token, on disk and in logs; names of tests.
DATA = re.compile(r"NOBODY|[\"'`]nobody[\"'`]|test_\w*")
OPENINGS = ("As everywhere", "The same", "Those of")
# Documents and row numbers that a reader of this repository cannot look up.
ELSEWHERE = re.compile(r"DESIGN\.md|\bseed 00\d|\b[Rr]ows? [A-Z]\d")


def sources() -> Iterator[Path]:
    return (path for path in sorted(PACKAGE.rglob("*.py")) if path not in GENERATED)


def texts() -> Iterator[Path]:
    folders = [path for folder in (PACKAGE, ROOT / "docs") for path in sorted(folder.rglob("*"))]
    return (path for path in [*folders, ROOT / "README.md", ROOT / "ARCHITECTURE.md"] if path.suffix in TEXTS)


def lines_with(pattern: re.Pattern[str], ignored: re.Pattern[str] | None = None) -> list[str]:
    """Every line of the package and its documents that has the pattern, as `path:line: text`."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(ignored.sub("", line) if ignored is not None else line)
    ]


def test_a_public_class_name_stands_for_one_class() -> None:
    places = defaultdict(list)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_sentences_are_about_things_and_not_about_persons_without_a_name() -> None:
    assert lines_with(PERSONS, DATA) == []


def test_no_docstring_begins_by_pointing_at_another_one() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.body[0].lineno}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (ast.get_docstring(node) or "").startswith(OPENINGS)
    ]
    assert found == []


def test_nothing_refers_to_a_document_that_is_not_here() -> None:
    assert lines_with(ELSEWHERE) == []
