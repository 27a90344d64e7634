"""The arrows of the design, read from every import statement of the package.

`ARROWS` is the whole rule: a part may import itself, the parts named beside it, `errors`, `limits`, `surrogates` and
`version`, and nothing else of Dragoman. Imports inside functions and under TYPE_CHECKING count: knowing a type is
knowing a neighbour.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "dragoman"

EDGE = {"transports", "dialects", "wire", "vocabulary"}
ARROWS: dict[str, set[str]] = {
    "errors": set(),
    "limits": set(),
    "surrogates": set(),
    "version": set(),
    "background": set(),
    "vocabulary": set(),
    "wire": set(),
    "dialects": {"wire", "vocabulary"},
    "host": set(),
    "sse": set(),  # event streams come from gateways and from servers of models
    "transports": {"host", "sse", "wire", "vocabulary"},
    "link": set(EDGE),
    "bridge": {"link"} | EDGE,
    "agent": {"background", "bridge", "link", "store"}
    | EDGE,  # store: its contract; an author who passes one gets sessions that survive
    "permissions": {"host"},
    "client": {"background", "bridge", "link", "host", "permissions"} | EDGE,
    "store": {"vocabulary"},
    "coder": {"agent", "background", "store", "host", "permissions", "sse", "vocabulary"},
    # EDGE: a connection is itself a transport, and its messages are the vocabulary's
    # host: files that only the user may read are written by one function
    # trace: an operator follows a session in the format of a trace
    "gateway": {"bridge", "host", "link", "store", "trace"} | EDGE,
    # It reads and writes frames as they pass, and decodes none of them into the vocabulary.
    "trace": {"host", "transports", "wire"},
    # It composes nothing: a gateway asks it where sessions are, and it asks the database.
    "cluster": {"agent", "gateway", "store", "transports", "vocabulary"},
    # It judges what others speak, so it knows the versions and their types; nothing of ours that speaks them.
    "conformance": {"host", "link", "sse", "trace"} | EDGE,
    # host: it composes, and the doctor looks at the machine itself
    # dialects: what `--json` prints are the updates of version 2, whichever version they were sent in
    # transports, wire: `connect` passes frames between stdin and an address, and decodes none of them
    "cli": {
        "background",
        "bridge",
        "cluster",
        "conformance",
        "gateway",
        "coder",
        "client",
        "agent",
        "store",
        "host",
        "trace",
    }
    | EDGE,
    "testing": {"agent", "client", "link", "store", "transports", "vocabulary"},
    # The package's own __init__: the public names.
    "dragoman": {"agent", "bridge", "client", "permissions", "store", "transports", "vocabulary"},
    "__main__": {"cli"},
}
FOR_ALL = {"errors", "limits", "surrogates", "version"}

# Nothing between the edges knows which version is on the wire; what judges the edges does.
VERSIONS = ("dragoman.wire.v1", "dragoman.wire.v2")
KNOW_VERSIONS = {"wire", "dialects", "conformance"}

PURE = {"errors", "limits", "sse", "surrogates", "vocabulary", "wire", "dialects", "permissions"}
IMPURE_MODULES = {
    *("asyncio", "concurrent", "multiprocessing", "selectors", "signal", "socket", "ssl", "subprocess", "threading"),
    *("logging", "os", "pathlib", "random", "secrets", "tempfile", "time"),
}

THIRD_PARTY: dict[str, set[str]] = {
    "vocabulary": {"typing_extensions"},  # for type checkers, which all know it; never imported when it runs
    "transports": {"h2", "httpx2", "websockets"},
    "host": {"brotli", "h2", "httpx2", "lxml"},
    "coder": {"genai_prices", "google", "httpx2", "lsprotocol", "mcp", "pydantic_ai", "pygls"},
    "client": {"mcp"},  # a server of the official SDK that is lent
    "gateway": {"granian", "httpx2", "jwt", "opentelemetry", "prometheus_client", "starlette", "websockets"},
    "cli": {"prompt_toolkit", "rich", "tomlkit", "jsonschema", "referencing"},
    "store": {"asyncpg"},
    "cluster": {"asyncpg", "prometheus_client"},  # the type of a connection; the form of a metric
    "conformance": {"httpx2", "websockets", "pytest"},
    "testing": {"pytest"},
}
FOR_ALL_THIRD_PARTY = {"msgspec"}


class Import(NamedTuple):
    line: int
    module: str


def test_every_import_follows_the_arrows() -> None:
    broken = [
        f"{file.relative_to(PACKAGE.parent)}:{line}: {complaint}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line, complaint in complaints(file.read_text(), module_name(file), is_package=file.name == "__init__.py")
    ]
    assert broken == []


def test_every_part_of_the_package_has_its_arrows() -> None:
    parts = {file.stem for file in PACKAGE.glob("*.py")} - {"__init__"}
    parts |= {folder.name for folder in PACKAGE.iterdir() if any(folder.glob("*.py"))}
    assert parts - ARROWS.keys() == set()


def test_the_arrows_have_no_circle() -> None:
    left = {part: targets - {part} for part, targets in ARROWS.items()}
    while ends := {part for part, targets in left.items() if not targets & left.keys()}:
        for part in ends:
            del left[part]
    assert left == {}


@pytest.mark.parametrize("module", ["dragoman", "dragoman.agent", "dragoman.client", "dragoman.cli.main"])
def test_importing_loads_no_library_but_msgspec(module: str) -> None:
    assert libraries_loaded_by(module) - {"dragoman", "msgspec"} == set()


def test_a_loaded_library_is_seen() -> None:
    assert "pluggy" in libraries_loaded_by("pluggy")


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("dragoman.agent.connection", "import dragoman.client", "agent may not import client"),
        ("dragoman.client.registry", "from dragoman.agent import Agent", "client may not import agent"),
        ("dragoman.client.registry", "from dragoman import agent", "client may not import agent"),
        ("dragoman.client.registry", "from ..agent import Agent", "client may not import agent"),
        ("dragoman.client.registry", "from .. import agent", "client may not import agent"),
        ("dragoman.coder.loop", "from dragoman.wire.framing import split", "coder may not import wire"),
        ("dragoman.coder.tools.bash", "from ...transports import memory", "coder may not import transports"),
        ("dragoman.agent.connection", "from dragoman import Agent", "agent may not import dragoman"),
        ("dragoman.link", "def f():\n    import dragoman.agent", "link may not import agent"),
        ("dragoman.host.paths", "if TYPE_CHECKING:\n    import dragoman.wire", "host may not import wire"),
        ("dragoman.host.paths", "if a:\n    pass\nelse:\n    import dragoman.wire", "host may not import wire"),
        ("dragoman.host.paths", "try:\n    a()\nexcept E:\n    import dragoman.wire", "host may not import wire"),
        ("dragoman.host.paths", "try:\n    a()\nfinally:\n    import dragoman.wire", "host may not import wire"),
        ("dragoman.host.paths", "match a:\n    case 1:\n        import dragoman.wire", "host may not import wire"),
        ("dragoman.link", "from dragoman.wire import v1", "only wire, dialects and conformance know dragoman.wire.v1"),
        ("dragoman.link", "import dragoman.wire.v2", "only wire, dialects and conformance know dragoman.wire.v2"),
        ("dragoman.wire.framing", "import asyncio", "wire is pure and may not import asyncio"),
        ("dragoman.dialects.v1.codec", "from os import path", "dialects is pure and may not import os"),
        ("dragoman.vocabulary.events", "import concurrent.futures", "vocabulary is pure and may not import concurrent"),
        ("dragoman.agent.connection", "import pydantic", "agent may not import pydantic"),
        ("dragoman.coder.loop", "import starlette", "coder may not import starlette"),
        ("dragoman.attic", "import json", "attic is not in the design"),
    ],
)
def test_an_import_against_the_arrows_is_found(module: str, source: str, complaint: str) -> None:
    assert [found for _, found in complaints(source, module)] == [complaint]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "dragoman.agent.connection",
            "import asyncio, os\nfrom dragoman.link import Link\nfrom dragoman.errors import X",
        ),
        (
            "dragoman.dialects.v1.codec",
            "import msgspec\nfrom dragoman.wire import v1\nfrom . import v2\nfrom .v2 import x",
        ),
        ("dragoman.coder.models.real", "import pydantic_ai.direct\nfrom dragoman import limits"),
        ("dragoman.wire.jsonrpc", "from collections.abc import Callable\nfrom dragoman import errors"),
    ],
)
def test_an_import_along_the_arrows_passes(module: str, source: str) -> None:
    assert list(complaints(source, module)) == []


def test_relative_imports_of_a_package_start_at_the_package() -> None:
    found = complaints("from .events import Event\nfrom ..host import paths", "dragoman.vocabulary", is_package=True)
    assert list(found) == [(2, "vocabulary may not import host")]


def complaints(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Every import in the source that the rules refuse, with its line."""
    part = part_of(module)
    if part not in ARROWS:
        yield 1, f"{part} is not in the design"
        return
    seen = set()
    for found in imports(source, module, is_package=is_package):
        complaint = complaint_about(part, found.module)
        if complaint is not None and (found.line, complaint) not in seen:
            seen.add((found.line, complaint))
            yield found.line, complaint


def complaint_about(part: str, imported: str) -> str | None:
    top = imported.partition(".")[0]
    if top == "dragoman":
        if part_of(imported) not in ARROWS[part] | FOR_ALL | {part}:
            return f"{part} may not import {part_of(imported)}"
        if part not in KNOW_VERSIONS and imported.startswith(VERSIONS):
            return f"only wire, dialects and conformance know {imported}"
    elif top in sys.stdlib_module_names:
        if part in PURE and top in IMPURE_MODULES:
            return f"{part} is pure and may not import {top}"
    elif top not in THIRD_PARTY.get(part, set()) | FOR_ALL_THIRD_PARTY:
        return f"{part} may not import {top}"
    return None


def imports(source: str, module: str, *, is_package: bool) -> Iterator[Import]:
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(node, module, is_package=is_package)
            for alias in node.names:
                yield Import(node.lineno, imported_module(origin, alias.name))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All inside the node, at every depth. Expressions are most of a program, and none of them imports by statement."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, field, ()):
            yield inner
            yield from statements(inner)


def absolute(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    parents = module.split(".")
    up = node.level - 1 if is_package else node.level
    return ".".join([*parents[: len(parents) - up], *([node.module] if node.module else [])])


def imported_module(origin: str, name: str) -> str:
    """`from dragoman import link` imports a module of ours; `from dragoman import Agent` a name of the package."""
    within = f"{origin}.{name}"
    if origin == "dragoman":
        return within if name in ARROWS else origin
    return within if within in VERSIONS else origin


def part_of(module: str) -> str:
    names = module.split(".")
    return names[1] if len(names) > 1 else names[0]


def module_name(file: Path) -> str:
    names = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def libraries_loaded_by(module: str) -> set[str]:
    """The top-level modules outside the standard library that a fresh interpreter loads for an import."""
    program = f"import json, sys; old = set(sys.modules); import {module}; print(json.dumps([*set(sys.modules) - old]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    return {name for name in loaded if name not in sys.stdlib_module_names and not name.startswith("__")}
