"""The expressions of a run on paper."""

import ast
import copy
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from dragoman.coder.models.offline.paper import plain
from dragoman.coder.models.offline.paper.values import (
    CannotTell,
    Class,
    Foreign,
    Func,
    Raised,
    Space,
    Thing,
    find_method,
    last_name,
)

Names = dict[str, Any]


class Expressions:
    """What expressions come to, as long as there are steps left."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    @abstractmethod
    def call(self, function: Func, given: list[Any], keywords: Names) -> Any:
        """The value a call would give."""

    @abstractmethod
    def assertion(self, name: str, given: list[Any]) -> None:
        """A call of `self.assertSomething`."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Any, names: Names, at: Space) -> None:
        """Give a value to a target."""

    def value(self, node: ast.expr, names: Names, at: Space) -> Any:
        self.step()
        return plain.checked(self._evaluated(node, names, at))

    def _evaluated(self, node: ast.expr, names: Names, at: Space) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._name(name, names, at)
            case ast.BinOp(left=left, op=op, right=right):
                return plain.operate(op, self.value(left, names, at), self.value(right, names, at))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not plain.truth(self.value(operand, names, at))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return plain.negative(self.value(operand, names, at))
            case ast.BoolOp(op=op, values=values):
                result = None
                for each in values:
                    result = self.value(each, names, at)
                    if plain.truth(result) == isinstance(op, ast.Or):
                        break
                return result
            case ast.Compare(left=first, ops=ops, comparators=others):
                left = self.value(first, names, at)
                for relation, other in zip(ops, others, strict=True):
                    right = self.value(other, names, at)
                    if not plain.compare(relation, left, right):
                        return False
                    left = right
                return True
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if plain.truth(self.value(test, names, at)) else orelse, names, at)
            case ast.List(elts=elts):
                return [self.value(each, names, at) for each in elts]
            case ast.Tuple(elts=elts):
                return tuple(self.value(each, names, at) for each in elts)
            case ast.Set(elts=elts):
                members = [self.value(each, names, at) for each in elts]
                return plain.safely(lambda: set(members))
            case ast.Dict(keys=keys, values=values):
                pairs = [(self._key(k, names, at), self.value(v, names, at)) for k, v in zip(keys, values, strict=True)]
                return plain.safely(lambda: dict(pairs))
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                found = list(self._comprehended(node.elt, node.generators, dict(names), at))
                return set(found) if isinstance(node, ast.SetComp) else found
            case ast.JoinedStr(values=values):
                return "".join(self._formatted(each, names, at) for each in values)
            case ast.Subscript(value=owner, slice=index):
                holder = self.value(owner, names, at)
                if not isinstance(holder, str | list | tuple | dict):
                    raise CannotTell
                key = self._slice(index, names, at) if isinstance(index, ast.Slice) else self.value(index, names, at)
                return plain.safely(lambda: holder[key])
            case ast.Attribute(value=owner, attr=name):
                return self._attribute(self.value(owner, names, at), name)
            case ast.Call():
                return self._called(node, names, at)
            case _:
                raise CannotTell

    def _name(self, name: str, names: Names, at: Space) -> Any:
        if name in names:
            return names[name]
        if name in at:
            value = at[name]
            return copy.deepcopy(value) if type(value) in (list, dict, set) else value
        if name in plain.BUILTINS:
            return plain.BUILTINS[name]
        if name in ("pytest", "math"):
            return Foreign(name)
        raise Raised("NameError")

    def _key(self, node: ast.expr | None, names: Names, at: Space) -> Any:
        if node is None:
            raise CannotTell
        return self.value(node, names, at)

    def _attribute(self, owner: Any, name: str) -> Any:
        if isinstance(owner, Thing):
            if name in owner.fields:
                return owner.fields[name]
            method = find_method(owner.cls, name)
            if method is None:
                raise CannotTell
            is_property = any(last_name(each) == "property" for each in method.node.decorator_list)
            if method.node.decorator_list and not is_property:
                raise CannotTell
            bound = method._replace(bound=owner)
            return self.call(bound, [], {}) if is_property else bound
        if isinstance(owner, Space) and name in owner:
            return owner[name]
        if isinstance(owner, Foreign):
            return Foreign(f"{owner.name}.{name}")
        raise CannotTell

    def _called(self, node: ast.Call, names: Names, at: Space) -> Any:
        if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
            raise CannotTell
        given = [self.value(each, names, at) for each in node.args]
        named = {str(each.arg): self.value(each.value, names, at) for each in node.keywords}
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, names, at)
            name = node.func.attr
            if isinstance(owner, Thing) and name.startswith("assert") and find_method(owner.cls, name) is None:
                return self.assertion(name, given)
            if type(owner) in (str, list, dict, set):
                return plain.method_of(owner, name, given, named)
            function = self._attribute(owner, name)
        else:
            function = self.value(node.func, names, at)
        return self._apply(function, given, named)

    def _apply(self, function: Any, given: list[Any], named: Names) -> Any:
        if isinstance(function, Func):
            if function.node.decorator_list:
                raise CannotTell
            return self.call(function, given, named)
        if isinstance(function, Class):
            thing = Thing(function)
            made = find_method(function, "__init__")
            if made is None and (given or named or function.node.decorator_list):
                raise CannotTell
            if made is not None:
                self.call(made._replace(bound=thing), given, named)
            return thing
        if isinstance(function, Foreign):
            return plain.foreign(function.name, given)
        if callable(function) and function in plain.BUILTINS.values():
            return plain.builtin(function, given, named)
        raise CannotTell

    def _formatted(self, node: ast.expr, names: Names, at: Space) -> str:
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.FormattedValue(value=value, conversion=-1, format_spec=spec):
                wanted = "" if spec is None else self.value(spec, names, at)
                return plain.formatted(self.value(value, names, at), wanted)
            case _:
                raise CannotTell

    def _comprehended(
        self, element: ast.expr, generators: list[ast.comprehension], names: Names, at: Space
    ) -> Iterator[Any]:
        if not generators:
            yield self.value(element, names, at)
            return
        first = generators[0]
        for item in plain.each(self.value(first.iter, names, at)):
            self.assign(first.target, item, names, at)
            if all(plain.truth(self.value(test, names, at)) for test in first.ifs):
                yield from self._comprehended(element, generators[1:], names, at)

    def _slice(self, node: ast.Slice, names: Names, at: Space) -> slice:
        parts = [None if part is None else self.value(part, names, at) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)

    def step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise CannotTell
