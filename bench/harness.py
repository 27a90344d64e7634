"""Starting peers, the raw end of their pipes, and the clock.

The raw end blocks in os.read and os.write and looks at no JSON while the clock runs, so that it is never what limits.
Promise: no process started here outlives the bench. A group is killed when its `with` block ends and when its time is
up; the guardian kills what is left when the bench itself is killed.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from bench import install, limits

PROMPT_ID: Final = 987_654_321
"""An id that no other byte of a run can be mistaken for, so its answer is found without parsing."""


class PeerFailed(Exception):
    """The peer died, ran out of time, or did not do what every peer must do."""


class Guardian:
    """Kills the groups on its list when this process is gone; see guardian.py."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", str(install.ROOT / "bench" / "guardian.py")],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True)
class Usage:
    """What a finished process used."""

    cpu_seconds: float


class Child:
    """A peer process in a group of its own, and the raw end of its pipes."""

    def __init__(
        self,
        guardian: Guardian,
        command: Sequence[str],
        environment: Mapping[str, str],
        seconds: float = limits.PROCESS_SECONDS,
    ) -> None:
        self._guardian = guardian
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            command,
            env=environment,
            cwd=install.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self.write_fd, self.read_fd = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._guardian.watch(self.pid)
        self._seconds, self._late = seconds, False
        self._timer = threading.Timer(seconds, self._time_is_up)
        self._timer.daemon = True
        self._timer.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> Usage:
        """Ends the whole group at once and says what its first process used."""
        self._timer.cancel()
        if self._process.returncode is not None:
            return Usage(0.0)
        self._kill_group()
        _, status, used = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._guardian.forget(self.pid)
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            assert pipe is not None
            pipe.close()
        return Usage(used.ru_utime + used.ru_stime)

    def send(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self.write_fd, data) :]
        except BrokenPipeError:
            raise self._failure() from None

    def read(self) -> bytes:
        """Whatever is in the pipe, at least one byte."""
        data = os.read(self.read_fd, limits.READ_BYTES)
        if not data:
            raise self._failure()
        return data

    def read_line(self) -> bytes:
        """The one line that the child prints, off the clock."""
        line = b""
        while not line.endswith(b"\n"):
            line += self.read()
        return line

    def call(self, number: int, method: str, params: Mapping[str, object]) -> dict[str, Any]:
        """One request, off the clock: the result, past any notification."""
        self.send(request(number, method, params))
        rest = b""
        while True:
            *lines, rest = (rest + self.read()).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if message.get("id") != number:
                    continue
                if "result" not in message:
                    raise PeerFailed(f"{method} answered {message.get('error')}")
                result = message["result"]
                return result if isinstance(result, dict) else {}

    def cpu(self) -> float:
        """CPU seconds so far, to the nanosecond where the kernel has a clock for another process (Linux)."""
        if not sys.platform.startswith("linux"):
            return float("nan")
        return time.clock_gettime((~self.pid << 3) | 2)  # clock_getcpuclockid(3): CPUCLOCK_SCHED of this process

    def resident_bytes(self) -> int:
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self.pid)], capture_output=True, check=True)
        return int(shown.stdout) * 1024

    def wait(self, seconds: float) -> None:
        """Gives the child this long to end by itself."""
        deadline = time.monotonic() + seconds
        while not self._has_exited() and time.monotonic() < deadline:
            time.sleep(0.01)

    def failure(self, what: str) -> PeerFailed:
        return PeerFailed(f"{what}{self._last_words()}")

    def _failure(self) -> PeerFailed:
        return self.failure(f"no end after {self._seconds:.0f} s" if self._late else "ended early")

    def _last_words(self) -> str:
        self.wait(limits.FAREWELL_SECONDS)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def _has_exited(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _time_is_up(self) -> None:
        self._late = True
        self._kill_group()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def request(number: int, method: str, params: Mapping[str, object]) -> bytes:
    """One line, encoded."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def initialize_request() -> bytes:
    return request(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})


def open_session(child: Child) -> str:
    """Initializes and opens a session, off the clock."""
    child.call(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    return new_session(child, 2)


def new_session(child: Child, number: int) -> str:
    session_id = child.call(number, "session/new", {"cwd": str(install.ROOT), "mcpServers": []})["sessionId"]
    assert isinstance(session_id, str)
    return session_id


def prompt_request(session_id: str, text: str) -> bytes:
    return request(PROMPT_ID, "session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]})


def mode_request(session_id: str, number: int) -> bytes:
    return request(number, "session/set_mode", {"sessionId": session_id, "modeId": "b"})


@dataclass(frozen=True)
class Heard:
    """A turn as the raw reader heard it."""

    updates: int
    size: int


def hear_turn(child: Child) -> Heard:
    """Reads until the prompt's answer; counts lines and bytes, nothing else."""
    answer = str(PROMPT_ID).encode()
    lines = size = 0
    tail = b""
    answered = False
    while not (answered and tail.endswith(b"\n")):
        data = child.read()
        lines += data.count(b"\n")
        size += len(data)
        tail = tail[-len(answer) :] + data
        answered = answered or answer in tail
    return Heard(updates=lines - 1, size=size)


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Runs the block and all it starts on one core: round trips across two measure the scheduler (performance.md)."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
