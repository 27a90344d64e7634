"""This process, as other processes of the same user can read it in /proc: without its keys.

What a process was started with can be read there for as long as it lives, and so can its memory, by every command it
starts. Two things stand against that, on Linux; elsewhere nothing is done:

- `make_undumpable` makes the process "not dumpable": /proc/PID/environ, mem, fd and maps are closed to every process
  without CAP_SYS_PTRACE, and it cannot be traced. A program that we start is dumpable again: that ends with `execve`.
  We can still open our own /proc/self/fd and read our own /proc/self/stat, but not /proc/self/environ and mem; and
  the kernel writes no core file. A debugger or profiler has to be run by root.
- `blank_secrets` overwrites the values of secrets where /proc/PID/environ shows them, for readers that have that
  capability: root's own commands. Python has a copy of its own.
"""

import os
import sys

_SET_DUMPABLE = 4
# Fields of /proc/self/stat, counted from the one behind the name.
_BEGIN, _END = 47, 48


def make_undumpable() -> bool:
    """Make this process unreadable for other processes of its user; False where that cannot be done."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        # What `ctypes` is built on: importing that takes five times as long, and editors wait for our start.
        import _ctypes

        class Integer(_ctypes._SimpleCData):  # type: ignore[type-arg]
            _type_ = "i"

        class Function(_ctypes.CFuncPtr):
            _flags_ = _ctypes.FUNCFLAG_CDECL
            _restype_ = Integer

        prctl = Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl"))  # type: ignore[arg-type]
        return bool(prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (ImportError, AttributeError, TypeError, ValueError, OSError):
        return _make_undumpable_slowly()


def _make_undumpable_slowly() -> bool:
    """Do what `make_undumpable` does by way of `ctypes`, in case the inside of `_ctypes` has changed."""
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (ImportError, AttributeError, OSError):
        return False


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
    from dragoman.host.environment import is_secret

    count = 0
    for entry in block.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if value and is_secret(os.fsdecode(name), os.fsdecode(value)):
            count += os.pwrite(memory, b"*" * len(value), at + len(name) + 1) > 0
        at += len(entry) + 1
    return count
