"""A confined command sends nothing to a daemon of the host: not through a socket, a FIFO, or shared memory."""

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.confined_commands import PYTHON, Box

SEND = """
import array, os, socket, sys
target = sys.argv[1]
outcomes = []
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    try:
        left, right = socket.socketpair(socket.AF_UNIX, kind)
    except OSError as error:
        outcomes.append(f"{kind.name} {error.strerror}")
        continue
    descriptors = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))]
    ways = {
        "sendto": lambda: left.sendto(b"heard", target),
        "sendmsg": lambda: left.sendmsg([b"heard"], descriptors, 0, target),
        "connect": lambda: (left.connect(target), left.send(b"heard")),
        "reconnect": lambda: (right.close(), left.connect(target), left.send(b"heard")),
        "listen": lambda: left.listen(),
    }
    for name, way in ways.items():
        try:
            way()
        except OSError:
            pass
        else:
            outcomes.append(f"{kind.name} {name}")
print("\\n".join(outcomes))
"""


@pytest.fixture
def daemon(box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A daemon that takes datagrams in the workspace, where a command can surely see its name."""
    monkeypatch.chdir(box.workspace)  # a socket's path is short
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind("daemon.sock")
        one.setblocking(False)
        yield one


def heard(daemon: socket.socket) -> bytes:
    try:
        return daemon.recv(100)
    except BlockingIOError:
        return b""


def test_no_datagram_reaches_a_daemon_of_the_host(box: Box, daemon: socket.socket) -> None:
    done = box.python(SEND, "daemon.sock")
    # A SEQPACKET pair ignores the address: what is sent goes to its own other end.
    assert (done.stdout.splitlines(), done.stderr) == (
        [
            "SOCK_DGRAM Operation not permitted",
            "SOCK_RAW Operation not permitted",
            "SOCK_SEQPACKET sendto",
            "SOCK_SEQPACKET sendmsg",
        ],
        "",
    )
    assert heard(daemon) == b""


def test_the_same_datagrams_arrive_without_a_sandbox(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind("daemon.sock")
        one.setblocking(False)
        subprocess.run([PYTHON, "-c", SEND, "daemon.sock"], check=True, capture_output=True)
        assert heard(one) == b"heard"


def test_pairs_that_programs_use_still_work(box: Box) -> None:
    """asyncio and multiprocessing talk to themselves through them."""
    script = """
import asyncio, multiprocessing
asyncio.run(asyncio.sleep(0))
left, right = multiprocessing.Pipe()
left.send("fine")
print(right.recv())
"""
    done = box.python(script)
    assert (done.stdout, done.stderr) == ("fine\n", "")


SHARED = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
key = int(os.environ["KEY"])
found = libc.shmget(key, 0, 0)
print(found, os.strerror(ctypes.get_errno()) if found < 0 else "")
"""


def test_shared_memory_of_the_host_is_out_of_reach(box: Box) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    key = int.from_bytes(os.urandom(3), "big") | 1
    segment = libc.shmget(key, 4096, 0o1600)
    assert segment >= 0
    try:
        done = box.run(PYTHON, "-I", "-c", SHARED, env={"KEY": str(key)})
    finally:
        libc.shmctl(segment, 0, None)
    absent = "No such file or directory" if box.level == "bubblewrap" else "Operation not permitted"
    assert done.stdout == f"-1 {absent}\n"


def test_limits_of_other_processes_cannot_be_set(box: Box) -> None:
    script = "import resource, sys; resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (20, 20))"
    with subprocess.Popen(["sleep", "100"]) as other:
        try:
            done = box.python(script, str(other.pid))
            limits = Path(f"/proc/{other.pid}/limits").read_text()
        finally:
            other.kill()
    assert done.returncode != 0
    assert next(line.split()[3] for line in limits.splitlines() if line.startswith("Max open files")) != "20"


@pytest.fixture
def fifo(place: Path) -> Iterator[int]:
    """A FIFO of a daemon outside of the workspace; the daemon's end."""
    os.mkfifo(place / "fifo")
    reader = os.open(place / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    yield reader
    os.close(reader)


def test_nothing_is_written_into_a_fifo_outside_of_the_workspace(box: Box, place: Path, fifo: int) -> None:
    assert box.succeeded([f"echo heard > {place}/fifo", f"echo heard 1<> {place}/fifo", "echo heard > ../fifo"]) == []
    assert os.read(fifo, 100) == b""


def test_the_same_fifo_is_written_into_without_a_sandbox(place: Path, fifo: int) -> None:
    subprocess.run(["/bin/sh", "-c", f"echo heard > {place}/fifo"], check=True)
    assert os.read(fifo, 100) == b"heard\n"


def test_pipes_fifos_and_terminals_of_its_own_are_the_commands_to_use(box: Box) -> None:
    script = "mkfifo f && (echo own > f &) && cat f && echo out > /dev/stdout && cat <(echo sub)"
    done = box.sh(script)
    assert (done.stdout, done.stderr) == ("own\nout\nsub\n", "")
    if box.level == "bubblewrap":
        terminal = "import os, pty; master, slave = pty.openpty(); print(os.get_terminal_size(slave).columns)"
        assert box.python(terminal).stdout == "0\n"
