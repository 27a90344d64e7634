"""What is particular to stdin and stdout: a process around them, other things than pipes, and who shares them."""

import asyncio
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import tty
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import IO, Any

import pytest

from dragoman import limits
from dragoman.errors import LinkClosed
from dragoman.transports.stdio import StdioTransport
from tests.support.waiting import settled, until

from .pairs import FdPeer, Recorder

pytestmark = pytest.mark.anyio

# An agent that repeats what it hears, and ends when its client has.
ECHO = """
import asyncio, os, subprocess, sys, warnings
from dragoman.transports.stdio import StdioTransport

class Echo:
    def __init__(self, transport):
        self.transport, self.out, self.over = transport, bytearray(), asyncio.Event()
    def data_received(self, data):
        self.out += data
        self.writable()
    def writable(self):
        del self.out[:self.transport.write(bytes(self.out))]
    def connection_lost(self, error):
        print("lost:", repr(error), file=sys.stderr)
        self.over.set()

async def main(transport):
    echo = Echo(transport)
    transport.start(echo)
    during(transport)
    await echo.over.wait()
    while echo.out:
        await asyncio.sleep(0.001)
    await transport.close()
    after()

def before(): pass
def during(transport): pass
def after(): pass
"""


# Found from any folder, and buffering as Python does by itself.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
ENVIRONMENT["PYTHONPATH"] = str(Path(limits.__file__).parents[1])


def agent(*changes: str) -> list[str]:
    run = "before()\nasyncio.run(main(StdioTransport.of_this_process()))"
    return [sys.executable, "-c", "\n".join([ECHO, *changes, run])]


def run(command: list[str], check: bool = False, **how: Any) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(command, timeout=40, env=ENVIRONMENT, check=check, **how)


def start(command: list[str]) -> "tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes], IO[bytes]]":
    process = subprocess.Popen(command, env=ENVIRONMENT, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process, process.stdin, process.stdout, process.stderr


def test_what_any_code_prints_goes_to_stderr_and_never_into_the_protocol() -> None:
    changes = """
def before():
    print("buffered before")
def during(transport):
    print("from print")
    sys.__stdout__.write("from an old reference\\n")
    os.write(1, b"from C\\n")
    os.system("echo from a shell")
    subprocess.run([sys.executable, "-c", "print('from a child')"])
    warnings.warn("from a warning")
def after():
    print("from a late print")
"""
    done = run(agent(changes), input=b"frame\n", capture_output=True, check=True)
    assert done.stdout == b"frame\n"
    said = ("buffered before", "from print", "from an old reference", "from C", "from a shell", "from a child")
    for text in (*said, "from a warning", "from a late print"):
        assert text in done.stderr.decode()


def test_what_is_printed_is_on_stderr_at_once_and_not_when_a_buffer_is_flushed() -> None:
    changes = """
def before():
    print("buffered before")
def during(transport):
    print("from print")
    os._exit(0)
"""
    done = run(agent(changes), input=b"", capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"buffered before\nfrom print\n")


def test_no_other_code_can_read_a_request() -> None:
    changes = """
def during(transport):
    os.system("cat")
    try: input()
    except EOFError: pass
"""
    done = run(agent(changes), input=b"frame\n", capture_output=True, check=True)
    assert done.stdout == b"frame\n"


def test_a_child_of_the_agent_does_not_inherit_the_protocol(tmp_path: Path) -> None:
    changes = """
def during(transport):
    with open("pid", "w") as file:
        file.write(str(os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")))
"""
    # If the sleeper had stdout, run() would wait for the end of it. It may have stderr.
    done = run(agent(changes), input=b"frame\n", stdout=PIPE, stderr=DEVNULL, cwd=tmp_path)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert done.stdout == b"frame\n"


def test_a_child_of_the_agent_does_not_inherit_files_either(tmp_path: Path) -> None:
    changes = """
def during(transport):
    os.system("ls -l /proc/self/fd >&2")
"""
    (tmp_path / "in").touch()
    with open(tmp_path / "in", "rb") as stdin, open(tmp_path / "out", "wb") as stdout:
        done = run(agent(changes), stdin=stdin, stdout=stdout, stderr=PIPE)
    assert b"pipe:" in done.stderr
    assert str(tmp_path).encode() not in done.stderr


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_regular_files_are_read_to_the_end_and_written(tmp_path: Path, size: int) -> None:
    text = os.urandom(size)
    (tmp_path / "in").write_bytes(text)
    with open(tmp_path / "in", "rb") as stdin, open(tmp_path / "out", "wb") as stdout:
        done = run(agent(), stdin=stdin, stdout=stdout, stderr=PIPE)
    assert (done.returncode, done.stderr) == (0, b"lost: None\n")
    assert (tmp_path / "out").read_bytes() == text


def test_dev_null_is_an_end_at_once() -> None:
    done = run(agent(), stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    assert (done.returncode, done.stderr) == (0, b"lost: None\n")


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_process_started_without_them_ends_quietly(closed: str, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(agent()[2])
    command = ["sh", "-c", f'exec "$0" agent.py {closed}', sys.executable]
    done = run(command, stdin=DEVNULL, capture_output=True, cwd=tmp_path)
    assert done.returncode == 0


def test_a_client_that_vanishes_ends_the_agent() -> None:
    process, stdin, stdout, stderr = start(agent())
    stdin.write(b"frame\n")
    stdin.flush()
    assert stdout.readline() == b"frame\n"
    stdin.close()
    stdout.close()
    assert process.wait(20) == 0
    assert stderr.read() == b"lost: None\n"
    stderr.close()


def test_a_client_that_stops_reading_for_good_ends_an_agent_that_writes() -> None:
    changes = """
def during(transport):
    async def chatter():
        while True:
            transport.write(b"update\\n")
            await asyncio.sleep(0)
    global task
    task = asyncio.ensure_future(chatter())
"""
    process, stdin, stdout, stderr = start(agent(changes))
    assert stdout.readline() == b"update\n"
    stdout.close()  # stdin stays open: there is no end of file to see
    assert process.wait(20) == 0
    assert stderr.read() == b"lost: LinkClosed('The peer is gone: Broken pipe.')\n"
    stderr.close()
    stdin.close()


def test_stderr_on_the_same_pipe_stays_blocking() -> None:
    changes = """
def during(transport):
    assert os.get_blocking(2)
    print("x" * 300_000, file=sys.stderr)  # more than the pipe holds: a non-blocking stderr would raise
"""
    done = run(agent(changes), input=b"", stdout=PIPE, stderr=subprocess.STDOUT)
    assert (done.returncode, done.stdout) == (0, b"x" * 300_000 + b"\nlost: None\n")


async def test_a_terminal_carries_frames_and_is_never_made_non_blocking() -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    receiver, transport = Recorder(), StdioTransport(os.dup(slave), os.dup(slave))
    transport.start(receiver)
    peer = FdPeer(master, os.dup(master))
    await peer.write(b"hello")
    await until(lambda: receiver.data == b"hello")
    assert transport.write(b"hello yourself") == 14
    assert await peer.read(14) == b"hello yourself"
    assert os.get_blocking(slave)
    await transport.close()
    assert receiver.losses == [None]
    await peer.vanish()
    os.close(slave)


async def test_what_was_read_before_is_received_first_and_not_behind_a_pause() -> None:
    stdin, peer_writes = os.pipe()
    os.write(peer_writes, b" and now")
    receiver, transport = Recorder(), StdioTransport(stdin, os.open(os.devnull, os.O_WRONLY), unread=b"before")
    transport.start(receiver)
    transport.pause_reading()
    await settled()
    assert receiver.data == b""
    transport.resume_reading()
    transport.resume_reading()
    await until(lambda: receiver.data == b"before and now")
    os.close(peer_writes)
    await until(lambda: receiver.losses)
    await transport.close()


async def test_what_was_read_before_is_dropped_by_a_close() -> None:
    stdin, peer_writes = os.pipe()
    receiver, transport = Recorder(), StdioTransport(stdin, os.open(os.devnull, os.O_WRONLY), unread=b"before")
    transport.start(receiver)
    await transport.close()
    await settled()
    assert receiver.data == b""
    assert receiver.losses == [None]
    os.close(peer_writes)


async def test_requests_behind_a_pause_are_not_begun_for_a_client_that_vanished() -> None:
    stdin, peer_writes = os.pipe()
    peer_reads, stdout = os.pipe()
    receiver, transport = Recorder(), StdioTransport(stdin, stdout)
    transport.start(receiver)
    transport.pause_reading()
    os.write(peer_writes, b"a request")
    os.close(peer_writes)
    os.close(peer_reads)
    transport.write(b"an update")
    await until(lambda: receiver.losses)
    transport.resume_reading()
    await settled()
    assert isinstance(receiver.losses[0], LinkClosed)
    assert not receiver.data
    await transport.close()


async def test_a_socket_is_blocking_again_after_close() -> None:
    ours, peer = socket.socketpair()
    with ours, peer:
        transport = StdioTransport(os.dup(ours.fileno()), os.dup(ours.fileno()))
        assert not os.get_blocking(ours.fileno())
        transport.start(Recorder())
        await transport.close()
        assert os.get_blocking(ours.fileno())


async def test_one_socket_for_both_directions_can_be_closed_by_half() -> None:
    ours, theirs = socket.socketpair()
    fd = ours.detach()
    receiver, transport = Recorder(), StdioTransport(fd, os.dup(fd))
    transport.start(receiver)
    peer = FdPeer(theirs.fileno(), theirs.fileno())
    transport.write(b"question")
    transport.close_writing()
    assert await peer.read_to_end() == b"question"
    await peer.write(b"answer")
    await until(lambda: receiver.data == b"answer")
    theirs.close()
    await until(lambda: receiver.losses == [None])
    await transport.close()


async def test_a_named_pipe_reports_its_end_though_its_writer_left_before_we_came(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    stdin = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(stdin, True)
    (tmp_path / "fifo").write_bytes(b"frame")
    receiver, transport = Recorder(), StdioTransport(stdin, os.open(os.devnull, os.O_WRONLY))
    transport.start(receiver)
    await until(lambda: receiver.losses)
    assert (bytes(receiver.data), receiver.losses) == (b"frame", [None])
    await transport.close()


async def test_a_file_is_read_no_faster_than_it_is_wanted_and_its_thread_ends_with_the_transport(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").write_bytes(bytes(1_000_000))
    threads = threading.active_count()
    receiver = Recorder()
    transport = StdioTransport(os.open(tmp_path / "in", os.O_RDONLY), os.open(os.devnull, os.O_WRONLY))
    receiver.on_data = transport.pause_reading
    transport.start(receiver)
    for pieces in (1, 2, 3):
        await receiver.until_pieces(pieces)
        await settled()
        assert receiver.pieces == [65536] * pieces
        transport.resume_reading()
    await transport.close()
    await until(lambda: threading.active_count() == threads)


async def test_a_chunk_that_was_read_before_a_pause_waits_for_the_resume(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"frame")
    receiver = Recorder()
    transport = StdioTransport(os.open(tmp_path / "in", os.O_RDONLY), os.open(os.devnull, os.O_WRONLY))
    transport.start(receiver)
    transport.pause_reading()
    await asyncio.to_thread(lambda: None)
    await settled()
    assert not receiver.data
    transport.resume_reading()
    await until(lambda: receiver.losses == [None])
    assert receiver.data == b"frame"
    await transport.close()


async def test_a_full_disk_is_a_loss() -> None:
    stdin, keep_open = os.pipe()
    receiver, transport = Recorder(), StdioTransport(stdin, os.open("/dev/full", os.O_WRONLY))
    transport.start(receiver)
    assert transport.write(b"frame") == 5
    await until(lambda: receiver.losses)
    assert isinstance(receiver.losses[0], LinkClosed)
    await transport.close()
    os.close(keep_open)


async def test_where_proc_refuses_the_flag_is_set_and_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> str:
        raise PermissionError(path)

    monkeypatch.setattr(os, "readlink", refuse)
    stdin, peer_writes = os.pipe()
    peer_reads, stdout = os.pipe()
    shared = os.dup(stdin)
    receiver, transport = Recorder(), StdioTransport(stdin, stdout)
    transport.start(receiver)
    assert not os.get_blocking(shared)
    peer = FdPeer(peer_reads, peer_writes)
    await peer.write(b"frame")
    await until(lambda: receiver.data == b"frame")
    await transport.close()
    assert os.get_blocking(shared)
    await peer.vanish()
    os.close(shared)


def test_importing_the_agent_side_does_not_import_what_starts_children() -> None:
    code = "import sys, dragoman.transports.stdio; print(*sys.modules)"
    done = run([sys.executable, "-c", code], stdout=PIPE, check=True)
    imported = set(done.stdout.decode().split())
    assert "dragoman.host.pipes" in imported
    assert not imported & {"dragoman.host.process", "dragoman.host.process_tree", "dragoman.transports.child"}
