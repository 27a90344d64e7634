"""Plans: the steps of a goal, by the kind of work it is."""

import re
from typing import Final

_KINDS: Final[list[tuple[str, list[str]]]] = [
    (
        r"fix|bug|repair|debug|fail|broken|crash|error",
        [
            "Reproduce it: {goal}",
            "Find the cause",
            "Change the code in the smallest way",
            "Add a test that fails without it",
        ],
    ),
    (
        r"refactor|clean|simplify|restructure|split|extract|rename|move",
        [
            "Read the code that is concerned: {goal}",
            "See that its tests pass",
            "Change it in small steps",
            "Look at the diff",
        ],
    ),
    (
        r"tests?\b|coverage",
        [
            "Read the code to be tested: {goal}",
            "List the cases, the odd ones first",
            "Write the tests",
            "See each fail once",
        ],
    ),
    (
        r"doc|readme|guide|explain|comment",
        [
            "Read what there is: {goal}",
            "Write down what a reader asks first",
            "Write it, with an example",
            "Try the example",
        ],
    ),
    (
        r"upgrade|update|migrate|port|replace",
        [
            "Read what changes: {goal}",
            "Find every place that is concerned",
            "Change them one by one",
            "Look for what is left",
        ],
    ),
    (
        r"release|deploy|publish|ship",
        [
            "See that the tests pass",
            "Update version and changelog: {goal}",
            "Build it and try the result",
            "Publish it",
        ],
    ),
    (
        r"",
        ["Look at the code that is concerned: {goal}", "Decide where it belongs", "Write it", "Write a test for it"],
    ),
]
_LAST: Final = ["Run all tests", "Say what was done and what is left"]


def steps_of(goal: str) -> list[str]:
    """Sensible steps to a goal."""
    for pattern, steps in _KINDS:
        if re.search(rf"\b(?:{pattern})", goal, re.IGNORECASE):
            return [step.format(goal=goal) if "{goal}" in step else step for step in [*steps, *_LAST]]
    return list(_LAST)


def entries(steps: list[str], current: int) -> list[dict[str, str]]:
    """The plan as `update_plan` takes it: what is before the current step is done."""
    status = ["completed" if n < current else "in_progress" if n == current else "pending" for n in range(len(steps))]
    return [{"content": step, "status": each, "priority": "medium"} for step, each in zip(steps, status, strict=True)]
