"""What is in a file, in short: Python by its syntax tree, other text by its headings and definitions."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from dragoman.coder.models.offline.source import Function, parsed

# An outline of more is no outline.
OUTLINE_LINES: Final = 80
_DEFINITIONS: Final = re.compile(
    r"^\s*(?:export\s+|pub(?:\([^)]*\))?\s+|public\s+|private\s+|protected\s+|static\s+|async\s+|default\s+|abstract\s+)*"
    r"(?:function|class|interface|type|enum|struct|trait|impl|fn|func|def|module|namespace|const)\s+[^\n{;=]+"
)
_HEADING: Final = re.compile(r"^#{1,6}\s+\S.*$")
_SECTION: Final = re.compile(r"^\s*\[+[^\]\n]+\]+\s*$|^[A-Za-z_][\w.-]*\s*:\s*(?:$|\S)")
_TARGET: Final = re.compile(r"^[A-Za-z][\w./-]*\s*:(?!=)")


def outline(path: str, text: str) -> str:
    """An outline, as a Markdown list, below a sentence about the file."""
    lines = text.splitlines()
    count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    tree = parsed(text) if path.endswith((".py", ".pyi")) else None
    if tree is None:
        found = [f"- line {number}: `{line}`" for number, line in _landmarks(path, lines)]
        head = f"`{path}` has {count}."
    else:
        found = list(_python(tree))
        about = _first_sentence(ast.get_docstring(tree))
        head = f"`{path}` is a Python module of {count}." + (f" It says: {about}" if about else "")
    left = len(found) - OUTLINE_LINES
    more = [f"- … and {left} more"] if left > 0 else []
    empty = [] if found or not lines else [f"It begins with: `{lines[0].strip()[:200]}`"]
    return "\n".join([head, "", *found[:OUTLINE_LINES], *more, *empty]).rstrip() + "\n"


def describe(function: "Function | ast.ClassDef") -> str:
    """One function or class, in sentences."""
    about = _first_sentence(ast.get_docstring(function))
    if isinstance(function, ast.ClassDef):
        said = [f"`{function.name}` is a class with {_counted(len(_functions(function)), 'method')}."]
        said += [about] if about else []
        return " ".join(said) + "\n" + "\n".join(_python(function, depth=0)) + "\n"
    names = [argument.arg for argument in _arguments(function)]
    said = [f"`{function.name}` takes {_listed(names) if names else 'nothing'}."]
    returned = [ast.unparse(node.value) for node in _own(function) if isinstance(node, ast.Return) and node.value]
    raised = [ast.unparse(node.exc) for node in _own(function) if isinstance(node, ast.Raise) and node.exc]
    called = [ast.unparse(node.func) for node in _own(function) if isinstance(node, ast.Call)]
    said += [f"It says: {about}"] if about else []
    said += [f"It returns {_listed(returned)}."] if returned else ["It returns nothing."]
    said += [f"It raises {_listed(raised)}."] if raised else []
    said += [f"It calls {_listed(called)}."] if called else []
    return " ".join(said) + "\n"


def _python(tree: ast.Module | ast.ClassDef, depth: int = 0) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = ", ".join(ast.unparse(base) for base in node.bases)
            yield _entry(depth, f"class {node.name}({bases})" if bases else f"class {node.name}", node)
            yield from _python(node, depth + 1)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            yield _entry(depth, f"{kind} {node.name}({ast.unparse(node.args)})", node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and depth == 0:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if names:
                yield f"- line {node.lineno}: `{', '.join(names)}`"


def _entry(depth: int, title: str, node: "Function | ast.ClassDef") -> str:
    about = _first_sentence(ast.get_docstring(node))
    return f"{'  ' * depth}- line {node.lineno}: `{title}`" + (f": {about}" if about else "")


def _landmarks(path: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    name = path.rpartition("/")[2].lower()
    patterns = [_DEFINITIONS]
    if name.endswith((".md", ".markdown", ".rst", ".txt")) or "." not in name:
        patterns = [_HEADING]
    if name.endswith((".toml", ".ini", ".cfg", ".yaml", ".yml")):
        patterns = [_SECTION]
    if name == "makefile":
        patterns = [_TARGET]
    for number, line in enumerate(lines, 1):
        found = next((match for pattern in patterns if (match := pattern.match(line))), None)
        if found is not None:
            yield number, found[0].strip()[:120]


def _own(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function, those of functions inside it left out."""
    waiting: list[ast.AST] = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _functions(tree: ast.ClassDef) -> list[Function]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _arguments(function: Function) -> list[ast.arg]:
    given = function.args
    some = [each for each in (given.vararg, given.kwarg) if each is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *some]


def _listed(words: list[str]) -> str:
    short = [f"`{word if len(word) <= 80 else word[:79] + '…'}`" for word in dict.fromkeys(words)][:8]
    return short[0] if len(short) == 1 else f"{', '.join(short[:-1])} and {short[-1]}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _first_sentence(text: str | None) -> str:
    return (text or "").strip().split("\n\n")[0].replace("\n", " ").strip()[:200]
