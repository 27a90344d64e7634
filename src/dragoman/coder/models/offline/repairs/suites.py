"""How a project's tests are run: found by looking, and run through the shell."""

import re
from shlex import quote
from typing import Final, NamedTuple

from dragoman.coder.models.offline.answers import Ran, entries, hits, paths, ran
from dragoman.coder.models.offline.walk import Halted, Reach, Walk
from dragoman.coder.models.offline.wishes.names import is_path

# Without byte code: a change of the same length within the same second would not be noticed.
_PYTHON: Final = "python3 -B"
_OTHERS: Final = {
    "package.json": "npm test",
    "Cargo.toml": "cargo test",
    "go.mod": "go test ./...",
    "Makefile": "make test",
}
_MARKS_OF_PYTEST: Final = {"pytest.ini", "conftest.py", "tox.ini"}
_ONLY_UNITTEST: Final = re.compile(r"^\s*(?:import unittest|from unittest)\b", re.MULTILINE)
_ALSO_PYTEST: Final = re.compile(r"^(?:import pytest|from pytest|(?:async )?def test_)", re.MULTILINE)
_ABSENT: Final = re.compile(r"command not found|No such file or directory|not found")


class Suite(NamedTuple):
    """How to run the tests. `file` is the one that is meant, if one is."""

    kind: str
    file: str = ""
    folder: str = ""
    python: str = _PYTHON
    search: str = ""
    keyword: str = ""
    command: str = ""
    is_package: bool = False
    has_src: bool = False

    def line(self) -> str:
        """The command."""
        if self.kind == "other":
            return self.command
        before = f"PYTHONPATH={self.search} " if self.search else ""
        chosen = f" -k {quote(self.keyword)}" if self.keyword else ""
        if self.kind == "pytest":
            target = f" {quote(self.file)}" if self.file else ""
            return f"{before}{self.python} -m pytest -q --tb=short{target}{chosen}"
        folder, _, name = self.file.rpartition("/")
        place = folder if self.file else self.folder
        where = f" -s {quote(place)}" if place else ""
        top = " -t ." if place and self.is_package and not place.startswith("/") else ""
        only = f" -p {quote(name)}" if self.file else ""
        return f"{before}{self.python} -m unittest discover{where}{top}{only}{chosen}"


def find_suite(reach: Reach, name: str) -> Walk[Suite]:
    """Look how the tests are run; `name` is a test, its file, or something that tests mention."""
    reach.need("bash")
    here = yield from _here(reach)
    file, keyword = yield from _file_of(reach, name)
    tests = [file] if file else (yield from _test_files(reach))
    if not tests:
        for marker, command in _OTHERS.items():
            if marker in here:
                return Suite("other", command=command)
        raise Halted("I found no tests here. Tell me the command: `run …`.")
    first = yield from reach.call("read_file", path=tests[0])
    text = "" if first.failed else first.text
    is_unittest = _ONLY_UNITTEST.search(text) and not _ALSO_PYTEST.search(text) and not _MARKS_OF_PYTEST & here
    python = next((f"{folder}/bin/python -B" for folder in (".venv", "venv") if folder in here), _PYTHON)
    folders = {test.rpartition("/")[0] for test in tests}
    folder = folders.pop() if len(folders) == 1 else ""
    is_package = False
    if is_unittest and folder and reach.has("list_files"):
        listed = yield from reach.call("list_files", path=folder)
        is_package = not listed.failed and "__init__.py" in entries(listed.text)
    kind = "unittest" if is_unittest else "pytest"
    return Suite(kind, file, folder, python, keyword=keyword, is_package=is_package, has_src="src" in here)


def run_suite(reach: Reach, suite: Suite) -> Walk[tuple[Suite, Ran]]:
    """Run the tests; where Python, pytest or the sources are not found at first, look where they may be."""
    for _ in range(4):
        said = yield from reach.call("bash", command=suite.line())
        result = ran(said.text, said.failed)
        other = _elsewhere(suite, result)
        if other is None or other == suite:
            break
        suite = other
    return suite, result


def _elsewhere(suite: Suite, result: Ran) -> Suite | None:
    if result.code in (0, None) or suite.kind == "other":
        return None
    if result.code == 127 or (result.code == 126 and _ABSENT.search(result.output)):
        names = {".venv/bin/python -B": _PYTHON, "venv/bin/python -B": _PYTHON, _PYTHON: "python -B"}
        return suite._replace(python=names.get(suite.python, suite.python))
    if re.search(r"No module named '?pytest'?$", result.output, re.MULTILINE) and suite.kind == "pytest":
        if suite.python != _PYTHON:
            return suite._replace(python=_PYTHON)
        return suite._replace(kind="unittest")
    if "ModuleNotFoundError" in result.output and suite.has_src and not suite.search:
        return suite._replace(search="src")
    return None


def _here(reach: Reach) -> Walk[set[str]]:
    """The names in the working folder."""
    if not reach.has("list_files"):
        return set()
    listed = yield from reach.call("list_files")
    return set() if listed.failed else {name.rstrip("/@") for name in entries(listed.text)}


def _file_of(reach: Reach, name: str) -> Walk[tuple[str, str]]:
    """The test file that a name means, and what to pick from it."""
    path, _, inside = name.partition("::")
    keyword = inside.rpartition("::")[2]
    if name and is_path(path):
        return path, keyword
    if not name or not reach.has("grep"):
        return "", ""
    word = name.rpartition(".")[2]
    found = yield from reach.call("grep", pattern=rf"\b(def|class) {word}\b", glob="*test*.py")
    files = [] if found.failed else [hit.path for hit in hits(found.text)]
    if not files:
        found = yield from reach.call("grep", pattern=rf"\b{word}\b", glob="*test*.py")
        files = [] if found.failed else [hit.path for hit in hits(found.text)]
        word = ""
    if not files:
        raise Halted(f"I found no test that is called `{name}` or mentions it.")
    return reach.short(files[0]), word


def _test_files(reach: Reach) -> Walk[list[str]]:
    found: list[str] = []
    for pattern in ("**/test_*.py", "**/*_test.py"):
        if reach.has("glob") and not found:
            said = yield from reach.call("glob", pattern=pattern)
            found = [] if said.failed else [reach.short(path) for path in paths(said.text, pattern)]
    return found
