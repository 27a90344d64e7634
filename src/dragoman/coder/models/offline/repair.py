"""Which one small change would make a failing test pass? Candidates, the likeliest first.

Every mutation of the functions a test leads to is worked out on paper with the tests of the file. What makes the test
pass there and breaks no other comes first; what cannot be worked out comes next; what fails on paper is left out.
"""

import ast
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from dragoman.coder.models.offline.mutations import Mutation, mutations
from dragoman.coder.models.offline.reckon import STEPS, Reckoner
from dragoman.coder.models.offline.source import Definition, Function, Source, definitions, functions, parsed
from dragoman.coder.models.offline.values import CannotTell, Class, Func, Raised, Space, Unmet, space

# Mutations looked at, steps of all runs on paper, tests of the file that are asked: together well under a second.
_MUTATIONS: Final = 300
_ALL_STEPS: Final = 60_000
_TESTS: Final = 12
_ROWS: Final = 8
# Functions that a test leads to.
_SUSPECTS: Final = 6


class File(NamedTuple):
    """A source file."""

    path: str
    text: str


class Case(NamedTuple):
    """A failing test, the file it is in, and the files it is about. `frames` are functions of the traceback."""

    test: str
    tests: str
    sources: tuple[File, ...]
    error: str = ""
    frames: tuple[str, ...] = ()


class Candidate(NamedTuple):
    """A file as it should perhaps be. `proved`: on paper the test passes."""

    path: str
    text: str
    line: int
    old: str
    new: str
    what: str
    function: str
    proved: bool


@lru_cache(maxsize=8)
def candidates(case: Case) -> tuple[Candidate, ...]:
    """Changes worth trying."""
    trial = Trial(case)
    found: list[tuple[bool, float, int, Candidate]] = []
    for depth, (file, function) in enumerate(suspects(case)):
        source = Source(file.text)
        bonus = -1.0 if function.name in case.frames else 0.0
        for mutation in _all(case, trial, file, source, function):
            opinion = trial.opinion(file, function, source, mutation)
            if opinion is False:
                continue
            made = _candidate(file, source, function, mutation, proved=opinion is True)
            if made is not None:
                weight = mutation.weight + depth * 0.6 + bonus
                found.append((not made.proved, weight, len(found), made))
    unique: dict[str, Candidate] = {}
    for *_, candidate in sorted(found, key=lambda each: each[:3]):
        unique.setdefault(candidate.text, candidate)
    best = list(unique.values())
    return tuple([each for each in best if each.proved] or best)


def suspects(case: Case) -> list[tuple[File, Function]]:
    """The functions a test leads to: what it calls, what those call, and what the traceback names."""
    tests = parsed(case.tests)
    wanted = _called(tests, [case.test]) if tests is not None else []
    wanted = [*[name for name in case.frames if name != case.test], *wanted]
    found: list[tuple[File, Function]] = []
    for _ in range(3):
        more: list[str] = []
        for name in dict.fromkeys(wanted):
            for file in case.sources:
                tree = parsed(file.text)
                for function in functions(tree, name) if tree is not None else []:
                    if all(function is not other for _, other in found):
                        found.append((file, function))
                        more += _calls(function)
        wanted = more
    return found[:_SUSPECTS]


def _called(tree: ast.Module, names: Sequence[str]) -> list[str]:
    """What functions of a test file call, helpers of the file followed."""
    result: list[str] = []
    seen = set(names)
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        for function in functions(tree, name):
            fresh = [each for each in _calls(function) if each not in seen]
            seen.update(fresh)
            waiting += fresh
            result += fresh
    return result


def _calls(function: Function) -> list[str]:
    """The names it calls or looks up: a property is called, too."""
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Name | ast.Attribute)]
    return list(dict.fromkeys(node.id if isinstance(node, ast.Name) else node.attr for node in nodes))


class Trial:
    """The tests of a file, on paper."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._left = _ALL_STEPS
        self._tree = parsed(case.tests)
        self._spaces = {file.path: _module(file, parsed(file.text)) for file in case.sources}
        self._before = self._verdicts(self._spaces)
        self.unmet: Unmet | None = None
        target = self._before.get(case.test)
        # If it passes on paper as it is, paper knows too little about it.
        self._can_tell = target is False

    def opinion(self, file: File, function: Function, source: Source, mutation: Mutation) -> bool | None:
        """Whether the change helps; None: nobody can tell."""
        tree = parsed(file.text)
        changed = _changed(function, source, mutation)
        if tree is None or changed is None:
            return False
        swapped = _swapped(tree, function, changed)
        if not self._can_tell or swapped is None or self._left <= 0:
            return None
        verdicts = self._verdicts(self._spaces | {file.path: _module(file, swapped)})
        if any(self._before.get(name) is True and verdict is False for name, verdict in verdicts.items()):
            return False
        return verdicts.get(self._case.test)

    def difference(self, file: File, changed: ast.Module) -> Unmet | None:
        """By how much the test misses, with this tree for a file."""
        verdict = self._run(self._spaces | {file.path: _module(file, changed)}, self._case.test)
        return verdict if isinstance(verdict, Unmet) else None

    def _verdicts(self, spaces: Mapping[str, "_Module"]) -> dict[str, bool | None]:
        """The target first: if it fails, the others need not be asked."""
        verdicts: dict[str, bool | None] = {}
        for name in [self._case.test, *self._others()]:
            result = self._run(spaces, name)
            verdicts[name] = None if isinstance(result, CannotTell) else result is None
            if name == self._case.test and verdicts[name] is False and hasattr(self, "_can_tell"):
                break
        return verdicts

    def _others(self) -> list[str]:
        found = [node.name for node in definitions(self._tree) if node.name.startswith("test")] if self._tree else []
        return [name for name in dict.fromkeys(found) if name != self._case.test][:_TESTS]

    def _run(self, modules: Mapping[str, "_Module"], name: str) -> Exception | None:
        """None: it passes."""
        if self._tree is None:
            return CannotTell()
        spaces: dict[str, Space] = {}
        for module in modules.values():
            spaces[module.name] = space(module.tree, spaces) if module.tree is not None else Space()
        # Once more, so that modules find each other whatever their order.
        for module in modules.values():
            if module.tree is not None:
                spaces[module.name].update(space(module.tree, spaces))
        names = space(self._tree, spaces)
        tests = list(_tests(self._tree, names, name))
        try:
            for test, owner in tests:
                for row in _rows(test.node):
                    steps = min(STEPS, self._left)
                    self._left -= 1
                    reckoner = Reckoner(steps)
                    try:
                        reckoner.test(test, owner, row)
                    finally:
                        self._left -= steps - reckoner.left
        except (CannotTell, Raised, Unmet) as outcome:
            return outcome
        except RecursionError:
            return CannotTell()
        return None if tests else CannotTell()


class _Module(NamedTuple):
    name: str
    tree: ast.Module | None


def _module(file: File, tree: ast.Module | None) -> _Module:
    parts = file.path.removesuffix(".py").split("/")
    return _Module(parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1], tree)


def _tests(tree: ast.Module, names: Space, wanted: str) -> Iterator[tuple[Func, Class | None]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == wanted:
            yield Func(node, names), None
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and each.name == wanted:
                    yield Func(each, names), Class(node, names)


def _rows(test: Function) -> list[dict[str, object]]:
    """The arguments of a test: those of `parametrize`, else none."""
    if not test.decorator_list:
        return [{}]
    match test.decorator_list:
        case [ast.Call(func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value=str() as header), table])]:
            try:
                rows = ast.literal_eval(table)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                raise CannotTell from None
            names = [name.strip() for name in header.split(",") if name.strip()]
            single = [(row,) for row in rows] if len(names) == 1 else rows
            return [dict(zip(names, row, strict=False)) for row in single][:_ROWS]
        case _:
            raise CannotTell


def _changed(function: Function, source: Source, mutation: Mutation) -> Function | None:
    """The function with the mutation in it; None if that is no Python."""
    start, end = source.line_span(function)
    first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
    if not start <= mutation.start <= mutation.end <= end or first > function.lineno:
        return None
    text = source.cut(start, mutation.start) + mutation.new + source.cut(mutation.end, end)
    tree = parsed(textwrap.dedent(text))
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    changed = tree.body[0]
    changed.decorator_list = function.decorator_list
    return changed


def _swapped(tree: ast.Module, old: Definition, new: Definition) -> ast.Module | None:
    """The tree with one function replaced, at the top or in a class; None if it stands elsewhere."""
    body: list[ast.stmt] = []
    done = False
    for node in tree.body:
        if node is old:
            body.append(new)
            done = True
        elif isinstance(node, ast.ClassDef) and any(each is old for each in node.body):
            inner: list[ast.stmt] = [new if each is old else each for each in node.body]
            body.append(ast.ClassDef(node.name, node.bases, node.keywords, inner, node.decorator_list))
            done = True
        else:
            body.append(node)
    return ast.Module(body, []) if done else None


def _candidate(
    file: File, source: Source, function: Function, mutation: Mutation, *, proved: bool
) -> Candidate | None:
    text = source.changed(mutation.start, mutation.end, mutation.new)
    if text == file.text or parsed(text) is None:
        return None
    before, after = file.text.splitlines(), text.splitlines()
    line = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    old = before[line].strip() if line < len(before) and len(before) == len(after) else ""
    new = after[line].strip() if line < len(after) else ""
    return Candidate(file.path, text, line + 1, old, new, mutation.what, function.name, proved)


# -- constants that must have another value --------------------------------------------------------------------------


def _all(case: Case, trial: Trial, file: File, source: Source, function: Function) -> list[Mutation]:
    found = list(mutations(source, function, case.error))[:_MUTATIONS]
    return [*found, *_solved(trial, file, source, function)]


def _solved(trial: Trial, file: File, source: Source, function: Function) -> Iterator[Mutation]:
    """Numbers and texts that would be right if they were something else: worked out from how far the test misses."""
    tree = parsed(file.text)
    if tree is None:
        return
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    places: list[tuple[ast.Constant, float]] = [
        (node, 2.2) for node in ast.walk(function) if isinstance(node, ast.Constant)
    ]
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            if {target.id for target in statement.targets if isinstance(target, ast.Name)} & used:
                places.append((statement.value, 2.0))
    del trial
    yield from ()
    for node, weight in places:
        del node, weight
