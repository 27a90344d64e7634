"""A control group of its own for a confined command (cgroup v2), where the machine lets us make one.

A group is made beside our own or above it: a group that has processes cannot hand its controllers on to groups inside
(the rule of no internal processes), so it stands in the first ancestor that hands on `memory` and `pids`, and that we
may write to. Under systemd that is the slice of the user's own session. In most containers there is none; then the
limits of the process have to do (`resources`).

The command's first process puts itself in, before it is confined; it cannot leave again, because it cannot write there.
"""

import functools
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, Self

from dragoman.host.resources import ResourceLimits, too_many_processes, too_much_memory

MOUNT: Final = "/sys/fs/cgroup"
_OWN: Final = "/proc/self/cgroup"
_PREFIX: Final = "dragoman-"
_CONTROLLERS: Final = frozenset({"memory", "pids"})
_PROBE_SECONDS: Final = 5.0


class CommandGroup:
    """The control group of one command. `close` when all of its processes are gone."""

    controllers: Final = _CONTROLLERS

    @classmethod
    def make(cls, wanted: ResourceLimits) -> Self | None:
        """Make a group with these limits; None where there can be none."""
        parent = usable_parent()
        return None if parent is None else cls.below(parent, wanted)

    @classmethod
    def below(cls, parent: str, wanted: ResourceLimits) -> Self | None:
        """Make a group in a folder of the control groups."""
        path = os.path.join(parent, f"{_PREFIX}{os.getpid()}-{os.urandom(6).hex()}")
        group = cls(path, wanted)
        try:
            os.mkdir(path, 0o755)
            group.write("memory.max", str(wanted.memory or "max"))
            group.write("pids.max", str(wanted.processes or "max"))
            with suppress(OSError):  # a machine without swap has no such file
                group.write("memory.swap.max", "0")
            group.write("memory.oom.group", "1")  # all of it or nothing: half a command is of no use
        except OSError:
            group.close()
            return None
        return group

    def __init__(self, path: str, wanted: ResourceLimits) -> None:
        """Use `make`."""
        self.path: Final = path
        self._wanted = wanted

    @property
    def entrance(self) -> str:
        """The file into which a process writes its number to be in the group."""
        return os.path.join(self.path, "cgroup.procs")

    def has_run_out(self) -> bool:
        """Return whether the kernel has ended a process of it for want of memory."""
        return self._count("memory.events", "oom_kill") > 0

    def excess(self) -> str | None:
        """Return which limit was met, in a sentence; None if none was."""
        if self.has_run_out():
            return too_much_memory(self._wanted)
        return too_many_processes(self._wanted) if self._count("pids.events", "max") else None

    def close(self) -> None:
        """End what is left in it and take it away; what the kernel still holds is taken away by the next (`sweep`)."""
        with suppress(OSError):
            self.write("cgroup.kill", "1")
        with suppress(OSError):
            os.rmdir(self.path)

    def write(self, name: str, value: str) -> None:
        """Write into a file of the group. Raises `OSError`."""
        fd = os.open(os.path.join(self.path, name), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.write(fd, value.encode())
        finally:
            os.close(fd)

    def _count(self, name: str, event: str) -> int:
        try:
            with open(os.path.join(self.path, name), encoding="ascii") as file:
                counts = dict(line.split() for line in file)
        except (OSError, ValueError):
            return 0
        return int(counts.get(event, 0))


@functools.cache
def usable_parent() -> str | None:
    """Find where groups can be made on this machine, tried out once with a process; None if nowhere."""
    for parent in candidates(MOUNT, _OWN):
        sweep(parent)
        group = CommandGroup.below(parent, ResourceLimits(64 << 20, 16))
        if group is None:
            continue
        try:
            join = ["/bin/sh", "-c", 'echo $$ > "$1" && exec true', "sh", group.entrance]
            done = subprocess.run(
                join, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PROBE_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        finally:
            group.close()
        if done.returncode == 0:
            return parent
    return None


def candidates(mount: str, own: str) -> Iterator[str]:
    """Yield our own group and those above it, from the nearest, that hand on what is needed and are ours to write."""
    try:
        with open(own, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return
    path = next((path for number, controllers, path in lines if number == "0" and not controllers), None)
    if path is None or ".." in path.split("/") or not os.path.isfile(os.path.join(mount, "cgroup.controllers")):
        return
    folder = os.path.normpath(os.path.join(mount, path.lstrip("/")))
    while folder.startswith(mount):
        if _hands_on(folder) and os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK):
            yield folder
        folder = os.path.dirname(folder)


def sweep(parent: str) -> None:
    """Take away groups that processes of ours left there which are no more."""
    with suppress(OSError):
        for name in os.listdir(parent):
            pid = name.removeprefix(_PREFIX).partition("-")[0]
            if name.startswith(_PREFIX) and pid.isdecimal() and (pid == str(os.getpid()) or not _lives(pid)):
                with suppress(OSError):  # a process is in it
                    _remove(os.path.join(parent, name))


def _remove(group: str) -> None:
    """Take a group away, with the empty groups in it (`shared_group`)."""
    for inner in os.scandir(group):
        if inner.is_dir(follow_symlinks=False):
            os.rmdir(inner.path)
    os.rmdir(group)


def _lives(pid: str) -> bool:
    return os.path.exists(f"/proc/{pid}")


def _hands_on(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "cgroup.subtree_control"), encoding="ascii") as file:
            return set(file.read().split()) >= _CONTROLLERS
    except OSError:
        return False
