"""What the processes below one use, from /proc: Linux only, and no library."""

import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple


class Tree(NamedTuple):
    """Memory and CPU of a process's descendants, those that have ended included in the CPU of who waited for them.

    `memory_bytes` has what several share once in all (PSS), `resident_bytes` once for each of them (RSS).
    """

    memory_bytes: int
    resident_bytes: int
    cpu_seconds: float


def tree_of(root: int) -> Tree:
    """Return what the descendants of a process use, itself left out."""
    cpu = _descendants(root)
    memory = [_memory(process) for process in cpu]
    return Tree(sum(shared for shared, _ in memory), sum(whole for _, whole in memory), sum(cpu.values()))


def kill_tree(root: int) -> None:
    """Kill the descendants of a process, so that none of them can do anything about it."""
    for process in _descendants(root):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _descendants(root: int) -> dict[int, float]:
    """Return the CPU seconds of each."""
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
    return {process: cpu[process] for process in found}


def _memory(process: int) -> tuple[int, int]:
    """Return the share of a process in its memory, and all of it."""
    sizes = {"Pss:": 0, "Rss:": 0}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            words = line.split()
            if words[0] in sizes:
                sizes[words[0]] = int(words[1]) << 10
    return sizes["Pss:"], sizes["Rss:"]
