"""Git that starts nothing: the settings for a command that runs without a question, and what no setting turns off.

`safe_git_environment` turns off, for git alone, what a repository's own configuration or files make it run: the file
monitor, hooks, signatures, transports, implicit bare repositories. External diffs, text conversions, filters and merge
drivers have no such switch. So `git_programs` looks, without running git, whether the configuration of a repository
names any; then the command is not harmless, and is asked about.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dragoman.host.git_config import user_configs
from dragoman.host.paths import is_inside
from dragoman.host.protected_scan import ProtectedScan, ScanFailed, scan_protected
from dragoman.host.read_only_commands import is_read_only
from dragoman.host.regular_file import read_whole
from dragoman.host.shell import Parsed, Unparsed

_SETTINGS: Final = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "safe.bareRepository": "explicit",
    "log.showSignature": "false",
    "core.pager": "cat",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
}
# No index is refreshed, no transport is used, not even for objects that a partial clone lacks.
_VARIABLES: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
}
# Keys whose value is a program, in any section; whatever looks like one counts. Programs of diffs stand apart.
_DIFF_KEYS: Final = ("textconv", "command", "external")
_OTHER_KEYS: Final = ("clean", "smudge", "process", "driver", "program", "packobjectshook", "alternaterefscommand")
# A setting of ours does not reach a submodule: git takes it out of the environment there.
_SUBMODULE_KEYS: Final = ("fsmonitor", "hookspath", "showsignature")
_INCLUDE: Final = re.compile(r"\[\s*include", re.IGNORECASE)
_CONFIG_BYTES: Final = 1024 * 1024
_POINTER_BYTES: Final = 4096
# Repositories in one workspace that are looked at.
_MOST_REPOSITORIES: Final = 500


# What shows changes, and runs external diffs or text conversions unless both are turned off.
_SHOWS_CHANGES: Final = frozenset({"diff", "log", "show", "blame", "reflog", "stash", "grep", "cat-file"})
_OFF: Final = frozenset({"--no-ext-diff", "--no-textconv"})


# What writes in a repository and, with whatever options, runs no program that its own words name.
_WRITES: Final = frozenset(
    {
        *("add", "branch", "checkout", "cherry-pick", "commit", "merge", "mv", "reset", "restore", "revert", "rm"),
        *("stash", "switch", "tag", "update-index", "update-ref"),
    }
)


def writes_git(parsed: Parsed | Unparsed) -> bool:
    """Return whether a command line is nothing but git commands, of which one writes in the repository."""
    if isinstance(parsed, Unparsed) or not parsed.commands:
        return False
    for simple in parsed.commands:
        if simple.argv[:1] != ("git",) or simple.assignments or not simple.literal or simple.redirects:
            return False
        if len(simple.argv) < 2 or (simple.argv[1] not in _WRITES and not is_read_only(simple)):
            return False
    return any(simple.argv[1] in _WRITES for simple in parsed.commands)


def runs_git(parsed: Parsed | Unparsed) -> bool:
    """Return whether a read-only command line runs git."""
    return not isinstance(parsed, Unparsed) and any(simple.argv[:1] == ("git",) for simple in parsed.commands)


def shows_changes(parsed: Parsed | Unparsed) -> bool:
    """Return whether a read-only command line may make git run external diffs or text conversions."""
    if isinstance(parsed, Unparsed):
        return True
    for simple in parsed.commands:
        if simple.argv[:1] != ("git",) or _OFF.issubset(simple.argv):
            continue
        verbose = any(word.startswith("-") and "v" in word for word in simple.argv)
        if _SHOWS_CHANGES.intersection(simple.argv[1:]) or verbose:
            return True
    return False


def safe_git_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which git starts nothing; no variable of git's own is left from before."""
    without_git = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    return {**without_git, **_VARIABLES, **git_settings(_SETTINGS)}


def git_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give git these settings, above those of every file."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for at, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return variables


def git_programs(folder: str, roots: Sequence[str], environment: Mapping[str, str], *, diffs: bool) -> str:
    """Return what git may run here in spite of `safe_git_environment`, in words; empty: nothing. Blocks.

    `diffs` False: the command runs neither external diffs nor text conversions. Whatever cannot be read is something.
    """
    try:
        own = [path for repository in _around(folder) for path in _configs(repository)]
        nested = [path for repository in _nested(roots) for path in _configs(repository)]
    except (OSError, ScanFailed) as error:
        return f"the configuration of git cannot be read: {error}"
    if reason := leads_elsewhere(folder):
        return reason
    keys = (*(_DIFF_KEYS if diffs else ()), *_OTHER_KEYS)
    for path in own:
        if found := _named(path, keys, includes=True):
            return found
    for path in nested:
        if found := _named(path, (*keys, *_SUBMODULE_KEYS), includes=True):
            return found
    # Filters of the user's own configuration are the user's own; so are other programs, but none is run unasked.
    for path in user_configs(environment) if diffs else ():
        if found := _named(path, _DIFF_KEYS, includes=False):
            return found
    return ""


def leads_elsewhere(folder: str) -> str:
    """Return why the repository that git finds from a folder may be that of another one, in words.

    Empty: it is its own.

    A `.git` that came with the files could make git show what any other repository of the user holds.
    """
    here = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return ""
        here = above
    git = os.path.join(here, ".git")
    if os.path.islink(git):
        return f"{git} is a link"
    try:
        own = os.path.realpath(next(_repository(git), git))
        common = os.path.realpath(os.path.join(own, _pointer(os.path.join(own, "commondir"))))
        worktree = _WORKTREE.search(_read(os.path.join(own, "config"), _CONFIG_BYTES)) if common == own else None
        back = os.path.realpath(_pointer(os.path.join(own, "gitdir")) or own)
    except OSError as error:
        return f"the configuration of git cannot be read: {error}"
    names_this = worktree is not None and os.path.realpath(os.path.join(own, worktree[1])) == here
    is_worktree = own != git and back == git and is_inside(own, common)
    is_own = own == git and common == own and worktree is None
    if not (is_own or names_this or is_worktree):
        return f"{git} leads to the repository of another folder"
    for name in _INNER:
        for path in (os.path.join(own, name), os.path.join(common, name)):
            if os.path.islink(path) and not is_inside(os.path.realpath(path), common):
                return f"{path} is a link to elsewhere"
    return ""


_INNER: Final = ("HEAD", "index", "objects", "refs", "logs", "packed-refs")
_WORKTREE: Final = re.compile(r"(?:^|[\s\]])worktree[ \t]*=[ \t]*\"?([^\"\n]+?)\"?[ \t]*(?:\n|$)", re.IGNORECASE)


def _named(path: str, keys: Sequence[str], *, includes: bool) -> str:
    """Return which of the keys a configuration file has, in words. Too much is found rather than too little."""
    try:
        text = _read(path, _CONFIG_BYTES)
    except FileNotFoundError:
        return ""
    except OSError:
        return f"{path} cannot be read"
    if includes and _INCLUDE.search(text):
        return f"{path} includes other files"
    found = re.search(rf"(?:^|[\s\]])({'|'.join(keys)})[ \t\r]*(?:=|[#;\n]|$)", text, re.IGNORECASE)
    return f"{path} names a program ({found[1]})" if found else ""


def _configs(repository: str) -> Iterator[str]:
    """Yield the configuration files of a git folder."""
    yield os.path.join(repository, "config")
    yield os.path.join(repository, "config.worktree")
    common = _pointer(os.path.join(repository, "commondir"))
    if common:
        yield os.path.join(repository, common, "config")


def _around(folder: str) -> Iterator[str]:
    """Yield the repositories that git may find from a folder: the first on the way up, bare ones as well."""
    here = os.path.realpath(folder)
    while True:
        yield from _repository(os.path.join(here, ".git"))
        if os.path.lexists(os.path.join(here, "HEAD")):
            yield here
        above = os.path.dirname(here)
        if above == here or os.path.lexists(os.path.join(here, ".git")):
            return
        here = above


def _nested(roots: Sequence[str]) -> Iterator[str]:
    """Yield the repositories in the roots, which may be submodules, and those of submodules in them."""
    count = 0
    for root in roots:
        found: ProtectedScan = scan_protected(root)
        for path in (*found.protected, *found.git_folders):
            whole = os.path.join(root, path)
            if path not in found.git_folders and os.path.basename(path).lower() != ".git":
                continue
            for repository in _repository(whole):
                for one in (repository, *_modules(os.path.join(repository, "modules"))):
                    count += 1
                    if count > _MOST_REPOSITORIES:
                        raise OSError(f"there are more than {_MOST_REPOSITORIES} repositories in {root}")
                    if path != ".git" or one != repository:
                        yield one


def _modules(folder: str) -> Iterator[str]:
    """Yield the git folders of submodules, which may be in folders of folders."""
    waiting = [folder]
    for _ in range(_MOST_REPOSITORIES * 4):
        if not waiting:
            return
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            continue
        if os.path.lexists(os.path.join(here, "HEAD")):
            yield here
            below = [os.path.join(here, "modules")]
        waiting += below
    if waiting:
        raise OSError(f"there are too many folders in {folder}")


def _repository(path: str) -> Iterator[str]:
    """Yield the git folder that a `.git` is or names."""
    if os.path.isdir(path):
        yield path
    elif os.path.lexists(path):
        words = _pointer(path)
        if words.startswith("gitdir:"):
            yield os.path.join(os.path.dirname(path), words.removeprefix("gitdir:").strip())


def _pointer(path: str) -> str:
    try:
        return _read(path, _POINTER_BYTES).strip()
    except FileNotFoundError:
        return ""


def _read(path: str, most: int) -> str:
    return read_whole(path, most).decode("utf-8", "replace")
