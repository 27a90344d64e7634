"""What the processes below one use, from /proc: Linux only, and no library."""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple


class Tree(NamedTuple):
    """Memory and CPU of a process's descendants, those that have ended included in the CPU of who waited for them."""

    memory_bytes: int
    cpu_seconds: float


def tree_of(root: int) -> Tree:
    """Return what the descendants of a process use, itself left out."""
    parents: dict[int, int] = {}
    cpu: dict[int, float] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            cpu[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    found: set[int] = set()
    todo = [root]
    while todo:
        parent = todo.pop()
        below = [process for process, its in parents.items() if its == parent and process not in found]
        found.update(below)
        todo += below
    return Tree(sum(map(_memory, found)), sum(cpu[process] for process in found))


def _memory(process: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0
