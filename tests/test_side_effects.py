"""No effect hides where a reader expects none: not in an assert, which `python -O` leaves out, nor in a property."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "dragoman"
# Methods of containers that change them.
CHANGES = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popleft", "remove", "update"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())


def effects_in_asserts(module: ast.Module) -> list[str]:
    """The asserts that do something: they call anything but `isinstance`, wait, or name a value."""
    return [
        ast.unparse(node)
        for node in ast.walk(module)
        if isinstance(node, ast.Assert)
        and any(
            isinstance(part, (ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom))
            or (isinstance(part, ast.Call) and ast.unparse(part.func) != "isinstance")
            for part in ast.walk(node)
        )
    ]


def changing_properties(module: ast.Module) -> list[str]:
    """The names of properties that change something that they reach through `self`."""
    return [
        node.name
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(each) == "property" for each in node.decorator_list)
        and any(_changes_self(part) for part in ast.walk(node))
    ]


def _changes_self(node: ast.AST) -> bool:
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return ast.unparse(node).startswith("self.")
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in CHANGES and ast.unparse(node.func).startswith("self.")


def test_no_assert_of_the_package_does_anything() -> None:
    found = [f"{name}: {each}" for name, module in modules() for each in effects_in_asserts(module)]
    assert found == []


def test_no_property_of_the_package_changes_anything() -> None:
    found = {f"{name} {each}" for name, module in modules() for each in changing_properties(module)}
    assert found == set()


@pytest.mark.parametrize(
    "source", ["assert self.load()", "assert (found := look) is not None", "async def f():\n    assert await one"]
)
def test_an_assert_that_does_something_is_found(source: str) -> None:
    assert effects_in_asserts(ast.parse(source)) != []


@pytest.mark.parametrize(
    "body", ["self._x = 1", "self._peer.null_ids = False", "self._queue.popleft()", "self._seen[1] = 2", "del self._x"]
)
def test_a_property_that_changes_something_is_found(body: str) -> None:
    source = f"class A:\n    @property\n    def one(self):\n        {body}\n        return 1"
    assert changing_properties(ast.parse(source)) == ["one"]


def test_asserts_and_properties_that_only_look_are_fine() -> None:
    source = (
        "class A:\n    @property\n    def one(self):\n        assert isinstance(self._x, int)\n        return self._x"
    )
    assert effects_in_asserts(ast.parse(source)) == changing_properties(ast.parse(source)) == []
