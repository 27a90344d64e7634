"""The tests of a file, tried on paper with a changed source."""

import ast
import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.coder.models.offline.paper.reckon import STEPS, Reckoner
from dragoman.coder.models.offline.paper.values import CannotTell, Class, Func, Raised, Space, Unmet, space
from dragoman.coder.models.offline.repairs.cases import Case, File
from dragoman.coder.models.offline.repairs.mutations import Mutation
from dragoman.coder.models.offline.source import Function, Source, definitions, parse, parsed

# Steps of all runs together, tests of the file that are asked, rows of a parametrized test: a fraction of a second.
# Reading costs, too: a statement of a module is a step, and so are so many characters.
_ALL_STEPS: Final = 80_000
_CHARACTERS_A_STEP: Final = 10
_TESTS: Final = 12
_ROWS: Final = 8


class Change(NamedTuple):
    """A mutation in a function, or in another statement, of a file."""

    file: File
    source: Source
    owner: ast.stmt
    mutation: Mutation


class Trial:
    """What paper says about changes to the sources of a case."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._left = _ALL_STEPS
        self._tree = parsed(case.tests)
        self._trees = {file.path: parsed(file.text) for file in case.sources}
        # What is wrong as it is. If nothing is, paper knows too little about this test.
        self.outcome = self._run(self._trees, case.test)
        self._passing = [name for name in self._others() if self._run(self._trees, name) is None]

    @property
    def can_tell(self) -> bool:
        """Whether paper sees the failure, too."""
        return isinstance(self.outcome, Unmet | Raised)

    def helps(self, change: Change) -> bool | None:
        """Return whether the test would pass and no other fail; None: unknown. False also for what is no Python."""
        if self._left <= 0:
            return None
        trees = self._changed(change)
        if trees is False:
            return False
        if trees is None or not self.can_tell:
            return None
        outcome = self._run(trees, self._case.test)
        if outcome is not None:
            return None if isinstance(outcome, CannotTell) else False
        return not any(isinstance(self._run(trees, name), Unmet | Raised) for name in self._passing)

    def miss(self, change: Change) -> Unmet | None:
        """By how much the test would still miss."""
        trees = self._changed(change) if self._left > 0 else None
        outcome = self._run(trees, self._case.test) if trees else None
        return outcome if isinstance(outcome, Unmet) else None

    def _changed(self, change: Change) -> "dict[str, ast.Module | None] | None | bool":
        """The trees with a change in them; None: it is in a place we do not reach; False: that is no Python."""
        owner, tree = change.owner, self._trees[change.file.path]
        start, end = change.source.line_span(owner)
        self._left -= (end - start) // _CHARACTERS_A_STEP
        new = statement(change)
        if new is None or tree is None:
            return False
        swapped = _swapped(tree, owner, new)
        return None if swapped is None else self._trees | {change.file.path: swapped}

    def _others(self) -> list[str]:
        found = [node.name for node in definitions(self._tree) if node.name.startswith("test")] if self._tree else []
        return [name for name in dict.fromkeys(found) if name != self._case.test][:_TESTS]

    def _run(self, trees: "dict[str, ast.Module | None] | bool", name: str) -> Exception | None:
        """None: it passes."""
        if self._tree is None or isinstance(trees, bool) or self._left <= 0:
            return CannotTell()
        self._left -= sum(len(tree.body) for tree in (self._tree, *trees.values()) if tree is not None)
        names = space(self._tree, _spaces(trees))
        tests = list(_tests(self._tree, names, name))
        try:
            for test, owner in tests:
                for row in _rows(test.node):
                    self._follow(test, owner, row)
        except (CannotTell, Raised, Unmet) as outcome:
            return outcome
        except RecursionError:
            return CannotTell()
        return None if tests else CannotTell()

    def _follow(self, test: Func, owner: Class | None, row: dict[str, object]) -> None:
        steps = min(STEPS, self._left)
        reckoner = Reckoner(steps)
        try:
            reckoner.test(test, owner, row)
        finally:
            self._left -= steps - reckoner.left


def _spaces(trees: dict[str, ast.Module | None]) -> dict[str, Space]:
    """The modules by name, each finding the others."""
    known = {_module_name(path): tree for path, tree in trees.items() if tree is not None}
    spaces: dict[str, Space] = {name: Space() for name in known}
    for _ in range(2):  # the second time, what the first one could not find yet is there
        for name, tree in known.items():
            made = space(tree, spaces)
            spaces[name].update({key: _moved(value, made, spaces[name]) for key, value in made.items()})
    return spaces


def _moved(value: object, made: Space, home: Space) -> object:
    return value._replace(space=home) if isinstance(value, Func | Class) and value.space is made else value


def _module_name(path: str) -> str:
    parts = path.removesuffix(".py").split("/")
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]


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
    match test.decorator_list:
        case []:
            return [{}]
        case [ast.Call(func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value=str() as header), table])]:
            try:
                rows = list(ast.literal_eval(table))
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                raise CannotTell from None
            names = [name.strip() for name in header.split(",") if name.strip()]
            each = (
                [(row,) for row in rows] if len(names) == 1 else [row for row in rows if isinstance(row, tuple | list)]
            )
            return [dict(zip(names, row, strict=False)) for row in each][:_ROWS]
        case _:
            raise CannotTell


def statement(change: Change) -> ast.stmt | None:
    """The statement with the mutation in it; None if that is no Python."""
    source, mutation = change.source, change.mutation
    start, end = source.line_span(change.owner)
    if not start <= mutation.start <= mutation.end <= end:
        return None
    tree = parse(textwrap.dedent(source.cut(start, mutation.start) + mutation.new + source.cut(mutation.end, end)))
    if tree is None or len(tree.body) != 1:
        return None
    made = tree.body[0]
    if isinstance(made, ast.FunctionDef) and isinstance(change.owner, ast.FunctionDef):
        made.decorator_list = change.owner.decorator_list
    return made


def _swapped(tree: ast.Module, old: ast.stmt, new: ast.stmt) -> ast.Module | None:
    """The tree with one statement replaced, at the top or in a class; None if it stands elsewhere."""
    body: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(each is old for each in node.body):
            inner = [new if each is old else each for each in node.body]
            body.append(ast.ClassDef(node.name, node.bases, node.keywords, inner, node.decorator_list))
        else:
            body.append(new if node is old else node)
    is_there = any(node is not other for node, other in zip(tree.body, body, strict=True))
    return ast.Module(body, []) if is_there else None
