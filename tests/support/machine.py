"""Looking at the machine from outside: is a process alive, has something happened yet."""

import os
import select
from pathlib import Path

from tests.support.needs import need
from tests.support.waiting import until

DEADLINE_SECONDS = 30.0


def state(pid: int) -> str:
    """As in /proc: R, S, D, Z, ... or nothing for a process that is no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def lives(pid: int) -> bool:
    """A zombie of another parent does not live: not every init reaps what it inherits at once."""
    return state(pid) not in ("", "Z")


async def read_line(fd: int) -> str:
    """One line from a child, without blocking the loop."""
    line = b""

    def ended() -> bool:
        nonlocal line
        while select.select([fd], [], [], 0)[0]:
            byte = os.read(fd, 1)
            line += byte
            if byte in (b"\n", b""):
                return True
        return False

    await until(ended, "a line from the child")
    return line.decode().strip()


async def read_pid(fd: int) -> int:
    pid = int(await read_line(fd))
    assert lives(pid)
    return pid


def as_a_user(*command: str) -> list[str]:
    """Run a program as people do who are not root, though perhaps by root: without what root may read more."""
    if os.geteuid() != 0:
        return list(command)
    lost = "-sys_ptrace,-perfmon,-sys_admin"
    return [need("setpriv"), f"--bounding-set={lost}", f"--inh-caps={lost}", *command]


def marked(mark: str) -> list[int]:
    """The living processes with this in their environment."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found
