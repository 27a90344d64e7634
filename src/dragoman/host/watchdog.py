"""A small process that stops what a server has started when the server does not renew its lease in time.

A lease that ended in the database stops no process: a command that an agent has started goes on, also while the server
itself is stopped, hangs, or cannot reach the database. The watchdog is told with each renewal until when it counts, and
needs nothing else of the server:

    RUNNING   renewed; after `late_at` it is FROZEN, and after the end of the server OVER
    FROZEN    every process that the server has started is stopped (SIGSTOP); a renewal lets them go on (SIGCONT)
    OVER      after `lost_at`: they are killed, and so is what is found later, until there is a new lease

At `lost_at` the server has to say that it knows; one that does not, because it is stopped or hangs, is killed as well,
a moment later: it could go on in the middle of a step. Times are those of CLOCK_MONOTONIC, which all processes of a
machine share.

What a server has started is found by a mark in the environment and by parents, as in `process_tree`.
"""

import enum
import logging
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.host.process_tree import MARK_VARIABLE, Process, living, marked, new_mark, signal_process

if TYPE_CHECKING:
    import subprocess

_log: Final = logging.getLogger(__name__)

# How often a frozen or ended tree is looked at again: a process that was being started was not seen yet.
_CHECK_SECONDS: Final = 0.1
_PASSES: Final = 20
# A server that does not say at the end of its lease that it knows is killed after this share of the lease.
_SILENT_SHARE: Final = 0.1
_SILENT_SECONDS: Final = 1.0
_STOPPED_STATES: Final = frozenset("Tt")
_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GUARDIAN: Final = b"dragoman.host.guardian"


class Watchdog:
    """The server's end. Made before the server reads its environment: all that it starts later inherits a mark."""

    def __init__(self) -> None:
        self._mark: Final = new_mark()
        os.environ.update(marked({MARK_VARIABLE: os.environ.get(MARK_VARIABLE, "")}, self._mark))
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<Watchdog {'not started' if self._process is None else self._process.pid}>"

    def renew(self, late_at: float, lost_at: float) -> None:
        """Let everything run until `late_at`, by `time.monotonic()`; after `lost_at` nothing is left."""
        self._send(f"renew {late_at:.6f} {lost_at:.6f}\n")

    def say_lost(self) -> None:
        """Say that the server knows that its lease is over: what it had started is killed, the server is not."""
        self._send("lost\n")

    def release(self) -> None:
        """Say that the lease was given back: nothing ends any more."""
        self._send("released\n")

    def close(self) -> None:
        """Stop the process. What the server has started and left is killed."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
            process.wait()

    def _send(self, line: str) -> None:
        for _ in range(2):
            process = self._process or self._start()
            assert process.stdin is not None
            try:
                os.write(process.stdin.fileno(), line.encode())
                return
            except BlockingIOError:
                _log.error("the watchdog does not read; what it was told last counts")
                return
            except OSError:
                _log.error("the watchdog has ended; another one is started")
                self._process = None

    def _start(self) -> "subprocess.Popen[bytes]":
        import subprocess

        from dragoman.host.environment import child_environment

        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dragoman.host.watchdog", str(os.getpid()), self._mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=child_environment(os.environ),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        # The server never waits for it.
        os.set_blocking(self._process.stdin.fileno(), False)
        return self._process


class _State(enum.Enum):
    RUNNING = "running"
    FROZEN = "frozen"
    OVER = "over"


class _Lease(NamedTuple):
    """Until when the server may go on; infinite before the first renewal, and when the lease was given back."""

    late_at: float = float("inf")
    lost_at: float = float("inf")
    silent_at: float = float("inf")


class _Watch:
    """What the watchdog process does."""

    def __init__(self, server: int, mark: str) -> None:
        self._server = server
        self._started = next((one.started for one in living() if one.pid == server), 0)
        self._mark = mark.encode()
        self._lease = _Lease()
        self._state = _State.RUNNING
        self._stopped: set[tuple[int, int]] = set()

    def run(self, lines: int) -> None:
        """Watch until the server closes its end, or dies."""
        rest = b""
        while True:
            readable, _, _ = select.select([lines], [], [], self._timeout())
            if readable:
                data = os.read(lines, 65536)
                if not data:
                    break
                *complete, rest = (rest + data).split(b"\n")
                for line in complete:
                    self._hear(line.split())
            self._check(time.monotonic())
        self._kill_all()

    def _timeout(self) -> float | None:
        if self._state is not _State.RUNNING:
            return _CHECK_SECONDS
        left = self._lease.late_at - time.monotonic()
        return None if left == float("inf") else max(left, 0.0)

    def _hear(self, words: list[bytes]) -> None:
        match words:
            case [b"renew", late, lost]:
                late_at, lost_at = float(late), float(lost)
                grace = max((lost_at - late_at) * 3 * _SILENT_SHARE, _SILENT_SECONDS)
                # A renewal that is read late counts only for as long as it says: `_check` comes next.
                self._lease = _Lease(late_at, lost_at, lost_at + grace)
                if time.monotonic() < late_at:
                    self._thaw()
            case [b"lost"]:
                self._lease = self._lease._replace(late_at=0.0, lost_at=0.0, silent_at=float("inf"))
            case [b"released"]:
                self._lease = _Lease()
                self._thaw()
            case _:
                pass

    def _check(self, now: float) -> None:
        if now >= self._lease.silent_at:
            self._kill_server()
        if now >= self._lease.lost_at:
            self._state = _State.OVER
            self._stopped.clear()
            self._kill_all()
        elif now >= self._lease.late_at:
            self._state = _State.FROZEN
            self._freeze()

    def _freeze(self) -> None:
        # Again until none is found that runs: one that forks while it is stopped leaves a child that was not seen. One
        # that waits for a disk stops later, so this is bounded, and done again at the next check.
        for _ in range(_PASSES):
            running = [one for one in self._members() if one.state not in _STOPPED_STATES]
            signalled = [one for one in running if signal_process(one, signal.SIGSTOP)]
            self._stopped |= {(one.pid, one.started) for one in signalled}
            if not signalled:
                return

    def _thaw(self) -> None:
        self._state = _State.RUNNING
        # Only what was stopped here: a job that its user has stopped stays so.
        stopped, self._stopped = self._stopped, set()
        for one in living() if stopped else []:
            if (one.pid, one.started) in stopped:
                signal_process(one, signal.SIGCONT)

    def _kill_all(self) -> None:
        for one in self._members():
            signal_process(one, signal.SIGKILL)

    def _kill_server(self) -> None:
        for one in living():
            if (one.pid, one.started) == (self._server, self._started):
                signal_process(one, signal.SIGKILL)

    def _members(self) -> list[Process]:
        """Return every living process that the server has started, or one of those, without its guardians and us."""
        processes = living()
        server = {one.pid for one in processes if (one.pid, one.started) == (self._server, self._started)}
        ours = {os.getpid(), *(one.pid for one in processes if one.parent in server and _is_guardian(one))}
        found = {one.pid for one in processes if one.started >= self._started and self._is_marked(one)} | server
        grown = True
        while grown:
            children = {one.pid for one in processes if one.parent in found} - found - ours
            found |= children
            grown = bool(children)
        return [one for one in processes if one.pid in found - ours - server]

    def _is_marked(self, process: Process) -> bool:
        return self._mark in _read(process.pid, "environ")


def _is_guardian(process: Process) -> bool:
    """Return whether it is a guardian, which ends what its server had started when the server is gone."""
    return _GUARDIAN in _read(process.pid, "cmdline").split(b"\0")


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # gone, or another user's
        return b""


def main(arguments: list[str], lines: int) -> None:
    """Watch the server with this process id, whose children have this mark."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    server, mark = arguments
    _Watch(int(server), mark).run(lines)


if __name__ == "__main__":
    os.chdir("/")
    main(sys.argv[1:], sys.stdin.fileno())
