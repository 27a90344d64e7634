"""The questions of CONTRIBUTING.md lead to code that is there, and ARCHITECTURE.md has few words of its own."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.needs import ROOT

PACKAGE = ROOT / "src" / "dragoman"
QUESTIONS = 10
WORDS = 30


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading."""
    section = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {heading}")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def places() -> Iterator[tuple[str, str]]:
    """Yield each file that an answer names together with a name in it."""
    for _, answer in rows("CONTRIBUTING.md", "Questions"):
        for file, name in re.findall(r"`([\w/]+\.py)`: `([\w.]+)`", answer):
            yield file, name.rpartition(".")[2]


def defined(file: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }


def test_there_are_enough_questions() -> None:
    assert len(rows("CONTRIBUTING.md", "Questions")) >= QUESTIONS


@pytest.mark.parametrize(("file", "name"), list(places()))
def test_an_answer_names_a_file_that_defines_what_it_names(file: str, name: str) -> None:
    assert name in defined(PACKAGE / file)


def test_a_reader_has_to_learn_few_words_of_ours() -> None:
    words = [word for cells in rows("ARCHITECTURE.md", "Glossary") for word in cells[0].split(", ")]
    assert QUESTIONS < len(words) <= WORDS
