"""The folder that an agent works in: made fresh for each attempt, looked at before and after.

Files are compared by our own reading: git is not started in a folder that an agent has changed, because the
configuration of a repository can start programs.
"""

import difflib
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from evals.languages import provide
from evals.task import Task

Tree = Mapping[str, bytes]

IGNORED: Final = frozenset({".git", "__pycache__", "node_modules", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
# What an attempt may leave behind and still be read: more is cut off, and the grade says so.
MOST_FILES: Final = 5_000
MOST_BYTES: Final = 64 << 20
DIFF_CHARACTERS: Final = 200_000
# No configuration of the person who runs the evaluation reaches the repository, and no signature is asked for.
GIT: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Eval"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "eval@example.org"),
    **dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-01-01T12:00:00Z"),
}


class TooLarge(Exception):
    """A workspace has more files or bytes than are read."""


def make_workspace(task: Task, folder: Path, *, repository: bool = True) -> None:
    """Copy the project to `folder` and make it a git repository with one commit; then run the task's set-up.

    What the language brings, such as `node_modules`, is in no commit.
    """
    shutil.copytree(task.folder / "project", folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    provide(task.language, folder)
    if not repository and not task.has("setup.sh"):
        return
    commands = "git init -q -b main\ngit config user.name Eval\ngit config user.email eval@example.org\n"
    if task.language == "typescript":
        commands += "mkdir -p .git/info\nprintf '%s\\n' node_modules dist >> .git/info/exclude\n"
    commands += "git add -A\ngit commit -q -m 'Begin'\n"
    if task.has("setup.sh"):
        commands += (task.folder / "setup.sh").read_text("utf-8")
    subprocess.run(
        ["sh", "-ec", commands], cwd=folder, env={**os.environ, **GIT}, check=True, capture_output=True, timeout=60
    )


def read_tree(folder: Path) -> Tree:
    """Return every file by its path, links as their target. Raise `TooLarge` beyond the bounds."""
    found: dict[str, bytes] = {}
    size = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in IGNORED)
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in sorted([*files, *links]):
            path = Path(place, name)
            data = _content(path)
            size += len(data)
            found[path.relative_to(folder).as_posix()] = data
            if len(found) > MOST_FILES or size > MOST_BYTES:
                raise TooLarge(f"more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB")
    return found


def _content(path: Path) -> bytes:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return b"link to " + os.fsencode(os.readlink(path))
    if not stat.S_ISREG(status.st_mode):
        return b"special file"
    if status.st_size > MOST_BYTES:
        raise TooLarge(f"{path.name} has {status.st_size} bytes")
    return path.read_bytes()


def changed(before: Tree, after: Tree) -> list[str]:
    """Return the paths that were added, changed or deleted."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def diff(before: Tree, after: Tree) -> str:
    """Return the changes as a unified diff, cut at `DIFF_CHARACTERS`."""
    lines: list[str] = []
    for name in changed(before, after):
        old, new = (tree.get(name, b"").decode(errors="replace").splitlines() for tree in (before, after))
        lines += difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
    text = "\n".join(lines)
    return text if len(text) <= DIFF_CHARACTERS else text[:DIFF_CHARACTERS] + "\n… cut off"
