"""What may be done with plain values, each thing bounded: an operation that could make something huge is not done."""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from dragoman.coder.models.offline.paper.values import Approx, CannotTell, Raised

# No example in a test needs more; past it nothing is worked out.
SIZE: Final = 10_000
NUMBER: Final = 10**18
_NESTING: Final = 5
SIZED: Final = (str, list, tuple, dict, set)
_FORMAT: Final = re.compile(r"[<>^+]?0?\d{0,2}[,_]?(?:\.\d)?[dfsxeg%]?")

BUILTINS: Final[dict[str, Callable[..., Any]]] = {
    each.__name__: each
    for each in (
        *(len, sum, min, max, abs, range, sorted, list, tuple, set, dict, str, int, float, bool, round, any, all),
        *(enumerate, zip, divmod, reversed),
    )
}
_METHODS: Final[dict[type, set[str]]] = {
    str: {
        *("upper", "lower", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip", "split", "splitlines"),
        *("join", "replace", "startswith", "endswith", "count", "find", "index"),
        *("isdigit", "isalpha", "isalnum", "isupper", "islower", "isspace"),
    },
    list: {"append", "extend", "pop", "insert", "remove", "index", "count", "sort", "reverse", "copy"},
    dict: {"get", "keys", "values", "items", "pop", "update", "copy"},
    set: {"add", "discard", "remove", "union", "intersection"},
}
_OPERATORS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}


# What only computes: a mistake in it does no damage.
METHODS: Final = frozenset(name for names in _METHODS.values() for name in names) | {"format", "encode", "decode"}


def safely(work: Callable[[], Any]) -> Any:
    """An operation on plain values; what it raises is what the code would raise."""
    try:
        return work()
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise Raised(type(error).__name__) from None


def is_plain(value: object, depth: int = 0) -> bool:
    """Numbers, texts, None, and collections of them."""
    if isinstance(value, list | tuple | set):
        return depth < _NESTING and all(is_plain(each, depth + 1) for each in value)
    if isinstance(value, dict):
        return depth < _NESTING and all(is_plain(each, depth + 1) for each in [*value, *value.values()])
    return value is None or isinstance(value, bool | int | float | str)


def checked(value: Any) -> Any:
    """The value, if it has a size one can work with."""
    if isinstance(value, SIZED) and len(value) > SIZE:
        raise CannotTell
    if isinstance(value, int) and abs(value) > NUMBER:
        raise CannotTell
    return value


def truth(value: Any) -> bool:
    """Whether a condition holds."""
    return bool(_plain(value))


def each(value: Any) -> list[Any]:
    """The items of a collection."""
    if value is None or isinstance(value, int | float):
        raise Raised("TypeError")
    if not isinstance(value, SIZED):
        raise CannotTell
    return list(value)


def operate(op: ast.operator, left: Any, right: Any) -> Any:
    """An arithmetic operation."""
    _plain([left, right])
    if type(op) not in _OPERATORS or (isinstance(op, ast.Mod) and isinstance(left, str)):
        raise CannotTell
    is_sized = isinstance(left, SIZED) or isinstance(right, SIZED)
    if isinstance(op, ast.Mult) and is_sized and _weight(left) * _weight(right) > SIZE:
        raise CannotTell
    if isinstance(op, ast.Pow) and not (_weight(left) <= SIZE and _weight(right) <= 16):
        raise CannotTell
    return safely(lambda: _OPERATORS[type(op)](left, right))


def negative(value: Any) -> Any:
    """The negative of a number."""
    return safely(lambda: operator.neg(_plain(value)))


def compare(op: ast.cmpop, left: Any, right: Any) -> bool:
    """A comparison."""
    for one, other in ((left, right), (right, left)):
        if isinstance(other, Approx) and isinstance(op, ast.Eq):
            return isinstance(one, int | float) and math.isclose(one, other.value, rel_tol=1e-6, abs_tol=1e-7)
    if isinstance(op, ast.Is | ast.IsNot):
        if not any(value is None or isinstance(value, bool) for value in (left, right)):
            raise CannotTell
        return (left is right) == isinstance(op, ast.Is)
    _plain([left, right])
    return bool(safely(lambda: _COMPARISONS[type(op)](left, right)))


def builtin(function: Callable[..., Any], given: list[Any], named: dict[str, Any]) -> Any:
    """A call of something that every Python has."""
    _plain(given)
    if named.keys() - {"reverse", "default", "start"}:
        raise CannotTell
    if function is range:
        numbers = safely(lambda: range(*given))
        if len(numbers) > SIZE:
            raise CannotTell
        return list(numbers)
    result = safely(lambda: function(*given, **named))
    return list(result) if isinstance(result, Iterator) else result


def method_of(owner: Any, name: str, given: list[Any], named: dict[str, Any]) -> Any:
    """A call of a method of a text or a collection."""
    _plain(given)
    if name not in _METHODS.get(type(owner), ()) or named:
        raise CannotTell
    if name in ("replace", "join") and _weight(owner) * _weight(given) > SIZE * 10:
        raise CannotTell
    result = safely(lambda: getattr(owner, name)(*given))
    return list(result) if name in ("keys", "values", "items") else result


def formatted(value: Any, spec: str) -> str:
    """A value in a formatted text."""
    if _FORMAT.fullmatch(spec) is None:
        raise CannotTell
    return str(safely(lambda: format(_plain(value), spec)))


def foreign(name: str, given: list[Any]) -> Any:
    """A call of the few things of other modules that tests are full of."""
    if len(given) != 1 or not isinstance(given[0], int | float):
        raise CannotTell
    if name.rpartition(".")[2] == "approx":
        return Approx(given[0])
    if name in ("math.sqrt", "math.floor", "math.ceil"):
        return safely(lambda: getattr(math, name.rpartition(".")[2])(given[0]))
    raise CannotTell


def _plain(value: Any) -> Any:
    if not is_plain(value):
        raise CannotTell
    return value


def _weight(value: Any) -> int:
    """How much a value can make of another one."""
    if isinstance(value, list | tuple):
        return sum(_weight(item) if isinstance(item, SIZED) else 1 for item in value) + 1
    if isinstance(value, str | dict | set):
        return len(value) + 1
    return int(abs(value)) + 1 if isinstance(value, int | float) and abs(value) < NUMBER else NUMBER
