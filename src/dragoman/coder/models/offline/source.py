"""Python source as a tree, and as bytes that nodes of the tree point into. Nothing is ever compiled or run."""

import ast
import warnings
from functools import lru_cache
from typing import Final

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef

# A source of more takes too long to read between two words.
SOURCE_CHARACTERS: Final = 200_000
# Every step of a turn looks at the same few files again.
_REMEMBERED: Final = 16


@lru_cache(maxsize=_REMEMBERED)
def parsed(text: str) -> ast.Module | None:
    """The tree of a file; None for what is no Python, or too much of it. It is shared: not to be changed."""
    return parse(text)


def parse(text: str) -> ast.Module | None:
    """A tree of one's own."""
    if len(text) > SOURCE_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            # A `"\d"` in the user's file is no concern of ours.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=_REMEMBERED)
def definitions(tree: ast.Module) -> tuple[Definition, ...]:
    """Every function, method and class of a tree from `parsed`."""
    nodes = ast.walk(tree)
    return tuple(node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))


def functions(tree: ast.Module, name: str) -> list[Function]:
    """The functions and methods of that name; for a class, what makes its objects."""
    found: list[Function] = []
    for node in definitions(tree):
        if node.name != name:
            continue
        if isinstance(node, ast.ClassDef):
            found += [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        else:
            found.append(node)
    return found


class Source:
    """A source text whose nodes can be looked up and replaced."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._data = text.encode("utf-8", "surrogatepass")
        self._starts = [0]
        for line in self._data.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends, in bytes."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def line_span(self, node: ast.stmt) -> tuple[int, int]:
        """The whole lines a statement stands on."""
        assert node.end_lineno is not None
        return self._starts[node.lineno - 1], min(self._starts[node.end_lineno], len(self._data))

    def cut(self, start: int, end: int) -> str:
        """A part of it."""
        return self._data[start:end].decode("utf-8", "surrogatepass")

    def of(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        return self.cut(*self.span(node))

    def changed(self, start: int, end: int, new: str) -> str:
        """The whole text with one part replaced."""
        data = self._data[:start] + new.encode("utf-8", "surrogatepass") + self._data[end:]
        return data.decode("utf-8", "surrogatepass")
