"""The mistakes people make in one place of a function, turned round: other operators, bounds, names, constants.

A mutation replaces a few bytes of the source. `weight` says how far-fetched it is: the lower, the likelier.
"""

import ast
import difflib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dragoman.coder.models.offline.source import Function, Source

# More names than this in one function, and trying them all says nothing.
_NAMES: Final = 6

_OPERATORS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
# What is written instead of what, the likeliest first.
_INSTEAD: Final = {
    "+": ["-", "*"],
    "-": ["+", "*"],
    "*": ["+", "/", "**", "//"],
    "/": ["*", "//", "-"],
    "//": ["/", "%", "*"],
    "%": ["//", "/"],
    "**": ["*", "+"],
}
_COMPARED: Final[dict[type[ast.cmpop], tuple[str, list[str]]]] = {
    ast.Lt: ("<", ["<=", ">", ">="]),
    ast.LtE: ("<=", ["<", ">=", ">"]),
    ast.Gt: (">", [">=", "<", "<="]),
    ast.GtE: (">=", [">", "<=", "<"]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: ("not in", ["in"]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: ("is not", ["is"]),
}
_TWINS: Final = [
    *(("min", "max"), ("any", "all"), ("sum", "len"), ("upper", "lower"), ("append", "extend"), ("floor", "ceil")),
    *(("startswith", "endswith"), ("lstrip", "rstrip"), ("lstrip", "strip"), ("rstrip", "strip"), ("keys", "values")),
    *(("title", "capitalize"), ("sorted", "list"), ("int", "float"), ("int", "round"), ("isdigit", "isalpha")),
]
# What a function's name, or its docstring, says about its operator.
_HINTS: Final = {
    "+": r"add|sum|plus|total|concat|join|increment|increase|perimeter",
    "-": r"sub|minus|diff|less|decrement|decrease|discount|distance",
    "*": r"mul|times|product|area|volume|scale|double|triple|square|factorial",
    "/": r"div|ratio|average|mean|half|per|quotient|percent|rate",
    "%": r"mod|remainder|even|odd|leap|divisible",
    "**": r"pow|square|cube|exp",
}


class Mutation(NamedTuple):
    """These bytes, replaced by that; `what` is the kind of mistake."""

    start: int
    end: int
    new: str
    what: str
    weight: float
    line: int


def mutations(source: Source, function: Function, error: str = "") -> Iterator[Mutation]:
    """What may be wrong in a function. `error` is what the test said."""
    hint = f"{function.name} {ast.get_docstring(function) or ''}".lower()
    locals_of = _locals(function)
    yield from _missing_return(source, function, error)
    for node in _walk(function):
        match node:
            case ast.BinOp():
                yield from _operators(source, node, hint)
            case ast.AugAssign():
                yield from _augmented(source, node, hint)
            case ast.Compare(ops=[op], comparators=[right]):
                yield from _comparisons(source, node, op, right)
            case ast.BoolOp():
                yield from _logic(source, node)
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield _mutation(source, node, source.of(node.operand), "a sign too many", 2.0)
            case ast.Constant():
                yield from _constants(source, node)
            case ast.Name(ctx=ast.Load()):
                yield from _names(source, node, locals_of, error)
            case ast.Attribute(ctx=ast.Load()):
                yield from _attributes(source, node, function)
            case ast.Call():
                yield from _calls(source, node)
            case ast.Return(value=ast.expr() as value):
                yield from _returns(source, node, value, function)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield _mutation(source, test, f"not ({source.of(test)})", "the opposite condition", 3.0)
            case _:
                pass


def _walk(function: Function) -> Iterator[ast.AST]:
    """The nodes that can be wrong: no docstrings, no annotations, no decorators."""
    waiting: deque[ast.AST] = deque([*function.body, *function.args.defaults])
    while waiting:
        node = waiting.popleft()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.JoinedStr):
            continue  # before Python 3.12 the nodes in it do not know where they are
        yield node
        if isinstance(node, ast.AnnAssign):
            waiting += [node.value] if node.value is not None else []
        else:
            waiting += ast.iter_child_nodes(node)


def _mutation(source: Source, node: ast.expr | ast.stmt, new: str, what: str, weight: float) -> Mutation:
    return Mutation(*source.span(node), new, what, weight, node.lineno)


def _operators(source: Source, node: ast.BinOp, hint: str) -> Iterator[Mutation]:
    sign = _OPERATORS.get(type(node.op))
    place = None if sign is None else _between(source, node.left, node.right, re.escape(sign))
    if sign is None or place is None:
        return
    start, end = source.span(node)
    is_by_one = isinstance(node.right, ast.Constant) and node.right.value in (0, 1)
    for rank, other in enumerate(_INSTEAD[sign]):
        # `n * 1` is never meant.
        odd = 2.0 if is_by_one and other in ("*", "/", "//", "**") else 0.0
        yield Mutation(*place, other, "the operator", 1.0 + rank * 0.4 + odd + _liking(other, hint), node.lineno)
    if is_by_one and sign in ("+", "-"):
        yield Mutation(*_bracketed(source, start, end, node.left), source.of(node.left), "off by one", 1.1, node.lineno)
    if sign in ("-", "/", "//", "%", "**"):
        left, right = source.cut(start, place[0]).strip(), source.cut(place[1], end).strip()
        yield Mutation(start, end, f"{right} {sign} {left}", "the order of the operands", 1.3, node.lineno)


def _bracketed(source: Source, start: int, end: int, kept: ast.expr) -> tuple[int, int]:
    """With the brackets around it, where what is kept needs none and they are not those of a call."""
    around = source.cut(max(start - 2, 0), start), source.cut(end, end + 1)
    is_simple = isinstance(kept, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
    if is_simple and around[1] == ")" and re.fullmatch(r"[^\w)\]]?\(", around[0]):
        return start - 1, end + 1
    return start, end


def _liking(sign: str, hint: str) -> float:
    return -0.5 if re.search(_HINTS.get(sign, r"$^"), hint) else 0.0


def _augmented(source: Source, node: ast.AugAssign, hint: str) -> Iterator[Mutation]:
    sign = _OPERATORS.get(type(node.op))
    place = None if sign is None else _between(source, node.target, node.value, re.escape(sign) + "=")
    if sign is None or place is None:
        return
    for rank, other in enumerate([*_INSTEAD[sign], ""]):
        yield Mutation(*place, f"{other}=", "the operator", 1.0 + rank * 0.4 + _liking(other, hint), node.lineno)


def _comparisons(source: Source, node: ast.Compare, op: ast.cmpop, right: ast.expr) -> Iterator[Mutation]:
    sign, others = _COMPARED[type(op)]
    place = _between(source, node.left, right, r"\s+".join(map(re.escape, sign.split())))
    for rank, other in enumerate(others if place is not None else []):
        assert place is not None
        yield Mutation(*place, other, "the comparison", 1.0 + rank * 0.3, node.lineno)


def _logic(source: Source, node: ast.BoolOp) -> Iterator[Mutation]:
    sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for left, right in zip(node.values, node.values[1:], strict=False):
        place = _between(source, left, right, rf"\b{sign}\b")
        if place is not None:
            yield Mutation(*place, other, f"`{sign}` for `{other}`", 1.2, node.lineno)


def _constants(source: Source, node: ast.Constant) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, bool):
        yield _mutation(source, node, str(not value), "the opposite value", 1.4)
    elif isinstance(value, int):
        for rank, other in enumerate((value - 1, value + 1)):
            if other >= 0:
                yield _mutation(source, node, str(other), "off by one", 1.8 + rank * 0.1)
        if value == 0:
            yield _mutation(source, node, "-1", "off by one", 2.2)


def _names(source: Source, node: ast.Name, known: list[str], error: str) -> Iterator[Mutation]:
    missing = re.search(r"NameError: name '(\w+)' is not defined", error)
    if missing and missing[1] == node.id:
        for other in difflib.get_close_matches(node.id, known, _NAMES, 0.5) or known[:_NAMES]:
            yield _mutation(source, node, other, "a name that does not exist", 0.2)
        return
    if node.id in known:
        for other in known[:_NAMES]:
            if other not in (node.id, "self", "cls"):
                yield _mutation(source, node, other, "the wrong name", 2.0)


def _attributes(source: Source, node: ast.Attribute, function: Function) -> Iterator[Mutation]:
    end = source.span(node)[1]
    place = (end - len(node.attr.encode()), end)
    for other in _twins(node.attr):
        yield Mutation(*place, other, "the wrong method", 1.5, node.lineno)
    if isinstance(node.value, ast.Name) and node.value.id == "self":
        fields = {each.attr for each in ast.walk(function) if isinstance(each, ast.Attribute)}
        for other in sorted(fields - {node.attr})[:_NAMES]:
            yield Mutation(*place, other, "the wrong attribute", 2.1, node.lineno)


def _calls(source: Source, node: ast.Call) -> Iterator[Mutation]:
    if isinstance(node.func, ast.Name):
        for other in _twins(node.func.id):
            yield _mutation(source, node.func, other, "the wrong function", 1.5)
        if node.func.id == "range" and node.args:
            last = node.args[0] if len(node.args) == 1 else node.args[1]
            for step, rank in (("+ 1", 0.0), ("- 1", 0.2)):
                yield _mutation(source, last, _stepped(source.of(last), step), "off by one", 1.2 + rank)
            if len(node.args) == 1:
                yield _mutation(source, last, f"1, {source.of(last)}", "off by one", 1.9)
                yield _mutation(source, last, f"1, {source.of(last)} + 1", "off by one", 1.8)
    if len(node.args) == 2 and not any(isinstance(each, ast.Starred) for each in node.args):
        (start, left), (right, end) = source.span(node.args[0]), source.span(node.args[1])
        swapped = source.of(node.args[1]) + source.cut(left, right) + source.of(node.args[0])
        yield Mutation(start, end, swapped, "the order of the arguments", 2.2, node.lineno)


def _returns(source: Source, node: ast.Return, value: ast.expr, function: Function) -> Iterator[Mutation]:
    for loop in ast.walk(function):
        if isinstance(loop, ast.For | ast.While) and loop.body[-1] is node:
            start, end = source.line_span(node)
            text = source.cut(start, end)
            dedented = " " * loop.col_offset + text.lstrip()
            yield Mutation(start, end, dedented, "a return inside the loop", 1.1, node.lineno)
    if not isinstance(value, ast.Constant):
        yield _mutation(source, value, _stepped(source.of(value), "+ 1"), "off by one", 2.6)
        yield _mutation(source, value, _stepped(source.of(value), "- 1"), "off by one", 2.6)
        yield _mutation(source, value, f"not ({source.of(value)})", "the opposite value", 2.8)


def _missing_return(source: Source, function: Function, error: str) -> Iterator[Mutation]:
    weight = 0.8 if "None" in error else 2.4
    if any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function)):
        return
    last = function.body[-1]
    start, end = source.line_span(last)
    if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant):
        yield Mutation(source.span(last)[0], source.span(last)[0], "return ", "a missing return", weight, last.lineno)
    assigned = [name for name in reversed(_locals(function)) if name not in _arguments(function)]
    text = source.cut(start, end)
    ending = "" if text.endswith("\n") else "\n"
    for rank, name in enumerate(assigned[:3]):
        added = f"{text}{ending}{' ' * last.col_offset}return {name}\n"
        yield Mutation(start, end, added, "a missing return", weight + rank * 0.3, function.lineno)


def _stepped(text: str, step: str) -> str:
    """Return the expression with a step added; `n - 1` plus one becomes `n`, not `n - 1 + 1`."""
    opposite = {"+ 1": "- 1", "- 1": "+ 1"}[step]
    return text.removesuffix(opposite).rstrip() if text.endswith(f" {opposite}") else f"{text} {step}"


def _twins(name: str) -> Iterable[str]:
    return [pair[1 - pair.index(name)] for pair in _TWINS if name in pair]


def _between(source: Source, left: ast.expr, right: ast.expr, pattern: str) -> tuple[int, int] | None:
    """Where a sign stands between two nodes, in bytes; what is between them is signs, brackets and spaces."""
    start, end = source.span(left)[1], source.span(right)[0]
    found = re.search(pattern, source.cut(start, end))
    if found is None:
        return None
    between = source.cut(start, end)
    return start + len(between[: found.start()].encode()), start + len(between[: found.end()].encode())


def _arguments(function: Function) -> list[str]:
    given = function.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _locals(function: Function) -> list[str]:
    """Arguments and assigned names, in order."""
    stored = [node.id for node in _walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return list(dict.fromkeys([*_arguments(function), *stored]))
