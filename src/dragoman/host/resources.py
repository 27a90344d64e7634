"""How much memory and how many processes a confined command may have, and what keeps it to that.

Three things, the strongest that the machine offers:

- A control group (`cgroups`), where we may make one: for the command and all it starts, enforced by the kernel.
- Else limits of the process (rlimits), inherited by all it starts: memory for each process by itself (RLIMIT_DATA: what
  is only reserved does not count, so that node, Go and Java work), and processes of the user. They bind no process of
  root's, as far as the number of processes goes.
- In any case a look from outside while it runs (`UsageWatch`), which ends a tree that has outgrown its limits: late by
  up to `WATCH_SECONDS`, but for all of the tree together, and for root.

No core dumps in any case: they would be memory on disk.
"""

import os
import re
import resource
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from dragoman import limits

# A confined command and all it starts: at least this, and half of the machine's memory where that is more. A build of a
# large project takes a few gibibytes; the other half keeps the machine alive.
LEAST_MEMORY_BYTES: Final = 2 * limits.GIB
# Processes and threads of one: at least this, and so many for each core. A parallel build has some tens of threads for
# each core; a fork bomb of this size does not slow the machine down.
LEAST_PROCESSES: Final = 1024
CORE_PROCESSES: Final = 64
# Between two looks at a tree: seldom enough to cost nothing, often enough that a machine bears what happens meanwhile.
WATCH_SECONDS: Final = 0.5
# Since then the kernel counts processes of each user namespace by themselves (Linux 5.14).
_COUNTS_BY_NAMESPACE: Final = (5, 14)
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
# What programs say when they may have no more.
_NO_PROCESS: Final = ("Resource temporarily unavailable", "can't start new thread", "EAGAIN", "Cannot fork")
_NO_MEMORY: Final = ("Cannot allocate memory", "MemoryError", "std::bad_alloc", "ut of memory", "OutOfMemory", "ENOMEM")


class ResourceLimits(NamedTuple):
    """Bytes of memory, and processes (threads count); 0 is as many as there are."""

    memory: int
    processes: int

    @property
    def memory_words(self) -> str:
        """The memory as a person says it."""
        return f"{self.memory / limits.GIB:.3g} GiB" if self.memory >= limits.GIB else f"{self.memory >> 20} MiB"


def default_limits() -> ResourceLimits:
    """Return what a command may have unless the user has set something else; reasons in `limits`."""
    ram = os.sysconf("SC_PHYS_PAGES") * _PAGE
    cores = os.cpu_count() or 1
    return ResourceLimits(max(LEAST_MEMORY_BYTES, ram // 2), max(LEAST_PROCESSES, cores * CORE_PROCESSES))


class ProcessLimits(NamedTuple):
    """Limits of a process that is about to start the command; 0: leave it as it is."""

    memory: int
    processes: int

    @classmethod
    def of(cls, wanted: ResourceLimits, grouped: Collection[str], *, namespace: bool) -> "ProcessLimits":
        """Return the limits that a control group does not keep. `namespace`: the command has its own user namespace.

        Without one the kernel counts all processes of the user, so those that run already come on top.
        """
        memory = 0 if "memory" in grouped else wanted.memory
        processes = 0 if "pids" in grouped else wanted.processes
        if processes and not (namespace and _kernel() >= _COUNTS_BY_NAMESPACE):
            processes += _tasks_of_user()
        return cls(_allowed(resource.RLIMIT_DATA, memory), _allowed(resource.RLIMIT_NPROC, processes))

    def set(self) -> None:
        """Set them for this process and all it starts; `OSError` or `ValueError` if that fails."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.memory:
            resource.setrlimit(resource.RLIMIT_DATA, (self.memory, self.memory))
        if self.processes:
            resource.setrlimit(resource.RLIMIT_NPROC, (self.processes, self.processes))

    def shell(self) -> str:
        """Write the limits for a shell, which goes on only if all could be set. Some shells have another letter."""
        words = ["ulimit -c 0"]
        words += [f"ulimit -d {self.memory >> 10}"] if self.memory else []
        count = self.processes
        words += [f"{{ ulimit -u {count} 2>/dev/null || ulimit -p {count}; }}"] if count else []
        return " && ".join(words)


class UsageWatch:
    """Looks at a tree of processes from outside, and says when it has outgrown its limits."""

    def __init__(self, wanted: ResourceLimits, members: Callable[[], Collection[int]]) -> None:
        """`members`: the processes of the tree. Blocks, as does `excess`: for a thread."""
        self._wanted = wanted
        self._members = members

    def excess(self) -> str | None:
        """Return what it has too much of, in a sentence; None if it is within its limits."""
        members = self._members()
        if self._wanted.processes and sum(map(_tasks, members)) > self._wanted.processes:
            return too_many_processes(self._wanted)
        if self._wanted.memory and self._uses_too_much(members):
            return too_much_memory(self._wanted)
        return None

    def _uses_too_much(self, members: Collection[int]) -> bool:
        """First by what is quick to read, which counts what processes share once for each; then exactly."""
        if sum(map(_resident, members)) <= self._wanted.memory:
            return False
        return sum(map(_proportional, members)) > self._wanted.memory


def read_limits(memory: str, processes: int) -> ResourceLimits:
    """Limits as a user sets them: nothing for the default, memory as a size or `unlimited`; `ValueError` if wrong."""
    default = default_limits()
    if processes and processes < _LEAST_PROCESSES:
        raise ValueError(f"sandbox_processes must be at least {_LEAST_PROCESSES}; it is {processes}")
    try:
        size = read_size(memory) if memory else default.memory
    except ValueError as error:
        raise ValueError(f"sandbox_memory {error}") from None
    return ResourceLimits(size, processes or default.processes)


_UNLIMITED: Final = "unlimited"
_SIZE: Final = re.compile(r"(\d{1,15})\s*(?:([KMGT])(?:i?B)?)?", re.IGNORECASE)
_UNITS: Final = {"K": limits.KIB, "M": limits.MIB, "G": limits.GIB, "T": 1024 * limits.GIB}
# With less not even a shell and its first program start.
_LEAST_MEMORY: Final = 64 * limits.MIB
_LEAST_PROCESSES: Final = 16


def read_size(text: str) -> int:
    """Return a size of memory as a user writes it, in bytes; 0: unlimited. Raise `ValueError` for what is none."""
    if text == _UNLIMITED:
        return 0
    found = _SIZE.fullmatch(text.strip())
    size = int(found[1]) * _UNITS.get((found[2] or "").upper(), 1) if found else 0
    if size < _LEAST_MEMORY:
        raise ValueError(f"must be a size such as 4GiB, at least 64MiB, or {_UNLIMITED}; it is {text!r}")
    return size


def too_much_memory(wanted: ResourceLimits) -> str:
    """Return the sentence about a command that was killed for its memory."""
    return (
        f"The command was ended: it used more than {wanted.memory_words} of memory with all it started. "
        "The limit is sandbox_memory in config.toml."
    )


def too_many_processes(wanted: ResourceLimits) -> str:
    """Return the sentence about a command that was refused more processes."""
    return (
        f"The command had more processes and threads than the {wanted.processes} that it may have. "
        "The limit is sandbox_processes in config.toml."
    )


def hint(text: str, process: ProcessLimits, wanted: ResourceLimits) -> str | None:
    """Guess the limit that was met where the kernel refused and only the command's own words tell."""
    if process.processes and any(word in text for word in _NO_PROCESS):
        return (
            f"The command may have met its limit of {wanted.processes} processes and threads: sandbox_processes in "
            "config.toml."
        )
    if process.memory and any(word in text for word in _NO_MEMORY):
        return (
            f"The command may have met its limit of {wanted.memory_words} of memory for one process: sandbox_memory in "
            "config.toml."
        )
    return None


def _allowed(which: int, wanted: int) -> int:
    """Return the limit to set, at most our own hard limit; 0 where that one is stricter anyway."""
    hard = resource.getrlimit(which)[1]
    return 0 if wanted == 0 or (hard != resource.RLIM_INFINITY and hard <= wanted) else wanted


def _kernel() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _tasks_of_user() -> int:
    """Threads of this user, as far as can be seen: what the kernel counts against the limit."""
    return sum(_tasks(int(name), uid=os.getuid()) for name in os.listdir("/proc") if name.isdecimal())


def _tasks(pid: int, *, uid: int | None = None) -> int:
    status = _fields(f"/proc/{pid}/status")
    if uid is not None and status.get("Uid", "").split()[:1] != [str(uid)]:
        return 0
    return int(status.get("Threads") or 0)


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    """Return the memory of a process. Shared memory counts in parts; of a process that we may not look into, whole."""
    size = _fields(f"/proc/{pid}/smaps_rollup").get("Pss", "")
    return int(size.split()[0]) * limits.KIB if size else _resident(pid)


def _fields(path: str) -> Mapping[str, str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.partition(":") for line in file]
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in lines}
