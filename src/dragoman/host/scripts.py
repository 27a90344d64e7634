"""The files of a folder that a configuration starts: which they are, and what is in them.

A configuration that says `./server.sh` is only as trustworthy as the file. So every regular file below the folder that
the start of a program may mean (`launch_names`) is looked at together with the configuration.

A pattern such as `hooks/*.sh` stands for the files that it matches, and for there being no others: each is looked at,
and so are their names together. Which of the wildcards the program knows is not asked: all of them count.

What is hashed is what the path leads to at that moment. The program is started by the same path a moment later; a file
that is changed in between by something unconfined is not noticed.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Final

from dragoman.host.launch_names import ON_PATH, PATTERN, Launch, ScriptsRefused, is_below, is_file, names_of
from dragoman.host.wild_paths import PatternSearch, TooManyFiles

# Names looked at for one folder, and bytes read of all of them: a session that opens waits for this.
NAMES: Final = 4096
BYTES: Final = 64 * 1024 * 1024
_CHUNK: Final = 1024 * 1024
# No name of a file has it.
_END: Final = "\0"


def named_files(folder: str, launches: Iterable[Launch], environment: Mapping[str, str]) -> dict[str, str]:
    """Find every name below `folder` that the launches mention, and what is there now (`states`)."""
    names: dict[str, None] = {}
    for launch in launches:
        for name in names_of(folder, launch, environment):
            names.setdefault(name)
            if name.startswith(PATTERN):
                names |= dict.fromkeys(path for path in meant_by(name) if is_file(path))
            if len(names) > NAMES:
                raise ScriptsRefused(f"{folder}: its configuration names more than {NAMES} files")
    return states(folder, names, environment)


def states(folder: str, names: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return what each name leads to: the hash of a file, the place outside of the folder, or nothing."""
    budget = _Budget()
    return {name: _state(folder, name, environment, budget) for name in names}


def meant_by(name: str) -> list[str]:
    """Return what a pattern among the names of `names_of` stands for now, by whole paths. Blocks."""
    pattern = name.removeprefix(PATTERN)
    # Where any depth is meant, programs leave out what is not the project's own; else they look at what is there.
    search = PatternSearch() if "**" in pattern else PatternSearch(())
    try:
        return search.paths_meant(pattern)
    except TooManyFiles:
        raise ScriptsRefused(
            f"{pattern[:200]} stands for more files than can be looked at; name them, or put the line into a script"
        ) from None


def shown_name(folder: str, name: str) -> str:
    """Write a name of `named_files` for a message."""
    if name.startswith(ON_PATH):
        return f"the program that {name.removeprefix(ON_PATH)} is on the search path"
    if name.startswith(PATTERN):
        return f"what {os.path.relpath(name.removeprefix(PATTERN), os.path.realpath(folder))} stands for"
    return os.path.relpath(name, os.path.realpath(folder))


class _Budget:
    """The bytes that may still be read."""

    def __init__(self) -> None:
        self.left = BYTES


def _state(folder: str, name: str, environment: Mapping[str, str], budget: _Budget) -> str:
    if name.startswith(PATTERN):
        found = sorted(meant_by(name))
        return f"sha256 {hashlib.sha256(os.fsencode(_END.join(found))).hexdigest()}" if found else ""
    real = os.path.realpath(folder)
    path: str | None = name
    if name.startswith(ON_PATH):
        path = _program(name.removeprefix(ON_PATH), real, environment)
    if path is None:
        return ""
    target = os.path.realpath(path)
    try:
        # A FIFO has no bytes to wait for.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if is_file(path):
            raise ScriptsRefused(f"{path}: {(error.strerror or 'cannot be read').lower()}") from error
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return f"sha256 {_hash(fd, path, budget)}" if is_below(target, real) else f"leads to {target}"
    finally:
        os.close(fd)


def _program(command: str, real: str, environment: Mapping[str, str]) -> str | None:
    """Return a program of the folder that is found first on the search path.

    What is installed elsewhere is the user's.
    """
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(real, folder or ".", command)  # relative ones: the program is started in the folder
        if is_file(path) and os.access(path, os.X_OK):
            is_theirs = is_below(os.path.normpath(path), real) or is_below(os.path.realpath(path), real)
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
