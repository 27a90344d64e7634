"""A process that has imported everything an agent needs, and forks one whenever it is told to: thus many are cheap.

What an agent does before its imports cannot be seen here.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

# A program comes with its stdin, stdout and stderr; its process id goes back, and its exit code when it has ended.
_PROGRAM = """
import gc, json, os, socket, sys
import dragoman.agent.process, dragoman.agent.serve, dragoman.dialects.v1_agent, dragoman.dialects.v2_agent
nursery = socket.socket(fileno=int(sys.argv[1]))
gc.freeze()
while True:
    source, pipes, _, _ = socket.recv_fds(nursery, 1 << 16, 3)
    if not source:
        break
    child = os.fork()
    if not child:
        nursery.close()
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        exec(source)
        os._exit(0)  # the memory of a fork is copied when it is taken apart
    for pipe in pipes:
        os.close(pipe)
    nursery.send(b"%d" % child)
    nursery.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Child(NamedTuple):
    """A program that runs."""

    pid: int
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


class Nursery:
    """One child at a time; `exit_code` is how the last one ended."""

    def __init__(self) -> None:
        self.exit_code = 0
        self._line, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-c", _PROGRAM, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])

    @contextmanager
    def child(self, source: str) -> Iterator[Child]:
        """A child that runs this program."""
        (stdin, ours_in), (ours_out, stdout), (ours_err, stderr) = (os.pipe() for _ in range(3))
        socket.send_fds(self._line, [source.encode()], [stdin, stdout, stderr])
        for fd in (stdin, stdout, stderr):
            os.close(fd)
        pid = int(self._line.recv(64))
        try:
            with open(ours_in, "wb", buffering=0) as write, open(ours_out, "rb") as out, open(ours_err, "rb") as errors:
                yield Child(pid, write, out, errors)
        finally:
            self.exit_code = int(self._line.recv(64))

    def close(self) -> None:
        self._line.close()
        self._process.wait()
