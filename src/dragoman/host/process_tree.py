"""A process and everything that came from it, wherever it went; ended as a whole.

The leader heads a session of its own, so one signal reaches its group. Three ways lead out of the group, and /proc
shows where they end: a descendant that called setsid is found by its parents; one whose parent has died as well (a
double fork) by the mark in its environment, which every descendant inherits; a job of an interactive shell by its
session. Jenkins finds its orphans by such a mark, too. What hides from all three (another user, a double fork with a
wiped environment, a relay of forks faster than we look) needs a PID namespace; that is the sandbox's trade.

No stale pid is signalled: the caller does not reap the leader before the tree is dead, so its number, which is also
the group's, cannot be given to another process; every other member is held by a pidfd and recognised by the time of
its start.

Linux has /proc. Elsewhere the group is all that is seen.
"""

import os
import signal
import threading
import time
from contextlib import suppress
from typing import Final, NamedTuple

from dragoman import limits

# Marks add up, separated by colons: an agent that starts processes of its own stays visible to who started it.
MARK_VARIABLE: Final = "DRAGOMAN_TREE"
# How long the first look at a dying tree waits; it doubles. A killed process is gone after about a millisecond.
_FIRST_WAIT_SECONDS: Final = 0.001
_LONGEST_WAIT_SECONDS: Final = 0.05
_DEAD_STATES: Final = frozenset("ZXx")
_UNKNOWN_STATE: Final = "?"


class Process(NamedTuple):
    """A line of /proc/PID/stat. A pid with its start time names one process for ever."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int


def new_mark() -> str:
    """Return a word that is in no environment yet."""
    return os.urandom(8).hex()


def marked(environment: dict[str, str], mark: str) -> dict[str, str]:
    """Return the environment with the mark, beside those of the trees it is already part of."""
    older = environment.get(MARK_VARIABLE)
    return environment | {MARK_VARIABLE: f"{older}:{mark}" if older else mark}


class Tree:
    """The leader, which is not reaped before the tree has ended, and its descendants."""

    def __init__(self, leader: int, mark: str) -> None:
        self.leader = leader
        self.mark = mark
        self.lock = threading.RLock()  # held to signal the group, and by who reaps the leader
        self._mark = mark.encode()
        own = _process(leader)
        self._started = own.started if own else 0

    def end(self, grace: float) -> None:
        """Send SIGTERM to all members, wait up to `grace` seconds, then kill them; at once if `grace` is 0. Blocks."""
        if grace > 0:
            self._wait(self._signal(signal.SIGTERM), grace)
        deadline = time.monotonic() + limits.CHILD_KILL_SECONDS
        # A member that forks while it is killed leaves a child that was not seen: so again, until none is found.
        while (dying := self._signal(signal.SIGKILL)) and time.monotonic() < deadline:
            self._wait(dying, deadline - time.monotonic())

    def members(self) -> list[Process]:
        """Return the living processes of the tree that /proc shows; without /proc a stand-in for the group."""
        if not os.path.isdir("/proc/self"):
            return self._leader_alone()
        young = [process for process in living() if process.started >= self._started]
        near = self._is_near if self._leader_is_ours() else _is_nobody
        found = {process.pid for process in young if near(process) or self._is_marked(process)}
        grown = True
        while grown:
            children = {process.pid for process in young if process.parent in found} - found
            found |= children
            grown = bool(children)
        return [process for process in young if process.pid in found]

    def _signal(self, number: signal.Signals) -> list[Process]:
        """Signal every member once and return the signalled ones. The group is signalled even if /proc hides it."""
        members = self.members()
        group = 0
        with self.lock, suppress(ProcessLookupError, PermissionError):
            if self._leader_is_ours():
                group = self.leader
                os.killpg(group, number)
        return [process for process in members if _is_in(group, process) or signal_process(process, number)]

    def _wait(self, processes: list[Process], seconds: float) -> None:
        """Wait until all processes are dead, or the time is over."""
        deadline = time.monotonic() + seconds
        pause = _FIRST_WAIT_SECONDS
        while (processes := [process for process in processes if self._lives(process)]) and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_WAIT_SECONDS)

    def _lives(self, process: Process) -> bool:
        return bool(self._leader_alone()) if process.state == _UNKNOWN_STATE else _lives(process)

    def _leader_is_ours(self) -> bool:
        """Return whether the leader's pid is still its own: it may have been reaped elsewhere (SIGCHLD ignored)."""
        if not hasattr(os, "waitid"):
            return True
        try:
            os.waitid(os.P_PID, self.leader, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    def _is_near(self, process: Process) -> bool:
        return self.leader in (process.pid, process.group, process.session)

    def _is_marked(self, process: Process) -> bool:
        try:
            with open(f"/proc/{process.pid}/environ", "rb") as file:
                return self._mark in file.read()
        except OSError:  # gone, or another user's
            return False

    def _leader_alone(self) -> list[Process]:
        """Return one entry for the whole group while it can be signalled (on macOS zombies do not count)."""
        try:
            os.killpg(self.leader, 0)
        except OSError:
            return []
        return [Process(self.leader, _UNKNOWN_STATE, 0, self.leader, self.leader, 0)]


def _is_nobody(process: Process) -> bool:
    return False


def living() -> list[Process]:
    """Return every process there is, the dead excepted."""
    found = (_process(int(name)) for name in os.listdir("/proc") if name.isdecimal())
    return [process for process in found if process is not None and process.state not in _DEAD_STATES]


def _process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read()
    except OSError:
        return None
    # The name stands in brackets and may itself hold brackets and spaces: what counts comes after the last one.
    fields = line[line.rindex(b")") + 2 :].split()
    return Process(pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def _is_in(group: int, process: Process) -> bool:
    """Return whether it is still in the group it was seen in: one that has left it since may have missed the signal."""
    if process.group != group or process.state == _UNKNOWN_STATE:
        return process.group == group
    now = _process(process.pid)
    return now is not None and now.started == process.started and now.group == group


def _lives(process: Process) -> bool:
    now = _process(process.pid)
    return now is not None and now.started == process.started and now.state not in _DEAD_STATES


def signal_process(process: Process, number: signal.Signals) -> bool:
    """Signal this very process; return False if it is gone, or not ours to signal."""
    fd: int | None = None
    try:
        fd = _hold(process.pid)
        if not _lives(process):
            return False
        if fd is None:
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(fd, number)
    except OSError:
        return False
    finally:
        if fd is not None:
            os.close(fd)
    return True


def _hold(pid: int) -> int | None:
    """Return a pidfd, so that the number cannot be given to another process unnoticed; None where kernels have none."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (OSError, AttributeError):
        return None
