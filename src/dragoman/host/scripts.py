"""The files of a folder that a configuration starts: which they are, and what is in them.

A configuration that says `./server.sh` is only as trustworthy as the file. So every word of a command line, and of the
variables it is started with, that names a regular file below the folder is looked at together with the configuration:
a name that has no file yet too, since one may come. What a program reads by itself (imports, `npm run` scripts, modules
of a package) cannot be known from outside; `runs_more` says where that is likely.

What is hashed is what the path leads to at that moment. The program is started by the same path a moment later; a file
that is changed in between by something unconfined is not noticed.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dragoman.errors import WorldError
from dragoman.host.environment import is_secret
from dragoman.host.variables import VariableMissing, fill, without_variables

# Names looked at for one folder, and bytes read of all of them: a session that opens waits for this.
NAMES: Final = 1024
BYTES: Final = 64 * 1024 * 1024
_CHUNK: Final = 1024 * 1024
_LONGEST: Final = 4096
# A name that the search path is asked for. No file name has a NUL in it.
_ON_PATH: Final = "PATH\0"
# What separates names in options, lists of folders and lines for a shell.
_APART: Final = re.compile(r"[\s=:,;|&<>()'\"`{}]+")
# The scheme of a file's address is no part of its name; other addresses are no names.
_ADDRESS: Final = re.compile(r"file://|[A-Za-z][A-Za-z0-9+.-]*://\S*")
_NO_NAME: Final = re.compile(r"\0|://")
_NODE: Final = frozenset({"node", "nodejs", "bun", "deno", "tsx", "ts-node"})
_NODE_ENDINGS: Final = (".js", ".mjs", ".cjs", ".ts", ".json", "/index.js", "/index.mjs", "/index.cjs", "/package.json")
_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*")
# Programs whose business is to run what a folder has in it.
_RUNNERS: Final = frozenset(
    {
        *("npm", "npx", "pnpm", "pnpx", "yarn", "bunx", "make", "just", "task", "uv", "uvx", "poetry", "pdm", "hatch"),
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


def named_files(folder: str, launches: Iterable[Launch], environment: Mapping[str, str]) -> dict[str, str]:
    """Find every name below `folder` that the launches mention, and what is there now (`states`)."""
    names: dict[str, None] = {}
    for launch in launches:
        for name in _names(folder, launch, environment):
            names.setdefault(name)
            if len(names) > NAMES:
                raise ScriptsRefused(f"{folder}: its configuration names more than {NAMES} files")
    return states(folder, names, environment)


def states(folder: str, names: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return what each name leads to: the hash of a file, the place outside of the folder, or nothing."""
    budget = _Budget()
    return {name: _state(folder, name, environment, budget) for name in names}


def shown_name(folder: str, name: str) -> str:
    """Write a name of `named_files` for a message."""
    if name.startswith(_ON_PATH):
        return f"the program that {name.removeprefix(_ON_PATH)} is on the search path"
    return os.path.relpath(name, os.path.realpath(folder))


def runs_more(folder: str, launch: Launch, environment: Mapping[str, str]) -> bool:
    """Return whether it is likely to run files of the folder that its command line does not name."""
    words = {os.path.basename(word.rstrip("/")) for word in (launch.command, *launch.args)}
    if words & {".", *_RUNNERS} or any(_PYTHON.fullmatch(word) for word in words):
        return True
    real = os.path.realpath(folder)
    return any(
        _is_below(os.path.realpath(name), real) and os.path.exists(name)
        for name in _names(folder, launch, environment)
        if "\0" not in name
    )


def _names(folder: str, launch: Launch, environment: Mapping[str, str]) -> Iterator[str]:
    """What a launch may mean, as absolute paths that lie or lead below the folder."""
    real = os.path.realpath(folder)
    cwd = os.path.join(real, os.path.expanduser(_filled(launch.cwd, environment)))
    if not _is_path(launch.command) or not _is_path(cwd):
        return  # it cannot be started
    if "/" not in launch.command:
        yield _ON_PATH + launch.command
    bases = list(dict.fromkeys((cwd, real)))
    for word in dict.fromkeys(_words(launch, environment)):
        yield from _below(real, bases, word)
    # A secret that stands in the file is written down nowhere else, unless it names a file.
    secrets = [value for name, value in launch.env.items() if is_secret(name, value)]
    for word in dict.fromkeys(word for value in secrets for word in _words_in(value, environment)):
        yield from (path for path in _below(real, bases, word) if _is_file(path))


def _below(real: str, bases: Sequence[str], word: str) -> Iterator[str]:
    for base in bases:
        path = os.path.join(base, os.path.expanduser(word))
        plain = os.path.normpath(path)
        if _is_path(path) and (_is_below(plain, real) or _is_below(os.path.realpath(path), real)):
            # `x/../y` is not always `y`: x may be a link.
            yield path if ".." in word.split("/") else plain


def _words(launch: Launch, environment: Mapping[str, str]) -> Iterator[str]:
    """The words of a launch that may be names of files."""
    if "/" in launch.command:
        yield launch.command
    elif "PATH" in launch.env:
        folders = (launch.env["PATH"], _filled(launch.env["PATH"], environment))
        yield from (f"{folder or '.'}/{launch.command}" for text in folders for folder in text.split(os.pathsep))
    # A lone word among the arguments may be a name, one in a variable hardly is.
    values = [value for name, value in launch.env.items() if not is_secret(name, value)]
    yield from (word for value in values for word in _words_in(value, environment) if "/" in word or "." in word)
    words = [word for text in launch.args for word in _words_in(text, environment)]
    yield from words
    programs = {os.path.basename(word) for word in (launch.command, *words)}
    is_node, is_python = bool(programs & _NODE), any(_PYTHON.fullmatch(program) for program in programs)
    for word in words:
        if is_node and not word.endswith(_NODE_ENDINGS):
            yield from (word.rstrip("/") + ending for ending in _NODE_ENDINGS)
        if is_python and not word.endswith(".py"):
            module = word.replace(".", "/")
            yield from (f"{word}/__main__.py", f"{module}.py", f"{module}/__main__.py", f"{module}/__init__.py")


def _words_in(text: str, environment: Mapping[str, str]) -> Iterator[str]:
    """A text, and its parts, as far as they can be names of files."""
    between = without_variables(text)
    # `$PWD/x.sh` is a file of the folder, whatever PWD is when the program is started.
    behind = [piece.lstrip("/") for piece in between[1:]]
    for whole in dict.fromkeys((text, _filled(text, environment), between[0], *behind)):
        for part in (whole, *_APART.split(_ADDRESS.sub(" ", whole))):
            word = part
            if word.startswith("-") and not word.startswith("--"):
                word = word[2:]  # `-r./x.js`: an option of one letter and its value
            if word.strip("./") and not word.startswith("-") and not _NO_NAME.search(word) and len(word) <= _LONGEST:
                yield word


def _filled(text: str, environment: Mapping[str, str]) -> str:
    try:
        return fill(text, environment)
    except VariableMissing:
        return text


def _is_path(text: str) -> bool:
    """Whether the system can have such a path: no NUL, and no half of a character."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


class _Budget:
    """The bytes that may still be read."""

    def __init__(self) -> None:
        self.left = BYTES


def _state(folder: str, name: str, environment: Mapping[str, str], budget: _Budget) -> str:
    real = os.path.realpath(folder)
    path: str | None = name
    if name.startswith(_ON_PATH):
        path = _program(name.removeprefix(_ON_PATH), real, environment)
    if path is None:
        return ""
    target = os.path.realpath(path)
    try:
        # A FIFO has no bytes to wait for.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if _is_file(path):
            raise ScriptsRefused(f"{path}: {(error.strerror or 'cannot be read').lower()}") from error
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return f"sha256 {_hash(fd, path, budget)}" if _is_below(target, real) else f"leads to {target}"
    finally:
        os.close(fd)


def _program(command: str, real: str, environment: Mapping[str, str]) -> str | None:
    """A program of the folder that is found first on the search path. What is installed elsewhere is the user's."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(real, folder or ".", command)  # relative ones: the program is started in the folder
        if _is_file(path) and os.access(path, os.X_OK):
            is_theirs = _is_below(os.path.normpath(path), real) or _is_below(os.path.realpath(path), real)
            return path if is_theirs else None
    return None


def _hash(fd: int, path: str, budget: _Budget) -> str:
    digest = hashlib.sha256()
    while chunk := os.read(fd, _CHUNK):
        budget.left -= len(chunk)
        if budget.left < 0:
            raise ScriptsRefused(f"{path}: the files that the configuration starts are longer than {BYTES} bytes")
        digest.update(chunk)
    return digest.hexdigest()


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
