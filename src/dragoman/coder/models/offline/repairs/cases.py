"""A failing test and what it leads to."""

import ast
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman.coder.models.offline.paper import plain
from dragoman.coder.models.offline.paper.values import last_name
from dragoman.coder.models.offline.source import Function, Source, functions, parsed

# Functions that a test leads to, and how far it is followed.
_SUSPECTS: Final = 6
_DEPTH: Final = 3
# A function of more bytes is not looked into: its one mistake is not to be found by trying.
_BYTES: Final = 8_000
_HARMLESS: Final = frozenset(("isinstance", "issubclass", "type", "repr", "ord", "chr", "map", "filter", "Exception"))


class File(NamedTuple):
    """A source file."""

    path: str
    text: str


class Case(NamedTuple):
    """A failing test, the text of its file, and the files it is about.

    `frames` are the functions of the traceback, `line` is where the test failed; 0: unknown.
    """

    test: str
    tests: str
    sources: tuple[File, ...]
    error: str = ""
    frames: tuple[str, ...] = ()
    line: int = 0


def suspects(case: Case) -> list[tuple[File, Function]]:
    """The functions a test leads to: what the traceback names, what the test calls, and what those call."""
    raised = [name for name in reversed(case.frames) if name != case.test]
    wanted = [*raised, *_claimed(case), *called(case.tests, case.test)]
    sources = {file.path: Source(file.text) for file in case.sources}
    found: list[tuple[File, Function]] = []
    for _ in range(_DEPTH):
        more: list[str] = []
        for name in dict.fromkeys(wanted):
            for file in case.sources:
                tree, source = parsed(file.text), sources[file.path]
                for function in functions(tree, name) if tree is not None else []:
                    start, end = source.line_span(function)
                    is_short = end - start <= _BYTES
                    if is_short and all(function is not other for _, other in found):
                        found.append((file, function))
                        more += _mentioned(function)
        wanted = more
    return found[:_SUSPECTS]


def is_calm(function: Function, sources: Sequence[File], depth: int = _DEPTH) -> bool:
    """Return whether it only computes, as far as its text shows: then a change in it can be tried safely."""
    for node in ast.walk(function):
        if isinstance(node, ast.Delete | ast.With | ast.AsyncWith | ast.Await | ast.Import | ast.ImportFrom):
            return False
        if not isinstance(node, ast.Call):
            continue
        name = last_name(node.func)
        if name in plain.BUILTINS or name in _HARMLESS or name.endswith("Error"):
            continue
        if isinstance(node.func, ast.Attribute) and (name in plain.METHODS or last_name(node.func.value) == "math"):
            continue
        known = [each for file in sources if (tree := parsed(file.text)) for each in functions(tree, name)]
        if not known or depth == 0:
            return False
        if not all(each is function or is_calm(each, sources, depth - 1) for each in known):
            return False
    return True


def called(tests: str, test: str) -> list[str]:
    """The names a test mentions, helpers of its file followed."""
    tree = parsed(tests)
    result: list[str] = []
    seen, waiting = {test}, [test]
    while waiting and tree is not None:
        name = waiting.pop(0)
        for function in functions(tree, name):
            fresh = [each for each in _mentioned(function) if each not in seen]
            seen.update(fresh)
            waiting += fresh
            result += fresh
    return result


def imported(tests: str, names: Sequence[str]) -> list[str]:
    """The modules that a test file takes such names from, as paths without their ending; those named first."""
    tree = parsed(tests)
    first: list[str] = []
    rest: list[str] = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ImportFrom):
            path = (node.module or "").replace(".", "/")
            taken = {alias.asname or alias.name for alias in node.names}
            if path:
                (first if taken & set(names) else rest).append(path)
            rest += [f"{path}/{alias.name}".lstrip("/") for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                is_used = (alias.asname or alias.name.partition(".")[0]) in names
                (first if is_used else rest).append(alias.name.replace(".", "/"))
    found = dict.fromkeys([*first, *rest])
    return [path for path in found if path.partition("/")[0] not in sys.stdlib_module_names | {"pytest"}]


def _claimed(case: Case) -> list[str]:
    """The names in the statement that failed: what it compares is more likely wrong than what was done before."""
    tree = parsed(case.tests)
    around = [
        node
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, ast.Assert | ast.Expr) and node.lineno <= case.line <= (node.end_lineno or 0)
    ]
    return [name for node in around for name in _mentioned(node)]


def _mentioned(tree: ast.AST) -> list[str]:
    """The names it calls or looks up: a property is called without brackets."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)]
    return list(dict.fromkeys(node.id if isinstance(node, ast.Name) else node.attr for node in nodes))
