"""Where a repository keeps its hooks, if that is not in its git folder: a folder of the workspace, which git runs.

Read from the configuration of the repository, without running git. Too much is found rather than too little.
"""

import os
import re
from collections.abc import Iterator
from typing import Final

from dragoman.host.regular_file import read_regular

_HOOKS_PATH: Final = re.compile(r"(?:^|[\s\]])hookspath[ \t]*=[ \t]*\"?([^\"\n]*)", re.IGNORECASE)
_MOST_BYTES: Final = 1024 * 1024


def hook_folders(folder: str) -> list[str]:
    """Real paths of folders with hooks that the repository whose files are in `folder` names; none if it is none."""
    git = os.path.join(folder, ".git")
    if not os.path.lexists(git):
        return []
    found = [os.path.join(folder, os.path.expanduser(value)) for value in _named(git) if value]
    hooks = os.path.join(git, "hooks")
    if os.path.islink(hooks):
        found.append(hooks)
    return [os.path.realpath(path) for path in found]


def _named(git: str) -> Iterator[str]:
    for repository in _repositories(git):
        for name in ("config", "config.worktree"):
            for value in _HOOKS_PATH.findall(_text(os.path.join(repository, name))):
                yield value.strip()


def _repositories(git: str) -> Iterator[str]:
    """The git folder, and the one it has its configuration from."""
    if not os.path.isdir(git):
        git = os.path.join(os.path.dirname(git), _text(git).removeprefix("gitdir:").strip())
    yield git
    common = _text(os.path.join(git, "commondir")).strip()
    if common:
        yield os.path.join(git, common)


def _text(path: str) -> str:
    """A regular file's beginning; empty if there is none."""
    try:
        return read_regular(path, _MOST_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
