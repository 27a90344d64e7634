"""The command lines that hide graders from an agent, and the machine from what a grader runs: by bubblewrap.

An agent sees the machine read-only, its own folders writable, and of this repository the installed package alone: no
task, no grader, no history, no other attempt. It keeps its network, which it needs for its model. What a grader runs
was written by an agent: it has no network, and one writable folder.
"""

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
# Of the repository an agent needs our package, its environment, and the agents that were installed beside it.
NEEDED: Final = ("src", ".venv", ".peers")


@functools.cache
def bubblewrap() -> str | None:
    """Return the program, if it is here and can confine an agent."""
    program = shutil.which("bwrap")
    if program is None or shutil.which("unshare") is None:
        return None
    command = [*_own_processes(), *_without_rights(program), "--ro-bind", "/", "/", "--", "true"]
    tried = subprocess.run(command, capture_output=True, check=False, timeout=20)
    return program if tried.returncode == 0 else None


def _own_processes() -> list[str]:
    """Return the start of a command that sees no process but its own: `/proc/ID/root` of another is a way out.

    `/proc` is mounted here and not by bubblewrap, which would cover parts of it; then the kernel would refuse the
    `/proc` that an agent mounts to confine its own commands.
    """
    user = [] if os.getuid() == 0 else ["--user", "--map-current-user"]
    return ["unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc", "--"]


def _without_rights(program: str) -> list[str]:
    """Return the start of a bubblewrap that can undo none of its mounts.

    It has a user namespace of its own, so that the bubblewrap around it is out of reach. What root in it needs to give
    its own commands such a namespace is the right to map the user 0.
    """
    keeps = ["--cap-add", "CAP_SETFCAP"] if os.getuid() == 0 else []
    return [program, "--die-with-parent", "--unshare-user", "--cap-drop", "ALL", *keeps]


def confine_agent(command: Sequence[str], writable: Iterable[Path], hidden: Iterable[Path] = ()) -> list[str]:
    """Return the command of an agent that can write to `writable`, and sees neither the tasks nor `hidden`."""
    program = bubblewrap()
    if program is None:
        return list(command)
    words = [*_own_processes(), *_without_rights(program), "--ro-bind", "/", "/"]
    for shared in ("/dev", "/proc", "/sys"):  # as they are: an agent confines its own commands in the same way
        words += ["--dev-bind", shared, shared]
    for shared in (*_shared_folders(), str(ROOT)):
        words += ["--tmpfs", shared]
    for folder in [_history(), *hidden]:
        if folder is not None and folder.is_dir() and not folder.is_relative_to(ROOT):
            words += ["--tmpfs", str(folder)]
    for part in NEEDED:
        if (ROOT / part).exists():
            words += ["--ro-bind", str(ROOT / part), str(ROOT / part)]
    for place in writable:
        words += ["--bind", str(place), str(place)]
    return [*words, "--", *command]


def confine_check(command: Sequence[str], folder: Path) -> list[str]:
    """Return the command of a check that can write to `folder` alone and has no network."""
    program = bubblewrap()
    if program is None:
        return list(command)
    words = [program, "--die-with-parent", "--new-session", "--unshare-all", "--ro-bind", "/", "/"]
    words += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", tempfile.gettempdir()]
    return [*words, "--bind", str(folder), str(folder), "--chdir", str(folder), "--", *command]


def _shared_folders() -> list[str]:
    """Return the folders in which every program may write: what tasks and other runs left there is hidden."""
    found = {tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"}
    return sorted(folder for folder in found if os.path.isdir(folder))


@functools.cache
def _history() -> Path | None:
    """Return the folder with the repository's history; None where there is none."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--path-format=absolute", "--git-common-dir"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except OSError:
        return None
    return Path(found.stdout.strip()) if found.returncode == 0 else None
