"""The picture in ARCHITECTURE.md is what a traced run does: each step is called in its order, no file is left out."""

import asyncio
import re
from typing import NamedTuple

import pytest

from tests.support.needs import ROOT
from tools.request_path import Recorder, trace_prompt

STEP = re.compile(r"^\s*(?P<file>[\w/]+\.py)\s+(?P<function>\w+(?:\.\w+)*)\b", re.MULTILINE)


class Step(NamedTuple):
    """A line of the picture: a file, and a function of it."""

    file: str
    function: str


def steps_of(page: str) -> list[Step]:
    """Return the steps of the block that stands under "The way of a prompt"."""
    block = page.partition("## The way of a prompt")[2].partition("```text\n")[2].partition("```")[0]
    return [Step(*found) for found in STEP.findall(block)]


def first_missing(steps: list[Step], called: list[str]) -> Step | None:
    """Return the first step that does not come behind the steps before it; None if all do."""
    rest = iter(called)
    for step in steps:
        if f"{step.file}:{step.function}" not in rest:
            return step
    return None


@pytest.fixture(scope="module")
def trace() -> Recorder:
    return asyncio.run(trace_prompt())


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    found = steps_of((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert len(found) > 10
    return found


def test_every_step_of_the_picture_is_called_in_its_order(trace: Recorder, steps: list[Step]) -> None:
    assert first_missing(steps, trace.order) is None


def test_every_file_that_a_prompt_passes_is_in_the_picture(trace: Recorder, steps: list[Step]) -> None:
    assert set(trace.files) == {step.file for step in steps}


def test_a_step_in_the_wrong_place_is_found_out() -> None:
    called = ["a.py:f", "b.py:C.g", "a.py:h"]
    assert first_missing([Step("a.py", "f"), Step("a.py", "h")], called) is None
    assert first_missing([Step("b.py", "C.g"), Step("a.py", "f")], called) == Step("a.py", "f")
