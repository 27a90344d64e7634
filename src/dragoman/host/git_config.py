"""Finds the files of a workspace that git runs or takes settings from: hooks, included files, scripts it is told of.

Read from the configuration of the repository and the user's own, without running git. A name that a setting for a
program mentions counts if it is a path, or if such a file is there. Too much is found rather than too little.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from dragoman.host.paths import is_inside
from dragoman.host.regular_file import read_regular

_MOST_BYTES: Final = 1024 * 1024
# Configuration files that are read for one repository, with those that they include.
_MOST_FILES: Final = 20
# Settings that are one path: to a file of settings, or to a folder of hooks.
_PATHS: Final = frozenset({"core.hookspath", "core.attributesfile", "include.path", "includeif.path"})
_INCLUDES: Final = frozenset({"include.path", "includeif.path"})
# The last words of settings that are commands, and sections in which all are.
_COMMANDS: Final = frozenset(
    {
        *("fsmonitor", "sshcommand", "askpass", "editor", "pager", "external", "textconv", "command", "cmd", "clean"),
        *("smudge", "process", "driver", "program", "helper", "packobjectshook", "alternaterefscommand", "gitproxy"),
        *("difffilter", "uploadpack", "receivepack", "defaultkeycommand", "path"),
    }
)
_COMMAND_SECTIONS: Final = ("alias.", "pager.")
_SECTION: Final = re.compile(r"\s*\[\s*([A-Za-z0-9.-]+)\s*(\"(?:[^\"\\]|\\.)*\")?\s*\]")
_KEY: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*=")
# What a shell takes apart.
_BETWEEN_WORDS: Final = re.compile(r"[\s;|&()<>\"'`$={}]+")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")


class _Setting(NamedTuple):
    """One line of a configuration: its name in small letters, without the middle one, and its value."""

    name: str
    value: str


def configured_files(folder: str) -> list[str]:
    """Return the real paths of files and folders that git runs, or reads its settings from, in a repository.

    `folder` has the files of the repository; none if it is none. They may be outside of it, or not there yet.
    """
    git = os.path.join(folder, ".git")
    if not os.path.lexists(git):
        return []
    repositories = list(_repositories(git))
    found = [path for config in _configs(repositories) for path in _named(config, folder)]
    for repository in repositories:
        hooks = os.path.join(repository, "hooks")
        found += [hooks] if os.path.islink(hooks) else _links_in(hooks)
    return list(dict.fromkeys(os.path.realpath(path) for path in found))


def repository_above(folder: str) -> str:
    """Return the folder with the repository that a folder lies in; empty if it has one itself, or there is none."""
    here = folder
    while not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return ""
        here = above
    return here if here != folder else ""


def user_configs(environment: Mapping[str, str]) -> list[str]:
    """Return the paths of the user's own configuration of git, and of the machine's; they need not be there."""
    home = environment.get("HOME") or os.path.expanduser("~")
    settings = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return [os.path.join(home, ".gitconfig"), os.path.join(settings, "git", "config"), "/etc/gitconfig"]


def _configs(repositories: list[str]) -> Iterator[str]:
    """Yield the configuration files: of the repository, the user and the machine, and what they include."""
    waiting = [os.path.join(one, name) for one in repositories for name in ("config", "config.worktree")]
    waiting += user_configs(os.environ)
    for _ in range(_MOST_FILES):
        if not waiting:
            return
        config = waiting.pop(0)
        yield config
        waiting += [_beside(config, one.value) for one in _settings(_text(config)) if one.name in _INCLUDES]


def _named(config: str, folder: str) -> Iterator[str]:
    """Yield the paths that a configuration file names."""
    for name, value in _settings(_text(config)):
        if name in _INCLUDES:
            yield _beside(config, value)
        elif name in _PATHS:
            yield os.path.join(folder, os.path.expanduser(value))
        elif name.rpartition(".")[2] in _COMMANDS or name.startswith(_COMMAND_SECTIONS):
            yield from _files_of(value, folder)


def _beside(config: str, value: str) -> str:
    return os.path.join(os.path.dirname(config), os.path.expanduser(value))


def _files_of(command: str, folder: str) -> Iterator[str]:
    """Yield the files in a folder that a command line may run or read; git runs it there."""
    for word in {command, *_BETWEEN_WORDS.split(command)} - {""}:
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(word.lstrip("!"))))
        if not is_inside(path, folder) or path == folder:
            continue
        if os.path.isfile(path) or ("/" in word and not re.search(r"\s", word) and not os.path.isdir(path)):
            yield path
        if _MODULE.fullmatch(word):  # of `python -m`
            module = os.path.join(folder, *word.split("."))
            yield from filter(os.path.isfile, (f"{module}.py", os.path.join(module, "__main__.py")))


def _links_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return []


def _settings(text: str) -> Iterator[_Setting]:
    """Yield the settings of a configuration file, as git reads them; a line that git would not read is passed over.

    A line that ends with a backslash goes on in the next, unless it is a comment: it is read both ways.
    """
    section = ""
    text = text.removeprefix("\ufeff")
    for line in [*re.sub(r"\\\r?\n", "", text).splitlines(), *text.splitlines()]:
        begin = 0
        while header := _SECTION.match(line, begin):
            section, begin = header[1].partition(".")[0].lower(), header.end()
        key = _KEY.match(line, begin)
        value = _value(line[key.end() :]) if key else ""
        if key and value:
            yield _Setting(f"{section}.{key[1].lower()}", value)


def _value(text: str) -> str:
    """Return a value without quotes, escapes and the comment behind it."""
    value: list[str] = []
    is_quoted = False
    characters = iter(text.strip())
    for character in characters:
        if character == "\\":
            value.append(next(characters, ""))
        elif character == '"':
            is_quoted = not is_quoted
        elif character in "#;" and not is_quoted:
            break
        else:
            value.append(character)
    return "".join(value).strip()


def _repositories(git: str) -> Iterator[str]:
    """Yield the git folder, and the one it has its configuration from."""
    if not os.path.isdir(git):
        git = os.path.join(os.path.dirname(git), _text(git).removeprefix("gitdir:").strip())
    yield git
    common = _text(os.path.join(git, "commondir")).strip()
    if common:
        yield os.path.join(git, common)


def _text(path: str) -> str:
    """Return a regular file's beginning; empty if there is none."""
    try:
        return read_regular(path, _MOST_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""
