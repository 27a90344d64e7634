"""Find the files of a folder that the start of a program may mean. Links and folders are looked up; no file is read.

Every word of a command line, and of the variables it is started with, may be the name of a file: as it is, below a
folder that the command goes to first (`cd sub && ./run`, `uv --directory sub run server.py`), or with what interpreters
put behind it (`node .`, `python -m server`). Runners take orders from files of their own (`npm run`, `make`). A name
that has no file yet counts too, since one may come. What a program reads by itself (imports, modules of a package)
cannot be known from outside; `runs_more` says where that is likely. A word with wildcards is a name as well, marked by
`PATTERN`: what it stands for is looked up by `scripts`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from dragoman.errors import WorldError
from dragoman.host.environment import is_kept_unseen, without_keys
from dragoman.host.variables import VariableMissing, fill, without_variables

_LONGEST: Final = 4096
# In which the command of one launch may be run.
FOLDERS: Final = 16
# A name that the search path is asked for. No file name has a NUL in it.
ON_PATH: Final = "PATH\0"
# An absolute path with wildcards.
PATTERN: Final = "PATTERN\0"
# What separates names in options, lists of folders and lines for a shell; and the same where a name has a colon in it.
_APART: Final = (re.compile(r"[\s=:,;|&<>()'\"`{}]+"), re.compile(r"[\s='\"`;|&()]+"))
# The scheme of a file's address is no part of its name; other addresses are no names.
_ADDRESS: Final = re.compile(r"file://|(?<![\w./+-])[A-Za-z][A-Za-z0-9+.-]*://\S*")
_NO_NAME: Final = re.compile(r"\0|^[A-Za-z][A-Za-z0-9+.-]*://")
# What goes to a folder: a word before its name, or an option with it.
_GOES_TO: Final = frozenset({"cd", "chdir", "pushd", "--working-directory", "--work-dir", "--workdir", "--root"})
_GOES_TO_OPTIONS: Final = ("--directory", "--cwd", "--prefix", "--chdir", "--dir", "--project", "-C")
_BLANK: Final = re.compile(r"\s")
# A bracket alone is a command; braces without a comma or dots stand for themselves.
_WILD: Final = re.compile(r"[*?]|\[[^\]]+\]|\{[^}]*(?:,|\.\.)[^}]*\}")
_LINE: Final = re.compile(r"[;|&<>`\n]")
_NODE: Final = frozenset({"node", "nodejs", "bun", "deno", "tsx", "ts-node"})
_NODE_ENDINGS: Final = (".js", ".mjs", ".cjs", ".ts", ".json", "/index.js", "/index.mjs", "/index.cjs", "/package.json")
_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*")
# Lists of folders that programs load code from. Python loads the two modules by itself.
_LOADS_FROM: Final = frozenset(
    {*("PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "RUBYLIB", "CLASSPATH", "LUA_PATH", "LUA_CPATH")}
    | {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "GEM_PATH", "GOPATH"}
)
_PYTHON_LOADS: Final = (
    "sitecustomize.py",
    "usercustomize.py",
    "sitecustomize/__init__.py",
    "usercustomize/__init__.py",
)
# What runners take their orders from, and where they look for programs first.
_NODE_RUNNERS: Final = frozenset({"npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"})
_PYTHON_RUNNERS: Final = frozenset({"uv", "poetry", "pdm", "hatch", "pipenv"})
_ORDERS: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(_PYTHON_RUNNERS, ("pyproject.toml", ".venv/pyvenv.cfg", ".venv/bin/python")),
    "pytest": ("conftest.py", "tests/conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"),
    "tox": ("tox.ini", "setup.cfg", "pyproject.toml"),
    "nox": ("noxfile.py",),
    "pre-commit": (".pre-commit-config.yaml",),
    "go": ("go.mod", "go.work"),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "mvn": ("pom.xml",),
    "rake": ("rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"),
    "bundle": ("Gemfile",),
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "cargo": ("Cargo.toml", "build.rs"),
    **dict.fromkeys(("docker", "docker-compose"), ("compose.yaml", "compose.yml", "docker-compose.yml", "Dockerfile")),
}
# Programs whose business is to run what a folder has in it.
_RUNNERS: Final = frozenset(
    {
        *("npm", "npx", "pnpm", "pnpx", "yarn", "bunx", "make", "just", "task", "uv", "uvx", "poetry", "pdm", "hatch"),
        *("pytest", "pre-commit"),
        *("pipx", "tox", "nox", "cargo", "go", "mvn", "gradle", "dotnet", "java", "ruby", "bundle", "rake", "php"),
        *("perl", "lua", "docker", "podman", "docker-compose", "sh", "bash", "dash", "zsh", "fish", "ksh", "env"),
        *_NODE,
    }
)


class ScriptsRefused(WorldError):
    """Files that cannot be looked at: too many, too large, or unreadable."""


class Launch(NamedTuple):
    """How a program is started. `cwd` is where, as written; empty: the folder of the configuration."""

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""


def names_of(folder: str, launch: Launch, environment: Mapping[str, str]) -> Iterator[str]:
    """Find what a launch may mean, as absolute paths that lie or lead below the folder."""
    real = os.path.realpath(folder)
    cwd = os.path.join(real, os.path.expanduser(_filled(launch.cwd, environment)))
    if not is_path(launch.command) or not is_path(cwd):
        return  # it cannot be started
    if "/" not in launch.command:
        yield ON_PATH + launch.command
    here = list(dict.fromkeys((cwd, real)))
    words = [word for text in launch.args for word in _words_in(text, environment)]
    bases = _bases(here, launch, words, environment)
    words = list(dict.fromkeys(words))
    for word in dict.fromkeys(_words(launch, words, environment)):
        yield from _below(real, bases, word)
    for base in _folders_in(bases, words):
        yield from (path for word in words for path in _below(real, [base], word) if is_file(path))
    for pattern in dict.fromkeys(one for word in words if _may_be_pattern(word) for one in _below(real, bases, word)):
        yield PATTERN + pattern
    # A secret that stands in the file is written down nowhere else, unless it names a file.
    for value in (value for name, value in launch.env.items() if is_kept_unseen(name, value)):
        yield from (
            path for word in _words_in(value, environment) for path in _below(real, here, word) if is_file(path)
        )


def runs_more(folder: str, launch: Launch, environment: Mapping[str, str]) -> bool:
    """Return whether it is likely to run files of the folder that its command line does not name."""
    words = {os.path.basename(word.rstrip("/")) for word in (launch.command, *launch.args)}
    if words & {".", *_RUNNERS} or any(_PYTHON.fullmatch(word) for word in words):
        return True
    real = os.path.realpath(folder)
    folders = [os.path.join(real, one) for one in _loaded_from(launch, environment)]
    if any(is_below(f"{os.path.realpath(one)}/", real) for one in folders if is_path(one)):
        return True
    return any(
        is_below(os.path.realpath(name), real) and os.path.exists(name)
        for name in names_of(folder, launch, environment)
        if "\0" not in name
    )


def is_below(path: str, folder: str) -> bool:
    """Return whether a path lies in a folder, by its letters."""
    return path.startswith(folder.rstrip("/") + "/")


def is_file(path: str) -> bool:
    """Return whether a path leads to a regular file."""
    try:
        return os.path.isfile(path)
    except (OSError, ValueError):
        return False


def is_path(text: str) -> bool:
    """Return whether the system can have such a path: no NUL, and no half of a character."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _below(real: str, bases: Iterable[str], word: str) -> Iterator[str]:
    for base in bases:
        path = os.path.join(base, os.path.expanduser(word))
        plain = os.path.normpath(path)
        if is_path(path) and (is_below(plain, real) or is_below(os.path.realpath(path), real)):
            # `x/../y` is not always `y`: x may be a link.
            yield path if ".." in word.split("/") else plain


# -- folders ---------------------------------------------------------------------------------------------------------


def _bases(here: Sequence[str], launch: Launch, words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return where a relative name may lead from.

    Where the program is started, where it goes to, what it loads from.
    """
    bases = dict.fromkeys(here)
    for word in dict.fromkeys(_gone_to(words)):
        bases |= dict.fromkeys(os.path.normpath(os.path.join(base, os.path.expanduser(word))) for base in bases)
        _check_count(bases, launch)
    for one in _loaded_from(launch, environment, but=("PATH",)):
        bases |= dict.fromkeys(os.path.normpath(os.path.join(base, one)) for base in here)
        _check_count(bases, launch)
    return [base for base in bases if is_path(base)]


def _check_count(bases: Mapping[str, None], launch: Launch) -> None:
    if len(bases) > FOLDERS:
        raise ScriptsRefused(f"{launch.command[:200]}: what it starts may be in more than {FOLDERS} folders")


def _gone_to(words: Sequence[str]) -> Iterator[str]:
    """Yield the folders that a command goes to, by its words in their order."""
    for word, after in pairwise([*words, ""]):
        if after and not after.startswith("-") and (word in _GOES_TO or word in _GOES_TO_OPTIONS):
            yield after
        for option in _GOES_TO_OPTIONS:
            value = word.removeprefix(option).removeprefix("=")
            if word.startswith(f"{option}=" if len(option) > 2 else option) and value:
                yield value


def _loaded_from(launch: Launch, environment: Mapping[str, str], but: Sequence[str] = ()) -> Iterator[str]:
    """Yield the folders that variables name as places to load code from. An empty one is where the program runs."""
    for name, value in launch.env.items():
        if name in _LOADS_FROM and name not in but:
            for text in dict.fromkeys((value, _filled(value, environment))):
                yield from (os.path.expanduser(one) or "." for one in text.split(os.pathsep) if "$" not in one)


def _folders_in(bases: Sequence[str], words: Sequence[str]) -> list[str]:
    """Folders that are there and that the words name: a program may look for the others of them in there."""
    found: dict[str, None] = {}
    for path in (os.path.normpath(os.path.join(base, os.path.expanduser(word))) for base in bases for word in words):
        if is_path(path) and path not in bases and os.path.isdir(path):
            found.setdefault(path)
    return list(found)[:FOLDERS]


# -- words -----------------------------------------------------------------------------------------------------------


def _words(launch: Launch, words: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the words of a launch that may be names of files; `words` are those of its arguments."""
    if "/" in launch.command:
        yield launch.command
    elif "PATH" in launch.env:
        folders = (launch.env["PATH"], _filled(launch.env["PATH"], environment))
        yield from (f"{folder or '.'}/{launch.command}" for text in folders for folder in text.split(os.pathsep))
    for name, value in launch.env.items():
        if not is_kept_unseen(name, value):
            yield from _words_of_variable(name, value, environment)
    yield from (word for word in words if _may_be_name(word))
    programs = {os.path.basename(word) for word in (launch.command, *words)}
    yield from (name for program in programs for name in _ORDERS.get(program, ()))
    plain = [word for word in words if _may_be_name(word) and not _BLANK.search(word)]
    if programs & _NODE_RUNNERS:
        yield from (name for word in plain for name in _node_programs(word))
    if programs & _PYTHON_RUNNERS:
        yield from (f".venv/bin/{os.path.basename(word)}" for word in plain)
    if programs & _NODE:
        yield from (name for word in words for name in _node_names(word))
    if any(_PYTHON.fullmatch(program) for program in programs):
        yield from (name for word in words for name in _python_names(word))


def _words_of_variable(name: str, value: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the words that may be names. A lone word among the arguments may be one, one in a variable hardly is."""
    words = [word for word in _words_in(without_keys(value, " "), environment) if "/" in word or "." in word]
    yield from filter(_may_be_name, words)
    if name == "NODE_OPTIONS":
        yield from (one for word in words for one in _node_names(word))
    if name == "PYTHONPATH":
        yield from (f"{folder or '.'}/{one}" for folder in value.split(os.pathsep) for one in _PYTHON_LOADS)


def _node_programs(word: str) -> Iterator[str]:
    """Yield what `npx WORD` runs if the folder has it: a package with its version, or a program of one."""
    package = word[:1] + word[1:].partition("@")[0]
    yield f"node_modules/.bin/{os.path.basename(package)}"
    yield f"node_modules/{package}/package.json"


def _node_names(word: str) -> Iterator[str]:
    if not word.startswith("-") and not word.endswith(_NODE_ENDINGS):
        plain = word.rstrip("/")
        yield from (plain + ending for ending in _NODE_ENDINGS if plain.strip("./") or ending.startswith("/"))


def _python_names(word: str) -> Iterator[str]:
    if word.startswith("-") or word.endswith(".py"):
        return
    yield f"{word}/__main__.py"
    if word.strip("./"):
        module = word.replace(".", "/")
        yield from (f"{module}.py", f"{module}/__main__.py", f"{module}/__init__.py")


def _words_in(text: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a text, and its parts: names of files, folders and options."""
    between = without_variables(text)
    # `$PWD/x.sh` is a file of the folder, whatever PWD is when the program is started.
    behind = [piece.lstrip("/") for piece in between[1:]]
    for whole in dict.fromkeys((text, _filled(text, environment), between[0], *behind)):
        plain = _ADDRESS.sub(" ", whole)
        parts = [whole, *(part for apart in _APART for part in apart.split(plain))]
        for part in parts:
            if part and not _NO_NAME.search(part) and len(part) <= _LONGEST:
                yield part
                if part.startswith("-") and not part.startswith("--") and len(part) > 2:
                    yield part[2:]  # `-r./x.js`: an option of one letter and its value


def _may_be_pattern(word: str) -> bool:
    """Return whether a shell may take a word for several names. A whole line is none, its words are."""
    return _WILD.search(word) is not None and not _LINE.search(word)


def _may_be_name(word: str) -> bool:
    return bool(word.strip("./")) and not word.startswith("-")


def _filled(text: str, environment: Mapping[str, str]) -> str:
    try:
        return fill(text, environment)
    except VariableMissing:
        return text
