"""Who holds a lease: this process, told apart from every other one that had or will have its number."""

import itertools
import os
from pathlib import Path
from typing import Final

_COUNT: Final = itertools.count(1)


def new_holder() -> str:
    """A name for one store in this process."""
    pid = os.getpid()
    return f"{_boot()}:{pid}:{_started(pid)}:{next(_COUNT)}"


def is_alive(holder: str) -> bool:
    """Whether the process behind a name still runs. A name we cannot read is nobody's."""
    boot, _, rest = holder.partition(":")
    pid, _, rest = rest.partition(":")
    started = rest.partition(":")[0]
    if boot != _boot() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # it runs under another user
    return started == _started(int(pid))


def _boot() -> str:
    """This start of the machine; process numbers begin anew with each."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "-"


def _started(pid: int) -> str:
    """When a process began, in ticks: a number that was given out twice differs here."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "-"
    fields = stat.rpartition(")")[2].split()
    # A zombie holds nothing any more.
    return "dead" if fields[0] == "Z" else fields[19]
