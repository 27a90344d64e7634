"""The values of a run on paper: plain ones, and the functions, classes and objects of the sources it follows."""

import ast
from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.coder.models.offline.source import Function


class CannotTell(Exception):
    """The rules of this module do not reach that far."""


class Raised(Exception):
    """The code would raise."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Unmet(Exception):
    """An assertion does not hold. The two values, where it compared two."""

    def __init__(self, actual: object = None, expected: object = None) -> None:
        super().__init__()
        self.actual = actual
        self.expected = expected


class Space(dict[str, Any]):
    """The names of a module."""


class Func(NamedTuple):
    """A function, and the object it was taken from."""

    node: Function
    space: Space
    bound: "Thing | None" = None


class Class(NamedTuple):
    """A class."""

    node: ast.ClassDef
    space: Space


class Thing:
    """An object of a class that we know, or of the test framework's."""

    def __init__(self, cls: Class) -> None:
        self.cls = cls
        self.fields: dict[str, Any] = {}


class Foreign(NamedTuple):
    """Something of a module that we do not follow, by its dotted name."""

    name: str


class Approx(NamedTuple):
    """A number that others are close to."""

    value: float


def space(tree: ast.Module, modules: Mapping[str, Space]) -> Space:
    """The names a module defines: functions, classes, plain constants, and what it imports from modules we have."""
    names = Space()
    for node in tree.body:
        match node:
            case ast.FunctionDef():
                names[node.name] = Func(node, names)
            case ast.ClassDef():
                names[node.name] = Class(node, names)
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                try:
                    names[name] = value.value if isinstance(value, ast.Constant) else ast.literal_eval(value)
                except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                    names[name] = Foreign(name)
            case ast.Import():
                for each in node.names:
                    short = each.asname or each.name.partition(".")[0]
                    names[short] = modules.get(each.name if each.asname else short, Foreign(short))
            case ast.ImportFrom():
                for each in node.names:
                    path = f"{node.module}.{each.name}" if node.module else each.name
                    inside = modules.get((node.module or "").rpartition(".")[2], Space())
                    named = modules.get(each.name, Foreign(path))
                    names[each.asname or each.name] = inside.get(each.name, named)
            case _:
                pass
    return names


def find_method(owner: Class, name: str) -> Func | None:
    """A method of a class, or of a class it is made from, as far as we have those."""
    for _ in range(8):
        for node in owner.node.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return Func(node, owner.space)
        bases = [owner.space.get(base.id) for base in owner.node.bases if isinstance(base, ast.Name)]
        known = [base for base in bases if isinstance(base, Class)]
        if not known:
            return None
        owner = known[0]
    return None


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
