"""Git worktrees for sessions: each has a folder beside the repository and a branch of its own, until it is finished.

What is known of a worktree (the branch it was made from, the folder that was asked for) stands in a file of ours in
git's own folder for it, `.git/worktrees/ID/dragoman.json`: it goes when the worktree goes, and git tells where the
worktree is. A worktree counts only if it points back to that folder, so a repository that came from elsewhere cannot
name any other folder.

Git starts nothing here (`safe_git`): no hooks, no file monitor, and where the repository's own configuration names
filters or merge drivers, the work is refused with the reason.
"""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from dragoman.errors import UsageError
from dragoman.host.paths import is_inside
from dragoman.host.private_file import replaced_file
from dragoman.host.programs import path_outside
from dragoman.host.regular_file import read_whole
from dragoman.host.run_to_end import run_to_end
from dragoman.host.safe_git import git_programs, safe_git_environment

# Of every branch that is made here.
BRANCHES: Final = "dragoman/"
# A checkout writes every file of the repository.
GIT_SECONDS: Final = 600.0
_GIT_MEMORY: Final = 4 << 30
_OUTPUT_BYTES: Final = 4 << 20
_RECORD: Final = "dragoman.json"
_RECORD_BYTES: Final = 64 * 1024
# Worktrees of one repository that are looked at.
_MOST: Final = 1000
# What is added to the repository's own name for the folder of its worktrees.
_PARENT: Final = ".worktrees"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_NAME_LENGTH: Final = 64


class WorktreeFailed(UsageError):
    """A worktree cannot be made, merged or removed. The text says why, and what is as it was."""


class Worktree(msgspec.Struct, frozen=True):
    """A worktree of ours. `base` is the branch it was made from, or a commit where none was checked out."""

    name: str
    path: str
    branch: str
    base: str
    commit: str
    # The folder that is checked out by the repository itself.
    repository: str
    # The folder of the worktree that stands for the folder that was asked for.
    folder: str


class WorktreeState(NamedTuple):
    """What finishing a worktree is about: files not committed, and commits that its base does not have."""

    changed: Sequence[str]
    commits: Sequence[str]


async def add_worktree(cwd: str, name: str, environment: Mapping[str, str], parent: str = "") -> Worktree:
    """Make a worktree and a branch from what is checked out in a folder, or return the one of that name.

    Without a `name` it is the first free of task-1, task-2, … . It is made in `parent`, by default beside the
    repository. Raise `WorktreeFailed` where the folder is in no repository or git refuses.
    """
    if name and (not _NAME.fullmatch(name) or len(name) > _NAME_LENGTH or name.endswith(".lock")):
        raise WorktreeFailed(f"{name!r} cannot name a worktree: use letters, digits, - and _, at most {_NAME_LENGTH}")
    git = _Git(cwd, environment)
    top, common = await git.find_repository()
    await git.check()
    known = {worktree.name: worktree for worktree in worktrees_of(cwd)}
    if name in known:
        return known[name]
    commit = await git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}", failure="it has no commit yet")
    base = await git.line("symbolic-ref", "--quiet", "--short", "HEAD", failure="") or commit
    repository = _repository_of(common)
    parent = parent or f"{repository}{_PARENT}"
    if not name:
        branches = set((await git.text("for-each-ref", "--format=%(refname:short)", f"refs/heads/{BRANCHES}")).split())
        name = next(
            name
            for number in range(1, 1_000_000)
            if f"{BRANCHES}{(name := f'task-{number}')}" not in branches and not os.path.lexists(f"{parent}/{name}")
        )
    path = os.path.join(parent, name)
    try:
        os.makedirs(parent, exist_ok=True)
    except OSError as error:
        raise WorktreeFailed(f"{parent} cannot be made: {(error.strerror or 'no').lower()}") from None
    await git.text("worktree", "add", "--quiet", "-b", f"{BRANCHES}{name}", path, commit)
    folder = os.path.normpath(os.path.join(path, os.path.relpath(os.path.realpath(cwd), top)))
    made = Worktree(name, path, f"{BRANCHES}{name}", base, commit, repository, folder)
    try:
        if not os.path.isdir(folder):
            raise WorktreeFailed(f"{cwd} is not in the last commit of {repository}: commit it, or begin at its top")
        _write(made)
    except (OSError, WorktreeFailed) as error:
        await _Git(repository, environment).text("worktree", "remove", "--force", path)
        await _Git(repository, environment).text("branch", "--quiet", "-D", made.branch)
        if isinstance(error, WorktreeFailed):
            raise
        raise WorktreeFailed(f"{path} cannot be recorded: {(error.strerror or 'no').lower()}") from None
    return made


def worktree_parent(cwd: str) -> str:
    """Return the folder that worktrees are made in: beside the repository that a folder is in. Blocks."""
    common = _common_folder(cwd)
    if common is None:
        raise WorktreeFailed(f"{cwd} is in no git repository")
    return f"{_repository_of(common)}{_PARENT}"


def folders_for(cwd: str) -> list[str]:
    """Return the folders that were made for sessions of a folder, one in each worktree of ours. Blocks."""
    real = os.path.realpath(cwd)
    return [
        one.folder
        for one in worktrees_of(cwd)
        if os.path.relpath(one.folder, one.path) == os.path.relpath(real, one.repository)
    ]


def worktrees_of(cwd: str) -> list[Worktree]:
    """Return the worktrees of ours of the repository that a folder is in. Reads files, runs nothing; blocks."""
    common = _common_folder(cwd)
    found: list[Worktree] = []
    if common is None:
        return found
    with suppress(OSError), os.scandir(os.path.join(common, "worktrees")) as entries:
        for entry in list(entries)[:_MOST]:
            with suppress(OSError, msgspec.DecodeError):
                record = msgspec.json.decode(_read(os.path.join(entry.path, _RECORD)), type=Worktree)
                if _is_sound(record, common, entry.path):
                    found.append(record)
    return sorted(found, key=lambda worktree: worktree.name)


def find_worktree(cwd: str) -> Worktree | None:
    """Return the worktree of ours that a folder is in; None: it is in none. Reads files, runs nothing; blocks."""
    real = os.path.realpath(cwd)
    git = _nearest_git(real)
    if git is None or os.path.isdir(git):  # in a worktree it is a file, which leads to the repository
        return None
    return next((one for one in worktrees_of(cwd) if is_inside(real, os.path.realpath(one.path))), None)


def _nearest_git(folder: str) -> str | None:
    """Return the nearest `.git` from a folder upwards; None: there is none."""
    while True:
        git = os.path.join(folder, ".git")
        if os.path.lexists(git):
            return git
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


async def state_of(worktree: Worktree, environment: Mapping[str, str]) -> WorktreeState:
    """Return what would be lost with a worktree. Raise `WorktreeFailed` where git cannot say it."""
    git = _Git(worktree.path, environment)
    await git.check_with_submodules()
    status = await git.text("status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames")
    changed = [entry[3:] for entry in status.split("\0") if entry]
    onto = worktree.base if await git.knows(worktree.base) else worktree.commit
    commits = await git.text("log", "--format=%h %s", f"{onto}..{worktree.branch}", "--")
    return WorktreeState(changed, commits.splitlines())


async def commit_changes(worktree: Worktree, message: str, environment: Mapping[str, str]) -> None:
    """Commit everything in a worktree that is not ignored."""
    git = _Git(worktree.path, environment)
    await git.check_with_submodules()
    await git.text("add", "--all")
    await git.text("commit", "--quiet", "--no-verify", "-m", message)


async def merge_worktree(worktree: Worktree, environment: Mapping[str, str]) -> str:
    """Merge the branch of a worktree into its base and return the new commit.

    The base has to be checked out in the repository's own folder, without changes. A conflict is undone and raises
    `WorktreeFailed`, as everything else that git refuses; nothing is changed then.
    """
    git = _Git(worktree.repository, environment)
    await git.check_with_submodules()
    here = await git.line("symbolic-ref", "--quiet", "--short", "HEAD", failure="")
    if here != worktree.base:
        raise WorktreeFailed(
            f"{worktree.repository} has {here or 'no branch'} checked out and not {worktree.base}: "
            f"`git switch {worktree.base}` there, or merge {worktree.branch} by hand"
        )
    if await git.text("status", "--porcelain", "--untracked-files=no"):
        raise WorktreeFailed(f"{worktree.repository} has changes that are not committed: commit or stash them first")
    try:
        await git.text("merge", "--quiet", "--no-ff", "--no-edit", "--no-verify", worktree.branch)
    except WorktreeFailed as error:
        with suppress(WorktreeFailed):  # there is nothing to undo where it did not begin
            await git.text("merge", "--abort")
        raise WorktreeFailed(f"{worktree.branch} does not merge into {worktree.base} by itself: {error}") from None
    return await git.line("rev-parse", "--short", "HEAD", failure="the merge has no commit")


async def remove_worktree(worktree: Worktree, environment: Mapping[str, str]) -> str:
    """Remove a worktree and its branch, whatever is in it; return the commit that the branch had."""
    git = _Git(worktree.repository, environment)
    await git.check()
    tip = await git.line("rev-parse", "--short", worktree.branch, failure=f"{worktree.branch} is gone")
    await git.text("worktree", "remove", "--force", worktree.path)
    await git.text("branch", "--quiet", "-D", worktree.branch)
    with suppress(OSError):  # other worktrees are there
        os.rmdir(os.path.dirname(worktree.path))
    return tip


class _Git:
    """Git in one folder, starting nothing."""

    def __init__(self, folder: str, environment: Mapping[str, str]) -> None:
        self._folder = os.path.realpath(folder)
        path = path_outside(environment.get("PATH", os.defpath), [self._folder])
        self._environment = {**safe_git_environment({**environment, "PATH": path}), "LC_ALL": "C.UTF-8"}

    async def find_repository(self) -> tuple[str, str]:
        """Return the top of the folder's worktree and the git folder that all worktrees share."""
        question = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir")
        lines = (await self.text(*question)).split("\n")[:-1]
        if len(lines) != 2:
            raise WorktreeFailed(f"{self._folder} is in no git repository with files")
        return os.path.realpath(lines[0]), os.path.realpath(lines[1])

    async def check(self) -> None:
        """Raise `WorktreeFailed` where git would start a program that the repository names."""
        await self._check(())

    async def check_with_submodules(self) -> None:
        """Do the same before `status`, `add` and `merge`, which have git look into submodules and start what those
        name."""
        await self._check([self._folder])

    async def _check(self, nested_in: Sequence[str]) -> None:
        reason = await asyncio.to_thread(git_programs, self._folder, nested_in, self._environment, diffs=False)
        if reason:
            raise WorktreeFailed(f"git is not run in {self._folder}, because it would start a program: {reason}")

    async def knows(self, revision: str) -> bool:
        """Return whether there is such a commit."""
        return bool(await self.line("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", failure=""))

    async def line(self, *words: str, failure: str) -> str:
        """Return one line of output; where git fails, nothing, or `WorktreeFailed` with that reason if it is given."""
        try:
            return (await self.text(*words)).strip()
        except WorktreeFailed:
            if failure:
                raise WorktreeFailed(f"{self._folder}: {failure}") from None
            return ""

    async def text(self, *words: str) -> str:
        """Run git and return its output. Raise `WorktreeFailed` with what it says."""
        output = bytearray()

        def on_output(data: bytes) -> bool:
            output.extend(data)
            return len(output) < _OUTPUT_BYTES

        try:
            result = await run_to_end(
                ["git", "--no-pager", *words],
                cwd=self._folder,
                env=self._environment,
                input=b"",
                on_output=on_output,
                seconds=GIT_SECONDS,
                memory=_GIT_MEMORY,
            )
        except OSError:
            raise WorktreeFailed("git is not installed, or the folder is gone") from None
        if result.timed_out:
            raise WorktreeFailed(f"git was not done after {GIT_SECONDS:.0f} s")
        if result.exit_code not in (0, None):
            said = [*result.stderr_tail.splitlines(), *output.decode("utf-8", "replace").splitlines()]
            telling = (line for line in said if line.startswith(("fatal:", "error:", "CONFLICT")))
            reason = next(telling, said[0] if said else "git failed")
            raise WorktreeFailed(reason.removeprefix("fatal: ").removeprefix("error: "))
        return output.decode("utf-8", "replace")


def _write(worktree: Worktree) -> None:
    with replaced_file(os.path.join(_gitdir(os.path.join(worktree.path, ".git")), _RECORD)) as file:
        file.write(msgspec.json.encode(worktree))


def _is_sound(record: Worktree, common: str, own: str) -> bool:
    """Return whether a record says what this code could have written: the file may have come with the repository."""
    return (
        os.path.realpath(_gitdir(os.path.join(record.path, ".git"))) == os.path.realpath(own)
        and _NAME.fullmatch(record.name) is not None
        and record.branch == f"{BRANCHES}{record.name}"
        and record.repository == _repository_of(common)
        and not record.base.startswith("-")
        and is_inside(os.path.realpath(record.folder), os.path.realpath(record.path))
    )


def _repository_of(common: str) -> str:
    """Return the folder that a repository itself has checked out."""
    return os.path.dirname(common) if os.path.basename(common) == ".git" else common


def _common_folder(cwd: str) -> str | None:
    """Return the git folder that all worktrees of a folder's repository share; None: there is none."""
    git = _nearest_git(os.path.realpath(cwd))
    if git is None or os.path.isdir(git):
        return git
    try:
        own = _gitdir(git)
        common = os.path.realpath(os.path.join(own, _read(os.path.join(own, "commondir")).decode().strip()))
        back = os.path.realpath(_read(os.path.join(own, "gitdir")).decode().strip())
    except (OSError, UnicodeDecodeError):
        return None
    return common if back == git and is_inside(os.path.realpath(own), common) else None


def _gitdir(pointer: str) -> str:
    """Return the folder that a `.git` file names."""
    words = _read(pointer).decode("utf-8", "replace").strip()
    if not words.startswith("gitdir:"):
        raise OSError("no pointer of git")
    return os.path.join(os.path.dirname(pointer), words.removeprefix("gitdir:").strip())


def _read(path: str) -> bytes:
    return read_whole(path, _RECORD_BYTES, follow=False)
