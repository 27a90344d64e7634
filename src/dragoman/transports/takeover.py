"""Reserves descriptors 0 and 1 of this process for the protocol. Loads nothing: it runs before the event loop."""

import fcntl
import os
import sys
from contextlib import suppress
from typing import Final

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2


def take_stdio() -> tuple[int, int]:
    """Reserve descriptors 0 and 1 for the protocol, once and for good; return what they were, under other numbers.

    The first thing a program does, before it makes its event loop: started without a stdin, that loop would get
    the number 0.

    From then on descriptor 1 and `sys.stdout` are stderr, for Python, for C and for children: what a tool, a
    warning or a library prints cannot mix into the protocol. Descriptor 0 is /dev/null: no other
    code can read a request from it. Neither is restored at the end: a late print would still reach the client.
    """
    stdin, stdout = _duplicate(STDIN), _duplicate(STDOUT)
    _point_at_null(STDIN)
    try:
        os.dup2(STDERR, STDOUT)
    except OSError:  # started without a stderr
        _point_at_null(STDOUT)
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()  # what was printed before and still waits in the buffer: to stderr as well
    sys.stdout = sys.stderr
    return stdin, stdout


def _duplicate(fd: int) -> int:
    """Return a duplicate above 0, 1 and 2 that children do not inherit; of /dev/null if `fd` is closed."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)
    except OSError:
        _point_at_null(fd)
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)


def _point_at_null(fd: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != fd:
        os.dup2(null, fd)
        os.close(null)
    os.set_inheritable(fd, True)
