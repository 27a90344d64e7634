"""Working out on paper whether a small test would pass: a tree is followed step by step, with plain values only.

Nothing is compiled, imported or run: what is not a number, a text or a collection, or an operation that `plain` knows,
ends in `CannotTell`. Steps, sizes and depth are bounded. The answer is an opinion; the real test run decides.
"""

import ast
import operator
from collections.abc import Mapping
from typing import Any, Final

from dragoman.coder.models.offline.paper import plain
from dragoman.coder.models.offline.paper.expressions import Expressions, Names
from dragoman.coder.models.offline.paper.values import (
    Approx,
    CannotTell,
    Class,
    Func,
    Raised,
    Space,
    Thing,
    Unmet,
    find_method,
    last_name,
)

# Enough for the examples people write into tests; past it the real run is quicker.
STEPS: Final = 2_000
_DEPTH: Final = 30


class _Return(Exception):
    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Reckoner(Expressions):
    """One run on paper, with so many steps."""

    def __init__(self, steps: int = STEPS) -> None:
        super().__init__(steps)
        self._depth = 0

    def test(self, test: Func, owner: Class | None, given: Mapping[str, object]) -> None:
        """Follow a test function; `Unmet` or `Raised` if it would not pass."""
        bound = None
        if owner is not None:
            bound = Thing(owner)
            set_up = find_method(owner, "setUp") or find_method(owner, "setup_method")
            if set_up is not None:
                self.call(set_up._replace(bound=bound), [], {})
        wanted = [each.arg for each in test.node.args.args if each.arg not in ("self", *given)]
        fixtures = {name: self._fixture(name, test.space) for name in wanted}
        self.call(test._replace(bound=bound), [], {**given, **fixtures})

    def _fixture(self, name: str, at: Space) -> Any:
        """What a fixture of the test's own file gives, if it needs no other."""
        found = at.get(name)
        if not isinstance(found, Func):
            raise CannotTell
        for mark in found.node.decorator_list:
            if last_name(mark.func if isinstance(mark, ast.Call) else mark) != "fixture":
                raise CannotTell
        return self.call(found, [], {})

    def call(self, function: Func, given: list[Any], named: Names) -> Any:
        """The value a call would give."""
        self._depth += 1
        if self._depth > _DEPTH or isinstance(function.node, ast.AsyncFunctionDef):
            raise CannotTell
        try:
            names = self._bind(function, given, named)
            self._block(function.node.body, names, function.space)
        except _Return as returned:
            return returned.value
        finally:
            self._depth -= 1
        return None

    def _bind(self, function: Func, given: list[Any], named: Names) -> Names:
        wanted = function.node.args
        if wanted.vararg or wanted.kwarg or wanted.posonlyargs:
            raise CannotTell
        names = [each.arg for each in wanted.args]
        values = [function.bound, *given] if function.bound is not None else given
        bound = dict(zip(names, values, strict=False))
        if len(values) > len(names) or named.keys() & bound.keys():
            raise Raised("TypeError")
        bound |= named
        defaults = [*zip(names[::-1], wanted.defaults[::-1], strict=False)]
        defaults += [(a.arg, d) for a, d in zip(wanted.kwonlyargs, wanted.kw_defaults, strict=False) if d is not None]
        for name, default in defaults:
            if name not in bound:
                bound[name] = self.value(default, {}, function.space)
        expected = {*names, *(each.arg for each in wanted.kwonlyargs)}
        if bound.keys() - expected:
            raise Raised("TypeError")
        if expected - bound.keys():
            raise CannotTell  # a fixture, or a mistake; the real run knows
        return bound

    # -- statements ----------------------------------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], names: Names, at: Space) -> None:
        for statement in body:
            self._statement(statement, names, at)

    def _statement(self, node: ast.stmt, names: Names, at: Space) -> None:
        self.step()
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=value):
                self.value(value, names, at)
            case ast.Return(value=value):
                raise _Return(None if value is None else self.value(value, names, at))
            case ast.Assign(targets=targets, value=value):
                result = self.value(value, names, at)
                for target in targets:
                    self.assign(target, result, names, at)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.value(value, names, at), names, at)
            case ast.AugAssign(target=ast.Name() | ast.Attribute() | ast.Subscript() as target, op=op, value=value):
                before = self.value(target, names, at)
                self.assign(target, plain.operate(op, before, self.value(value, names, at)), names, at)
            case ast.If(test=test, body=body, orelse=orelse):
                self._block(body if plain.truth(self.value(test, names, at)) else orelse, names, at)
            case ast.For() | ast.While():
                self._loop(node, names, at)
            case ast.Assert(test=test):
                self._assert(test, names, at)
            case ast.Raise(exc=ast.expr() as exc):
                raise Raised(last_name(exc.func if isinstance(exc, ast.Call) else exc))
            case ast.With(items=[item], body=body):
                self._with(item, body, names, at)
            case ast.Try():
                self._try(node, names, at)
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case _:
                raise CannotTell

    def _loop(self, node: ast.For | ast.While, names: Names, at: Space) -> None:
        try:
            if isinstance(node, ast.For):
                for item in plain.each(self.value(node.iter, names, at)):
                    self.assign(node.target, item, names, at)
                    self._pass(node.body, names, at)
            else:
                while plain.truth(self.value(node.test, names, at)):
                    self._pass(node.body, names, at)
        except _Break:
            return
        self._block(node.orelse, names, at)

    def _pass(self, body: list[ast.stmt], names: Names, at: Space) -> None:
        self.step()
        try:
            self._block(body, names, at)
        except _Continue:
            pass

    def _with(self, item: ast.withitem, body: list[ast.stmt], names: Names, at: Space) -> None:
        """`pytest.raises(X)`, `self.assertRaises(X)` and `self.subTest()`; nothing else is known to be harmless."""
        call = item.context_expr
        if not isinstance(call, ast.Call) or item.optional_vars is not None:
            raise CannotTell
        if last_name(call.func) == "subTest":
            self._block(body, names, at)
            return
        if last_name(call.func) not in ("raises", "assertRaises") or not call.args or call.keywords:
            raise CannotTell
        try:
            self._block(body, names, at)
        except Raised as raised:
            if raised.kind == last_name(call.args[0]):
                return
            raise CannotTell from None  # it may be a subclass
        raise Unmet

    def _try(self, node: ast.Try, names: Names, at: Space) -> None:
        try:
            self._block(node.body, names, at)
        except Raised as raised:
            for handler in node.handlers:
                caught = handler.type
                kinds = caught.elts if isinstance(caught, ast.Tuple) else [] if caught is None else [caught]
                if caught is None or {raised.kind, "Exception"} & {last_name(kind) for kind in kinds}:
                    if handler.name:
                        raise CannotTell from None
                    self._block(handler.body, names, at)
                    break
            else:
                raise CannotTell from None
        else:
            self._block(node.orelse, names, at)
        self._block(node.finalbody, names, at)

    def assign(self, target: ast.expr, value: Any, names: Names, at: Space) -> None:
        match target:
            case ast.Name(id=name):
                names[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = list(plain.each(value))
                if len(values) != len(targets):
                    raise Raised("ValueError")
                for each, item in zip(targets, values, strict=True):
                    self.assign(each, item, names, at)
            case ast.Attribute(value=owner, attr=name):
                thing = self.value(owner, names, at)
                if not isinstance(thing, Thing):
                    raise CannotTell
                thing.fields[name] = value
            case ast.Subscript(value=owner, slice=index):
                holder, key = self.value(owner, names, at), self.value(index, names, at)
                if not isinstance(holder, list | dict):
                    raise CannotTell
                plain.safely(lambda: operator.setitem(holder, key, value))
            case _:
                raise CannotTell

    # -- assertions ----------------------------------------------------------------------------------------------------

    def _assert(self, test: ast.expr, names: Names, at: Space) -> None:
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = self.value(test.left, names, at), self.value(test.comparators[0], names, at)
            self._demand(plain.compare(test.ops[0], left, right), left, right)
        else:
            self._demand(plain.truth(self.value(test, names, at)))

    def _demand(self, holds: bool, actual: object = None, expected: object = None) -> None:
        if not holds:
            raise Unmet(actual, expected.value if isinstance(expected, Approx) else expected)

    def assertion(self, name: str, given: list[Any]) -> None:
        """`self.assertSomething(...)`."""
        match name, given:
            case (("assertEqual" | "assertListEqual" | "assertDictEqual" | "assertEquals"), [one, other, *_]):
                self._demand(plain.compare(ast.Eq(), one, other), one, other)
            case "assertNotEqual", [one, other, *_]:
                self._demand(not plain.compare(ast.Eq(), one, other))
            case "assertAlmostEqual", [one, other]:
                self._demand(plain.compare(ast.Eq(), one, Approx(other)), one, other)
            case "assertTrue", [one, *_]:
                self._demand(plain.truth(one))
            case "assertFalse", [one, *_]:
                self._demand(not plain.truth(one))
            case "assertIsNone", [one, *_]:
                self._demand(one is None)
            case "assertIsNotNone", [one, *_]:
                self._demand(one is not None)
            case "assertIn", [one, other, *_]:
                self._demand(plain.compare(ast.In(), one, other))
            case "assertGreater", [one, other, *_]:
                self._demand(plain.compare(ast.Gt(), one, other))
            case "assertLess", [one, other, *_]:
                self._demand(plain.compare(ast.Lt(), one, other))
            case _:
                raise CannotTell
