"""The public surface, read from the source: the classes and functions that `dragoman` gives, and their members."""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

import dragoman
from dragoman import errors, events, testing
from tests.support.needs import ROOT

MEMBERS_FILE: Final = ROOT / "tests" / "public_members.txt"
# What a public function gives back, and is not made by users themselves.
RETURNED: Final = {"dragoman.client.sync": ("SyncClient", "SyncConversation", "SyncTurn")}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class PublicFunction(NamedTuple):
    """A public function, method or property. `owner` is its class, None for a function of a module."""

    name: str
    node: Function
    owner: ast.ClassDef | None
    module: ast.Module

    @property
    def is_property(self) -> bool:
        decorators = [ast.unparse(one) for one in self.node.decorator_list]
        return "property" in decorators or any(one.endswith(".setter") for one in decorators)

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.node) or ""

    @property
    def class_docstring(self) -> str:
        return "" if self.owner is None else ast.get_docstring(self.owner) or ""


def public_objects() -> dict[str, object]:
    """Every public class and function by its name: those of `dragoman`, of `errors`, `events` and `testing`."""
    found = {name: getattr(dragoman, name) for name in dragoman.__all__}
    for module in (errors, events, testing):
        found |= {f"{module.__name__}.{name}": value for name, value in vars(module).items() if _is_own(value, module)}
    for home, names in RETURNED.items():
        found |= {name: getattr(import_module(home), name) for name in names}
    return {name: value for name, value in found.items() if inspect.isclass(value) or inspect.isfunction(value)}


def members() -> list[str]:
    """Every public class and function, and `Class.member` for each public member of a class, sorted."""
    found: set[str] = set()
    for name, value in public_objects().items():
        found.add(name)
        if inspect.isclass(value):
            found |= {f"{name}.{member}" for node, _ in _bases(value) for member in _names(node)}
    return sorted(found)


def functions() -> Iterator[PublicFunction]:
    """Every public function, and of the public classes every public method, property and `__init__`, once each."""
    seen: set[int] = set()
    for name, value in public_objects().items():
        if inspect.isclass(value):
            for node, module in _bases(value):
                for one in node.body:
                    if isinstance(one, Function) and _is_public(one) and id(one) not in seen:
                        seen.add(id(one))
                        yield PublicFunction(f"{name}.{one.name}", one, node, module)
        elif inspect.isfunction(value):
            module = _tree(inspect.unwrap(value).__module__)
            found = [one for one in module.body if isinstance(one, Function) and one.name == name.rpartition(".")[2]]
            yield from (PublicFunction(name, one, None, module) for one in found)


_TREES: dict[str, ast.Module] = {}


def _tree(module: str) -> ast.Module:
    if module not in _TREES:
        _TREES[module] = ast.parse(Path(import_module(module).__file__ or "").read_text(encoding="utf-8"))
    return _TREES[module]


def _is_own(value: object, module: ModuleType) -> bool:
    is_code = inspect.isclass(value) or inspect.isfunction(value)
    return is_code and getattr(value, "__module__", "") == module.__name__ and not value.__name__.startswith("_")  # type: ignore[attr-defined]


def _bases(kind: type) -> Iterator[tuple[ast.ClassDef, ast.Module]]:
    """The source of a class and of its bases that are ours."""
    for base in kind.__mro__:
        if base.__module__.startswith("dragoman"):
            module = _tree(base.__module__)
            yield from (
                (n, module) for n in ast.walk(module) if isinstance(n, ast.ClassDef) and n.name == base.__name__
            )


def _is_public(node: Function) -> bool:
    return node.name == "__init__" or not node.name.startswith("_")


def _names(node: ast.ClassDef) -> Iterator[str]:
    """The public names of a class: of its body, and the attributes that `__init__` sets."""
    for one in node.body:
        if isinstance(one, Function):
            yield from (name for name in [one.name] if not name.startswith("_"))
            if one.name == "__init__":
                for inner in ast.walk(one):
                    if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                        is_self = isinstance(inner.value, ast.Name) and inner.value.id == "self"
                        yield from (name for name in [inner.attr] if is_self and not name.startswith("_"))
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and not one.target.id.startswith("_"):
            yield one.target.id
        elif isinstance(one, ast.Assign):
            yield from (t.id for t in one.targets if isinstance(t, ast.Name) and not t.id.startswith("_"))


if __name__ == "__main__":
    MEMBERS_FILE.write_text("\n".join(members()) + "\n", encoding="utf-8")
