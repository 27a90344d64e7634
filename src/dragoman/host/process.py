"""A child process with three pipes, started here and ended here, with everything it started itself.

Promise: after `stop` nothing of it is left, no process, zombie, descriptor or thread, whatever it does; and what it
writes to stderr never blocks it. `stop` must be called, also for a child that has exited: its leader stays a zombie
until then, because its pid is the number of its group, and a number that was given back must not be signalled.
Without that call the tree is killed when the interpreter exits.

Not asyncio's subprocess: that one reaps as soon as it can, from another thread, and knows no groups.
"""

import asyncio
import atexit
import errno
import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Self

from dragoman import limits
from dragoman.errors import StartFailed, UsageError
from dragoman.host.pipes import PolledReadEnd
from dragoman.host.process_tree import Tree, marked, new_mark

_REAP_WAIT_SECONDS: Final = 0.002


_log = logging.getLogger(__name__)


class Child:
    """A running command, alone in its session.

    `stdin` and `stdout` are our ends of its pipes: non-blocking, closed by `stop`. `exit_code` is None while it runs
    (and if it was reaped elsewhere), negative for a signal.
    """

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str],
        env: Mapping[str, str],
        on_stderr: Callable[[bytes], None] | None = None,
        mark: str | None = None,
        passed: Sequence[int] = (),
    ) -> Self:
        """Start `argv` (no shell) in `cwd` with exactly `env` and the mark of `process_tree`. Raises `StartFailed`.

        `passed` are descriptors that the child gets under the same numbers; they stay open here too.
        """
        if not argv:
            raise UsageError("A command needs at least the name of a program.")
        mark = mark or new_mark()
        popen, pipes = _spawn(argv, os.fspath(cwd), marked(dict(env), mark), passed)
        _log.debug("started %s as process %d", os.path.basename(argv[0]), popen.pid)
        return cls(argv[0], popen, pipes, Tree(popen.pid, mark), on_stderr)

    def __init__(
        self,
        name: str,
        popen: "subprocess.Popen[bytes]",
        pipes: "_Pipes",
        tree: Tree,
        on_stderr: Callable[[bytes], None] | None,
    ) -> None:
        """Use `Child.start`."""
        self.name = name
        self.pid = popen.pid
        self.mark = tree.mark
        self.stdin = pipes.stdin
        self.stdout = pipes.stdout
        self.exit_code: int | None = None
        self._popen = popen
        self._tree = tree
        self._starter = os.getpid()
        self._open = set(pipes)
        self._loop = asyncio.get_running_loop()
        self._exit = asyncio.Event()
        self._exit_callbacks: list[Callable[[], None]] = []
        self._stopping: asyncio.Task[None] | None = None
        self._pidfd: int | None = None
        self._stderr_ring = bytearray()
        self._on_stderr = on_stderr
        self._stderr = PolledReadEnd(pipes.stderr, self._keep_stderr, lambda error: None)
        self._stderr.resume()
        atexit.register(self.kill_now)
        self._watch_exit()

    def __repr__(self) -> str:
        state = "running" if not self._exit.is_set() else f"ended with {self.exit_code}"
        return f"<Child {os.path.basename(self.name)} pid {self.pid} {state}, {len(self._open)} descriptors open>"

    @property
    def has_exited(self) -> bool:
        """Whether the leader is dead; what it wrote to stderr is then in `stderr_tail`."""
        return self._exit.is_set()

    def on_exit(self, callback: Callable[[], None]) -> None:
        """Call back once, from the loop, after the leader's death, also if that was long ago."""
        if self._exit.is_set():
            self._loop.call_soon(callback)
        else:
            self._exit_callbacks.append(callback)

    async def wait(self) -> int | None:
        """Return the exit code, when there is one. Says nothing about what the child itself started."""
        await self._exit.wait()
        return self.exit_code

    def members(self) -> list[int]:
        """Return the processes of its tree that live, itself among them. Blocks for some milliseconds: for a thread."""
        return [process.pid for process in self._tree.members()]

    def stderr_tail(self) -> str:
        """Return the last `limits.STDERR_RING_BYTES` of what it wrote to stderr."""
        return self._stderr_ring[-limits.STDERR_RING_BYTES :].decode(errors="replace")

    def close_stdin(self) -> None:
        """Close our end of `stdin`: the child reads end of file. The caller stops watching the descriptor first."""
        self._close(self.stdin)

    async def stop(self) -> None:
        """Let it finish (stdin closed), then ask (SIGTERM), then kill, the whole tree; bounded by `limits`.

        A caller that is cancelled does not stop the stopping.
        """
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._stop())
        await asyncio.shield(self._stopping)

    def kill_now(self) -> None:
        """Kill the whole tree and reap it, without a loop: for exits and emergencies. `stop` may still follow."""
        if os.getpid() == self._starter:  # a fork of us that exits inherits this exit handler, but not the child
            self._end(grace=0)

    async def _stop(self) -> None:
        try:
            self.close_stdin()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._exit.wait(), limits.CHILD_EXIT_SECONDS)
            # In a thread: looking through /proc takes 20 µs a process, and the pipes must be drained meanwhile.
            await _in_thread(lambda: self._end(limits.CHILD_TERM_SECONDS))
        except asyncio.CancelledError:  # the loop is being shut down: no time for grace, no child left either
            self.kill_now()
            raise
        finally:
            self._notice_exit()  # before the descriptors are closed: the exit callbacks stop watching them
            for fd in set(self._open):
                self._close(fd)
            atexit.unregister(self.kill_now)

    def _end(self, grace: float) -> None:
        if self._popen.returncode is not None:
            return
        self._tree.end(grace)
        deadline = time.monotonic() + limits.CHILD_KILL_SECONDS
        while not self._reap() and time.monotonic() < deadline:
            time.sleep(_REAP_WAIT_SECONDS)

    def _reap(self) -> bool:
        """Reap the leader if it is dead; return whether it is reaped. Its pid is not signalled then: hence the lock."""
        with self._tree.lock:
            self._look()
            return self._popen.poll() is not None

    def _watch_exit(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (OSError, AttributeError):  # gVisor, old kernels, macOS
            threading.Thread(target=self._await_exit, name="dragoman-child", daemon=True).start()
            return
        self._open.add(self._pidfd)
        self._loop.add_reader(self._pidfd, self._notice_exit)

    def _await_exit(self) -> None:
        """Block until the leader is dead. For a thread of its own."""
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS before Python 3.13 cannot look without reaping
            self.exit_code = self._popen.wait()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._notice_exit)

    def _notice_exit(self) -> None:
        if self._exit.is_set():
            return
        self._look()
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
        # Its own words are all there by now; what it started may hold the pipe open for ever.
        self._stderr.finish()
        _log.debug("process %d (%s) ended: exit code %s", self.pid, os.path.basename(self.name), self.exit_code)
        self._exit.set()
        for callback in self._exit_callbacks:
            callback()

    def _look(self) -> None:
        """Note how the leader died, without reaping it."""
        if self.exit_code is not None or not hasattr(os, "waitid"):
            return
        with suppress(ChildProcessError):
            death = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if death is not None:
                self.exit_code = death.si_status if death.si_code == os.CLD_EXITED else -death.si_status

    def _keep_stderr(self, data: bytes) -> None:
        self._stderr_ring += data
        if len(self._stderr_ring) > 2 * limits.STDERR_RING_BYTES:  # seldom, so that a flood is not moved each time
            del self._stderr_ring[: -limits.STDERR_RING_BYTES]
        if self._on_stderr is not None:
            self._on_stderr(data)

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            os.close(fd)


class _Pipes(NamedTuple):
    """Our ends of the three pipes."""

    stdin: int
    stdout: int
    stderr: int


def _spawn(
    argv: Sequence[str], cwd: str, env: dict[str, str], passed: Sequence[int]
) -> "tuple[subprocess.Popen[bytes], _Pipes]":
    fds: list[int] = []
    try:
        for _ in range(3):
            fds += os.pipe()
        their_stdin, stdin, stdout, their_stdout, stderr, their_stderr = fds
        popen = subprocess.Popen(
            argv,
            stdin=their_stdin,
            stdout=their_stdout,
            stderr=their_stderr,
            cwd=cwd,
            env=env,
            start_new_session=True,
            close_fds=True,
            pass_fds=passed,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        for fd in fds:
            os.close(fd)
        raise StartFailed(f"Cannot start {argv[0]}: {_reason(argv[0], cwd, error)}.") from error
    for fd in (their_stdin, their_stdout, their_stderr):
        os.close(fd)
    for fd in (stdin, stdout, stderr):
        os.set_blocking(fd, False)
    return popen, _Pipes(stdin, stdout, stderr)


def _reason(program: str, cwd: str, error: Exception) -> str:
    """Return why it did not start, for a person who can change it."""
    if not os.path.isdir(cwd):
        return f"the folder {cwd} " + ("is not a folder" if os.path.exists(cwd) else "does not exist")
    if isinstance(error, PermissionError):
        return f"the folder {cwd} may not be entered" if error.filename == cwd else "it is not executable"
    if isinstance(error, FileNotFoundError):
        here = "/" in program and os.path.exists(os.path.join(cwd, program))
        return "the interpreter in its first line is missing" if here else "there is no such program"
    if isinstance(error, NotADirectoryError):
        return "there is no such program"
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        return "it is not a program that this machine can run"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "an argument, a variable or the folder holds a character that no command line can"


async def _in_thread(work: Callable[[], None]) -> None:
    """Run `work` in a thread of its own: the loop's executor may be full of tools that never return."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(done.set)

    try:
        threading.Thread(target=run, name="dragoman-stop", daemon=True).start()
    except RuntimeError:  # no more threads to have, perhaps because of the very tree that is to end
        work()
        return
    await done.wait()
