"""The environment of a session in words: date, system, shell, folders, git, and what lies at the top.

It is the first item of the context, written once: it says how things were when the session began. Git is asked by a
command that starts no program (`host/safe_git`), inside a bound of time, and never where a repository's configuration
could make it start one; then only the branch is told, which a file says.
"""

import asyncio
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from dragoman.errors import DragomanError
from dragoman.host.paths import PathRefused, Place, Roots, open_folder
from dragoman.host.programs import line_shell, path_outside
from dragoman.host.regular_file import read_whole
from dragoman.host.run_to_end import run_to_end
from dragoman.host.safe_git import git_programs, safe_git_environment
from dragoman.host.text import visible_line
from dragoman.host.worktrees import find_worktree

# Names at the top of a folder; of a folder with more, the first.
TOP_NAMES: Final = 60
# `git status` reads every file that may have changed: in a huge repository the session goes on without it.
STATUS_SECONDS: Final = 1.0
_STATUS_BYTES: Final = 1024 * 1024
_STATUS_MEMORY: Final = 1 << 30
_HEAD_BYTES: Final = 4096


class GitFacts(NamedTuple):
    """The state of the repository that the working folder is in. `changes` None: it is not known."""

    branch: str
    changes: tuple[int, int, int] | None = None


async def environment_text(roots: Roots, environment: Mapping[str, str]) -> str:
    """Return the text of the first item. Waits at most about `STATUS_SECONDS`."""
    git, tops, worktree = await asyncio.gather(
        git_facts(roots, environment),
        asyncio.to_thread(lambda: [_top(root) for root in roots.real]),
        asyncio.to_thread(find_worktree, roots.real[0]),
    )
    lines = [
        f"Date: {datetime.now().astimezone().date().isoformat()}",
        f"System: {platform.system()} {platform.release()} ({platform.machine()})",
        f"Commands run in: {line_shell()}",
        f"Working folder: {visible_line(roots.cwd)} (relative paths begin here)",
    ]
    if len(roots.given) > 1:
        lines.append(f"Other folders of the workspace: {', '.join(map(visible_line, roots.given[1:]))}")
    lines.append(f"Git: {_git_text(git)}")
    if worktree is not None:
        lines.append(
            f"The working folder is a git worktree of {visible_line(worktree.repository)}, made from "
            f"{visible_line(worktree.base)} for this work alone. Stay in it. Ignored files of the project, such as "
            "installed packages, are not in it."
        )
    for root, names in zip(roots.given, tops, strict=True):
        lines.append(f"At the top of {visible_line(root)}: {names or 'nothing'}")
    return "\n".join(lines)


async def git_facts(roots: Roots, environment: Mapping[str, str]) -> GitFacts | None:
    """Return what git knows of the working folder; None: it is in no repository."""
    folder = roots.real[0]
    branch = await asyncio.to_thread(_branch, folder)
    if branch is None:
        return None
    try:
        reason = await asyncio.to_thread(git_programs, folder, (), environment, diffs=False)
        return GitFacts(branch, None if reason else await _changes(folder, roots.real, environment))
    except (OSError, DragomanError):
        return GitFacts(branch)


def _git_text(git: GitFacts | None) -> str:
    if git is None:
        return "not a repository"
    branch = f"branch {visible_line(git.branch)}"
    if git.changes is None:
        return branch
    staged, changed, untracked = git.changes
    if not any(git.changes):
        return f"{branch}, nothing changed since the last commit"
    return f"{branch}; files staged {staged}, changed {changed}, untracked {untracked}; these changes are not yours"


def _branch(folder: str) -> str | None:
    """Return the branch that is checked out, or the beginning of a commit; None: there is no repository."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    git = os.path.join(folder, ".git")
    try:
        if not os.path.isdir(git):
            pointer = read_whole(git, _HEAD_BYTES).decode("utf-8", "replace").strip()
            git = os.path.join(folder, pointer.removeprefix("gitdir:").strip())
        head = read_whole(os.path.join(git, "HEAD"), _HEAD_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return "unknown"
    reference = head.removeprefix("ref:").strip()
    return reference.removeprefix("refs/heads/")[:200] if head.startswith("ref:") else f"none, at {head[:12]}"


async def _changes(folder: str, roots: Sequence[str], environment: Mapping[str, str]) -> tuple[int, int, int] | None:
    """Return how many files are staged, changed and untracked; None where git is not there, fails or is too slow."""
    path = path_outside(environment.get("PATH", os.defpath), roots)
    output = bytearray()

    def on_output(data: bytes) -> bool:
        output.extend(data)
        return len(output) < _STATUS_BYTES

    # Names are ended by NUL and not needed; a submodule has a configuration of its own, so none is looked into.
    argv = ["git", "--no-pager", "status", "--porcelain", "-z", "--ignore-submodules=all", "--untracked-files=normal"]
    try:
        result = await run_to_end(
            argv,
            cwd=folder,
            env=safe_git_environment({**environment, "PATH": path}),
            input=b"",
            on_output=on_output,
            seconds=STATUS_SECONDS,
            memory=_STATUS_MEMORY,
        )
    except OSError:
        return None
    return count_changes(bytes(output)) if result.exit_code == 0 else None


def count_changes(status: bytes) -> tuple[int, int, int]:
    """Return the numbers of staged, changed and untracked files in what `git status --porcelain -z` has printed."""
    staged = changed = untracked = 0
    entries = iter(status.split(b"\0"))
    for entry in entries:
        if len(entry) < 4:
            continue
        index, work = chr(entry[0]), chr(entry[1])
        if index in "RC":
            next(entries, None)  # the name that it had before
        untracked += index == "?"
        staged += index not in " ?!"
        changed += work not in " ?!"
    return staged, changed, untracked


def _top(root: str) -> str:
    """Return the names at the top of a folder, folders with a slash."""
    try:
        folder = open_folder(Place(root, ()))
    except (OSError, PathRefused):
        return ""
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                for entry in entries
                if entry.name != ".git"
            )
    except OSError:
        return ""
    finally:
        os.close(folder)
    more = f" … and {len(names) - TOP_NAMES} more" if len(names) > TOP_NAMES else ""
    return ", ".join(map(visible_line, names[:TOP_NAMES])) + more
