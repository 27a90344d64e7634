"""How the project is written: one class for a name, sentences about things, references that can be followed."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeGuard

from tests.support.needs import ROOT
from tests.support.public_surface import PublicFunction, functions, public_objects

PACKAGE = ROOT / "src" / "dragoman"
# Made from the schema, whose names they keep.
GENERATED = {PACKAGE / "wire" / "v1.py", PACKAGE / "wire" / "v2.py"}
TEXTS = (".py", ".md", ".js", ".html", ".css")

PERSONS = re.compile(r"\b(nobody|somebody|whoever|everybody|anybody)\b", re.IGNORECASE)
# Where such a word is data: the principal of a client without a token, on disk and in logs.
DATA = re.compile(r"[\"'`]nobody[\"'`]")
OPENINGS = ("As everywhere", "The same", "Those of")
# Documents and row numbers that a reader of this repository cannot look up.
ELSEWHERE = re.compile(r"DESIGN\.md|\bseed 00\d|\b[Rr]ows? [A-Z]\d")


def sources() -> Iterator[Path]:
    return (path for path in sorted(PACKAGE.rglob("*.py")) if path not in GENERATED)


def texts() -> Iterator[Path]:
    parts = (PACKAGE, ROOT / "docs", ROOT / "bench", ROOT / "evals", ROOT / "tools", ROOT / "examples")
    folders = [path for folder in parts for path in sorted(folder.rglob("*"))]
    pages = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    return (path for path in [*folders, *pages] if path.suffix in TEXTS)


def lines_with(pattern: re.Pattern[str], ignored: re.Pattern[str] | None = None) -> list[str]:
    """Every line of the package and its documents that has the pattern, as `path:line: text`."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(ignored.sub("", line) if ignored is not None else line)
    ]


def test_a_public_class_name_stands_for_one_class() -> None:
    places = defaultdict(list)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_sentences_are_about_things_and_not_about_persons_without_a_name() -> None:
    assert lines_with(PERSONS, DATA) == []


def test_names_docstrings_and_comments_of_tests_are_about_things_too() -> None:
    """Strings are not looked at: there such a word is data, such as the name of an agent that does not exist."""
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        source = path.read_text()
        comments = [
            one for one in tokenize.generate_tokens(io.StringIO(source).readline) if one.type == tokenize.COMMENT
        ]
        words = [(one.start[0], DATA.sub("", one.string)) for one in comments]
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Module):
                words.append((1, ast.get_docstring(node) or ""))
            elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                words.append((node.lineno, f"{node.name.replace('_', ' ')} {ast.get_docstring(node) or ''}"))
        found += [f"{path.relative_to(ROOT)}:{line}: {text}" for line, text in words if PERSONS.search(text)]
    assert found == []


def test_no_docstring_begins_by_pointing_at_another_one() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.body[0].lineno}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (ast.get_docstring(node) or "").startswith(OPENINGS)
    ]
    assert found == []


def test_nothing_refers_to_a_document_that_is_not_here() -> None:
    assert lines_with(ELSEWHERE) == []


# -- the docstrings of the public surface ------------------------------------------------------------------------------

# Words that begin a description of a thing and not what a function does.
DESCRIBING = {*("a", "an", "the", "this", "it", "its", "there", "every", "each", "all", "if", "as")} | {
    *("what", "whether", "how", "who", "why", "which", "where", "when")
}
# No exceptions that a caller sees: the language's own signals.
SIGNALS = {"StopIteration", "StopAsyncIteration", "CancelledError", "NotImplementedError"}
# A class may say once what all of its methods do.
ALL_WAIT = re.compile(r"(every method waits|its methods wait)", re.IGNORECASE)


def raised_by(function: PublicFunction) -> set[str]:
    """The exceptions that a function raises itself, or in a private helper of its class or module that it calls."""
    helpers = {
        node.name: node
        for scope in (function.module, function.owner)
        if scope is not None
        for node in scope.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("_")
    }
    found: set[str] = set()
    todo: list[ast.AST] = [function.node]
    seen: set[str] = set()
    while todo:
        for node in ast.walk(todo.pop()):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
                found.add(node.exc.func.id)
            if isinstance(node, ast.Call):
                called = node.func
                name = called.id if isinstance(called, ast.Name) else called.attr if _is_own(called) else ""
                if name in helpers and name not in seen:
                    seen.add(name)
                    todo.append(helpers[name])
    return {name for name in found if name[0].isupper()} - SIGNALS


def _is_own(called: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self"


def parameters(function: PublicFunction) -> list[str]:
    """The names of a function's parameters, but for `self` and `cls`."""
    given = function.node.args
    found = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    names = [one.arg for one in found if one is not None]
    return names if function.owner is None else names[1:]


PUBLIC = list(functions())


def test_every_public_class_and_function_has_a_docstring() -> None:
    assert [name for name, value in public_objects().items() if not (value.__doc__ or "").strip()] == []


def test_every_public_function_says_what_it_does_in_the_imperative() -> None:
    """`Return the text`, not `The text`, not `Returns the text`; but a property may say what it is."""
    wrong = []
    for one in PUBLIC:
        if one.is_property:
            continue
        first, *_ = [*one.docstring.split(), ""]
        word = first.strip("`,;:.").lower()
        is_described = word in DESCRIBING or (word.endswith("s") and not word.endswith("ss"))
        if one.node.name != "__init__" and (not word or first.startswith("`") or is_described):
            wrong.append(f"{one.name}: {one.docstring.splitlines()[:1]}")
    assert wrong == []


def test_every_public_function_names_what_it_raises() -> None:
    wrong = {one.name: missing for one in PUBLIC if (missing := _unnamed(raised_by(one), one))}
    assert wrong == {}


def test_every_public_coroutine_says_whether_it_waits() -> None:
    coroutines = [one for one in PUBLIC if isinstance(one.node, ast.AsyncFunctionDef)]
    silent = [one.name for one in coroutines if "wait" not in one.docstring.lower()]
    assert [name for name in silent if not ALL_WAIT.search(_docstring_of_class(name))] == []


def test_every_public_function_with_three_parameters_or_more_names_each() -> None:
    many = [one for one in PUBLIC if len(parameters(one)) > 2]
    assert {one.name: missing for one in many if (missing := _unnamed(parameters(one), one))} == {}


def _docstring_of_class(name: str) -> str:
    return next(one.class_docstring for one in PUBLIC if one.name == name)


def _unnamed(names: Iterable[str], function: PublicFunction) -> list[str]:
    """The names that stand neither in the function's docstring nor in its class's."""
    text = f"{function.docstring}\n{function.class_docstring}"
    return sorted(name for name in names if not re.search(rf"\b{name}\b", text))
