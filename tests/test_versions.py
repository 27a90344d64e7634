"""Nothing above the dialects knows which version of the protocol is spoken: no code there compares a version's number.

What depends on a version is a property of the dialect or of the link (`Link.replies_to_prompt_at_turn_end`), or a
function of `dialects` (`spoken_version`, `nearest_version`). Read from the syntax: a comparison, a `min`, a `max`, a
`case` or an `in` that has a name with "version" or "protocol" in it and a number 1 or 2, and a tuple of such numbers.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "dragoman"
ABOVE = ("link", "bridge", "client", "agent", "store", "coder", "gateway", "cli", "testing")
NUMBERS = (1, 2)
# What a command line offers has to be numbers, and is read before any dialect is imported.
ALLOWED = {"src/dragoman/cli/common_options.py"}


def test_no_code_above_the_dialects_compares_a_version() -> None:
    found = [
        f"src/dragoman/{file.relative_to(PACKAGE)}:{line}: {text}"
        for part in ABOVE
        for file in sorted((PACKAGE / part).rglob("*.py"))
        for line, text in comparisons(file.read_text())
    ]
    assert [one for one in found if one.partition(":")[0] not in ALLOWED] == []
    assert {one.partition(":")[0] for one in found} == ALLOWED, "an exception that is no longer needed"


@pytest.mark.parametrize(
    "source",
    [
        "if link.version != 1: pass",
        "if 2 == self.protocol_version: pass",
        "x = version > 1",
        "if version in (1, 2): pass",
        "link.version = min(asked.version, 2)",
        "match link.version:\n    case 1:\n        pass",
        "Agents(open, versions=(1, 2))",
        "Agents(open, versions=(1, 2) if protocol is None else (protocol,))",
        "versions: tuple[int, ...] = (1, 2)",
        "connection.version = 1",
        "parser.add_argument('--protocol', choices=(1, 2))",
        "by_version = {1: a, 2: b}[link.version]",
    ],
)
def test_a_comparison_with_a_version_is_found(source: str) -> None:
    assert [line for line, _ in comparisons(source)] == [1]


@pytest.mark.parametrize(
    "source",
    [
        "if not link.version: pass",
        "self.version = 0",
        "if address.version == 4: pass",
        "if http_version != '1.1': pass",
        "if version in agent.versions: pass",
        "if count == 1: pass",
        "self._version += 1",
    ],
)
def test_what_is_no_comparison_with_a_version_of_the_protocol_passes(source: str) -> None:
    assert list(comparisons(source)) == []


def comparisons(source: str) -> Iterator[tuple[int, str]]:
    """Every statement of the source that compares a version's number with 1 or 2, or names it, with its line."""
    seen: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.expr | ast.stmt) and node.lineno not in seen and _compares(node):
            seen.add(node.lineno)
            yield node.lineno, ast.unparse(node).split("\n")[0]


def _compares(node: ast.AST) -> bool:
    match node:
        case ast.Compare():
            parts = [node.left, *node.comparators]
            return any(map(_is_version, parts)) and any(map(_is_number, parts))
        case ast.Call(func=ast.Name(id="min" | "max"), args=args):
            return any(map(_is_version, args)) and any(map(_is_number, args))
        case ast.Call(keywords=keywords, args=args):
            about = any(_names(one) for one in args) or any(_says_version(one.arg or "") for one in keywords)
            return about and any(_is_number(one.value) for one in keywords)
        case ast.Match(subject=subject, cases=cases):
            numbers = [one.pattern.value for one in cases if isinstance(one.pattern, ast.MatchValue)]
            return _is_version(subject) and any(map(_is_number, numbers))
        case ast.Assign(targets=[target], value=value):
            return _is_version(target) and _is_number(value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _is_version(target) and _is_number(value)
        case ast.Subscript(value=ast.Dict(keys=keys), slice=index):
            return _is_version(index) and any(one is not None and _is_number(one) for one in keys)
        case _:
            return False


def _is_version(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _says_version(name)
        case _:
            return False


def _names(node: ast.AST) -> bool:
    """Whether this is a string that names a version, as an option of a command line does."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _says_version(node.value)


def _says_version(name: str) -> bool:
    return any(word in name.lower() for word in ("version", "protocol"))


def _is_number(node: ast.AST) -> bool:
    """Whether this is the number of a version, or some of them."""
    match node:
        case ast.Constant(value=int() as value):
            return value in NUMBERS and not isinstance(value, bool)
        case ast.IfExp(body=body, orelse=other):
            return _is_number(body) or _is_number(other)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return bool(elements) and all(map(_is_number, elements))
        case _:
            return False
