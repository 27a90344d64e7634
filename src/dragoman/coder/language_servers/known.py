"""Which language servers there are, for which files, and where their programs are: known ones, and the user's own.

A program is the one of our own environment or the first on PATH, and lies outside of every folder of the session, as it
is named and as it really is: a workspace cannot bring the program that looks at it. The user may name any other. Cheap
to import: commands that only look at settings use it.
"""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from dragoman.errors import UsageError
from dragoman.host.paths import is_inside
from dragoman.host.programs import path_outside

# A table with more is a mistake; each server of a file is a process that an edit may wait for.
MOST_SERVERS: Final = 32
KEYS: Final = ("command", "files", "language", "enabled")


class ServerSpec(NamedTuple):
    """A language server: its command line, and the names of the files that it is for.

    `language` is the protocol's name for the language of every file; empty: by the file's ending. Of servers with the
    same `stands_for`, the first that is found is used. `options` are sent to it when it starts.
    """

    name: str
    command: tuple[str, ...]
    files: tuple[str, ...]
    language: str = ""
    stands_for: str = ""
    options: Mapping[str, object] = {}

    def is_for(self, path: str) -> bool:
        """Return whether it is for a file, by the file's name."""
        name = os.path.basename(path)
        return any(fnmatchcase(name, pattern) for pattern in self.files)

    def language_of(self, path: str) -> str:
        """Return the protocol's name for the language of a file."""
        ending = os.path.splitext(path)[1].lower()
        return self.language or _LANGUAGES.get(ending, ending.lstrip(".") or "plaintext")


_PYTHON: Final = ("*.py", "*.pyi")
_SCRIPTS: Final = ("*.ts", "*.tsx", "*.mts", "*.cts", "*.js", "*.jsx", "*.mjs", "*.cjs")
_C: Final = ("*.c", "*.h", "*.cc", "*.cpp", "*.cxx", "*.hh", "*.hpp", "*.hxx")
KNOWN: Final = (
    # Who has installed it prefers it to the one it comes from.
    ServerSpec("basedpyright", ("basedpyright-langserver", "--stdio"), _PYTHON, stands_for="pyright"),
    ServerSpec("pyright", ("pyright-langserver", "--stdio"), _PYTHON, stands_for="pyright"),
    ServerSpec("ruff", ("ruff", "server"), _PYTHON),
    # It would have npm fetch types of packages.
    ServerSpec(
        *("typescript", ("typescript-language-server", "--stdio"), _SCRIPTS),
        options={"disableAutomaticTypingAcquisition": True},
    ),
    ServerSpec("gopls", ("gopls",), ("*.go",)),
    ServerSpec("rust-analyzer", ("rust-analyzer",), ("*.rs",)),
    ServerSpec("clangd", ("clangd",), _C),
)
_LANGUAGES: Final = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
    ".tsx": "typescriptreact",
    ".jsx": "javascriptreact",
    ".rs": "rust",
    ".h": "c",
    ".rb": "ruby",
    ".sh": "shellscript",
    ".yml": "yaml",
    ".md": "markdown",
    ".cs": "csharp",
    ".kt": "kotlin",
    ".ex": "elixir",
}


def read_specs(tables: Mapping[str, Mapping[str, Any]]) -> list[ServerSpec]:
    """Return the servers to look for: the known ones and those of `[language_servers.NAME]` in config.toml.

    A table with the name of a known one changes it. `UsageError` names the key that is wrong.
    """
    known = {spec.name: spec for spec in KNOWN}
    if len(tables) > MOST_SERVERS:
        raise UsageError(f"language_servers has more than {MOST_SERVERS} tables.")
    changed = {name: _spec(name, table, known.get(name)) for name, table in tables.items()}
    return [spec for spec in {**known, **changed}.values() if spec is not None]


def _spec(name: str, table: Mapping[str, Any], known: ServerSpec | None) -> ServerSpec | None:
    """Return the server of a table; None: it is turned off."""
    where = f"language_servers.{name}"
    for key in table:
        if key not in KEYS:
            raise UsageError(f"{where}.{key} is not known; there are {', '.join(KEYS)}.")
    enabled, language = table.get("enabled", True), table.get("language", known.language if known else "")
    if not isinstance(enabled, bool):
        raise UsageError(f"{where}.enabled has to be true or false.")
    if not isinstance(language, str):
        raise UsageError(f"{where}.language has to be a text.")
    command = _texts(f"{where}.command", table.get("command", known.command if known else None))
    files = _texts(f"{where}.files", table.get("files", known.files if known else None))
    spec = (known or ServerSpec(name, (), ()))._replace(command=command, files=files, language=language)
    return spec if enabled else None


def _texts(where: str, value: object) -> tuple[str, ...]:
    is_right = isinstance(value, list | tuple) and value and all(isinstance(one, str) and one for one in value)
    if not is_right or any("\0" in one for one in value):  # type: ignore[attr-defined]
        example = '["pyright-langserver", "--stdio"]' if where.endswith("command") else '["*.py"]'
        raise UsageError(f"{where} has to be a list of texts: {example}.")
    return tuple(value)  # type: ignore[arg-type]


class FoundServer(NamedTuple):
    """A server whose program is there: `program` by its whole name."""

    spec: ServerSpec
    program: str

    @property
    def argv(self) -> list[str]:
        """The command line."""
        return [self.program, *self.spec.command[1:]]


def find_servers(specs: Sequence[ServerSpec], search_path: str, roots: Sequence[str]) -> list[FoundServer]:
    """Return the servers whose programs are found, each kind once. Blocks: looks into the folders of PATH."""
    found: list[FoundServer] = []
    kinds: set[str] = set()
    for spec in specs:
        kind = spec.stands_for or spec.name
        program = "" if kind in kinds else find_program(spec, search_path, roots)
        if program:
            kinds.add(kind)
            found.append(FoundServer(spec, program))
    return found


def find_program(spec: ServerSpec, search_path: str, roots: Sequence[str]) -> str:
    """Return the program of a server by its whole name, links and all; empty: it is not there, or not to be used."""
    name = os.path.expanduser(spec.command[0])
    if "/" in name:
        # A path is the user's own word: known ones have none.
        return name if os.path.isabs(name) and os.path.isfile(name) and os.access(name, os.X_OK) else ""
    real = [os.path.realpath(root) for root in roots]
    folders = os.pathsep.join([os.path.dirname(sys.executable), search_path])
    program = shutil.which(name, path=path_outside(folders, real) or os.devnull)
    if program is None or any(is_inside(os.path.realpath(program), root) for root in real):
        return ""
    return program
