"""A command line that confines its command, and what has to be done when the command has ended.

Made by `sandbox.confine`. Promise: after `ConfinedCommand.close` no process of the command lives, and it has left
nothing in the roots that runs when a person looks at them; what was taken back is said in sentences.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, Self

from dragoman.host.command_limits import CommandLimits
from dragoman.host.pid_namespace import end_namespace
from dragoman.host.placeholders import Placeholder, is_placeholder
from dragoman.host.safe_git import git_settings
from dragoman.host.workspace_watch import WorkspaceWatch

Level = Literal["bubblewrap", "landlock"]

# Names of the list of protected ones that a command cannot even try to make in a root: those that are looked for most.
NOT_TO_BE_MADE: Final = (
    *(".git", ".vscode", ".idea", ".zed", ".devcontainer", ".envrc", ".mcp.json", ".claude", ".cursor", ".dragoman"),
    ".husky",
)
# No housekeeping of git beside a command: it would be cut off in the middle.
_GIT_SETTINGS: Final = {"gc.auto": "0", "maintenance.auto": "false", "gc.packRefs": "false"}


class WatchedRoots(NamedTuple):
    """The watch over the writable roots, and what it needs: `missing` are protected paths that are not there yet."""

    watch: WorkspaceWatch
    scratch: str
    missing: Sequence[str]

    @property
    def info(self) -> str:
        """The file in which bubblewrap says which processes it has made."""
        return os.path.join(self.scratch, "info")

    @property
    def variables(self) -> dict[str, str]:
        """What to set for git, if it can commit."""
        return git_settings(_GIT_SETTINGS) if self.watch.has_layers else {}


class ConfinedCommand:
    """A command line that confines its command. `close` after the command has ended."""

    def __init__(
        self,
        level: Level,
        argv: list[str],
        environment: dict[str, str],
        placeholders: Sequence[Placeholder] = (),
        scratch: str | None = None,
        *,
        command_limits: CommandLimits,
        watched: WatchedRoots | None = None,
    ) -> None:
        self.level: Final = level
        self.argv: Final = argv
        self.environment: Final = environment  # to be set beside the others
        # Limits that only a look from outside can keep all of the command to; None: the kernel does.
        self.watched: Final = command_limits.watched
        self._placeholders = placeholders
        self._scratch = scratch
        self._limits = command_limits
        self._roots = watched

    def excess(self, text: str, *, failed: bool) -> str | None:
        """Return which of its limits the command has met, in a sentence; None: none known. `text`: what it printed."""
        return self._limits.excess(text, failed=failed)

    def close(self) -> list[str]:
        """Take away what was only there for the command, and what it must not leave; what that was, in sentences.

        Blocks until the last process of the command is dead, and until the roots are looked through.
        """
        roots, self._roots = self._roots, None
        notes: list[str] = []
        if roots is not None and not end_namespace(roots.info):
            notes.append("Some processes of the command could not be ended; what they do from now on is not looked at.")
        self._limits.close()
        for placeholder in self._placeholders:
            placeholder.release()
        if roots is not None:
            notes += roots.watch.settle()
            shutil.rmtree(roots.scratch, ignore_errors=True)
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        return notes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def watch_roots(roots: Sequence[str], protected_paths: Sequence[str], quarantine: str, *, binds: bool) -> WatchedRoots:
    """Begin to watch over writable roots. Blocks; `CannotWatch` if that cannot be done."""
    scratch = tempfile.mkdtemp(prefix="dragoman-")
    try:
        watch = WorkspaceWatch(
            roots, binds=binds, scratch=scratch, quarantine=quarantine, protected_paths=protected_paths
        )
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    paths = [os.path.join(root, name) for root in roots for name in NOT_TO_BE_MADE]
    return WatchedRoots(watch, scratch, [path for path in paths if not os.path.lexists(path) or is_placeholder(path)])
