"""A control group (cgroup v2) for a process and everything it starts, its confined commands included.

A group that has processes cannot hand its controllers on, so the process itself is in a group inside (`entrance`):

    dragoman-PID-…          the limits
      ├─ processes          the process, and what it starts
      └─ dragoman-…         a confined command each, with limits of its own (`cgroups`)
"""

import os
from contextlib import suppress
from typing import Final, Self

from dragoman.host import cgroups
from dragoman.host.resources import ResourceLimits

_INSIDE: Final = "processes"


class SharedGroup:
    """The control group of one process with all it starts. `close` when all of them are gone."""

    @classmethod
    def make(cls, memory: int, tasks: int) -> Self | None:
        """Make a group with these limits, in bytes, and processes and threads; 0: none. None where there can be no
        group."""
        parent = cgroups.usable_parent()
        outer = None if parent is None else cgroups.CommandGroup.below(parent, ResourceLimits(memory, tasks))
        if outer is None:
            return None
        group = cls(outer)
        try:
            # One process that is too large is ended by the kernel, and not the agent with it if it is another one.
            outer.write("memory.oom.group", "0")
            outer.write("cgroup.subtree_control", "+memory +pids")
            os.mkdir(os.path.join(outer.path, _INSIDE), 0o755)
        except OSError:
            group.close()
            return None
        return group

    def __init__(self, outer: cgroups.CommandGroup) -> None:
        """Use `make`."""
        self._outer = outer

    def __repr__(self) -> str:
        return f"<SharedGroup {os.path.basename(self._outer.path)}>"

    @property
    def entrance(self) -> str:
        """The file into which a process writes its number to be in the group."""
        return os.path.join(self._outer.path, _INSIDE, "cgroup.procs")

    def memory(self) -> int:
        """Return how many bytes are used now; 0 where that cannot be read."""
        try:
            with open(os.path.join(self._outer.path, "memory.current"), encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0

    def has_run_out(self) -> bool:
        """Return whether the kernel has ended a process of it for want of memory."""
        return self._outer.has_run_out()

    def close(self) -> None:
        """End what is left in it and take it away."""
        with suppress(OSError):
            self._outer.write("cgroup.kill", "1")
        with suppress(OSError):
            for name in os.listdir(self._outer.path):
                path = os.path.join(self._outer.path, name)
                if os.path.isdir(path):
                    with suppress(OSError):
                        os.rmdir(path)
        self._outer.close()
