"""One run of git for a shadow (`shadow_git`): its environment, in which it starts nothing, its time, its failures.

Git opens `.gitignore` and `.gitattributes` of every folder that it comes to, and waits where one of them is a pipe
that nothing writes into. Looking for such a pipe costs more than most runs of git do, so it is looked for when
git takes long; and `GitRuns` remembers it, so that the next run does not wait.
"""

import os
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from dragoman.errors import WorldError
from dragoman.host.programs import path_outside
from dragoman.host.safe_git import safe_git_environment

# Git is killed after so long: what takes longer holds every turn up.
GIT_SECONDS: Final = 60.0
# After which it is looked for what git may wait for. A look at 100,000 files takes less.
PATIENCE: Final = 2.0
# Of these it reads one in every folder. What has more names than that is not looked through.
_READS: Final = (".gitignore", ".gitattributes")
_MOST_NAMES: Final = 500_000


class ShadowFailed(WorldError):
    """Git could not keep files or give them back. The text is a reason, for the middle of a sentence."""


def safe_environment(environment: Mapping[str, str], roots: Sequence[str]) -> dict[str, str]:
    """Return the environment in which git starts nothing of these folders."""
    path = path_outside(environment.get("PATH", os.defpath), roots)
    return {**safe_git_environment({**environment, "PATH": path}), "LC_ALL": "C.UTF-8", "GIT_LITERAL_PATHSPECS": "1"}


class GitRuns:
    """Runs git in the folder `top`. Blocks."""

    def __init__(self, top: str) -> None:
        self._top: Final = top
        # What git would have waited for, from the top; empty: nothing that is known.
        self._pipe = ""

    def __repr__(self) -> str:
        return f"<GitRuns in {self._top}>"

    def run(self, words: Sequence[str], environment: Mapping[str, str], input: bytes = b"") -> bytes:
        """Run git and return its output. Raises `ShadowFailed` with what it says."""
        self._check_pipe()
        try:
            child = subprocess.Popen(
                ["git", "--no-pager", *words],
                cwd=self._top,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError:
            raise ShadowFailed("git is not installed, or the folder is gone") from None
        with child:
            try:
                output, said = self._talk(child, input)
            except BaseException:
                child.kill()
                raise
        if child.returncode:
            raise ShadowFailed(_reason(said))
        return output

    def _talk(self, child: "subprocess.Popen[bytes]", input: bytes) -> tuple[bytes, bytes]:
        with suppress(subprocess.TimeoutExpired):
            return child.communicate(input, timeout=PATIENCE)
        self._pipe = next(_pipes_below(self._top), "")
        self._check_pipe()
        try:
            return child.communicate(timeout=GIT_SECONDS - PATIENCE)
        except subprocess.TimeoutExpired:
            raise ShadowFailed(f"git was not done after {GIT_SECONDS:.0f} s") from None

    def _check_pipe(self) -> None:
        """Raise `ShadowFailed` while there is something that git would wait for."""
        if self._pipe and not _is_pipe(os.path.join(self._top, self._pipe)):
            self._pipe = ""
        if self._pipe:
            raise ShadowFailed(f"git would wait for {self._pipe}, which is no file")


def _pipes_below(top: str) -> Iterator[str]:
    """Yield the pipes that git would read, from the top."""
    seen = 0
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name != ".git"]
        seen += len(names) + len(folders)
        if seen > _MOST_NAMES:
            return
        found = (os.path.join(folder, name) for name in _READS if name in names)
        yield from (os.path.relpath(path, top) for path in found if _is_pipe(path))


def _is_pipe(path: str) -> bool:
    """Return whether opening a path may wait: no file and no folder stands there, or behind a link."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _reason(said: bytes) -> str:
    """Return what git says about its failure."""
    lines = said.decode("utf-8", "replace").splitlines()
    telling = (line for line in lines if line.startswith(("fatal:", "error:")))
    reason = next(telling, lines[0] if lines else "git failed")
    return reason.removeprefix("fatal: ").removeprefix("error: ")
