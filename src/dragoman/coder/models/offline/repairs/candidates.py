"""Which one small change would make a failing test pass? Candidates, the likeliest first.

Every mutation of the functions a test leads to is tried on paper. What makes the test pass there and breaks no other
test comes first; what cannot be worked out comes next; what fails on paper is left out.
"""

import ast
import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from dragoman.coder.models.offline.paper.values import Unmet
from dragoman.coder.models.offline.repairs.cases import Case, File, is_calm, suspects
from dragoman.coder.models.offline.repairs.mutations import Mutation, mutations
from dragoman.coder.models.offline.repairs.trial import Change, Trial, statement
from dragoman.coder.models.offline.source import Function, Source, parsed

# Mutations of one function that are looked at; a longer function has its mistake elsewhere, or too well hidden.
_MUTATIONS: Final = 300
# Candidates that are worth naming.
MOST_CANDIDATES: Final = 8
# A line is told up to this.
_LINE_CHARACTERS: Final = 160


class Candidate(NamedTuple):
    """A file as it should perhaps be.

    `proved`: on paper the test passes. `calm`: the function only computes, so that trying is harmless.
    """

    path: str
    text: str
    line: int
    old: str
    new: str
    what: str
    function: str
    proved: bool
    calm: bool


@lru_cache(maxsize=8)
def candidates(case: Case) -> tuple[Candidate, ...]:
    """Return changes worth trying: the proved ones if there are any, else those that could not be judged."""
    trial = Trial(case)
    found: list[tuple[bool, float, int, Change, str, bool]] = []
    for depth, (file, function) in enumerate(suspects(case)):
        bonus = -1.0 if function.name in case.frames else 0.0
        calm = is_calm(function, case.sources)
        for change in islice(_changes(case, trial, file, function), _MUTATIONS):
            helps = trial.helps(change)
            if helps is not False:
                weight = change.mutation.weight + depth * 0.6 + bonus
                found.append((helps is None, weight, len(found), change, function.name, calm))
    found.sort(key=lambda each: each[:3])
    is_proved = any(not unsure for unsure, *_ in found)
    made: dict[str, Candidate] = {}
    for unsure, _, _, change, name, calm in found:
        if (unsure and is_proved) or len(made) == MOST_CANDIDATES:
            break
        candidate = _candidate(change, name, proved=not unsure, calm=calm)
        if candidate is not None:
            made.setdefault(candidate.text, candidate)
    return tuple(made.values())


def _changes(case: Case, trial: Trial, file: File, function: Function) -> Iterator[Change]:
    source = Source(file.text)
    for mutation in mutations(source, function, case.error):
        yield Change(file, source, function, mutation)
    missed = trial.outcome
    if isinstance(missed, Unmet):
        for owner, node in _constants(file, function):
            yield from _solved(trial, missed, Change(file, source, owner, Mutation(0, 0, "", "", 0.0, 0)), node)


def _constants(file: File, function: Function) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The constants a function uses: its own, and those of its module."""
    for node in ast.walk(function):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            yield function, node
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    tree = parsed(file.text)
    for each in tree.body if tree is not None else []:
        if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Constant):
            continue
        if used & {target.id for target in each.targets if isinstance(target, ast.Name)}:
            yield each, each.value


def _solved(trial: Trial, missed: Unmet, blank: Change, node: ast.expr) -> Iterator[Change]:
    """What a constant would have to be, worked out from how far the test misses."""
    source = blank.source
    place = source.span(node)
    if isinstance(node, ast.Constant) and _is_number(node.value):
        if not (_is_number(missed.actual) and _is_number(missed.expected)):
            return
        value, actual, expected = _float(node.value), _float(missed.actual), _float(missed.expected)
        next_to = Mutation(*place, repr(node.value + 1), "", 0.0, node.lineno)  # type: ignore[operator]
        other = trial.miss(blank._replace(mutation=next_to))
        if other is None or not _is_number(other.actual) or other.expected != missed.expected:
            return
        slope = _float(other.actual) - actual
        if slope and math.isfinite(slope):
            wanted = round(value + (expected - actual) / slope, 9)
            text = str(int(wanted)) if wanted == int(wanted) and isinstance(node.value, int) else repr(wanted)
            yield blank._replace(mutation=Mutation(*place, text, "the wrong number", 2.2, node.lineno))
    elif isinstance(missed.actual, str) and isinstance(missed.expected, str):
        yield from _respelled(missed.actual, missed.expected, blank, node)


def _respelled(actual: str, expected: str, blank: Change, node: ast.expr) -> Iterator[Change]:
    """A text that is spelled in another way in what was expected."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    for part in parts:
        word = part.value if isinstance(part, ast.Constant) else None
        start = actual.find(word) if isinstance(word, str) and word else -1
        if start < 0 or not isinstance(word, str):
            continue
        before, after = actual[:start], actual[start + len(word) :]
        fits = expected.startswith(before) and expected.endswith(after) and len(expected) >= len(before) + len(after)
        wanted = expected[len(before) : len(expected) - len(after)]
        text = blank.source.of(node)
        if (
            fits
            and wanted != word
            and text.count(word) == 1
            and wanted.isprintable()
            and not set(wanted) & set("\"'\\{}")
        ):
            new = text.replace(word, wanted)
            place = blank.source.span(node)
            yield blank._replace(mutation=Mutation(*place, new, "the spelling", 2.0, node.lineno))


def _candidate(change: Change, function: str, *, proved: bool, calm: bool) -> Candidate | None:
    file, mutation = change.file, change.mutation
    text = change.source.changed(mutation.start, mutation.end, mutation.new)
    if text == file.text or statement(change) is None:
        return None
    before, after = file.text.splitlines(), text.splitlines()
    pairs = enumerate(zip(before, after, strict=False))
    line = next((number for number, (one, other) in pairs if one != other), min(len(before), len(after)))
    old = before[line] if line < len(before) and len(before) == len(after) else ""
    new = after[line] if line < len(after) else ""
    if old.strip() != new.strip():
        old, new = old.strip(), new.strip()
    old, new = (line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]}…" for line in (old, new))
    return Candidate(file.path, text, line + 1, old, new, mutation.what, function, proved, calm)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _float(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
