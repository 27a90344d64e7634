"""Which branch a folder is on, read from git's files: a status line asks often, and a process each time is too much."""

import os
from pathlib import Path
from typing import Final

from dragoman.host.regular_file import read_regular

_GITDIR: Final = "gitdir: "
_BRANCH: Final = "ref: refs/heads/"
_MOST_BYTES: Final = 4096
_SHORT: Final = 8
# Folders above the one that is asked about.
_LEVELS: Final = 64


def find_branch(folder: str) -> str:
    """Return the branch that the repository around `folder` is on, or the short id of its commit where it is on none;
    empty outside of one. Reads two small files at most."""
    for place in [Path(folder), *Path(folder).parents][:_LEVELS]:
        git = place / ".git"
        if os.path.lexists(git):
            return _head(git)
    return ""


def _head(git: Path) -> str:
    if git.is_file():  # of a worktree: a line that says where its own files are
        line = _first_line(git)
        if not line.startswith(_GITDIR):
            return ""
        git = git.parent / line.removeprefix(_GITDIR)
    head = _first_line(git / "HEAD")
    if head.startswith(_BRANCH):
        return head.removeprefix(_BRANCH)
    return head[:_SHORT] if head.isalnum() else ""


def _first_line(file: Path) -> str:
    try:
        return read_regular(str(file), _MOST_BYTES).decode("utf-8", "replace").partition("\n")[0].strip()
    except (OSError, ValueError):
        return ""
