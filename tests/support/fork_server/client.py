"""A process that has imported everything an agent needs, and forks one whenever it is told to: thus many are cheap.

A child is a process like any other: it has pipes or a terminal, an environment and a folder of its own, and is waited
for, signalled and killed as one that was started. Some things cannot be seen here, and need a start:
- what a program does before and while it imports;
- what Python says while it takes itself apart;
- what Python itself takes from its environment and its options when it starts: the encoding and the locale of the
  streams, every variable PYTHON*, LANG and LC_*, and `-P`;
- /proc/PID/cmdline and /proc/PID/environ, which are those of the fork server;
- a process group and a session of its own, which it has only at a terminal.
"""

import atexit
import fcntl
import functools
import io
import marshal
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from pexpect.fdpexpect import fdspawn  # type: ignore[import-untyped]

MAIN: Final = "import sys; from dragoman.cli.main import main; sys.exit(main())"
_SERVER: Final = Path(__file__).with_name("server.py")
_LAUNCHER: Final = Path(__file__).with_name("launcher.py")
# What stands in /proc for every child: nothing that a test could look for there, and nothing that is secret.
_PASSED_ON: Final = ("PATH", "LANG", "PYTHONDONTWRITEBYTECODE")
# A busy machine is not a bug: only a program that hangs takes longer to end with its terminal.
_SECONDS: Final = 30


class Offspring:
    """A process that was forked; as much of `subprocess.Popen` as tests use."""

    def __init__(self, line: socket.socket) -> None:
        self.returncode: int | None = None
        self._line = line  # its process id comes here, and its exit code when it has ended
        self.pid = int(line.recv(64))

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended, and we are about to be told
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._line], [], [], timeout)[0]:
            self.returncode = int(self._line.recv(64))
            self._line.close()
        return self.returncode


class Forked(Offspring):
    """A child with pipes; a stream that a test has given it is an empty one here.

    Leaving the block closes its pipes and waits for it.
    """

    def __init__(self, streams: "Sequence[IO[bytes]]", line: socket.socket) -> None:
        super().__init__(line)
        self.stdin, self.stdout, self.stderr = streams

    def communicate(self, said: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Say this and nothing more; everything it writes, until it has ended."""
        heard: dict[int, bytes] = {}
        readers = [
            threading.Thread(target=lambda at=at, stream=stream: heard.update({at: stream.read()}))
            for at, stream in enumerate((self.stdout, self.stderr))
        ]
        for reader in readers:
            reader.start()
        try:
            self.stdin.write(said)
            self.stdin.close()
        except BrokenPipeError:
            pass  # it has not listened to the end
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        self._close()
        return heard[0], heard[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self.wait()

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


class Terminal(fdspawn):  # type: ignore[misc]
    """A child at a terminal of its own, with as much of `pexpect.spawn` as tests use."""

    def __init__(self, fd: int, child: Offspring, **settings: Any) -> None:
        super().__init__(fd, encoding="utf-8", codec_errors="replace", **settings)
        self.child, self.pid = child, child.pid

    def sendintr(self) -> None:
        self.send("\x03")

    def sendeof(self) -> None:
        self.send("\x04")

    def getecho(self) -> bool:
        return bool(termios.tcgetattr(self.child_fd)[3] & termios.ECHO)

    def kill(self, number: int) -> None:
        self.child.send_signal(number)

    def isalive(self) -> bool:
        return self.child.poll() is None

    def close(self) -> None:
        """Take the terminal away: its program must end then. How it has ended is known afterwards."""
        if not self.closed:
            super().close()
            try:
                code = self.child.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                self.child.kill()
                raise
            self.exitstatus = code if code >= 0 else None
            self.signalstatus = -code if code < 0 else None


class ForkServer:
    """The process. Use `fork_server()`: one is enough for all tests of a worker."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fork-server-"))
        self._line, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, door:
            door.bind(str(self._folder / "line"))
            door.listen()
            fds = [theirs.fileno(), door.fileno()]
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_SERVER), *map(str, fds)],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            )
        self.python = str(self._folder / "python")
        """What can be started in place of Python by code that starts programs itself; `dragoman` is forked then."""
        Path(self.python).write_text(f"#!{sys.executable} -IS\n{_LAUNCHER.read_text()}")
        Path(self.python).chmod(0o700)

    def child(
        self,
        source: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        **given: int | IO[bytes],
    ) -> Forked:
        """A child that runs this program, with pipes or the streams that are given."""
        request = _request(source, arguments, env, cwd)  # may refuse, and nothing is open yet
        pipes: dict[str, tuple[int, IO[bytes]]] = {}
        for name in ("stdin", "stdout", "stderr"):
            pipes[name] = _given(given[name]) if name in given else _piped(name)
        line = self._ask(request, [fd for fd, _ in pipes.values()])
        return Forked([ours for _, ours in pipes.values()], line)

    def at_terminal(
        self,
        source: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        dimensions: tuple[int, int] = (24, 80),
        timeout: float = 40,
    ) -> Terminal:
        """The same at a terminal, with so many rows and columns."""
        request = {**_request(source, arguments, env, cwd), "terminal": True}
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", *dimensions, 0, 0))
        line = self._ask(request, [theirs, os.dup(theirs), os.dup(theirs)])
        return Terminal(ours, Offspring(line), timeout=timeout)

    def dragoman(self) -> list[str]:
        """The command `dragoman`, forked: for a shell, or whatever else starts commands by itself."""
        return [self.python, "-m", "dragoman.cli.main"]

    def command(self, source: str, *arguments: str, imports: str = "") -> list[str]:
        """The same for any program; what it imports, parted by commas, is imported before."""
        return [self.python, f"-Ximport={imports}", "-c", source, *arguments]

    def _ask(self, request: dict[str, Any], streams: Sequence[int]) -> socket.socket:
        """Where its process id will be told. The streams are the child's."""
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._line, [marshal.dumps(request)], [*streams, theirs.fileno()])
        for fd in streams:
            os.close(fd)
        return ours

    def close(self) -> None:
        self._line.close()
        self._process.wait()
        shutil.rmtree(self._folder)


def _request(source: str, arguments: Sequence[str], env: Mapping[str, str] | None, cwd: Path | None) -> dict[str, Any]:
    for name in sorted({*os.environ, *(env or ())}):
        if env is not None and _read_at_start(name) and env.get(name) != os.environ.get(name):
            raise ValueError(f"A forked child cannot have a {name} of its own: start this program for real.")
    return {
        "source": source,
        "arguments": list(arguments),
        "env": dict(os.environ if env is None else env),
        "cwd": str(cwd or Path.cwd()),
    }


def _read_at_start(name: str) -> bool:
    """Whether Python looks at this variable when it starts, and not later."""
    return name in ("LANG", "LC_ALL") or (name.startswith("PYTHON") and name != "PYTHONDONTWRITEBYTECODE")


def _piped(name: str) -> tuple[int, IO[bytes]]:
    reads, writes = os.pipe()
    return (reads, open(writes, "wb")) if name == "stdin" else (writes, open(reads, "rb"))


def _given(stream: int | IO[bytes]) -> tuple[int, IO[bytes]]:
    if stream == subprocess.DEVNULL:
        return os.open(os.devnull, os.O_RDWR), io.BytesIO()
    return os.dup(stream if isinstance(stream, int) else stream.fileno()), io.BytesIO()


@functools.cache
def fork_server() -> ForkServer:
    """The one of this worker."""
    opened = ForkServer()
    atexit.register(opened.close)
    return opened
