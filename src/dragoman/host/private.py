"""Our own environment, as others of this user can read it in /proc: without the keys.

What a process was started with can be read from outside for as long as it lives, by every command it starts. Python has
a copy of its own, so what stands there is of use to nobody but them. Linux only; elsewhere nothing is done.
"""

import os

from dragoman.host.environment import is_secret

# Fields of /proc/self/stat, counted from the one behind the name.
_BEGIN, _END = 47, 48


def blank_secrets() -> int:
    """Overwrite the values of secrets; how many. What `os.environ` says does not change."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        begin, end = int(fields[_BEGIN]), int(fields[_END])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            return _blank(memory.fileno(), begin, os.pread(memory.fileno(), end - begin, begin))
    except (OSError, ValueError, IndexError, OverflowError):
        return 0


def _blank(memory: int, at: int, block: bytes) -> int:
    count = 0
    for entry in block.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if value and is_secret(os.fsdecode(name), os.fsdecode(value)):
            count += os.pwrite(memory, b"*" * len(value), at + len(name) + 1) > 0
        at += len(entry) + 1
    return count
