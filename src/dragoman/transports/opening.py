"""The stdin and stdout of a process before its event loop: reserved for the protocol, and the first bytes answered.

asyncio and what serves a client take longer to import than everything before them, and an editor's user waits. So an
agent waits for the first bytes here, blocking. If they are a plain `initialize` they are answered and `greeted` says
how; if they are anything else they are `unread`, and the transport delivers them to the link as the first bytes it
reads. Signals are caught from here on: `received` has the number of the one that came, and the server acts on it
(`agent/process.py`).

Only pipes and sockets are waited for: that is what clients start agents with. The end of a terminal's input is reported
once and must not be eaten here, and a file is not worth the trouble. Nothing of this imports asyncio.
"""

import fcntl
import os
import select
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final, Generic, Protocol, TypeVar

from dragoman import limits

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2


class FirstAnswer(Protocol):
    """What answers the first bytes: `sent` leaves at once, the rest is for the link that begins behind it."""

    @property
    def sent(self) -> bytes:
        """The bytes of the answer, framed."""


A = TypeVar("A", bound=FirstAnswer)
Greet = Callable[[bytes], A | None]


class Opening(Generic[A]):
    """The stdin and stdout of this process, and what happened on them so far."""

    def __init__(self) -> None:
        self.unread = b""
        self.greeted: A | None = None
        self.received: Final[list[int]] = []
        self._wake: tuple[int, int] | None = None
        self.stdin, self.stdout = take_stdio()
        self._catch_signals()

    def answer_first_request(self, greet: Greet[A]) -> None:
        """Wait for the first bytes, or a signal; answer them if `greet` can."""
        if not _is_stream(self.stdin):
            return
        # No timeout: an agent that waits for its first request has nothing else to do, and a signal wakes it.
        waiting = select.poll()
        waiting.register(self.stdin, select.POLLIN)
        if self._wake is not None:
            waiting.register(self._wake[0], select.POLLIN)
        waiting.poll()
        # Nothing was read: the server ends as for a signal that comes later.
        if self.received:
            return
        with suppress(OSError):  # the transport's next read raises it again
            self.unread = os.read(self.stdin, limits.READ_BYTES)
        greeted = _or_none(greet, self.unread)
        if greeted is not None and self._send(greeted.sent):
            # Answered, so the link begins behind it: `greeted` tells it what was exchanged.
            self.unread = b""
            self.greeted = greeted

    def hand_over(self) -> None:
        """Close the wake-up pipe: the event loop waits for input from now on.

        Signals are still recorded in `received`, until their handlers are replaced.
        """
        if self._wake is not None:
            signal.set_wakeup_fd(-1)
            for fd in self._wake:
                os.close(fd)
            self._wake = None

    def _send(self, data: bytes) -> bool:
        """Send the bytes; return whether all have left. A pipe or socket that is ready takes PIPE_BUF bytes at once."""
        ready = select.poll()
        ready.register(self.stdout, select.POLLOUT)
        # All or nothing: if part of it could not leave, the link would have to know how much did.
        if len(data) > select.PIPE_BUF or not ready.poll(0):
            return False
        try:
            taken = os.write(self.stdout, data)
        except OSError:
            return False
        while taken < len(data):  # a device may do as it likes; it has begun, so it is seen through
            ready.poll()
            try:
                taken += os.write(self.stdout, data[taken:])
            except BlockingIOError:
                continue
            except OSError:
                break  # the client has closed its end: the next write fails too, and the link ends
        return True

    def _catch_signals(self) -> None:
        wake = os.pipe()
        try:
            for fd in wake:
                os.set_blocking(fd, False)
            # Written to inside the handler in C: a signal between our last look and the wait is not missed.
            signal.set_wakeup_fd(wake[1], warn_on_full_buffer=False)
        except ValueError:  # not in the main thread
            for fd in wake:
                os.close(fd)
            return
        self._wake = wake
        for number in SIGNALS:
            signal.signal(number, self._caught)

    def _caught(self, number: int, _: FrameType | None) -> None:
        self.received.append(number)
        for each in SIGNALS:  # a second signal ends us at once
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)


def _is_stream(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _or_none(greet: Greet[A], data: bytes) -> A | None:
    """Return what `greet` returns; None if it fails: it fails again where that can be answered and reported."""
    try:
        return greet(data)
    except Exception:
        return None


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
